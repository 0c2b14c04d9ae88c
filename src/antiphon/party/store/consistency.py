"""Whether an item store was made from the feeds that are here. It is not after a restore of one without the other."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.errors import InvalidInput, MissingBlocks
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.ports import Items, LaneState


def agrees(lanes: Iterable[LaneState], store: FeedReader) -> bool:
    """Whether what was processed is what the feeds hold. It is not after a restore of the feeds alone."""
    records = {record.feed: record for record in store.feeds()}
    for lane in lanes:
        record = records.get(lane.feed)
        if lane.position > lane.base and (record is None or lane.position > record.length):
            return False
        if record is not None and record.start > lane.base:
            return False  # pruned beyond what it stands on: it is from before the epoch
        held = record is not None and max(record.start, lane.base) < lane.position <= record.valid_length
        if held and store.block(lane.feed, lane.position - 1).hash != lane.hash:
            return False
    return True


def why_rebuild(items: Items, store: FeedReader) -> str:
    """Why it must be built again; empty if it need not."""
    try:
        lanes = items.lanes()
    except InvalidInput as error:
        return str(error)
    return "" if agrees(lanes, store) else "the feeds are not those that it was made from"


def has_begun(lane: LaneState, store: FeedReader) -> bool:
    """Whether a feed is here from where the party stands on; if it was pruned beyond that, the snapshot is lost."""
    return store.record(lane.feed).start <= lane.position


def check_begun(lane: LaneState, store: FeedReader) -> None:
    """Nothing is written after messages that are neither here nor in a snapshot that is."""
    if not has_begun(lane, store):
        raise MissingBlocks(
            f"feed {lane.feed.hex()[:8]}: its messages were pruned, and the snapshot that holds them is not here; "
            "fetch that first"
        )
