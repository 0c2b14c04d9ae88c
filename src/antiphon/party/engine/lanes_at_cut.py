"""Lanes at a cut in the past, rebuilt from the feeds: to recompute an epoch, and to read past states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from antiphon.core.errors import MissingBlocks, UnknownFeed
from antiphon.feed.header import Entry, decode_entries
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.ports import LaneState


def advances(store: FeedReader, feed: bytes, start: int, stop: int) -> Iterator[tuple[int, tuple[Entry, ...]]]:
    """Yield the blocks of [start, stop) that have advance entries: seq and entries."""
    if start >= stop:
        return
    for span, low, high in store.runs(feed, start, stop):
        offsets = span.advance_offsets
        for index in (np.flatnonzero(span.columns["advance"][low:high]) + low).tolist():
            yield span.first + index, decode_entries(span.advance[offsets[index] : offsets[index + 1]])


def lanes_at(
    store: FeedReader, is_control: Callable[[Entry], bool], base: EpochBase | None, cut: Mapping[bytes, int]
) -> list[LaneState]:
    """Rebuild the lanes at a cut, on top of the previous epoch. `is_control` knows entries for control blocks."""
    found = []
    for number, (feed, length) in enumerate(sorted(cut.items()), start=1):
        known = base.feeds.get(feed) if base is not None else None
        start = 0 if known is None else known.length
        check_held(store, feed, start, length)
        state = LaneState(feed, number, position=length, base=start)
        if known is not None:
            state.lamport = state.base_lamport = known.lamport
            state.hash = known.hash
            state.segments.see(start, known.control)
        lane = Lane(state)
        for seq, entries in advances(store, feed, start, length):
            control = {entry.feed: entry.seq for entry in entries if is_control(entry)}
            if control:
                lane.see(seq, control)
        if length > start:
            last = store.block(feed, length - 1)
            state.lamport, state.hash = last.lamport, last.hash
        found.append(state)
    return found


def check_held(store: FeedReader, feed: bytes, start: int, stop: int) -> None:
    """Raise `MissingBlocks` unless blocks [start, stop) of a feed are held."""
    if start >= stop:
        return
    try:
        bounds = store.bounds(feed)
    except UnknownFeed:
        raise MissingBlocks(f"feed {feed.hex()[:8]}: blocks {start} to {stop - 1} are wanted, none is here") from None
    if bounds.start > start or bounds.length < stop:
        raise MissingBlocks(
            f"feed {feed.hex()[:8]}: blocks {start} to {stop - 1} are wanted, and those here are {bounds.start} to "
            f"{bounds.length - 1}; a peer that keeps more may have them"
        )
