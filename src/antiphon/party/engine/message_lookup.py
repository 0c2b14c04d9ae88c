"""`MessageLookup`: postings in, messages out, read from the feed store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon.core.errors import UnknownFeed
from antiphon.feed.store.reader import FeedReader
from antiphon.model.message import Note
from antiphon.party.engine.delivery import Delivery
from antiphon.party.engine.demux import notes_of, void_kind
from antiphon.party.engine.judge import mark_void
from antiphon.party.engine.lane import Run
from antiphon.party.engine.ports import Posting

_SHORT_RUN = 8  # up to so many blocks are read one by one, which is faster


class MessageLookup:
    """Reads delivered messages of a party by posting."""

    def __init__(self, store: FeedReader, delivery: Delivery) -> None:
        self._store = store
        self._delivery = delivery

    def read(self, postings: Iterable[Posting]) -> list[Note]:
        """Read messages in the total order, void ones marked with the reason."""
        lanes = {lane.state.number: lane for lane in self._delivery.lanes.values()}
        notes: list[Note] = []
        for number, start, stop in self.trim(postings):
            lane = lanes[number]
            voids = lane.state.voids
            notes += [mark_void(voids, note) for note in read_run(self._store, lane.feed, start, stop)]
        notes.sort(key=lambda note: (note.lamport, note.feed, note.seq))
        return notes

    def held(self, postings: Iterable[Posting]) -> list[Posting]:
        """Cut postings to messages that are not pruned, and `trim` them."""
        starts = {
            lane.state.number: self._start(lane.feed, lane.state.base)
            for lane in self._delivery.lanes.values()
            if lane.state.base  # only messages inside a base are pruned
        }
        return self.trim(
            posting._replace(start=max(posting.start, starts.get(posting.number, 0))) for posting in postings
        )

    def _start(self, feed: bytes, base: int) -> int:
        """Return the first held block of a feed; for a feed that was never held, the first after the base."""
        try:
            return self._store.bounds(feed).start
        except UnknownFeed:
            return base

    def outside(self, postings: Iterable[Posting]) -> list[Posting]:
        """Cut postings to messages outside the base, and `trim` them."""
        bases = {lane.state.number: lane.state.base for lane in self._delivery.lanes.values()}
        return self.trim(posting._replace(start=max(posting.start, bases[posting.number])) for posting in postings)

    def trim(self, postings: Iterable[Posting]) -> list[Posting]:
        """Cut postings to delivered messages, and join neighbours."""
        ends = {lane.state.number: lane.state.position for lane in self._delivery.lanes.values()}
        found: list[Posting] = []
        for number, start, stop in postings:
            end = min(stop, ends[number])
            last = found[-1] if found else None
            if end <= start:
                continue
            if last is not None and last.number == number and last.stop == start:
                found[-1] = Posting(number, last.start, end)
            else:
                found.append(Posting(number, start, end))
        return found


def read_run(store: FeedReader, feed: bytes, start: int, stop: int) -> Iterator[Note]:
    """Read messages [start, stop) of a feed. Only blocks of a wrong kind are marked void.

    They were delivered, and are read also if the feed was cut at a fork since, until the engine has taken them back.
    """
    if stop - start <= _SHORT_RUN:
        for seq in range(start, stop):
            block = store.block(feed, seq, past_end=True)
            yield Note(block.kind, block.lamport, feed, seq, block.created_ms, block.message, void_kind(block.kind))
        return
    for span in store.held(feed, start, stop):
        for _, note in notes_of(Run(feed, span, 0, span.count)):
            yield note
