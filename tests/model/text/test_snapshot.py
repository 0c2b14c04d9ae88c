"""Snapshots of a text: canonical, small, and refused where they are not what `encode` writes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings, strategies as st
from tests.budget import budget

from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.text.runs import LAMPORT, RUN_MAX

TEXT = TextModel()
CHAIN = budget(20_000, 100_000)  # elements
ALICE, BOB, EVE = b"a" * 32, b"b" * 32, b"e" * 32
Proto = text_pb2.TextSnapshot


def rich() -> TextState:
    """A state with something in every field: two writers, a mark, an item, what waits and what is doomed."""
    state = TEXT.initial()
    TEXT.apply(state, TEXT.insert(state, 0, "hello world", feed=ALICE), Stamp(1, ALICE, 0))
    TEXT.apply(state, TEXT.insert(state, 5, ",", feed=BOB), Stamp(2, BOB, 0))
    TEXT.apply(state, TEXT.delete(state, 8, 2, feed=BOB), Stamp(3, BOB, 1))
    TEXT.apply(state, TEXT.embed(state, 2, bytes(5) + b"i" * 11, feed=BOB), Stamp(4, BOB, 2))
    TEXT.apply(state, TEXT.mark(state, 1, 4, "bold", {"a": [1]}, feed=ALICE), Stamp(5, ALICE, 1))
    waits = text_pb2.TextInsert(feed=1, lamport=6, offset=2, place="TEXT_PLACE_LEFT", text="waits")
    dooms = text_pb2.TextDelete(feed=1, lamport=6, offset=1, span=LAMPORT)
    TEXT.apply(
        state,
        text_pb2.TextMutation(feeds=[ALICE], inserts=[waits], deletes=[dooms]).SerializeToString(),
        Stamp(9, EVE, 0),
    )
    drop = text_pb2.TextDelete(feed=1, lamport=9, offset=1, span=1)
    TEXT.apply(state, text_pb2.TextMutation(feeds=[EVE], deletes=[drop]).SerializeToString(), Stamp(10, BOB, 3))
    return state


def test_a_rich_state_comes_back_and_goes_on_alike() -> None:
    state = rich()
    data = TEXT.snapshot(state)
    restored = TEXT.restore(data)
    assert TEXT.snapshot(restored) == data
    assert TEXT.spans(restored) == TEXT.spans(state)
    for one in (state, restored):
        TEXT.apply(one, TEXT.insert(one, 0, "012", feed=ALICE), Stamp(6, ALICE, 2))
    assert TEXT.value(restored) == TEXT.value(state) == "0wtshe\N{OBJECT REPLACEMENT CHARACTER}llo, wld"
    assert TEXT.snapshot(restored) == TEXT.snapshot(state)


def test_an_empty_text_has_an_empty_snapshot() -> None:
    assert TEXT.snapshot(TEXT.initial()) == b""
    assert TEXT.value(TEXT.restore(b"")) == ""


def test_rule_12_the_bytes_tell_nothing_of_how_runs_are_split() -> None:
    """Deleted elements are holes of a run, or a run if many are restored: the snapshot has the same bytes."""
    one, other = TEXT.initial(), TEXT.initial()
    for state, deletes in ((one, [(20, 50), (40, 40), (70, 190), (50, 69)]), (other, [(20, 190)])):
        TEXT.apply(state, TEXT.insert(state, 0, "0123456789" * 20, feed=ALICE), Stamp(1, ALICE, 0))
        for nth, (first, last) in enumerate(deletes):
            row = text_pb2.TextDelete(feed=1, lamport=1, offset=first, span=last - first)
            mutation = text_pb2.TextMutation(feeds=[ALICE], deletes=[row]).SerializeToString()
            TEXT.apply(state, mutation, Stamp(5 + nth, BOB, nth))
        TEXT.apply(state, TEXT.insert(state, 2, "x", feed=BOB), Stamp(20, BOB, 9))

    restored = TEXT.restore(TEXT.snapshot(one))
    assert len(list(one.runs())) != len(list(restored.runs()))
    assert TEXT.snapshot(one) == TEXT.snapshot(other) == TEXT.snapshot(restored)


@pytest.mark.parametrize("index", [lambda length: 0, lambda length: length, lambda length: length // 2])
def test_deep_trees_neither_overflow_nor_crawl(index: Callable[[int], int]) -> None:
    """Typed backwards, forwards with other hands between, or into the middle: chains of 10,000, each char a run."""
    state = TEXT.initial()
    for lamport in range(1, 10_001):
        feed = ALICE if lamport % 2 else BOB
        mutation = TEXT.insert(state, index(state.length), chr(97 + lamport % 26), feed=feed)
        TEXT.apply(state, mutation, Stamp(lamport, feed, lamport))
    data = TEXT.snapshot(state)
    assert TEXT.value(TEXT.restore(data)) == TEXT.value(state)
    assert len(data) < 200_000


@pytest.mark.slow
@pytest.mark.parametrize("left", [False, True])
def test_long_chains(left: bool) -> None:
    state = TEXT.initial()
    for lamport in range(1, CHAIN + 1):
        feed = ALICE if lamport % 2 else BOB
        mutation = TEXT.insert(state, 0 if left else state.length, "x", feed=feed)
        TEXT.apply(state, mutation, Stamp(lamport, feed, lamport))
    assert TEXT.length(TEXT.restore(TEXT.snapshot(state))) == CHAIN


def test_much_that_was_deleted_costs_no_memory_when_it_comes_from_a_stranger() -> None:
    """2^40 deleted elements are a few numbers; a snapshot that claims them is small in memory, too."""
    writer = text_pb2.TextWriter(
        feed=ALICE, floor_lamport=1 << 41, clocks=[1, 1 << 42], shown=[0, 1 << 40], chains=[1 << 40, 0, 0]
    )
    state = TEXT.restore(Proto(writers=[writer]).SerializeToString())
    assert TEXT.value(state) == ""
    TEXT.apply(state, TEXT.insert(state, 0, "x", feed=BOB), Stamp(1 << 42, BOB, 0))
    assert TEXT.value(state) == "x"


def broken(change: Callable[[text_pb2.TextSnapshot], object]) -> bytes:
    proto = Proto.FromString(TEXT.snapshot(rich()))
    change(proto)
    return proto.SerializeToString(deterministic=True)


def swap(proto: text_pb2.TextSnapshot) -> None:
    rows = list(reversed(proto.writers))
    del proto.writers[:]
    proto.writers.extend(rows)


@pytest.mark.parametrize(
    "change",
    [
        swap,
        lambda proto: proto.writers.add(feed=ALICE),
        lambda proto: proto.writers.add(feed=b"f" * 32),
        lambda proto: proto.writers.add(feed=b"short", floor_lamport=1),
        lambda proto: setattr(proto.writers[0], "text", proto.writers[0].text + "x"),
        lambda proto: setattr(proto.writers[0], "floor_lamport", 0),
        lambda proto: setattr(proto.writers[0], "floor_offset", LAMPORT),
        lambda proto: proto.writers[0].shown.append(1),
        lambda proto: proto.writers[0].shown.append(0),
        lambda proto: proto.writers[0].clocks.append(1),
        lambda proto: proto.writers[0].clocks.extend([0, 3]),
        lambda proto: proto.writers[0].clocks.extend([1 << 63, 5]),
        lambda proto: proto.writers[0].chains.append(1),
        lambda proto: proto.writers[0].chains.extend([0, 0, 0]),
        lambda proto: proto.writers[1].chains.__setitem__(1, 1 << 1 | 1),
        lambda proto: proto.writers[1].chains.__setitem__(1, 1),
        lambda proto: proto.writers[1].chains.__setitem__(1, 99 << 1),
        lambda proto: proto.writers[1].chains.__setitem__(2, 99),
        lambda proto: proto.writers[0].chains.__setitem__(slice(0, 3), [proto.writers[0].chains[0], 3 << 1, 0]),
        lambda proto: setattr(proto.writers[1], "items", b""),
        lambda proto: proto.writers[1].embeds.__setitem__(0, 0),
        lambda proto: proto.writers[1].embeds.__setitem__(0, 99),
        lambda proto: proto.writers[0].doomed.append(1),
        lambda proto: proto.writers[0].doomed.__setitem__(0, 0),
        lambda proto: proto.writers[0].doomed.extend(proto.writers[0].doomed),
        lambda proto: setattr(proto.waiting[0], "writer", 9),
        lambda proto: setattr(proto.waiting[0], "lamport", 3),
        lambda proto: setattr(proto.waiting[0], "lamport", 99),
        lambda proto: setattr(proto.waiting[0], "parent_lamport", 9),
        lambda proto: setattr(proto.waiting[0], "parent_lamport", 1),
        lambda proto: setattr(proto.waiting[0], "text", "longer"),
        lambda proto: setattr(proto.waiting[0], "item", bytes(5) + b"i" * 11),
        lambda proto: proto.waiting[0].shown.append(1 << 30),
        lambda proto: proto.waiting.append(proto.waiting[0]),
        lambda proto: proto.marks.append(proto.marks[0]),
        lambda proto: setattr(proto.marks[0], "name", ""),
        lambda proto: setattr(proto.marks[0], "writer", 9),
        lambda proto: setattr(proto.marks[0], "lamport", 99),
        lambda proto: setattr(proto.marks[0].start, "feed", 9),
        lambda proto: setattr(proto.marks[0].start, "lamport", 6),
        lambda proto: setattr(proto.marks[0].end, "inserted", 1),
        lambda proto: proto.marks[0].value.map.fields.add(key="A"),
        lambda proto: setattr(proto.marks[0].value.reference, "item", b"short"),
    ],
)
def test_what_is_no_snapshot_is_refused(change: Callable[[text_pb2.TextSnapshot], object]) -> None:
    with pytest.raises(BadEncoding):
        TEXT.restore(broken(change))


@given(st.binary(max_size=200))
@example(b"\xff")
@settings(max_examples=200)
def test_any_bytes_are_a_snapshot_or_refused(data: bytes) -> None:
    try:
        state = TEXT.restore(data)
    except InvalidInput:
        return
    assert TEXT.snapshot(state) == data


@given(st.integers(0, 1 << 64))
@settings(max_examples=300)
def test_a_changed_number_is_refused_or_another_text(seed: int) -> None:
    """What restore accepts it also writes, and works with."""
    chance = random.Random(seed)
    proto = Proto.FromString(TEXT.snapshot(rich()))
    for _ in range(chance.randint(1, 3)):
        row = chance.choice(proto.writers)
        column = chance.choice([row.clocks, row.shown, row.chains, row.doomed, row.embeds])
        if column:
            column[chance.randrange(len(column))] = chance.choice([0, 1, 2, 3, 4, 5, 6, 8, 9, 40, 1 << 33, 1 << 63])
    data = proto.SerializeToString(deterministic=True)
    try:
        state = TEXT.restore(data)
    except InvalidInput:
        return
    assert TEXT.snapshot(state) == data
    assert len(TEXT.value(state)) == TEXT.length(state)
    TEXT.apply(state, TEXT.insert(state, 0, "x", feed=BOB), Stamp(1 << 62, BOB, 9))
    assert TEXT.value(state).startswith("x")


def test_scattered_deletions_make_no_runs_received_or_restored() -> None:
    count = 20_000
    state = TEXT.initial()
    TEXT.apply(state, TEXT.insert(state, 0, "xy" * count, feed=ALICE), Stamp(1, ALICE, 0))
    rows = [text_pb2.TextDelete(lamport=1, offset=2 * at) for at in range(count)]
    TEXT.apply(state, text_pb2.TextMutation(deletes=rows).SerializeToString(), Stamp(2, ALICE, 1))
    restored = TEXT.restore(TEXT.snapshot(state))
    for text in (state, restored):
        assert TEXT.value(text) == "y" * count
        assert TEXT.read(text, 100, 200) == "y" * 100
        assert len(list(text.runs())) <= 2 * count // RUN_MAX + 2
        assert not text.writers[ALICE].gone, "nothing is kept for each range"
    assert TEXT.snapshot(restored) == TEXT.snapshot(state)
