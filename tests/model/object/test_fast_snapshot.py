"""Plain snapshots of objects are read by hand: with the very result of the library's way, or not at all."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.object import snapshot_codec
from antiphon.model.object.fast_snapshot import read_plain
from antiphon.model.object.model import ObjectModel, ObjectState
from antiphon.model.object.register import Node
from antiphon.model.object.state import Op
from antiphon.model.wire import varint

MODEL = ObjectModel()
FEEDS = [bytes([97 + number]) * 32 for number in range(3)]
NUMBERS = st.sampled_from([0, 1, 2, 127, 128, 300, 16_383, 16_384, 70_000, 1 << 21, (1 << 56) - 1, 1 << 56, 1 << 62])
SHORT = st.text(max_size=12) | st.integers(-(1 << 54), (1 << 54) - 1)
CONTENTS = SHORT | st.text(max_size=150) | st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([None, True, 0.5])
Write = tuple[int, int, int, str, Any]  # which feed, how much further its seq and the lamport are, the key, the content


def writes(contents: st.SearchStrategy[Any], steps: st.SearchStrategy[int]) -> st.SearchStrategy[list[Write]]:
    keys = st.sampled_from(["", "a", "ab", "b", "é", "\U0001f600", "k" * 60, "k" * 130]) | st.text(max_size=3)
    return st.lists(st.tuples(st.integers(0, 2), steps, steps, keys, contents), max_size=8)


def state_of(written: list[Write]) -> ObjectState:
    """Nobody replaces anything, so what is written at one key stands side by side."""
    state = MODEL.initial()
    lamport = 0
    for which, further, later, key, content in written:
        feed = FEEDS[which]
        lamport += later
        stamp = Stamp(lamport, feed, state.heard.get(feed, 0) + further)
        if max(stamp.lamport, stamp.seq) < 1 << 63:
            state.take([Op((key,), content)], stamp)
            state.hear(stamp)
    return state


def shape(node: Node) -> Any:
    """All of a node but the bytes that it keeps. Types are told apart, and so is the order."""
    values = [(stamp, type(stamp), type(content), repr(content)) for stamp, content in node.entries.values()]
    return values, node.members, [(key, shape(child)) for key, child in node.children.items()]


def without_bytes(node: Node) -> None:
    node.packed = None
    for child in node.children.values():
        without_bytes(child)


def check(data: bytes) -> ObjectState | None:
    """What is read by hand is what the library reads, from bytes that it does not refuse."""
    quick = read_plain(data)
    if quick is None:
        return None
    slow = snapshot_codec._read_any(data)
    assert shape(quick.root) == shape(slow.root)
    assert [*quick.heard.items()] == [*slow.heard.items()]
    assert not quick.kept
    assert not slow.kept
    assert MODEL.snapshot(quick) == data  # of the bytes that its nodes keep
    without_bytes(quick.root)
    assert MODEL.snapshot(quick) == data
    return quick


# -- what was written


@given(writes(CONTENTS, NUMBERS))
def test_a_snapshot_is_read_by_hand_as_by_the_library(written: list[Write]) -> None:
    data = MODEL.snapshot(state_of(written))
    check(data)
    assert MODEL.snapshot(MODEL.restore(data)) == data


@given(writes(SHORT, st.integers(1, 70_000)))
def test_plain_snapshots_are_read_by_hand(written: list[Write]) -> None:
    written = [write for write in written if len(write[3]) < 100]
    state = state_of(written)
    assert (check(MODEL.snapshot(state)) is not None) == bool(written)


@given(st.randoms(use_true_random=False), st.integers(0, 12))
def test_a_snapshot_of_any_history_is_read_as_by_the_library(chance: random.Random, count: int) -> None:
    state = MODEL.initial()
    for number in range(1, count):
        feed = chance.choice(FEEDS)
        MODEL.apply(state, MODEL.rehearse(state, chance, feed), Stamp(number, feed, number))
    check(MODEL.snapshot(state))


@given(writes(SHORT, st.integers(1, 300)), st.sampled_from(FEEDS), st.sampled_from(["a", "b"]), SHORT)
def test_what_was_read_by_hand_is_changed_and_written_like_any_other(
    written: list[Write], feed: bytes, key: str, content: Any
) -> None:
    data = MODEL.snapshot(state_of(written))
    quick, slow = MODEL.restore(data), snapshot_codec._read_any(data)
    for state in (quick, slow):
        stamp = Stamp(1 << 40, feed, 1 << 40)
        MODEL.apply(state, MODEL.set(state, key, content, feed=feed), stamp)
    assert MODEL.snapshot(quick) == MODEL.snapshot(slow)
    assert MODEL.value(quick) == MODEL.value(slow)


# -- what was changed

SOME = MODEL.snapshot(
    state_of([(0, 1, 1, "a", "x"), (1, 300, 300, "a", -7), (1, 1, 70_000, "b", "é" * 20), (2, 9, 1, "c", 0)])
)
ONE = MODEL.snapshot(state_of([(0, 300, 70_000, "title", "river"), (0, 1, 1, "z", 300)]))


@given(st.sampled_from([SOME, ONE]), st.integers(0, len(SOME)), st.integers(0, 3), st.binary(max_size=3))
@settings(max_examples=500)
def test_changed_bytes_are_read_as_by_the_library(data: bytes, at: int, drop: int, put: bytes) -> None:
    check(data[:at] + put + data[at + drop :])


@pytest.mark.parametrize("data", [SOME, ONE])
def test_every_changed_bit_and_every_end_is_read_as_by_the_library(data: bytes) -> None:
    for at in range(len(data)):
        check(data[:at])
        for bit in range(8):
            check(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])


def too_long(number: int) -> bytes:
    """A number in one byte more than it needs."""
    short = varint(number)
    return short[:-1] + bytes([short[-1] | 128, 0])


class Loose:
    """Writes snapshots in which some of the numbers, counted as they are written, are not as they should be."""

    def __init__(self, harm: dict[int, str]) -> None:
        self._harm, self._count = harm, 0

    def number(self, tag: bytes, number: int, *, always: bool = False) -> bytes:
        harm = self._next()
        if harm == "long":
            return tag + too_long(number)
        number = {"zero": 0, "more": number + 1, "huge": number + (1 << 63)}.get(harm, number)
        return tag + varint(number) if number or always or harm == "zero" else b""

    def field(self, tag: bytes, content: bytes) -> bytes:
        """Its length may be too long, but never wrong: then the library would see another snapshot."""
        size = len(content)
        return tag + (too_long(size) if self._next() == "long" else varint(size)) + content

    def _next(self) -> str:
        self._count += 1
        return self._harm.get(self._count, "")

    def snapshot(self, feeds: list[bytes], seqs: list[int], rows: list[tuple[str, list[Any]]]) -> bytes:
        data = b"".join([self.field(b"\x0a", feed) for feed in feeds])
        for where, seq in enumerate(seqs, start=1):
            data += self.field(b"\x12", self.number(b"\x08", where) + self.number(b"\x18", seq))
        for key, entries in rows:
            row = self.field(b"\x0a", key.encode())
            for where, lamport, seq, content in entries:
                value = (
                    self.field(b"\x2a", content.encode())
                    if isinstance(content, str)
                    else self.number(b"\x18", content << 1 ^ content >> 63, always=True)
                )
                stamp = self.number(b"\x08", where) + self.number(b"\x10", lamport) + self.number(b"\x18", seq)
                row += self.field(b"\x1a", stamp + self.field(b"\x22", value))
            data += self.field(b"\x1a", row)
        return data


ENTRIES = st.lists(st.tuples(st.integers(0, 3), NUMBERS, st.integers(0, 200), SHORT), max_size=3)


@given(
    st.lists(st.sampled_from(FEEDS), max_size=3),
    st.lists(st.sampled_from([0, 1, 100, 200]), max_size=3),
    st.lists(st.tuples(st.sampled_from(["", "a", "b", "k" * 127, "k" * 128]), ENTRIES), max_size=3),
    st.dictionaries(st.integers(1, 45), st.sampled_from(["long", "zero", "more", "huge"]), max_size=2),
)
@settings(max_examples=400)
def test_rows_in_any_order_and_numbers_of_any_form_are_read_as_by_the_library(
    feeds: list[bytes], seqs: list[int], rows: list[tuple[str, list[Any]]], harm: dict[int, str]
) -> None:
    check(Loose(harm).snapshot(feeds, seqs, rows))


@given(
    st.dictionaries(st.integers(1, 45), st.sampled_from(["long", "zero", "more", "huge"]), max_size=2),
    st.permutations(range(3)),
    st.integers(0, 3),
    SHORT,
)
@example({}, [0, 1, 2], 3, 0)
@settings(max_examples=400)
def test_one_fault_in_a_snapshot_is_seen_as_by_the_library(
    harm: dict[int, str], order: list[int], count: int, content: Any
) -> None:
    entries = [[(1, 5, 300, content), (2, 5, 16_383, "x")], [(3, 70_000, 70_000, -1)], [(2, 1 << 30, 1, content)]]
    rows = [("abc"[at], entries[at]) for at in order[:count]]
    data = Loose(harm).snapshot(FEEDS, [300, 16_383, 70_000], rows)
    found = check(data)
    if not harm and order[:count] == sorted(order[:count]):
        assert found is not None
        assert MODEL.snapshot(MODEL.restore(data)) == data


def test_a_number_in_more_bytes_than_it_needs_is_refused_wherever_it_is() -> None:
    rows: list[tuple[str, list[Any]]] = [("a", [(1, 5, 3, 0), (2, 5, 300, "x")]), ("b", [(1, 70_000, 4, -300)])]
    right = Loose({}).snapshot(FEEDS[:2], [4, 300], rows)
    assert check(right) is not None
    changed = {Loose({place: "long"}).snapshot(FEEDS[:2], [4, 300], rows) for place in range(1, 40)} - {right}
    assert len(changed) == 30
    for data in changed:
        assert read_plain(data) is None
        with pytest.raises(InvalidInput):
            MODEL.restore(data)


def test_a_feed_beyond_127_is_left_to_the_library() -> None:
    feeds = [number.to_bytes(32, "big") for number in range(1, 130)]
    for count in (127, 128, 129):
        data = Loose({}).snapshot(feeds[:count], [5] * count, [("a", [(count, 1, 5, "x")])])
        assert (check(data) is not None) == (count == 127)
        assert MODEL.snapshot(MODEL.restore(data)) == data
