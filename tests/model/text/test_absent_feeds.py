"""Deletions in the names of absent feeds are those of a dictionary, and take effect when the feed comes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text import absent_feeds, clock_ranges
from antiphon.model.text.absent_feeds import RANGES_MAX, AbsentFeeds
from antiphon.model.text.clock_ranges import ClockRanges, pairs, with_range
from antiphon.model.text.model import TextModel

TEXT = TextModel()
ALICE, BOB, EVE = b"a" * 32, b"b" * 32, b"e" * 32
FEEDS = [bytes([number]) * 32 for number in range(30)]
CLOCKS = st.sampled_from([0, 1, 5, 1 << 20, (1 << 63) - 1, 1 << 64, (1 << 83) - 1])


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are small, and the dictionary is often emptied."""
    monkeypatch.setattr(absent_feeds, "_BLOCK_MAX", 4)
    monkeypatch.setattr(absent_feeds, "_LATEST_MIN", 3)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(FEEDS), CLOCKS), max_size=80), st.sets(st.sampled_from(FEEDS)))
def test_blocks_hold_what_a_dictionary_holds(steps: list[tuple[bool, bytes, int]], asked: set[bytes]) -> None:
    """Given feeds that are named and that come, in any order, then all that is deleted of each is known."""
    absent, known = AbsentFeeds(), dict[bytes, list[tuple[int, int]]]()
    for comes, feed, clock in steps:
        if comes:
            assert list(pairs(absent.take(feed))) == known.pop(feed, [])
        else:
            ranges = with_range(absent.get(feed), clock, clock)
            absent.put(feed, ranges)
            known[feed] = list(pairs(ranges))
    found = list(absent.between(sorted(asked)))
    rows = b"".join(row for part, _, _ in found for row in part)
    assert rows == encoded(known)
    assert [is_absent for _, _, is_absent in found] == [*(feed in known for feed in sorted(asked)), False]
    counts = [sum(one < feed for one in known) for feed in sorted(asked)]
    assert [before for _, before, _ in found] == [*counts, len(known)]
    for feed in FEEDS:
        assert list(pairs(absent.get(feed))) == known.get(feed, [])


def encoded(known: dict[bytes, list[tuple[int, int]]]) -> bytes:
    """What the library writes."""
    proto = text_pb2.TextSnapshot()
    for feed, ranges in sorted(known.items()):
        flat: ClockRanges = clock_ranges.NONE
        for low, high in ranges:
            flat = with_range(flat, low, high)
        proto.writers.add(feed=feed, doomed=absent_feeds.numbers_of(flat))
    return proto.SerializeToString(deterministic=True)


def named(feeds: list[bytes], lamports: list[int]) -> bytes:
    deletes = [text_pb2.TextDelete(feed=nth + 1, lamport=lamport) for nth in range(len(feeds)) for lamport in lamports]
    return text_pb2.TextMutation(feeds=feeds, deletes=deletes).SerializeToString()


def messages() -> list[tuple[bytes, Stamp]]:
    """Eve deletes what Alice and Bob write; Bob's first mark names a feed that is absent, too."""
    typed = TEXT.insert(TEXT.initial(), 0, "abc", feed=ALICE)
    marked = text_pb2.TextMutation(feeds=[FEEDS[3], FEEDS[9]])
    mark = marked.marks.add(name="b")
    mark.start.feed, mark.start.lamport, mark.end.feed, mark.end.lamport = 1, 1, 2, 1
    return [
        (named([ALICE, BOB, *FEEDS[:9]], [5]), Stamp(9, EVE, 0)),
        (named(FEEDS[4:20], [7, 9, 11]), Stamp(12, EVE, 1)),
        (typed, Stamp(5, ALICE, 0)),
        (marked.SerializeToString(), Stamp(6, BOB, 0)),
    ]


def folded(order: Any, *, restored: bool = False) -> bytes:
    state = TEXT.initial()
    for mutation, stamp in order:
        if restored:
            state = TEXT.restore(TEXT.snapshot(state))
        TEXT.apply(state, mutation, stamp)
    assert TEXT.value(state) in ("", "bc")
    return TEXT.snapshot(state)


def test_every_order_gives_the_same_snapshot_also_after_restoring() -> None:
    orders = [order for order in permutations(messages()) if [s.seq for _, s in order if s.feed == EVE] == [0, 1]]
    found = {folded(order, restored=restored) for order in orders for restored in (False, True)}
    assert len(found) == 1
    assert TEXT.value(TEXT.restore(found.pop())) == "bc"


def test_a_snapshot_takes_the_rows_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given many absent feeds in a snapshot, when one more is named, then its row alone is made."""
    state = TEXT.initial()
    TEXT.apply(state, named(FEEDS, [1]), Stamp(5, EVE, 0))
    TEXT.snapshot(state)
    made: list[bytes] = []
    row_of = absent_feeds._row_of

    def counted(feed: bytes, ranges: ClockRanges) -> bytes:
        made.append(feed)
        return row_of(feed, ranges)

    monkeypatch.setattr(absent_feeds, "_row_of", counted)
    TEXT.apply(state, named([ALICE], [1]), Stamp(6, EVE, 1))
    data = TEXT.snapshot(state)
    assert made == [ALICE]
    assert TEXT.snapshot(TEXT.restore(data)) == data


def test_many_deletions_of_one_absent_feed_are_in_no_row_that_is_read_again_and_again() -> None:
    state = TEXT.initial()
    for seq in range(3 * RANGES_MAX):
        TEXT.apply(state, named([ALICE], [2 * seq + 1]), Stamp(100 + seq, EVE, seq))
        data = TEXT.snapshot(state)
        assert TEXT.snapshot(TEXT.restore(data)) == data
        assert (ALICE in state.writers) is (seq >= RANGES_MAX)
        assert (ALICE in TEXT.restore(data).writers) is (seq >= RANGES_MAX)
    TEXT.apply(state, TEXT.insert(state, 0, "x", feed=ALICE), Stamp(5, ALICE, 0))
    assert TEXT.value(state) == ""


@pytest.mark.parametrize("change", ["twice", "order", "nothing", "touching", "cut off", "alien"])
def test_rows_that_no_text_writes_are_refused(change: str) -> None:
    state = TEXT.initial()
    TEXT.apply(state, named(FEEDS[:3], [1, 3]), Stamp(5, EVE, 0))
    data = TEXT.snapshot(state)
    proto = text_pb2.TextSnapshot.FromString(data)
    rows = proto.writers
    if change == "twice":
        rows[1].feed = rows[0].feed
    elif change == "order":
        rows[1].feed, rows[0].feed = rows[0].feed, rows[1].feed
    elif change == "nothing":
        del rows[1].doomed[:]
    elif change == "touching":
        rows[0].doomed[:] = [1, 0, 1, 0, 1, 1, 1, 1]
    changed = proto.SerializeToString(deterministic=True)
    if change == "cut off":
        changed = data[:-1]
    elif change == "alien":
        changed = data + b"\x22\x00"
    with pytest.raises(BadEncoding):
        TEXT.restore(changed)
