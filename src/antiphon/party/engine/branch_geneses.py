"""`BranchGeneses`: geneses beyond a fork, and which feeds have seen them (rule 26).

What a writer signed beyond a fork is no history, and begins nothing by itself. But members who saw that branch may have
written to its items. Their feeds refer to the branch by hash, so every peer that has delivered them was shown its
headers and small geneses (rule 23), and can begin the items that they wrote to. Branches that no delivered block refers
to do not count: not all peers hold them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from antiphon.core.errors import UnknownFeed
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import HASH_SIZE, Kind
from antiphon.feed.limits import BRANCH_GENESIS_SIZE_MAX
from antiphon.feed.span import Span
from antiphon.feed.store.reader import FeedReader
from antiphon.model.fold import BEYOND_FORK
from antiphon.model.message import Note
from antiphon.party.engine.lanes_at_cut import advances

#: By feed: the delivered messages outside the base, [start, stop).
Bounds = Mapping[bytes, tuple[int, int]]


class BranchGenesis(NamedTuple):
    """A genesis beyond a fork, and the first message of each feed that has seen it."""

    note: Note
    since: dict[bytes, int]


Candidates = Mapping[bytes, Sequence[BranchGenesis]]  # by item


def choose(candidates: Candidates, item: bytes, notes: Sequence[Note]) -> Note | None:
    """Return the genesis beyond a fork that may begin an item with these messages; None for none.

    One of the messages must be of a feed that had seen it then. Of several the least stamp is taken. A delivered
    genesis comes before all of them.
    """
    if item not in candidates or any(note.kind == Kind.GENESIS for note in notes):
        return None
    seen = [
        known.note
        for known in candidates[item]
        if any(note.seq >= known.since[note.feed] for note in notes if note.feed in known.since)
    ]
    return min(seen, key=lambda note: (note.stamp, note.created_ms, note.message), default=None)


@dataclass(slots=True, eq=False)
class _Part:
    """One span of a branch: the geneses in it, and their indexes."""

    first: int
    previous: bytes
    indexes: list[int] = field(default_factory=list)
    geneses: list[BranchGenesis] = field(default_factory=list)

    def between(self, after: int, upto: int) -> list[BranchGenesis]:
        """Return the geneses behind one index, up to another."""
        return self.geneses[bisect_right(self.indexes, after) : bisect_right(self.indexes, upto)]


class BranchGeneses:
    """The geneses beyond the forks of a party's data feeds. `update` reads only what is new."""

    def __init__(self, store: FeedReader) -> None:
        self._store = store
        self._read: object = None  # the records and bounds for which the branches were read
        self._begin()

    def _begin(self) -> None:
        self.by_item: dict[bytes, list[BranchGenesis]] = {}
        self._places: dict[bytes, dict[bytes, tuple[_Part, int]]] = {}  # by feed: the branch blocks, by hash
        self._scanned: dict[bytes, int] = {}
        self._reached: dict[bytes, dict[_Part, int]] = {}  # by feed: the last index that it has seen of each part

    def update(self, forked: Collection[bytes], bounds: Bounds) -> Candidates:
        """Read the branches of forked feeds, and what the delivered messages have seen of them."""
        read = {feed: (self._record(feed), bounds[feed]) for feed in forked if feed in bounds}
        now = (read, {feed: start for feed, (start, _) in bounds.items()} if read else {})
        back = any(stop < self._scanned.get(feed, 0) for feed, (_, stop) in bounds.items())
        if now != self._read or back:
            self._read = now
            self._begin()
            for record, (start, stop) in read.values():
                if record is not None and not record.ignored:
                    self._take(record, start, stop)
        if self.by_item:
            for feed, (start, stop) in bounds.items():
                self._scan(feed, self._scanned.get(feed, start), stop, bounds)
        return self.by_item

    def _record(self, feed: bytes) -> FeedRecord | None:
        try:
            return self._store.record(feed)
        except UnknownFeed:
            return None

    def _take(self, record: FeedRecord, start: int, stop: int) -> None:
        """Take the branches of a feed: all blocks but the first `stop`; geneses before `start` do not count."""
        begin = max(stop, record.start)
        held = self._store.held(record.feed, begin, record.length) if begin < record.length else iter(())
        places = self._places[record.feed] = {}
        for span in (*held, *(self._store.branches(record.feed) if record.branches else ())):
            part = self._part(span, start)
            for index in range(span.count):
                places[span.hashes[index * HASH_SIZE : (index + 1) * HASH_SIZE]] = part, index

    def _part(self, span: Span, start: int) -> _Part:
        part = _Part(span.first, span.previous)
        columns = span.columns
        small = np.equal(columns["kind"], Kind.GENESIS) & np.less_equal(columns["body_size"], BRANCH_GENESIS_SIZE_MAX)
        for index in np.flatnonzero(small).tolist():
            block = span.block(index)
            if block.message is not None and block.seq >= start:
                stamp = block.lamport, block.feed, block.seq
                found = BranchGenesis(Note(Kind.GENESIS, *stamp, block.created_ms, block.message, BEYOND_FORK), {})
                part.indexes.append(index)
                part.geneses.append(found)
                self.by_item.setdefault(bytes(block.item), []).append(found)
        return part

    def _scan(self, feed: bytes, start: int, stop: int, bounds: Bounds) -> None:
        """Note which geneses the messages [start, stop) of a feed have seen."""
        reached = self._reached.setdefault(feed, {})
        for seq, entries in advances(self._store, feed, start, stop):
            for entry in entries:
                # Inside the cut an entry counts by its lamport alone, and the branch that it names need not be here.
                if entry.feed != feed and entry.feed in self._places and entry.seq >= bounds[entry.feed][0]:
                    for found in self._on_path(entry.feed, entry.hash, reached):
                        found.since.setdefault(feed, seq)
        self._scanned[feed] = stop

    def _on_path(self, feed: bytes, block: bytes, reached: dict[_Part, int]) -> Iterator[BranchGenesis]:
        """Yield the geneses on the way to a block of a branch, without those that were reached before."""
        while (place := self._places[feed].get(block)) is not None:
            part, index = place
            known = reached.get(part, -1)
            yield from part.between(known, index)
            reached[part] = max(known, index)
            if known >= 0:
                return
            block = part.previous
