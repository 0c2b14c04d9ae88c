"""A text: inserting, replacing, marks, items in it, cursors."""

from __future__ import annotations

import pytest

from antiphon import InvalidInput, Party, Store, Text, sync


def test_editing_a_text(party: Party) -> None:
    note = party.text("Hello world", name="Note")
    note.insert(5, ", dear")
    note.append("!")
    note.append("")
    note.delete_range(0, 1)
    note.insert(0, "J")
    note.replace(12, 17, "folks")
    assert str(note) == note.value == "Jello, dear folks!"
    assert len(note) == 18
    assert (note[0], note[-1], note[0:5]) == ("J", "!", "Jello")
    assert "dear" in note
    with pytest.raises(InvalidInput, match="does not lie in a text of 18"):
        note.insert(19, "x")
    note.insert(-1, "?")
    note.insert(-99, ">")
    assert str(note) == ">Jello, dear folks?!"
    assert list(note) == list(str(note))
    assert not party.text("").value
    assert party.text(""), "an empty text is there"


def test_two_people_type_at_once(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    note = party.text("We go to the sea.")
    sync(ada, bob)
    there = theirs.item(note.id, Text)
    cursor = note.cursor(note.value.index("sea"))
    note.insert(0, "In June: ")
    there.insert(16, ", by train")
    sync(ada, bob)
    assert str(note) == str(there) == "In June: We go to the sea, by train."
    assert note[note.index_of(cursor) :].startswith("sea")


def test_marks_are_on_spans(party: Party) -> None:
    note = party.text("Hello world")
    note.mark(0, 5, "bold", True)
    assert note.spans() == [("Hello", {"bold": True}), (" world", {})]
    note.unmark(0, 5, "bold")
    assert note.spans() == [("Hello world", {})]
    note.mark(-5, -1, "bold", True)
    assert note.spans() == [("Hello ", {}), ("worl", {"bold": True}), ("d", {})]


def test_an_item_stands_in_a_text_and_is_embedded(party: Party) -> None:
    note, picture = party.text("See here."), party.object({"title": "A picture"})
    note.insert_item(4, picture)
    assert note.items() == [(4, picture)]
    assert [piece for piece, _ in note.spans()] == ["See ", picture, "here."]
    assert note.embedded == [picture]
    assert picture.referrers == [note]
    assert picture in note.closure()


def test_an_item_stands_in_a_text_from_the_end_on(party: Party) -> None:
    note, picture = party.text("See."), party.object()
    note.insert_item(-1, picture)
    assert note.items() == [(3, picture)]
    with pytest.raises(InvalidInput, match="the argument of `insert_item` is an item"):
        note.insert_item(0, "a picture")  # type: ignore[arg-type]


def test_ranges_are_those_of_slices(party: Party) -> None:
    note = party.text("Hello world")
    note.delete_range(-6, -1)
    assert str(note) == "Hellod"
    note.replace(-1, 99, " there")
    assert str(note) == "Hello there"
    note.replace(2, 2, "_")
    note.replace(0, 2, "")
    note.delete_range(5, 3)
    assert str(note) == "_llo there"
