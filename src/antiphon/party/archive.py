"""Where messages are found again: postings in, messages out, from the feeds that keep them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon.feed.reader import FeedReader
from antiphon.model.envelope import Note
from antiphon.party.delivery import Delivery
from antiphon.party.demux import notes_of, void_kind
from antiphon.party.judge import reason_at
from antiphon.party.lane import Lane, Run
from antiphon.party.ports import Posting

_SHORT_RUN = 8  # so few blocks are quicker to fetch one by one


class Archive:
    """The delivered messages of a party, by posting."""

    def __init__(self, store: FeedReader, delivery: Delivery) -> None:
        self._store = store
        self._delivery = delivery

    def read(self, postings: Iterable[Posting]) -> list[Note]:
        """The messages, each with why it is void if it is, in the total order."""
        lanes = {lane.state.number: lane for lane in self._delivery.lanes.values()}
        notes: list[Note] = []
        for number, start, stop in self.trim(postings):
            lane = lanes[number]
            voids = lane.state.voids
            for note in self._read_run(lane, start, stop):
                reason = reason_at(voids, note.seq) or note.void
                notes.append(note._replace(void=reason) if reason else note)
        notes.sort(key=lambda note: (note.lamport, note.feed, note.seq))
        return notes

    def _read_run(self, lane: Lane, start: int, stop: int) -> Iterator[Note]:
        if stop - start <= _SHORT_RUN:
            for seq in range(start, stop):
                block = self._store.block(lane.feed, seq)
                void = void_kind(block.kind)
                yield Note(block.kind, block.lamport, lane.feed, seq, block.created_ms, block.message, void)
            return
        for span, low, high in self._store.runs(lane.feed, start, stop):
            for _, note in notes_of(Run(lane.feed, span, low, high)):
                yield note

    def trim(self, postings: Iterable[Posting]) -> list[Posting]:
        """Without what lies beyond the end of its feed, and with neighbours joined."""
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
