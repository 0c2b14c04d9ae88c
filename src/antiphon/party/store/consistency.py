"""Checks that an item store was derived from the feeds that are held: a backup may have restored only one of them."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.errors import CorruptBlock, InvalidInput, MissingBlocks
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.ports import Items, LaneState


def agrees(lanes: Iterable[LaneState], store: FeedReader, party: bytes) -> bool:
    """True if the delivered messages are those that the feeds of a party hold."""
    records = {record.feed: record for record in store.feeds(party)}
    known = {lane.feed: lane for lane in lanes}
    if any(record.start and record.feed not in known for record in records.values()):
        return False  # pruned, and the item store is older than its first message here
    for lane in known.values():
        record = records.get(lane.feed)
        if lane.position > lane.base and (record is None or lane.position > record.length):
            return False
        if record is not None and record.start > lane.base:
            return False  # pruned beyond the base: the item store is older than the epoch
        held = record is not None and max(record.start, lane.base) < lane.position <= record.valid_length
        if held and record is not None:
            last = record.hash if lane.position == record.length else store.block(lane.feed, lane.position - 1).hash
            if last != lane.hash:
                return False
    return True


def load_lanes(items: Items, store: FeedReader, party: bytes) -> tuple[list[LaneState], str]:
    """Load the lanes of an item store, and return them, and why it must be rebuilt; that is empty if it need not be."""
    try:
        lanes = items.lanes()
        if not lanes and items.base() is None:
            return lanes, ""  # it is empty
    except InvalidInput as error:
        return [], str(error)
    try:
        return lanes, "" if agrees(lanes, store, party) else "the feeds are not those that it was made from"
    except CorruptBlock as error:
        if error.feed not in {lane.feed for lane in lanes}:
            raise
        return [], str(error)


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
