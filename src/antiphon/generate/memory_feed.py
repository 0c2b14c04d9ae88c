"""`MemoryFeed`: a writer's feed in memory. It knows the stamp of the next block, and the blocks the writer has seen."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Append, Built, Draft, build
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import Entry, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.generate.seeded import ManualClock
from antiphon.generate.sink import Sink


class MemoryFeed:
    """Appends drafts to a feed in turns. A turn has one signed head; its first block lists what the writer has seen."""

    def __init__(
        self, pair: KeyPair, party: bytes, sink: Sink, clock: ManualClock, chance: random.Random, *, own: bool
    ) -> None:
        self.pair = pair
        self.feed = bytes(pair.key)
        self._party = party
        self._sink = sink
        self._clock = clock
        self._chance = chance
        self.own = own  # True for the feed of the home's own device
        self.identity = b""  # of its writer
        self.owner = False  # True if the writer is an owner of the party
        self._record = FeedRecord(feed=self.feed, party=party, writable=True)
        self._frontier: dict[bytes, Entry] = {}
        self._begin()

    def _begin(self) -> None:
        self._seen: list[Entry] = []
        self._appends: list[Append] = []
        self.drafts: list[Draft] = []
        self.lamport = self._record.lamport + 1  # of the first draft
        self.first = self._record.length  # the seq of the first draft
        self.step = 1  # from one draft's lamport to the next; 0 in a batch

    def see(self, entries: Iterable[Entry]) -> None:
        """Note the blocks that the next turn's first block has seen. Call it before `add`."""
        frontier = self._frontier
        for entry in entries:
            known = frontier.get(entry.feed)
            if entry.feed != self.feed and (known is None or entry.seq > known.seq):
                self._seen.append(entry)
                self.lamport = max(self.lamport, entry.lamport + 1)

    def add(self, kind: Kind, item: bytes, message: bytes) -> None:
        """Append one draft to the turn."""
        self.drafts.append(Draft(kind, item, message))

    @property
    def next_lamport(self) -> int:
        """The lamport of the next draft."""
        return self.lamport + len(self.drafts) * self.step

    @property
    def next_seq(self) -> int:
        """The seq of the next draft."""
        return self.first + len(self.drafts)

    def open_batch(self) -> None:
        """Start an atomic batch, up to `close`: its drafts share a lamport."""
        self.close()
        self.step = 0

    def close(self) -> None:
        """End the batch, or the run of single drafts."""
        count, atomic = len(self.drafts), not self.step
        self.step = 1
        if not count:
            return
        self._appends.append(
            Append(
                self.pair,
                self._party,
                self.drafts,
                self._seen,
                atomic=atomic,
                created_ms=self._clock.ms,
                salts=self._chance.randbytes(count * SALT_SIZE),
            )
        )
        self._seen, self.drafts = [], []
        self.lamport += 1 if atomic else count  # a batch of one draft takes one lamport, too
        self.first += count

    def end(self) -> Entry | None:
        """End the turn: sign it, and pass it to the sink. Returns its last block, as others see it; None if empty."""
        self.close()
        if not self._appends:
            return None
        built = self._build()
        self._sink.put(self._appends, built.spans, own=self.own)
        self._record = built.record
        self._frontier.update(built.moved)
        last = built.written[-1][-1]
        assert (last.lamport, last.seq) == (self.lamport - 1, self.first - 1), "its messages carry other stamps"
        self._begin()
        return Entry(self.feed, last.seq, last.lamport, self._record.hash)

    def _build(self) -> Built:
        return build(self._record, self._appends, self._frontier.get)

    def branch(self) -> MemoryFeed:
        """Return a second history of the same feed from here on: a fork."""
        other = MemoryFeed(self.pair, self._party, self._sink, self._clock, self._chance, own=False)
        other._record, other._frontier = replace(self._record), dict(self._frontier)
        other._begin()
        return other

    @property
    def length(self) -> int:
        """The number of blocks in all turns that have ended."""
        return self._record.length
