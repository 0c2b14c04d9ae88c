"""Copy the blocks of a party from one feed store into another, for tests that have no peer at the other end."""

from __future__ import annotations

from antiphon.core.errors import MissingBlocks, RefusedBlocks
from antiphon.feed.store.feed_store import FeedStore


def copy_feeds(source: FeedStore, target: FeedStore, party: bytes) -> int:
    """Ingest the blocks that the target lacks, all verified. Return their number. A refused feed is not continued."""
    have = {record.feed: record.length for record in target.feeds(party)}
    moved = 0
    for record in source.feeds(party):
        held = have.get(record.feed, 0)
        for span in source.spans(record.feed, max(record.start, held)) if held < record.length else ():
            try:
                moved += target.ingest_bytes(span.encode()).added
            except (RefusedBlocks, MissingBlocks):
                break
    return moved
