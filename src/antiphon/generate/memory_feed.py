"""A writer's own feed in memory: it knows which stamp the next block gets, and what the writer has seen."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Append, Built, Draft, build
from antiphon.feed.feed_record import Record
from antiphon.feed.header import Entry, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.generate.seeded import ManualClock
from antiphon.generate.sink import Sink


class MemoryFeed:
    """Appends drafts to a feed in turns. A turn is one head; what it has seen stands in its first block."""

    def __init__(
        self, pair: KeyPair, party: bytes, sink: Sink, clock: ManualClock, chance: random.Random, *, own: bool
    ) -> None:
        self.pair = pair
        self.feed = bytes(pair.key)
        self._party = party
        self._sink = sink
        self._clock = clock
        self._chance = chance
        self.own = own  # the home's
        self.identity = b""  # whose it is
        self.owner = False  # whether that is an owner of the party
        self._record = Record(feed=self.feed, party=party, writable=True)
        self._frontier: dict[bytes, Entry] = {}
        self._begin()

    def _begin(self) -> None:
        self._seen: list[Entry] = []
        self._appends: list[Append] = []
        self.drafts: list[Draft] = []
        self.lamport = self._record.lamport + 1  # of the first draft
        self.first = self._record.length  # its seq
        self.step = 1  # from one draft's lamport to the next: none in a batch

    def see(self, entries: Iterable[Entry]) -> None:
        """What the next turn's first block has seen; done before anything is added."""
        frontier = self._frontier
        for entry in entries:
            known = frontier.get(entry.feed)
            if entry.feed != self.feed and (known is None or entry.seq > known.seq):
                self._seen.append(entry)
                self.lamport = max(self.lamport, entry.lamport + 1)

    def add(self, kind: Kind, item: bytes, message: bytes) -> None:
        self.drafts.append(Draft(kind, item, message))

    @property
    def next_lamport(self) -> int:
        return self.lamport + len(self.drafts) * self.step

    @property
    def next_seq(self) -> int:
        return self.first + len(self.drafts)

    def open_batch(self) -> None:
        """What is added up to `close` is seen all or none, and shares a lamport."""
        self.close()
        self.step = 0

    def close(self) -> None:
        """End a stretch of drafts."""
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
        self.lamport += 1 if atomic else count  # one alone is no batch, and takes one as well
        self.first += count

    def end(self) -> Entry | None:
        """End the turn: sign it, and send it away. What others may see of it."""
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
        """Another history of the same feed, from here on: what only a liar writes."""
        other = MemoryFeed(self.pair, self._party, self._sink, self._clock, self._chance, own=False)
        other._record, other._frontier = replace(self._record), dict(self._frontier)
        other._begin()
        return other

    @property
    def length(self) -> int:
        return self._record.length
