"""Undo of one message of a text, beside what others did since; and redo, which is undo of the undo."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.value import Reference

TEXT = TextModel()
ALICE, BOB = b"a" * 32, b"b" * 32


class Done(NamedTuple):
    mutation: bytes
    stamp: Stamp
    captured: Any


class Desk:
    """A text, and what was done to it."""

    def __init__(self, text: str = "") -> None:
        self.state: TextState = TEXT.initial()
        self.lamport = 0
        if text:
            self.do(TEXT.insert(self.state, 0, text, feed=ALICE))

    def do(self, mutation: bytes, feed: bytes = ALICE) -> Done:
        self.lamport += 1
        stamp = Stamp(self.lamport, feed, self.lamport)
        done = Done(mutation, stamp, TEXT.capture(self.state, mutation, stamp))
        TEXT.apply(self.state, mutation, stamp)
        return done

    def undo(self, done: Done, feed: bytes = ALICE) -> list[Done]:
        mutations = TEXT.revert(self.state, done.captured, done.mutation, done.stamp, feed)
        return [self.do(mutation, feed) for mutation in mutations]

    @property
    def text(self) -> str:
        return str(TEXT.value(self.state))


def test_an_undone_insertion_leaves_what_others_typed_into_it() -> None:
    desk = Desk("The fox")
    done = desk.do(TEXT.insert(desk.state, 4, "brown ", feed=ALICE))
    desk.do(TEXT.insert(desk.state, 6, "(!)", feed=BOB), BOB)
    desk.do(TEXT.delete(desk.state, 4, 1, feed=BOB), BOB)
    assert desk.text == "The r(!)own fox"

    undone = desk.undo(done)
    assert desk.text == "The (!)fox"
    for step in undone:
        desk.undo(step)
    assert desk.text == "The r(!)own fox", "redo brings back what undo took, not what Bob deleted"


def test_an_undone_deletion_comes_back_around_what_others_typed() -> None:
    desk = Desk("one two three")
    done = desk.do(TEXT.delete(desk.state, 4, 4, feed=ALICE))
    assert desk.text == "one three"
    (back,) = desk.undo(done)
    assert desk.text == "one two three"
    (again,) = desk.undo(back)
    assert desk.text == "one three"
    desk.undo(again)
    assert desk.text == "one two three"

    desk = Desk("hello")
    typed = TEXT.insert(desk.state, 3, "X", feed=BOB)  # concurrent with the deletion
    done = desk.do(TEXT.delete(desk.state, 0, 5, feed=ALICE))
    desk.do(typed, BOB)
    assert desk.text == "X"
    desk.undo(done)
    assert desk.text == "helXlo"


def test_an_undone_replacement_is_one_step() -> None:
    desk = Desk("good day")
    done = desk.do(TEXT.replace(desk.state, 5, 3, "night", feed=ALICE))
    assert desk.text == "good night"
    assert len(desk.undo(done)) == 1
    assert desk.text == "good day"


def test_embedded_items_and_marks_come_back() -> None:
    desk = Desk("see  there")
    desk.do(TEXT.embed(desk.state, 4, bytes(5) + b"i" * 11, feed=BOB), BOB)
    desk.do(TEXT.mark(desk.state, 2, 4, "bold", feed=ALICE))
    desk.do(TEXT.mark(desk.state, 6, 11, "link", "x:y", expand=False, feed=ALICE))
    before = TEXT.spans(desk.state)
    assert (Reference(bytes(5) + b"i" * 11), {}) in before
    done = desk.do(TEXT.delete(desk.state, 0, 11, feed=ALICE))

    desk.undo(done)

    assert TEXT.spans(desk.state) == before


def test_an_undone_mark_gives_back_what_was_there_where_it_still_wins() -> None:
    desk = Desk("0123456789")
    desk.do(TEXT.mark(desk.state, 0, 4, "size", 1, feed=BOB), BOB)
    done = desk.do(TEXT.mark(desk.state, 2, 8, "size", 2, feed=ALICE))
    desk.do(TEXT.mark(desk.state, 5, 7, "size", 3, feed=BOB), BOB)

    undone = desk.undo(done)
    assert TEXT.spans(desk.state) == [("0123", {"size": 1}), ("4", {}), ("56", {"size": 3}), ("789", {})]
    for step in undone:
        desk.undo(step)
    assert TEXT.spans(desk.state) == [
        ("01", {"size": 1}),
        ("234", {"size": 2}),
        ("56", {"size": 3}),
        ("7", {"size": 2}),
        ("89", {}),
    ]


def test_nothing_left_to_undo_is_no_mutation() -> None:
    desk = Desk("abc")
    done = desk.do(TEXT.insert(desk.state, 3, "def", feed=ALICE))
    desk.do(TEXT.delete(desk.state, 3, 3, feed=BOB), BOB)
    assert desk.undo(done) == []


@given(st.integers(0, 1 << 64), st.integers(1, 30))
@settings(max_examples=100)
def test_undo_right_away_restores_the_text_and_redo_the_change(seed: int, steps: int) -> None:
    chance, desk = random.Random(seed), Desk()
    for _ in range(steps):
        feed = chance.choice([ALICE, BOB])
        before = TEXT.spans(desk.state)
        done = desk.do(TEXT.rehearse(desk.state, chance, feed), feed)
        changed = TEXT.spans(desk.state)
        undone = desk.undo(done, feed)
        assert TEXT.spans(desk.state) == before
        for step in undone:
            desk.undo(step, feed)
        assert TEXT.spans(desk.state) == changed


def test_typing_that_was_deleted_and_brought_back_can_be_undone() -> None:
    desk = Desk()
    typed = desk.do(TEXT.insert(desk.state, 0, "abc", feed=ALICE))
    deleted = desk.do(TEXT.delete(desk.state, 2, 1, feed=ALICE))
    desk.undo(deleted)
    assert desk.text == "abc"
    desk.undo(typed)
    assert desk.text == "", "the c that came back is Alice's c"


def test_a_mark_is_redone_on_what_redo_brought_back() -> None:
    desk = Desk()
    typed = desk.do(TEXT.insert(desk.state, 0, "gedd", feed=ALICE))
    marked = desk.do(TEXT.mark(desk.state, 2, 4, "b", 2, feed=ALICE))
    (unmarked,) = desk.undo(marked)
    (untyped,) = desk.undo(typed)
    desk.undo(untyped)
    assert TEXT.spans(desk.state) == [("gedd", {})]
    desk.undo(unmarked)
    assert TEXT.spans(desk.state) == [("ge", {}), ("dd", {"b": 2})]


@pytest.mark.parametrize("expand", [True, False])
def test_a_mark_can_be_undone_on_what_was_deleted_and_brought_back(expand: bool) -> None:
    desk = Desk("a marked part")
    marked = desk.do(TEXT.mark(desk.state, 2, 8, "b", expand=expand, feed=ALICE))
    deleted = desk.do(TEXT.delete(desk.state, 1, 8, feed=ALICE))
    desk.undo(deleted)
    assert TEXT.spans(desk.state) == [("a ", {}), ("marked", {"b": True}), (" part", {})]
    desk.undo(marked)
    assert TEXT.spans(desk.state) == [("a marked part", {})]


def test_marks_set_over_each_other_are_undone_one_by_one() -> None:
    desk = Desk("abc")
    steps = [desk.do(TEXT.mark(desk.state, 0, 3, "b", value, feed=ALICE)) for value in (1, 2, 3)]
    for step, spans in zip(reversed(steps), ({"b": 2}, {"b": 1}, {}), strict=True):
        desk.undo(step)
        assert TEXT.spans(desk.state) == [("abc", spans)]


def test_nobody_can_spoil_anothers_undo_by_claiming_copies() -> None:
    desk = Desk()
    typed = desk.do(TEXT.insert(desk.state, 0, "abc", feed=ALICE))
    desk.undo(desk.do(TEXT.delete(desk.state, 2, 1, feed=ALICE)))
    claim = text_pb2.TextMutation(feeds=[ALICE])
    insert = claim.inserts.add(place=text_pb2.TEXT_PLACE_ROOT, text="xyz")
    insert.revived.add(feed=1, lamport=1, span=2)
    desk.do(claim.SerializeToString(), BOB)
    assert desk.text == "abcxyz"
    desk.undo(typed)
    assert desk.text == "xyz"


@pytest.mark.slow
@given(st.integers(0, 1 << 64), st.integers(0, 5), st.integers(1, 15))
@settings(max_examples=100)
def test_a_writer_who_undoes_and_redoes_everything_passes_every_state_again(seed: int, by_bob: int, steps: int) -> None:
    chance, desk = random.Random(seed), Desk()
    for _ in range(by_bob):
        desk.do(TEXT.rehearse(desk.state, chance, BOB), BOB)
    passed, done = [TEXT.spans(desk.state)], []
    for _ in range(steps):
        start, length = chance.randint(0, desk.state.length), desk.state.length
        if start < length and chance.random() < 0.4:
            stop, expand = chance.randint(start + 1, length), chance.random() < 0.5
            mutation = TEXT.mark(desk.state, start, stop, "b", chance.randint(0, 2), expand=expand, feed=ALICE)
        else:
            mutation = TEXT.rehearse(desk.state, chance, ALICE)
        done.append([desk.do(mutation)])
        passed.append(TEXT.spans(desk.state))
    for _ in range(2):
        undone = []
        for nth in reversed(range(steps)):
            undone.append([step for last in reversed(done[nth]) for step in desk.undo(last)])
            assert TEXT.spans(desk.state) == passed[nth]
        done = []
        for nth, steps_back in enumerate(reversed(undone)):
            done.append([step for last in reversed(steps_back) for step in desk.undo(last)])
            assert TEXT.spans(desk.state) == passed[nth + 1]
    assert TEXT.spans(TEXT.restore(TEXT.snapshot(desk.state))) == passed[-1]


@given(st.integers(0, 1 << 64), st.integers(1, 25))
@settings(max_examples=60)
def test_a_writer_who_undoes_everything_passes_every_text_again(seed: int, steps: int) -> None:
    chance, desk = random.Random(seed), Desk()
    done = []
    for _ in range(steps):
        before = desk.text
        done.append((before, desk.do(TEXT.rehearse(desk.state, chance, ALICE))))
    for before, step in reversed(done):
        desk.undo(step)
        assert desk.text == before
    assert TEXT.value(TEXT.restore(TEXT.snapshot(desk.state))) == ""
