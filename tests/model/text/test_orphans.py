"""Insertions whose parent is not here: where they are shown, how they are edited, and what that costs."""

from __future__ import annotations

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.value import Reference

TEXT = TextModel()
ALICE, BOB, EVE, GONE = b"a" * 32, b"b" * 32, b"e" * 32, b"m" * 32


def beside(feed: bytes, lamport: int, text: str, *, offset: int = 0) -> bytes:
    """An insertion after an element that may be missing."""
    insert = text_pb2.TextInsert(feed=1, lamport=lamport, offset=offset, text=text)
    return text_pb2.TextMutation(feeds=[feed], inserts=[insert]).SerializeToString()


def begun() -> TextState:
    """Alice typed "<>", and one who is gone typed "one" between the two at lamport 2, and more that was lost."""
    state = TEXT.initial()
    TEXT.apply(state, TEXT.insert(state, 0, "<>", feed=ALICE), Stamp(1, ALICE, 0))
    TEXT.apply(state, TEXT.insert(state, 1, "one", feed=GONE), Stamp(2, GONE, 0))
    return state


def test_an_orphan_is_shown_after_the_last_element_of_the_feed_of_its_parent() -> None:
    state = begun()
    TEXT.apply(state, beside(GONE, 4, "later"), Stamp(6, BOB, 0))
    TEXT.apply(state, beside(GONE, 3, "sooner "), Stamp(5, EVE, 0))
    assert TEXT.value(state) == "<onesooner later>"
    TEXT.apply(state, beside(b"n" * 32, 3, "whoever"), Stamp(7, BOB, 1))
    assert TEXT.value(state) in ("whoever<onesooner later>", "<onesooner later>whoever")
    again = TEXT.restore(TEXT.snapshot(state))
    assert TEXT.value(again) == TEXT.value(state)
    assert TEXT.snapshot(again) == TEXT.snapshot(state)


def test_if_the_parent_comes_they_stand_beside_it() -> None:
    state = begun()
    typed = TEXT.insert(state, 0, "two", feed=GONE)
    TEXT.apply(state, beside(GONE, 3, "!", offset=1), Stamp(5, BOB, 0))
    assert TEXT.value(state) == "<one!>"
    TEXT.apply(state, typed, Stamp(3, GONE, 1))
    assert TEXT.value(state) == "tw!o<one>"
    assert state.copy is None


def test_orphans_are_edited_marked_and_undone_like_any_text() -> None:
    state = begun()
    orphan, stamp = beside(GONE, 3, "two"), Stamp(5, BOB, 0)
    captured = TEXT.capture(state, orphan, stamp)
    TEXT.apply(state, orphan, stamp)
    place = TEXT.cursor(state, 5)
    TEXT.apply(state, TEXT.insert(state, 5, "-", feed=ALICE), Stamp(6, ALICE, 1))
    TEXT.apply(state, TEXT.mark(state, 4, 6, "bold", feed=ALICE), Stamp(7, ALICE, 2))
    TEXT.apply(state, TEXT.embed(state, 8, bytes(16), feed=ALICE), Stamp(8, ALICE, 3))
    assert TEXT.value(state) == "<onet-wo\N{OBJECT REPLACEMENT CHARACTER}>"
    assert (TEXT.length(state), TEXT.read(state, 4, 8), TEXT.index_of(state, place)) == (10, "t-wo", 6)
    assert TEXT.spans(state) == [
        ("<one", {}),
        ("t-", {"bold": True}),
        ("wo", {}),
        (Reference(bytes(16)), {}),
        (">", {}),
    ]
    for number, mutation in enumerate(TEXT.revert(state, captured, orphan, stamp, BOB)):
        TEXT.apply(state, mutation, Stamp(9 + number, BOB, 1 + number))
    assert TEXT.value(state) == "<one-\N{OBJECT REPLACEMENT CHARACTER}>"
    assert TEXT.value(TEXT.restore(TEXT.snapshot(state))) == TEXT.value(state)


def test_one_false_name_does_not_make_every_later_message_dear() -> None:
    """Eve names an element that Alice never typed. As soon as Alice is past it, the copy follows what all type."""
    state = begun()
    TEXT.apply(state, beside(ALICE, 1, "false", offset=7), Stamp(3, EVE, 0))
    assert TEXT.value(state) == "<one>false"
    TEXT.apply(state, TEXT.insert(state, 1, "y", feed=ALICE), Stamp(4, ALICE, 1))
    assert TEXT.value(state) == "<yone>false"
    copy, lamport = state.copy, 5
    assert copy is not None
    for feed in (ALICE, BOB, EVE, GONE) * 3:
        TEXT.apply(state, TEXT.insert(state, 1, "x", feed=feed), Stamp(lamport, feed, lamport))
        lamport += 1
    assert TEXT.value(state) == "<" + "x" * 12 + "yone>false"
    assert state.copy is copy
    assert TEXT.value(TEXT.restore(TEXT.snapshot(state))) == TEXT.value(state)
