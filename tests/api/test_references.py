"""References: inside a party, into another party, and to items that are not here."""

from __future__ import annotations

import pytest

from antiphon import Fact, InvalidInput, Object, Party, Reference, Store, prop, sync
from antiphon.api import Locator
from antiphon.core.errors import PartyPaused, UnknownItem, UnknownParty


def test_a_value_that_is_an_item_is_read_as_one(party: Party) -> None:
    ada = party.object({"name": "Ada"})
    task = party.object({"owner": ada, "watchers": [ada, {"who": ada}]})
    assert task["owner"] == ada
    assert task["owner"]["name"] == "Ada"
    assert task["watchers"] == [ada, {"who": ada}]
    assert task.value["owner"] == Reference(bytes(ada.id))
    assert ada.referrers == [task]


def test_a_reference_to_its_own_party_is_kept_without_its_name(party: Party) -> None:
    ada = party.object({"name": "Ada"})
    task = party.object({"owner": ada.reference, "others": [ada.reference]})
    assert task.value == {"owner": Reference(bytes(ada.id)), "others": [Reference(bytes(ada.id))]}
    assert ada.referrers == [task]
    for wanted in (ada, ada.id, ada.reference):
        assert list(party.query(prop("owner") == wanted)) == [task]
        assert list(party.query(prop("others").has(wanted) & ~(prop("owner") == 5))) == [task]
    assert list(party.query(Fact.REFERENCES.has(ada.reference))) == [task]


def test_a_reference_leads_to_another_party(ada: Store, party: Party) -> None:
    club = ada.create_party("Club")
    book = club.object({"title": "Emma"})
    shelf = party.object({"book": book})
    assert shelf.value["book"] == Reference(bytes(book.id), bytes(club.key))
    assert shelf["book"] == book
    assert shelf["book"]["title"] == "Emma"
    assert list(party.query(prop("book") == book.reference)) == [shelf]
    assert ada.resolve(book.reference) == book
    assert ada.holds(book.reference)
    assert book.referrers == [], "those of its own party"


def test_a_reference_to_a_party_that_is_not_held_is_read_as_such(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    club = ada.create_party("Club")
    book = club.object({"title": "Emma"})
    shelf = party.object({"book": book, "more": [book]})
    sync(ada, bob)

    there = theirs.item(shelf.id, Object)
    assert there.value == shelf.value
    assert theirs.query(prop("book").exists())[0].value == shelf.value
    assert theirs.item(shelf.id, Object)["book"] == book.reference
    assert theirs.item(shelf.id, Object)["more"] == [book.reference]
    assert not bob.holds(book.reference)
    with pytest.raises(UnknownParty, match="join it with an invitation"):
        bob.resolve(book.reference)

    bob.join(club.invite(bob.me))
    assert not bob.holds(book.reference), "its blocks are not here"
    sync(ada, bob)
    assert theirs.item(shelf.id, Object)["book"]["title"] == "Emma"


def test_a_reference_to_what_has_not_come_is_read_as_such(ada: Store, party: Party) -> None:
    missing = Reference(b"\x01" * 16)
    task = party.object({"owner": missing})
    assert task["owner"] == missing
    assert list(party.list([missing])) == [missing]
    with pytest.raises(UnknownItem, match="or not yet"):
        ada.resolve(missing, party)
    assert not ada.holds(missing, party)
    with pytest.raises(InvalidInput, match="names no party"):
        ada.resolve(missing)


def test_a_locator_leads_to_its_view_from_anywhere(ada: Store, bob: Store, party: Party) -> None:
    board = party.create_view("org.example:board", name="Board")
    text = str(board.locator)
    assert text.startswith("echo://")
    assert ada.resolve(text) == ada.resolve(Locator.parse(text)) == board
    assert not bob.holds(text)
    with pytest.raises(UnknownParty):
        bob.resolve(text)
    bob.join(party.invite(bob.me))
    sync(ada, bob)
    assert bob.resolve(text).name == "Board"
    other = Locator(party.key, ada.me)
    assert not ada.holds(other)
    with pytest.raises(UnknownItem, match="holds no view"):
        ada.resolve(other)


def test_reading_opens_no_party(ada: Store, party: Party) -> None:
    club = ada.create_party("Club")
    book = club.object({"title": "Emma"})
    shelf = party.object({"book": book})
    ada.manager.close_party(club.key)
    assert shelf["book"] == dict(shelf)["book"] == book.reference
    assert [known.open for known in ada.parties() if known.party == club.key] == [False]

    assert ada.resolve(book.reference).value == {"title": "Emma"}, "which opens it"
    assert shelf["book"]["title"] == "Emma"

    ada.manager.pause(club.key)
    assert list(shelf.values()) == [book.reference]
    assert not ada.holds(book.reference)
    with pytest.raises(PartyPaused):
        ada.resolve(book.reference)
    ada.manager.resume(club.key)
    assert ada.holds(book.reference)
    assert shelf["book"]["title"] == "Emma"


def test_a_party_that_cannot_be_read_gives_references(ada: Store, party: Party) -> None:
    club = ada.create_party("Club")
    book = club.object({"title": "Emma"})
    shelf = party.object({"book": book})
    club.processor._reset("a fault")  # as after an error
    assert shelf["book"] == book.reference
    assert ada.party("Club").item(book.id).value == {"title": "Emma"}
    assert shelf["book"]["title"] == "Emma"
