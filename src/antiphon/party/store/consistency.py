"""Checks that an item store was derived from the feeds that are held: a backup may have restored only one of them."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.errors import InvalidInput, MissingBlocks
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.ports import Items, LaneState


def agrees(lanes: Iterable[LaneState], store: FeedReader) -> bool:
    """True if the delivered messages are those that the feeds hold."""
    records = {record.feed: record for record in store.feeds()}
    for lane in lanes:
        record = records.get(lane.feed)
        if lane.position > lane.base and (record is None or lane.position > record.length):
            return False
        if record is not None and record.start > lane.base:
            return False  # pruned beyond the base: the item store is older than the epoch
        held = record is not None and max(record.start, lane.base) < lane.position <= record.valid_length
        if held and store.block(lane.feed, lane.position - 1).hash != lane.hash:
            return False
    return True


def why_rebuild(items: Items, store: FeedReader) -> str:
    """Return why an item store must be rebuilt; empty if it need not be."""
    try:
        lanes = items.lanes()
    except InvalidInput as error:
        return str(error)
    return "" if agrees(lanes, store) else "the feeds are not those that it was made from"


def has_begun(lane: LaneState, store: FeedReader) -> bool:
    """True if a feed is held from its position on. If it was pruned beyond that, its snapshot is missing."""
    return store.record(lane.feed).start <= lane.position


def check_begun(lane: LaneState, store: FeedReader) -> None:
    """Raise `MissingBlocks` before a write to a feed whose earlier messages are neither held nor in a held snapshot."""
    if not has_begun(lane, store):
        raise MissingBlocks(
            f"feed {lane.feed.hex()[:8]}: its messages were pruned, and the snapshot that holds them is not here; "
            "fetch that first"
        )
