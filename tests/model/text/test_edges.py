"""The tree of a text is as cheap to extend where a hostile writer made it deep as anywhere else."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import assume, given, settings, strategies as st
from tests.model.text.sequences import in_order, open_all, put, runs_by_clock

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text import edges
from antiphon.model.text.clock_order import BLOCK_MAX
from antiphon.model.text.edges import FEW, end_of
from antiphon.model.text.fugue import BURIED_MIN, Sequence
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.text.runs import LAMPORT, Run, Writer
from antiphon.model.text.siblings import Child, outermost
from antiphon.model.text.snapshot_reader import decode
from antiphon.model.text.snapshot_writer import encode

FEEDS = [letter * 32 for letter in (b"a", b"b", b"c")]
TEXT = TextModel()
Names = list[tuple[bytes, int]]


def walked(sequence: Sequence, run: Run, left: bool) -> Run:
    while (further := outermost(run.lefts if left else run.rights, left)) is not None:
        run = sequence.run(further)
    return run


def check(sequence: Sequence) -> None:
    open_all(sequence)
    assert list(sequence.runs()) == in_order(sequence)
    for run in sequence.runs():
        for left, edge in ((True, run.left_edge), (False, run.right_edge)):
            if edge is not None:
                assert edge.end == walked(sequence, run, left).name
                further = edges._outer(run, left)
                assert further is None or edges._edge(sequence.run(further), left) is edge


@pytest.mark.parametrize("few", [0, 1, FEW])
@given(st.randoms(use_true_random=False), st.integers(1, 60), st.booleans())
@settings(max_examples=80)
def test_the_document_is_the_tree_however_edges_are_named_and_taken_over(
    few: int, chance: random.Random, count: int, deep: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "FEW", few)
        check(grown(chance, count, deep))


def grown(chance: random.Random, count: int, deep: bool) -> Sequence:
    """Make a tree of some runs, and walk along edges of it now and then."""
    sequence, names = TextState(), Names()
    for lamport in range(1, count + 1):
        feed = chance.choice(FEEDS)
        parent = chance.choice(names[-2:] if deep and chance.random() < 0.8 else names) if names else None
        text = chance.choice(["x", "xyz"])
        put(sequence, feed, lamport * LAMPORT, text, parent, left=parent is not None and chance.random() < 0.5)
        names += [(feed, lamport * LAMPORT + at) for at in range(len(text))]
        if chance.random() < 0.3:
            end_of(sequence, chance.choice(list(sequence.runs())), chance.random() < 0.5)
        if chance.random() < 0.1:
            sequence = decode(encode(sequence))
    return sequence


def test_a_walk_of_a_few_steps_names_no_edge() -> None:
    """Most texts have no others; names would take more memory than the rest of a run."""
    sequence = Sequence()
    for lamport in range(1, FEW + 3):
        parent = (FEEDS[lamport % 2 + 1], (lamport - 1) * LAMPORT) if lamport > 1 else None
        put(sequence, FEEDS[(lamport + 1) % 2 + 1], lamport * LAMPORT, "x", parent)
    first, *others = list(sequence.runs())[1:]
    assert end_of(sequence, others[0], False).name == others[-1].name
    assert {run.right_edge for run in sequence.runs()} == {None}
    assert end_of(sequence, first, False).name == others[-1].name
    assert first.right_edge is not None
    check(sequence)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("order", ["down", "up", "mixed", "top"])
def test_insertions_all_along_a_spine_take_steps_in_proportion(
    left: bool, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them lies beyond all that hangs further down the spine, which was walked along each time."""
    steps: Counter[int] = Counter()

    def counted(run: Run, side: bool) -> Child | None:
        steps[size] += 1
        return outer(run, side)

    outer = edges._outer
    monkeypatch.setattr(edges, "_outer", counted)
    for size in (256, 512):
        sequence = Sequence()
        for lamport in range(1, size + 1):
            parent = (FEEDS[1], (lamport - 1) * LAMPORT) if lamport > 1 else None
            # Two writers take turns, so that every element is a run.
            put(sequence, FEEDS[1], lamport * LAMPORT, "x", parent, left=left and parent is not None)
            put(sequence, FEEDS[2], lamport * LAMPORT, "y", (FEEDS[1], lamport * LAMPORT), left=not left)
        places = list(range(1, size + 1))
        if order == "up":
            places.reverse()
        elif order == "mixed":
            random.Random(size).shuffle(places)
        elif order == "top":
            places = [1] * size
        feed = FEEDS[0] if left else FEEDS[2]
        for nth, place in enumerate(places, size + 1):
            put(sequence, feed, nth * LAMPORT, "z", (FEEDS[1], place * LAMPORT), left=left)
        check(sequence)
    assert steps[512] <= 2.4 * steps[256] + 64


