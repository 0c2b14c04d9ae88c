"""Anchored streams: a reader that resumes where it stopped, also after a restart, and a writer that can be waited for.

An anchor is a serialised timeframe. A read stream delivers each valid message once, in a causal order (the total order,
among the messages that have arrived). Its anchor names exactly the messages that it has delivered.

>>> from antiphon.core.keys import KeyPair
>>> from antiphon.feed.store.feed_store import FeedStore
>>> from antiphon.party.engine.authority import OpenAuthority
>>> from antiphon.party.live.processor import PartyProcessor
>>> store, key = FeedStore.open("feeds"), KeyPair.from_seed(b"p" * 32).key
>>> party = PartyProcessor(key, store, OpenAuthority(store, key, KeyPair.from_seed(b"f" * 32)))
>>> note = party.create("antiphon/object")
>>> write, read = WriteStream(party, note.id), ReadStream(party, item=note.id)
>>> stamp = write.edit("set", "title", "Milk")
>>> read.has(write.anchor())
False
>>> [message.kind.name for message in read]
['GENESIS', 'MUTATION']
>>> read.has(write.anchor()), list(ReadStream(party, anchor=read.anchor()))
(True, [])
>>> party.close(); store.close()
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import MissingBlocks, UnknownFeed
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Kind
from antiphon.model.message import Note
from antiphon.party.engine.demux import notes_of
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.judge import mark_void
from antiphon.party.engine.lane import Run
from antiphon.party.live.item import Item

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor

_AT_ONCE = 512  # blocks of one feed that are read ahead


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A delivered message: its item, the time by its writer's clock, and its bytes (None: the body is not here)."""

    stamp: Stamp
    item: bytes
    kind: Kind
    created_ms: int
    message: bytes | None


class ReadStream:
    """Messages of a party, or of one item, after an anchor.

    Iterating ends with the last message that is delivered now. Iterate again to get later ones.
    """

    def __init__(
        self,
        party: PartyProcessor,
        anchor: bytes | None = None,
        *,
        item: bytes | None = None,
        resume: Callable[[EpochBase], None] | None = None,
    ) -> None:
        """If messages after the anchor are pruned, `resume` is called with the epoch to read the state from, and the
        stream continues after its cut. Without `resume` that is an error."""
        self._party = party
        self._resume = resume
        self._item = None if item is None else bytes(item)
        self._at = dict(Timeframe.decode(anchor)) if anchor is not None else {}

    def __iter__(self) -> Iterator[StreamMessage]:
        with self._party.locked() as engine:
            frame, base = engine.delivery.timeframe(), engine.base
        if base is not None and self._pruned(base):
            self._skip_to(base)
        # Both timeframes are causally closed, and lamports ascend in a feed: merging by stamp gives a causal order.
        feeds = [self._feed(feed, self._at.get(feed, -1) + 1, last + 1) for feed, last in frame.items()]
        for stamp, item, note in heapq.merge(*feeds, key=lambda found: found[0]):
            self._at[stamp.feed] = stamp.seq
            if note.void or (self._item is not None and item != self._item):
                continue
            yield StreamMessage(stamp, item, Kind(note.kind), note.created_ms, note.message)

    def _pruned(self, base: EpochBase) -> bool:
        """True if messages that this stream has not delivered are inside the epoch and pruned here."""
        return any(
            self._at.get(feed, -1) + 1 < min(cut.length, self._held(feed, cut.length))
            for feed, cut in base.feeds.items()
        )

    def _held(self, feed: bytes, otherwise: int) -> int:
        try:
            return self._party.store.bounds(feed).start
        except UnknownFeed:
            return otherwise

    def _skip_to(self, base: EpochBase) -> None:
        if self._resume is None:
            raise MissingBlocks(
                f"party {self._party.key.short}: messages after this anchor are pruned, and epoch {base.number} holds "
                "what they made; read the state from there (`resume`), or begin a new stream at the party's timeframe"
            )
        self._resume(base)
        for feed, cut in base.feeds.items():
            self._at[feed] = max(self._at.get(feed, -1), cut.length - 1)
        self._at = {feed: seq for feed, seq in self._at.items() if seq >= 0}

    def _feed(self, feed: bytes, start: int, stop: int) -> Iterator[tuple[Stamp, bytes, Note]]:
        held = self._held(feed, start)
        if start < min(held, stop):
            raise MissingBlocks(
                f"feed {feed.hex()[:8]}: blocks {start} to {held - 1} are pruned here, and this anchor is older; read "
                "the state first, and begin a new stream at the party's timeframe"
            )
        while start < stop:
            end = min(stop, start + _AT_ONCE)
            with self._party.locked() as engine:
                lane = engine.delivery.lanes[feed]
                voids = list(lane.state.voids)
                rows = [
                    row
                    for span, low, high in self._party.store.runs(feed, start, end)
                    for row in notes_of(Run(feed, span, low, high))
                ]
            if not rows:
                return  # the feed was cut meanwhile
            for item, note in rows:
                yield note.stamp, item, mark_void(voids, note)
            start = end

    def anchor(self) -> bytes:
        """Return the anchor of all messages delivered so far. A stream opened with it continues after them."""
        return Timeframe(self._at).encode()

    def has(self, anchor: bytes) -> bool:
        """True if this stream has delivered every message that a writer's, or another reader's, anchor names."""
        return Timeframe(self._at).covers(Timeframe.decode(anchor))


class WriteStream:
    """Writes to one item. Its anchor names the last message, which a reader can wait for."""

    def __init__(self, party: PartyProcessor, item: bytes) -> None:
        self._party = party
        self._item = Item(party, item)
        self._last: Stamp | None = None

    def edit(self, command: str, *arguments: Any, **options: Any) -> Stamp:
        """Run a command of the item's model."""
        self._last = self._item.edit(command, *arguments, **options)
        return self._last

    def write(self, mutation: bytes) -> Stamp:
        """Write a mutation in the model's own bytes."""
        self._last = self._item.mutate(mutation)
        return self._last

    def anchor(self) -> bytes:
        """Return the anchor of the last message written; an empty timeframe's if there is none."""
        return Timeframe({} if self._last is None else {self._last.feed: self._last.seq}).encode()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the last message written is in the items' states here."""
        return self._party.wait_for(Timeframe.decode(self.anchor()), timeout_s)
