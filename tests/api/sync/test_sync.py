"""`sync` exchanges the blocks of shared parties, no others, between devices of their members."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import antiphon
from antiphon import Party, Store, sync
from antiphon.core.keys import PublicKey
from antiphon.halo import new_identity
from antiphon.mesh.replication.session import Session
from antiphon.testing.spans import SpanWriter


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


def test_an_invitation_alone_lets_nobody_read(tmp_path: Path, ada: Store, party: Party) -> None:
    party.object({"title": "Milk"})
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        invitation = party.invite(new_identity(eve.keys, "somebody else")[0].key)
        eve.join(str(invitation))
        assert sync(ada, eve) == sync(eve, ada) == 0
        assert list(eve.manager.feeds.feeds(party.key)) == []
        party.invite(eve.me)
        assert sync(ada, eve) > 0
        assert len(eve.party(party.key).query()) == 1


def test_a_revoked_member_gets_nothing_more(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    party.revoke(bob.me)
    party.object({"title": "Milk"})
    assert sync(ada, bob) == 0
    assert len(theirs.query()) == 0
    party.invite(bob.me)
    sync(ada, bob)
    assert len(theirs.query()) == 1
    theirs.object({"title": "Salt"})
    sync(ada, bob)
    assert len(party.query()) == 2


def test_who_was_admitted_meanwhile_is_let_in_by_a_member_who_has_not_heard_of_it(
    tmp_path: Path, ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        assert sync(bob, eve) == 0, "Bob has not heard of her, and she has nothing to show but herself"
        sync(ada, eve)
        eve.party(party.key).object({"title": "Salt"})
        sync(bob, eve)
        assert theirs.query().ids == eve.party(party.key).query().ids
        assert len(theirs.query()) == 1


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


@pytest.mark.parametrize("longer", [0, 3])
def test_a_fork_is_found_where_two_stores_hold_different_branches(
    tmp_path: Path, ada: Store, bob: Store, party: Party, theirs: Party, longer: int
) -> None:
    """Mallory shows Ada one block and Bob another at the same place; of equal or different length."""
    with antiphon.open(tmp_path / "mallory", name="Mallory", unprotected=True) as mallory:
        mallory.join(party.invite(mallory.me))
        sync(ada, mallory)
        sync(ada, bob)
        item = mallory.party(party.key).object({"title": "common"})
        sync(ada, mallory)
        sync(ada, bob)
        data = mallory.party(party.key).member.data
        assert data is not None
        feed = mallory.manager.feeds.record(data.feed)
        branch = SpanWriter(mallory.keys.pair(PublicKey(feed.feed)), party.key)
        branch.record = feed
        bob.manager.feeds.ingest(branch.write())
        for number in range(1 + longer):
            item["title"] = str(number)
        sync(ada, mallory)

    assert sync(ada, bob) > 0
    for store, held in ((ada, party), (bob, theirs)):
        assert len(store.manager.feeds.forks()) == 1
        assert store.manager.feeds.bounds(feed.feed).end == feed.length
        assert held.item(item.id).value == {"title": "common"}
    assert sync(ada, bob) == 0


def test_many_parties_cost_what_each_of_them_costs(ada: Store, bob: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """They share links in groups: with all on one, each step asked each of them, and 200 took minutes."""
    ticks = 0
    tick = Session.tick

    def counted(session: Session, now_ms: int) -> int | None:
        nonlocal ticks
        ticks += 1
        return tick(session, now_ms)

    monkeypatch.setattr(Session, "tick", counted)
    costs = []
    for count in (16, 48):
        for number in range(count):
            made = ada.create_party(f"{count} {number}")
            made.text("Hello")
            bob.join(made.invite(bob.me))
        before = ticks
        sync(ada, bob)
        costs.append(ticks - before)
    child = ada.party("16 3").create_child("below")
    child.text("Hello, child")
    bob.join(child.key)
    sync(ada, bob)

    synced = [known for known in bob.parties() if known.label.startswith(("16 ", "48 "))]
    assert len(synced) == 64
    assert sum(item.model == "antiphon/text" for known in synced for item in bob.party(known.party).query()) == 64
    assert [item.value for item in bob.party(child.key).query()] == ["Hello, child"]
    assert costs[1] < 5 * costs[0]