def test_a_run_is_added_in_the_middle_of_many() -> None:
    sequence = Sequence()
    put(sequence, FEEDS[0], LAMPORT, "x" * (3 * BLOCK_MAX), None)
    for nth in range(3 * BLOCK_MAX - 1):
        put(sequence, FEEDS[1], (2 + nth) * LAMPORT, "y", (FEEDS[0], LAMPORT + nth))
    writer = sequence.writer(FEEDS[0])
    assert len(writer.runs) == 3 * BLOCK_MAX
    runs = runs_by_clock(writer)
    assert [run.start for run in runs] == [LAMPORT + nth for nth in range(3 * BLOCK_MAX)]
    for run in runs:
        assert writer.runs.at(run.start) is run
    assert list(writer.runs.since(LAMPORT + 1500)) == runs[1500:]
    check(sequence)


def test_a_deletion_of_many_runs_is_not_walked_along_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    visited = []
    delete = Sequence._delete_range

    def counted(self: Sequence, writer: Writer, first: int, last: int) -> int:
        visited.append(delete(self, writer, first, last))
        return visited[-1]

    monkeypatch.setattr(Sequence, "_delete_range", counted)
    sequence = Sequence()
    for lamport in range(1, 10 * BURIED_MIN):
        put(sequence, FEEDS[0], lamport * LAMPORT, "x", None)
    everything = [(LAMPORT, 20 * BURIED_MIN * LAMPORT)]
    for _ in range(100):
        sequence.delete(sequence.writer(FEEDS[0]), everything, own=False)
    assert visited[0] >= 10 * BURIED_MIN - 1
    assert sum(visited[1:]) < 200
    assert sequence.length == 0
    put(sequence, FEEDS[0], 30 * BURIED_MIN * LAMPORT, "new", None)
    assert sequence.length == 3
    sequence.delete(sequence.writer(FEEDS[0]), [(LAMPORT, 31 * BURIED_MIN * LAMPORT)], own=True)
    assert sequence.length == 0


@given(st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_any_part_of_a_text_of_many_runs_is_deleted_by_few_ranges(chance: random.Random) -> None:
    state = TEXT.initial()
    for lamport in range(1, 80):
        feed = chance.choice(FEEDS)
        index = chance.randint(0, state.length)
        if chance.random() < 0.2 and index < state.length:
            mutation = TEXT.delete(state, index, chance.randint(1, min(9, state.length - index)), feed=feed)
        else:
            mutation = TEXT.insert(state, index, chance.choice(["x", "abc", "0123456789"]), feed=feed)
        TEXT.apply(state, mutation, Stamp(lamport, feed, lamport))
    value = TEXT.value(state)
    assume(value)
    start = chance.randrange(len(value)) if chance.random() < 0.7 else 0
    stop = chance.randint(start + 1, len(value)) if chance.random() < 0.7 else len(value)
    mutation = TEXT.delete(state, start, stop - start, feed=FEEDS[0])
    if (start, stop) == (0, len(value)):
        deletes = text_pb2.TextMutation.FromString(mutation).deletes
        assert len(deletes) == len({found.feed for found in deletes}), "one range of each writer"
    TEXT.apply(state, mutation, Stamp(100, FEEDS[0], 100))
    assert TEXT.value(state) == value[:start] + value[stop:]
