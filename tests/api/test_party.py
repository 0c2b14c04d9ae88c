"""A party: creating items, members, batches, the root item, closures."""

from __future__ import annotations

from pathlib import Path

import pytest

import antiphon
from antiphon import InvalidInput, List, NotAuthorised, Object, Party, Role, Store, sync
from antiphon.core import KeyPair, SystemRandomness
from antiphon.core.errors import UnknownItem, UnknownModel
from antiphon.core.reasons import Reason
from antiphon.testing.copy_feeds import copy_feeds


def test_each_model_has_its_kind_of_handle(party: Party) -> None:
    kinds = [party.object(), party.list(), party.text(), party.thread(), party.create("antiphon/array")]
    assert [type(made).__name__ for made in kinds] == ["Object", "List", "Text", "Thread", "List"]
    assert [made.model for made in kinds[:4]] == [
        "antiphon/object",
        "antiphon/array",
        "antiphon/text",
        "antiphon/messenger",
    ]
    with pytest.raises(UnknownModel, match="installed: antiphon/array 1"):
        party.create("example/chess")


def test_an_item_is_made_with_a_name_a_type_and_a_parent(party: Party) -> None:
    board = party.object({"title": "Board"}, name="Board", type="board")
    card = party.text("Hello", name="Card", type="card", parent=board)
    assert (card.name, card.type, card.parent) == ("Card", "card", board)
    assert board.children == [card]


def test_an_item_is_in_its_party_and_in_no_other(ada: Store, party: Party) -> None:
    club = ada.create_party("Club")
    note = party.object()
    assert note in party
    assert note.id in party
    assert note not in club
    assert party.has(note.id)
    assert not club.has(note.id)
    with pytest.raises(UnknownItem, match="holds no item"):
        club.item(note.id)
    assert party.item(note.id, Object) == note
    with pytest.raises(InvalidInput, match="is of the kind Object, not List"):
        party.item(note.id, List)


def test_parents_are_of_the_same_party(ada: Store, party: Party) -> None:
    elsewhere = ada.create_party("Club").object()
    with pytest.raises(InvalidInput, match="the same party"):
        party.object(parent=elsewhere)
    with pytest.raises(InvalidInput, match="its own party"):
        party.object().move_under(elsewhere)
    with pytest.raises(InvalidInput, match="its own party"):
        party.object().embed(elsewhere)
    assert not party.items()[0].children


