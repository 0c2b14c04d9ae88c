"""Runs stay few, splits keep the order, look-ups by position and by id agree."""

from __future__ import annotations

import random

import pytest
from tests.model.text.sequences import put

from antiphon.core.errors import InvalidInput
from antiphon.model.text.clock_ranges import pairs
from antiphon.model.text.fugue import Sequence
from antiphon.model.text.leaves import LEAF_MAX, next_to
from antiphon.model.text.runs import HOLE, LAMPORT, RUN_MAX, Run, Unit, Writer

ALICE, BOB = b"a" * 32, b"b" * 32


def text_of(sequence: Sequence) -> str:
    return "".join(run.text for run in sequence.runs() if run.text is not None).replace(HOLE, "")


def runs_of(sequence: Sequence) -> list[Run]:
    return [run for run in sequence.runs() if run is not sequence.root]


def typed(text: str, step: int = 1) -> Sequence:
    """One character a message, with lamports that ascend by a step."""
    sequence = Sequence()
    for nth, char in enumerate(text):
        parent = (ALICE, (1 + (nth - 1) * step) * LAMPORT) if nth else None
        put(sequence, ALICE, (1 + nth * step) * LAMPORT, char, parent)
    return sequence


@pytest.mark.parametrize("step", [1, 2, 7])
def test_typing_is_one_run_whatever_the_step_of_its_lamports(step: int) -> None:
    sequence = typed("some words", step)
    assert [(run.text, run.stride) for run in runs_of(sequence)] == [("some words", step * LAMPORT)]
    for nth in range(10):
        assert sequence.writer(ALICE).find((1 + nth * step) * LAMPORT) == (runs_of(sequence)[0], nth)
    assert sequence.writer(ALICE).find(LAMPORT + 1) is None
    assert sequence.writer(ALICE).find(11 * step * LAMPORT) is None
    assert sequence.writer(ALICE).find(0) is None


def test_deletions_leave_holes_and_split_nothing() -> None:
    sequence = typed("abcdef")
    writer = sequence.writer(ALICE)
    for lamport in (6, 2, 4, 4):
        sequence.delete(writer, [(lamport * LAMPORT, lamport * LAMPORT)], own=True)
    run = runs_of(sequence)[0]
    assert run.text == f"a{HOLE}c{HOLE}e{HOLE}"
    assert [run.nth_shown(nth) for nth in range(run.shown)] == [0, 2, 4]
    assert [run.shown_until(at) for at in range(7)] == [0, 1, 1, 2, 2, 3, 3]
    put(sequence, ALICE, 7 * LAMPORT, "g", (ALICE, 6 * LAMPORT))
    assert text_of(sequence) == "aceg"
    assert len(runs_of(sequence)) == 1
    sequence.delete(writer, [(LAMPORT, 9 * LAMPORT)], own=True)
    assert [(run.text, run.length) for run in runs_of(sequence)] == [(None, 7)]
    assert sequence.length == sequence.head.shown == 0


def test_a_run_that_is_split_in_its_holes_keeps_what_it_shows() -> None:
    sequence = typed("abcdef")
    sequence.delete(sequence.writer(ALICE), [(LAMPORT, 3 * LAMPORT), (5 * LAMPORT, 5 * LAMPORT)], own=True)
    put(sequence, BOB, 8 * LAMPORT, "!", (ALICE, 2 * LAMPORT))
    assert [run.text for run in runs_of(sequence)] == [None, f"{HOLE}d{HOLE}f", "!"]
    assert text_of(sequence) == "df!"


def test_a_long_insertion_is_cut_into_runs_of_bounded_length() -> None:
    sequence = Sequence()
    text = "".join(random.Random(1).choices("abc", k=5 * RUN_MAX + 3))
    put(sequence, ALICE, LAMPORT, text, None)
    put(sequence, ALICE, 2 * LAMPORT, "!", (ALICE, LAMPORT + len(text) - 1))
    assert max(run.length for run in runs_of(sequence)) == RUN_MAX
    assert text_of(sequence) == text + "!"
    assert len(runs_of(sequence)) == 7


def test_leaves_stay_small_and_positions_agree_with_the_text() -> None:
    chance, sequence = random.Random(2), Sequence()
    for lamport in range(1, 2000):
        run, left, at = sequence.gap(chance.randint(0, sequence.length))
        parent = (run.writer.feed, run.clock(at)) if run.length else None
        put(sequence, chance.choice([ALICE, BOB]), lamport * LAMPORT, chance.choice("xyz"), parent, left=left)
        if lamport % 3 == 0:
            gone, place = sequence.find(chance.randrange(sequence.length))
            sequence.delete(gone.writer, [(gone.clock(place), gone.clock(place))], own=True)
    text = text_of(sequence)
    leaf = sequence.head
    while leaf.after is not None:
        assert 0 < len(leaf.open()) <= LEAF_MAX
        leaf = leaf.after
    for index in chance.sample(range(len(text)), 200):
        run, at = sequence.find(index)
        assert run.text is not None
        assert run.text[at] == text[index]
        assert sequence.shown_before(run) + run.shown_until(at) == index
    assert next_to(sequence.last(), 1) is None
    assert next_to(sequence.root, -1) is None
    with pytest.raises(InvalidInput):
        sequence.find(len(text))


def test_siblings_stand_in_the_order_of_their_ids_whatever_comes_first() -> None:
    texts = set()
    for seed in range(20):
        sequence = Sequence()
        put(sequence, ALICE, LAMPORT, "[]", None)
        inserts = [(feed, lamport, side) for feed in (ALICE, BOB) for lamport in (2, 3, 4) for side in (False, True)]
        units = {feed: [row for row in inserts if row[0] == feed] for feed in (ALICE, BOB)}
        chance = random.Random(seed)
        while any(units.values()):
            feed, lamport, side = units[chance.choice([feed for feed in units if units[feed]])].pop(0)
            clock = lamport * LAMPORT + (5 if side else 0)
            name = f"{chr(feed[0])}{lamport}{'<' if side else '>'}"
            put(sequence, feed, clock, name, (ALICE, LAMPORT + 1 if side else LAMPORT), left=side)
        texts.add(text_of(sequence))
    assert texts == {"[a2<a3<a4<b2<b3<b4<]a2>a3>a4>b2>b3>b4>"}


def test_dooms_join_and_are_dropped_as_the_feed_goes_past_them() -> None:
    writer = Writer(ALICE)
    for first, last in ((10, 19), (40, 49), (20, 25), (45, 60), (5, 5)):
        writer.doom(first, last)
    assert list(pairs(writer.doomed)) == [(5, 5), (10, 25), (40, 60)]
    assert writer.doomed_in(6, 9) == []
    assert writer.doomed_in(25, 40) == [(10, 25), (40, 60)]
    writer.raise_floor(20)
    assert list(pairs(writer.doomed)) == [(20, 25), (40, 60)]
    writer.doom(0, 30)
    assert list(pairs(writer.doomed)) == [(20, 30), (40, 60)]
    writer.raise_floor(61)
    assert list(pairs(writer.doomed)) == []


def test_a_unit_that_waits_loses_what_is_deleted_of_it() -> None:
    unit = Unit(Writer(ALICE), 100, 10, "0123456789", None)
    for ranges in ([(102, 104)], [(0, 99)], [(103, 103), (105, 106), (109, 200)], []):
        unit.hide(ranges)
    assert unit.pieces == [(2, "01"), (5, None), (2, "78"), (1, None)]
