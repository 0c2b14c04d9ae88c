"""Insertions that wait are rows, and the same text as if each were an object: woken, deleted, saved and read."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.model.text.test_convergence import World
from tests.model.text.test_leaves import tiny_leaves

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text import waiting_rows
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.text.runs import EMBED, LAMPORT, Unit
from antiphon.model.text.waiting_rows import Waiters, Waiting

TEXT = TextModel()
ALICE, BOB, EVE, GONE = b"a" * 32, b"b" * 32, b"e" * 32, b"m" * 32
TEXTS = ["x", "xyz", "é", "long " * 20]


def content(unit: Unit) -> tuple[Any, ...]:
    return unit.writer, unit.start, unit.length, unit.pieces, unit.item, unit.above, unit.above_clock, unit.left


def insertion(state: TextState, chance: random.Random, start: int) -> Unit:
    text = chance.choice(TEXTS)
    item = b"i" * 16 if chance.random() < 0.1 else None
    text = EMBED if item else text
    unit = Unit(state.writer(ALICE), start, len(text), text, item)
    unit.above, unit.above_clock = state.writer(chance.choice([ALICE, BOB])), start - 1 - chance.randrange(3)
    unit.left = chance.random() < 0.5
    return unit


@given(st.randoms(use_true_random=False), st.integers(1, 60))
def test_rows_are_the_insertions_that_were_put_in(chance: random.Random, steps: int) -> None:
    """Given blocks of three rows, when insertions come, are deleted in part, woken, and saved in between."""
    state = TextState()
    state.writer(BOB)
    rows, names = Waiting(state.leaves), Waiters()
    known: dict[int, Unit] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting_rows, "ROWS_MAX", 3)
        patch.setattr(waiting_rows, "NAMES_MAX", 4)
        patch.setattr(waiting_rows, "SIZE_MAX", 300)
        far = chance.choice([1, 1 << 50])  # clocks beyond 64 bits, too
        feeds: list[bytes] = [ALICE, BOB]
        for _ in range(steps):
            act = chance.random()
            start = chance.randrange(1, 40) * LAMPORT * far
            if act < 0.6 and start not in known:
                known[start] = insertion(state, chance, start)
                rows.add(insertion_of(known[start]))
                names.add(known[start])
            elif act < 0.7 and known:
                first = chance.choice(sorted(known))
                ranges = [(first + 1, first + 2), (first + 4, first + LAMPORT * far)]
                rows.hide(ranges)
                for unit in known.values():
                    unit.hide(ranges)
            elif act < 0.9 and known:
                unit = known.pop(chance.choice(sorted(known)))
                above = unit.above_clock
                for number, clock in names.pop(above, above):
                    assert number == state.writers[ALICE].number
                    woken = known.pop(clock) if clock != unit.start else unit
                    assert content(rows.pop(clock)) == content(woken)
            else:
                feeds = chance.choice([feeds, [BOB, ALICE], [ALICE, BOB]])
                at = {feed: place for place, feed in enumerate(feeds)}
                proto = text_pb2.TextSnapshot.FromString(b"".join(rows.rows(dict(enumerate(feeds)), at)))
                assert [(feeds[row.writer], row.lamport) for row in proto.waiting] == [
                    (ALICE, start // LAMPORT) for start in sorted(known)
                ]
            assert [content(unit) for unit in rows] == [content(known[start]) for start in sorted(known)]
            assert list(rows.starts()) == sorted(known)
            assert bool(rows) is bool(known)
            assert bool(names) is bool(known)


def insertion_of(unit: Unit) -> Unit:
    """The same insertion as another object."""
    again = Unit(unit.writer, unit.start, unit.length, unit.pieces[0][1], unit.item)
    again.above, again.above_clock, again.left = unit.above, unit.above_clock, unit.left
    return again


@given(st.integers(0, 1 << 64), st.integers(2, 4), st.integers(5, 50))
@settings(max_examples=60)
def test_texts_are_equal_whatever_waits_meanwhile(seed: int, writers: int, steps: int) -> None:
    """Given a history with lies, in any order of feeds, when one text has tiny blocks, and is restored now and then."""
    world = World(random.Random(seed), writers)
    for _ in range(steps):
        world.step()
    world.settle()
    chance = random.Random(seed)
    logs = [iter(log) for log in world.logs]
    order = [one for one, log in zip(logs, world.logs, strict=True) for _ in log]
    chance.shuffle(order)
    with pytest.MonkeyPatch.context() as patch, tiny_leaves():
        patch.setattr(waiting_rows, "ROWS_MAX", 2)
        patch.setattr(waiting_rows, "NAMES_MAX", 2)
        state = TEXT.initial()
        for message in [next(log) for log in order]:
            try:
                TEXT.apply(state, message.mutation, message.stamp, void=message.void)
            except InvalidMutation:
                assert not world.accepted[message.stamp]
            if chance.random() < 0.2:
                again = TEXT.restore(TEXT.snapshot(state))
                assert TEXT.value(again) == TEXT.value(state)
                state = again if chance.random() < 0.5 else state
        assert TEXT.snapshot(state) == TEXT.snapshot(world.replicas[0])
        assert TEXT.value(state) == TEXT.value(world.replicas[0])
        assert TEXT.spans(state) == TEXT.spans(world.replicas[0])


def test_a_missing_element_between_two_that_are_shown_in_the_stead_of_missing_ones() -> None:
    """Eve's third message continues her first one, and Bob names her second, which nobody has."""
    state = TEXT.initial()

    def beside(feed: bytes, lamport: int, text: str) -> bytes:
        insert = text_pb2.TextInsert(feed=1, lamport=lamport, text=text)
        return text_pb2.TextMutation(feeds=[feed], inserts=[insert]).SerializeToString()

    TEXT.apply(state, beside(GONE, 1, "a"), Stamp(5, EVE, 0))
    TEXT.apply(
        state,
        text_pb2.TextMutation(inserts=[text_pb2.TextInsert(lamport=5, text="c")]).SerializeToString(),
        Stamp(8, EVE, 1),
    )
    TEXT.apply(state, beside(EVE, 6, "b"), Stamp(9, BOB, 0))
    value = TEXT.value(state)
    assert sorted(value) == ["a", "b", "c"]
    for index in range(3):
        assert TEXT.index_of(state, TEXT.cursor(state, index)) == index
