"""`sync` copies the blocks of shared parties, no others, and none without a valid signature."""

from __future__ import annotations

import shutil
from pathlib import Path

import antiphon
from antiphon import Party, Store, sync
from antiphon.halo import new_identity


def test_an_exchange_says_what_moved_and_ends(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    assert sync(ada, bob) == 0
    party.object({"title": "Milk"})
    theirs.object({"title": "Salt"})
    assert sync(ada, bob) >= 2
    assert sync(bob, ada) == 0
    assert sorted(item.value["title"] for item in party.query()) == ["Milk", "Salt"]
    assert party.query().ids == theirs.query().ids


def test_parties_that_one_of_them_does_not_follow_stay_where_they_are(ada: Store, bob: Store, theirs: Party) -> None:
    diary = ada.create_party("Diary")
    diary.object({"title": "Secret"})
    sync(ada, bob)
    assert [known.label for known in bob.parties()] == ["Household"]
    assert list(bob.manager.feeds.feeds(diary.key)) == []


def test_a_paused_party_is_left_alone(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    bob.manager.pause(party.key)
    party.object({"title": "Milk"})
    assert sync(ada, bob) == 0
    bob.manager.resume(party.key)
    assert sync(ada, bob) > 0
    assert len(bob.party(party.key).query()) == 1
    assert theirs is not bob.party(party.key), "it was opened anew"


def test_a_third_device_gets_everything_from_the_second(
    tmp_path: Path, ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    note = party.object({"title": "Milk"})
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        sync(ada, bob)
        sync(bob, eve)
        there = eve.party(party.key)
        assert there.item(note.id).value == {"title": "Milk"}
        salt = there.object({"title": "Salt"})
        sync(eve, bob)
        sync(bob, ada)
        assert party.item(salt.id).value == {"title": "Salt"}
        assert there.query().ids == theirs.query().ids == party.query().ids


def test_somebody_who_was_not_admitted_reads_and_cannot_write(tmp_path: Path, ada: Store, party: Party) -> None:
    """An invitation alone admits nobody."""
    party.object({"title": "Milk"})
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        invitation = party.invite(new_identity(eve.keys, "somebody else")[0].key)
        eve.join(invitation)
        sync(ada, eve)
        there = eve.party(party.key)
        assert len(there.query()) == 1
        assert there.member.control is None
        assert sync(ada, eve) == 0


def test_a_folder_that_was_copied_goes_on_in_feeds_of_its_own(tmp_path: Path, ada: Store, party: Party) -> None:
    """Two stores with one identity must not write one feed: that would be two histories."""
    with antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob:
        bob.join(party.invite(bob.me))
        sync(ada, bob)
        bob.party(party.key).object({"title": "One"})
    shutil.copytree(tmp_path / "bob", tmp_path / "twin")

    for name, title in (("bob", "Two"), ("twin", "Three")):
        with antiphon.open(tmp_path / name, unprotected=True) as store:
            store.party(party.key).object({"title": title})
            sync(ada, store)

    assert sorted(item.value["title"] for item in party.query()) == ["One", "Three", "Two"]
    assert ada.manager.feeds.forks() == []
