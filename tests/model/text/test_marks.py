"""Marks by the thousand: what a hostile writer may send, and what of it is shown."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from antiphon.core.errors import TooLarge
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.model import InvalidMutation
from antiphon.model.text.codec import END, MARK_NAMES_MAX, MARKS_MAX, START, Draft
from antiphon.model.text.marks import SHOWN_MAX
from antiphon.model.text.model import TextModel

TEXT = TextModel()
ALICE, BOB = b"a" * 32, b"b" * 32


def nested(first: int, count: int, length: int, names: int = 1 << 30) -> text_pb2.TextMutation:
    """Marks on a text of Alice's, each inside the one before."""
    proto = text_pb2.TextMutation(feeds=[ALICE])
    for nth in range(first, first + count):
        mark = proto.marks.add(name=str(nth % names))
        mark.value.null = True
        mark.start.feed, mark.start.lamport, mark.start.offset = 1, 1, nth
        mark.end.feed, mark.end.lamport, mark.end.offset = 1, 1, length - nth - 1
        mark.end.after = True
    return proto


@pytest.mark.parametrize("void", [False, True])
def test_a_mutation_with_too_many_marks_or_names_of_marks_is_refused(void: bool) -> None:
    state = TEXT.initial()
    TEXT.apply(state, TEXT.insert(state, 0, "x" * 600, feed=ALICE), Stamp(1, ALICE, 0))
    before = TEXT.snapshot(state)
    for proto in (nested(0, MARK_NAMES_MAX + 1, 600), nested(0, 1, 600)):
        if len(proto.marks) == 1:
            proto.marks.extend([proto.marks[0]] * MARKS_MAX)
        with pytest.raises(InvalidMutation):
            TEXT.apply(state, proto.SerializeToString(), Stamp(2, BOB, 0), void=void)
    assert TEXT.snapshot(state) == before
    TEXT.apply(state, nested(0, MARK_NAMES_MAX, 600).SerializeToString(), Stamp(2, BOB, 0), void=void)


def test_a_draft_with_too_many_names_of_marks_is_refused() -> None:
    draft = Draft(ALICE)
    for nth in range(MARK_NAMES_MAX + 1):
        draft.mark(str(nth), None, START, END)
    assert draft.is_full
    with pytest.raises(TooLarge):
        draft.bytes()


def test_of_very_many_names_over_a_character_the_latest_are_shown_in_every_order_of_delivery() -> None:
    count = 2 * SHOWN_MAX
    marks = [(nested(nth, 1, 300).SerializeToString(), Stamp(2 + nth, bytes([nth]) * 32, 0)) for nth in range(count)]
    unset = text_pb2.TextMutation(feeds=[ALICE], marks=[text_pb2.TextMark(name="gone")])
    unset.marks[0].start.edge = unset.marks[0].end.edge = unset.marks[0].end.after = True
    marks.append((unset.SerializeToString(), Stamp(1000, BOB, 0)))
    shown = []
    for seed in range(3):
        state = TEXT.initial()
        TEXT.apply(state, TEXT.insert(state, 0, "x" * 300, feed=ALICE), Stamp(1, ALICE, 0))
        random.Random(seed).shuffle(marks)
        for mutation, stamp in marks:
            TEXT.apply(state, mutation, stamp)
        shown.append(TEXT.spans(state))
        assert TEXT.spans(TEXT.restore(TEXT.snapshot(state))) == shown[-1]
    assert shown[0] == shown[1] == shown[2]
    middle = max(shown[0], key=lambda span: int(max(span[1], key=int, default="-1")))[1]
    assert set(middle) == {str(nth) for nth in range(count - SHOWN_MAX, count)}, "what is unset takes no place"


def test_the_size_of_spans_grows_with_the_number_of_marks_and_not_with_its_square() -> None:
    state = TEXT.initial()
    length = 4096
    TEXT.apply(state, TEXT.insert(state, 0, "x" * length, feed=ALICE), Stamp(1, ALICE, 0))
    for nth in range(8):
        TEXT.apply(state, nested(256 * nth, 256, length).SerializeToString(), Stamp(2, BOB, nth))
    tracemalloc.start()
    try:
        spans = TEXT.spans(state)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert max(len(marks) for _, marks in spans) == SHOWN_MAX
    assert peak < 40 << 20, "2,048 nested names took 217 MB"


def test_a_deletion_under_very_many_marks_can_be_undone() -> None:
    state = TEXT.initial()
    length = 2048
    TEXT.apply(state, TEXT.insert(state, 0, "x" * length, feed=ALICE), Stamp(1, ALICE, 0))
    for nth in range(4):
        TEXT.apply(state, nested(256 * nth, 256, length).SerializeToString(), Stamp(2, BOB, nth))
    mutation, stamp = TEXT.delete(state, 0, length, feed=ALICE), Stamp(3, ALICE, 1)
    captured = TEXT.capture(state, mutation, stamp)
    TEXT.apply(state, mutation, stamp)
    for nth, undo in enumerate(TEXT.revert(state, captured, mutation, stamp, ALICE)):
        TEXT.apply(state, undo, Stamp(4 + nth, ALICE, 2 + nth))
    assert TEXT.value(state) == "x" * length
