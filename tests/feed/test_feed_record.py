"""What a store remembers of a feed: it comes back as it was, a changed byte is found, and an end never moves up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import CorruptBlock
from antiphon.feed.feed_record import Bounds, End, FeedRecord
from antiphon.testing.feed_strategies import hashes

FEED = b"f" * 32
u63s = st.integers(0, 2**63 - 1)
records = st.builds(
    FeedRecord,
    feed=st.just(FEED),
    party=hashes,
    writable=st.booleans(),
    retired=st.booleans(),
    start=u63s,
    start_hash=hashes,
    start_lamport=u63s,
    length=u63s,
    hash=hashes,
    lamport=u63s,
    signature=st.binary(min_size=64, max_size=64),
    end=u63s,
    why=st.sampled_from(End),
)


@given(records)
def test_a_record_comes_back_as_it_was(record: FeedRecord) -> None:
    assert FeedRecord.decode(FEED, record.encode()) == record


@given(records, st.data())
def test_a_changed_byte_is_found(record: FeedRecord, data: st.DataObject) -> None:
    encoded = bytearray(record.encode())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))

    with pytest.raises(CorruptBlock, match="has changed") as raised:
        FeedRecord.decode(FEED, bytes(encoded))
    assert raised.value.feed == FEED


@given(records, st.integers(0, 300))
def test_a_cut_record_is_found(record: FeedRecord, size: int) -> None:
    encoded = record.encode()
    with pytest.raises(CorruptBlock):
        FeedRecord.decode(FEED, encoded[: min(size, len(encoded) - 1)])


def test_a_record_under_another_feed_is_found() -> None:
    with pytest.raises(CorruptBlock):
        FeedRecord.decode(b"g" * 32, FeedRecord(feed=FEED, party=b"p" * 32).encode())


def test_the_least_end_wins_and_never_moves_up() -> None:
    record = FeedRecord(feed=FEED, party=b"p" * 32, length=10)

    ended = record.ended(7, End.FAULT)

    assert record.bounds == Bounds(0, 10, None)
    assert ended.bounds == Bounds(0, 10, 7)
    assert ended.valid_length == 7
    assert ended.ended(8, End.FORK) == ended
    assert ended.ended(3, End.FORK).bounds == Bounds(0, 10, 3)


def test_extending_changes_only_what_grows() -> None:
    record = FeedRecord(feed=FEED, party=b"p" * 32, writable=True, start=2, start_lamport=5, length=4)

    longer = record.extended(9, b"h" * 32, 12, b"s" * 64)

    assert longer == replace(record, length=9, hash=b"h" * 32, lamport=12, signature=b"s" * 64)
    assert longer.head is not None
    assert (longer.head.length, longer.head.hash) == (9, b"h" * 32)


def test_a_feed_without_blocks_has_no_head() -> None:
    assert FeedRecord(feed=FEED, party=b"p" * 32).head is None
