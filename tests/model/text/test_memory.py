"""A hostile text takes memory in proportion to the bytes of its mutations."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text import clock_ranges
from antiphon.model.text.clock_ranges import overlapping, pairs, since, with_range
from antiphon.model.text.model import TextModel

TEXT = TextModel()
EVE = b"e" * 32


def deletions_of_absent_feeds(count: int) -> Iterator[bytes]:
    """Each has the names of thousand feeds, and deletes an element of each."""
    for first in range(0, count, 1000):
        feeds = [number.to_bytes(32, "big") for number in range(first + 1, first + 1001)]
        deletes = [text_pb2.TextDelete(feed=nth + 1, lamport=1) for nth in range(1000)]
        yield text_pb2.TextMutation(feeds=feeds, deletes=deletes).SerializeToString()


def deletions_of_absent_elements(count: int) -> Iterator[bytes]:
    """Each deletes thousands of elements of a feed, of which no two are neighbours."""
    for first in range(0, count, 10_000):
        deletes = [text_pb2.TextDelete(feed=1, lamport=2 * (first + nth) + 1) for nth in range(10_000)]
        yield text_pb2.TextMutation(feeds=[b"a" * 32], deletes=deletes).SerializeToString()


def scattered_insertions(count: int) -> Iterator[bytes]:
    """Each inserts hundreds of characters at random places of what was inserted before."""
    chance = random.Random(1)
    for lamport in range(1 << 40, (1 << 40) + count // 512):
        proto = text_pb2.TextMutation()
        for _ in range(512):
            insert = proto.inserts.add(text="x", place=text_pb2.TEXT_PLACE_ROOT)
            if lamport > 1 << 40:
                insert.place = chance.choice((text_pb2.TEXT_PLACE_LEFT, text_pb2.TEXT_PLACE_RIGHT))
                insert.lamport, insert.offset = chance.randrange(1 << 40, lamport), chance.randrange(512)
        yield proto.SerializeToString()


def insertions_that_wait(count: int) -> Iterator[bytes]:
    """Each has hundreds of insertions beside what nobody has, or what waits itself."""
    for lamport in range(1 << 40, (1 << 40) + count // 512):
        inserts = [text_pb2.TextInsert(text="x", lamport=lamport - 1, offset=at) for at in range(512)]
        yield text_pb2.TextMutation(inserts=inserts).SerializeToString()


@pytest.mark.parametrize(
    ("attack", "count", "times"),
    [
        (insertions_that_wait, 16_000, 3),
        (deletions_of_absent_feeds, 20_000, 3),
        (deletions_of_absent_elements, 50_000, 12),
        (scattered_insertions, 16_000, 12),
    ],
)
def test_a_hostile_text_takes_little_memory(attack: Callable[[int], Iterator[bytes]], count: int, times: int) -> None:
    mutations = list(attack(count))
    gc.collect()
    tracemalloc.start()
    try:
        state = TEXT.initial()
        for seq, mutation in enumerate(mutations):
            TEXT.apply(state, mutation, Stamp((1 << 40) + seq, EVE, seq))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < times * sum(map(len, mutations))
        data = TEXT.snapshot(state)
        del state
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        state = TEXT.restore(data)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < times * sum(map(len, mutations))
    finally:
        tracemalloc.stop()
    assert TEXT.snapshot(state) == data


def test_insertions_that_wait_take_little_memory_while_they_are_read_and_saved() -> None:
    """The copy for reading stays, so that it is made once: with all else, it takes six times their bytes."""
    mutations = list(insertions_that_wait(32_000))
    size = sum(map(len, mutations))
    gc.collect()
    tracemalloc.start()
    try:
        state = TEXT.initial()
        for seq, mutation in enumerate(mutations):
            TEXT.apply(state, mutation, Stamp((1 << 40) + seq, EVE, seq))
        assert TEXT.length(state) == 32_000 // 512 * 512
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 6 * size, "it was more than eight times"
        tracemalloc.reset_peak()
        TEXT.snapshot(state)
        assert tracemalloc.get_traced_memory()[1] < 9 * size
    finally:
        tracemalloc.stop()


def test_marks_of_a_text_take_little_memory() -> None:
    """Given thousands of marks, of which no two have the same anchors, then they take little more than their bytes."""
    state = TEXT.initial()
    TEXT.apply(state, TEXT.insert(state, 0, "x" * 4000, feed=EVE), Stamp(1, EVE, 0))
    mutations = []
    for turn in range(20):
        proto = text_pb2.TextMutation()
        for at in range(2_000):
            mark = proto.marks.add(name="b")
            mark.start.lamport, mark.start.offset = 1, at
            mark.end.lamport, mark.end.offset = 1, at + turn
        mutations.append(proto.SerializeToString())
    gc.collect()
    tracemalloc.start()
    try:
        for seq, mutation in enumerate(mutations, start=1):
            TEXT.apply(state, mutation, Stamp(1 + seq, EVE, seq))
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        data = TEXT.snapshot(state)
    finally:
        tracemalloc.stop()
    assert len(state.marks) == 40_000
    assert held < 3 * sum(map(len, mutations)), "as objects they took 36 times their bytes"
    assert TEXT.snapshot(TEXT.restore(data)) == data


@given(
    st.integers(0, 90),
    st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 9)), max_size=40),
    st.tuples(st.integers(0, 70), st.integers(0, 70)),
)
def test_ranges_are_those_of_a_set(shift: int, steps: list[tuple[bool, int, int]], asked: tuple[int, int]) -> None:
    """Given clocks from small ones to some beyond 64 bits, then ranges have what a set of clocks has."""
    base = 1 << shift if shift > 6 else 0
    ranges, known = clock_ranges.NONE, set[int]()
    for adds, first, size in steps:
        if adds:
            ranges = with_range(ranges, base + first, base + first + size)
            known |= {*range(first, first + size + 1)}
        elif size == 0:
            ranges = since(ranges, base + first) if ranges else ranges
            known = {clock for clock in known if clock >= first}
    found = list(pairs(ranges))
    assert {clock - base for low, high in found for clock in range(low, high + 1)} == known
    assert all(one[1] + 1 < two[0] for one, two in pairwise(found))
    low, high = base + min(asked), base + max(asked)
    assert overlapping(ranges, low, high) == [pair for pair in found if pair[0] <= high and pair[1] >= low]