def test_the_name_is_seen_by_all(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    assert theirs.name == "Household"
    theirs.name = "Family"
    sync(ada, bob)
    assert party.name == "Family"
    assert "'Family'" in repr(party)


def test_the_root_is_an_object_of_the_party_as_a_whole(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    party.root["rules"] = {"noise": "until ten"}
    sync(ada, bob)
    assert isinstance(theirs.root, Object)
    assert theirs.root["rules"]["noise"] == "until ten"
    assert theirs.root not in list(theirs.items())


def test_a_batch_is_seen_whole_or_not_at_all(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    milk = party.object({"title": "Milk"})
    sync(ada, bob)
    with party.batch():
        milk["title"] = "Oat milk"
        party.object({"title": "Salt"})
        assert milk["title"] == "Oat milk", "its own changes are seen inside"
        assert len(party.items()) == 1, "queries find what was there before"
    assert len(party.items()) == 2
    sync(ada, bob)
    assert sorted(item["title"] for item in theirs.query().of(Object)) == ["Oat milk", "Salt"]


def test_of_a_batch_that_fails_nothing_has_happened(party: Party) -> None:
    milk = party.object({"title": "Milk"})

    def fail() -> None:
        with party.batch():
            milk["title"] = "Oat milk"
            made.append(party.object({"title": "Salt"}))
            raise ZeroDivisionError

    made: list[Object] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert milk["title"] == "Milk"
    assert made[0] not in party
    assert len(party.items()) == 1


def test_members_are_invited_with_a_role_and_revoked(ada: Store, bob: Store, party: Party) -> None:
    bob.join(party.invite(bob.me, Role.READER))
    sync(ada, bob)
    theirs = bob.party(party.key)
    assert {member.subject for member in theirs.members.members} == {ada.me, bob.me}
    with pytest.raises(NotAuthorised):
        theirs.object({"title": "Salt"})
    party.invite(bob.me, Role.EDITOR)
    sync(ada, bob)
    salt = theirs.object({"title": "Salt"})
    sync(ada, bob)
    assert party.item(salt.id).value == {"title": "Salt"}

    party.revoke(bob.me)
    late = theirs.object({"title": "Late"})
    assert sync(ada, bob) == 0, "he gets nothing more, and does not hear why"
    copy_feeds(bob.manager.feeds, ada.manager.feeds, party.key)
    copy_feeds(ada.manager.feeds, bob.manager.feeds, party.key)
    party.refresh()

    assert late not in party
    assert salt in party
    with pytest.raises(NotAuthorised):
        theirs.object({"title": "Later"})


def refusals(party: Party) -> set[str]:
    """What a device is told if it may not write a message, nor a credential."""
    told = set()
    for write in (lambda: party.object({"title": "Late"}), lambda: party.invite(party.store.me, Role.READER)):
        with pytest.raises(NotAuthorised) as error:
            write()
        told.add(str(error.value))
    return told


def test_a_revoked_device_is_told_the_same_before_and_after_a_restart(tmp_path: Path) -> None:
    """Before a restart its feed was past its cut; after one it had no feed, and was to `join`."""
    with antiphon.open(tmp_path / "ada", unprotected=True, epochs=False) as ada:
        party = ada.create_party("Shared")
        with antiphon.open(tmp_path / "bob", unprotected=True, epochs=False) as bob:
            bob.join(party.invite(bob.me))
            sync(ada, bob)
            theirs = bob.party("Shared")
            theirs.object({"title": "Salt"})
            sync(ada, bob)
            party.revoke(bob.me)
            copy_feeds(ada.manager.feeds, bob.manager.feeds, party.key)
            (told,) = refusals(theirs)
            theirs.refresh()
            assert refusals(theirs) == {told}
    with antiphon.open(tmp_path / "bob", unprotected=True, epochs=False) as bob:
        assert refusals(bob.party("Shared")) == {told}
    assert f"[{Reason.NOT_MEMBER}]; ask an owner to admit it" in told


def test_who_is_admitted_again_writes_on_without_a_restart_in_new_feeds(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    """Formerly the device kept its ended feeds, and could not write until its store was opened again."""
    before = theirs.object({"title": "Salt"})
    sync(ada, bob)
    party.revoke(bob.me)
    theirs.object({"title": "Late"})
    sync(ada, bob)
    party.invite(bob.me, Role.EDITOR)
    sync(ada, bob)

    after = theirs.object({"title": "Pepper"})
    before["title"] = "Sea salt"
    sync(ada, bob)

    assert party.item(after.id).value == {"title": "Pepper"}
    assert party.item(before.id).value == theirs.item(before.id).value == {"title": "Sea salt"}


def test_a_view_needs_a_class_and_a_name_and_keeps_its_key(party: Party) -> None:
    with pytest.raises(InvalidInput, match="has a class"):
        party.create_view("", name="Board")
    board = party.create_view("org.example:planner", name="Board", type="board")
    notes = party.create_view("org.example:notes", name="Notes", model="antiphon/text")
    party.object().set_metadata("view_class", "org.example:planner")

    assert list(party.views()) == [board, notes]
    assert list(party.views("org.example:planner")) == [board], "what only says that it is one is none"
    assert party.view(board.locator.key) == board
    with pytest.raises(UnknownItem, match="holds no view"):
        party.view(KeyPair.generate(SystemRandomness()).key)
    with pytest.raises(InvalidInput, match="is no view"):
        _ = party.object().locator


def test_time_travel_shows_the_party_as_it_was(party: Party) -> None:
    milk = party.object({"title": "Milk"})
    then = party.timeframe
    milk["title"] = "Oat milk"
    salt = party.object({"title": "Salt"})

    past = party.at(then)

    assert past.item(milk.id).value == {"title": "Milk"}
    assert bytes(salt.id) not in past.items()
    with pytest.raises(UnknownItem, match="there was no item"):
        past.item(salt.id)
    assert milk.at(then).value == {"title": "Milk"}


def test_undo_takes_back_ones_own_and_leaves_the_rest(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    note = party.object({"title": "Milk", "count": 1})
    undo = party.undo_stack()
    note["title"] = "Oat milk"
    with party.batch():
        note["count"] = 2
        note["kind"] = "food"
    sync(ada, bob)
    theirs.item(note.id).edit("set", "title", "Soy milk")
    sync(ada, bob)

    assert undo.undo()
    assert note.value == {"title": "Soy milk", "count": 1}
    assert not undo.undo(), "what is left of it is somebody else's now"
    assert undo.redo()
    assert note.value == {"title": "Soy milk", "count": 2, "kind": "food"}
    undo.close()


def test_status_and_refused_say_how_it_stands(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    note = party.object({"title": "Milk"})
    sync(ada, bob)
    note.restrict_writers(ada.me)
    theirs.item(note.id).edit("set", "title", "Salt")
    sync(ada, bob)

    assert party.status().running
    assert party.status().refused == len(party.refused()) == 1
    assert "does not name its writer" in party.refused()[0].reason
    assert note["title"] == "Milk"
    assert theirs.item(note.id).value == {"title": "Milk"}
