"""An item store fits the feeds if each of its lanes ends at a block that they hold, or inside the base."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.engine.ports import LaneState
from antiphon.party.store.consistency import agrees
from antiphon.testing.spans import SpanWriter, key_pair

ALICE, PARTY = key_pair("alice"), key_pair("party").key
FEED = bytes(ALICE.key)
LENGTH = 4
HASHES = [bytes(32)]  # of the last block that is delivered, by position
WRITER = SpanWriter(ALICE, PARTY)
SPANS = [WRITER.write() for _ in range(LENGTH)]
HASHES += [span.hash_at(span.end - 1) for span in SPANS]


@pytest.mark.parametrize("start", range(LENGTH + 1))
def test_a_lane_fits_if_it_ends_at_a_block_that_is_held_or_inside_the_base(start: int, tmp_path: Path) -> None:
    """Given a feed that is pruned up to any block, when a lane has any base and any position, then it fits unless its
    base lacks pruned messages, it goes beyond the feed, or another block is at its end.
    """
    with FeedStore.open(tmp_path, durable=False) as store:
        store.ingest_all(SPANS)
        store.prune(FEED, start)
        for base in range(LENGTH + 1):
            for position in range(base, LENGTH + 2):
                hash_ = HASHES[min(position, LENGTH)]
                right = LaneState(FEED, 1, position, hash=hash_, base=base)
                wrong = LaneState(FEED, 1, position, hash=b"w" * 32, base=base)
                fits = start <= base and (position <= LENGTH or position == base)

                assert agrees([right], store, PARTY) is fits
                assert agrees([wrong], store, PARTY) is (fits and position == base), "the base is judged elsewhere"


@pytest.mark.parametrize("position", [0, 2])
def test_a_lane_without_its_feed_fits_if_all_its_messages_are_in_the_base(position: int, tmp_path: Path) -> None:
    with FeedStore.open(tmp_path, durable=False) as store:
        assert agrees([LaneState(FEED, 1, position, hash=HASHES[position], base=position)], store, PARTY)
        assert not agrees([LaneState(FEED, 1, 3, hash=HASHES[3], base=position)], store, PARTY)


@pytest.mark.parametrize("start", [0, 1])
def test_a_feed_without_a_lane_fits_unless_it_is_pruned(start: int, tmp_path: Path) -> None:
    with FeedStore.open(tmp_path, durable=False) as store:
        store.ingest_all(SPANS)
        store.prune(FEED, start)
        assert agrees([], store, PARTY) is (start == 0)
