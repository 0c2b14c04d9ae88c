"""`BranchGeneses`: geneses beyond a fork, and which feeds have seen them (rule 26).

What a writer signed beyond a fork is no history, and begins nothing by itself. But members who saw that branch may have
written to its items. Their feeds refer to the branch by hash, so every peer that has delivered them was shown its
headers and small geneses (rule 23), and can begin the items that they wrote to. Branches that no delivered block refers
to do not count: not all peers hold them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from antiphon.core.errors import UnknownFeed
from antiphon.core.stamp import Stamp
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import HASH_SIZE, Kind
from antiphon.feed.limits import BRANCH_GENESIS_SIZE_MAX
from antiphon.feed.span import Span
from antiphon.feed.store.reader import FeedReader
from antiphon.model.fold import BEYOND_FORK
from antiphon.model.message import Note
from antiphon.party.engine.delivery import FETCHED_BLOCKS
from antiphon.party.engine.lanes_at_cut import advances

#: By feed: the delivered messages outside the base, [start, stop).
Bounds = Mapping[bytes, tuple[int, int]]
_NOTHING = (0, 0)


class BranchGenesis(NamedTuple):
    """A genesis beyond a fork, and the first message of each feed that has seen it."""

    note: Note
    since: dict[bytes, int]

    def seen_by(self, note: Note) -> bool:
        """True if the feed of a message had seen this genesis when it wrote the message."""
        return note.feed in self.since and note.seq >= self.since[note.feed]


Candidates = Mapping[bytes, Sequence[BranchGenesis]]  # by item


def choose(candidates: Candidates, item: bytes, notes: Sequence[Note]) -> Note | None:
    """Return the genesis beyond a fork that may begin an item with these messages; None for none.

    One of the messages must be of a feed that had seen it then. Only a view can have several: the first message that
    had seen any decides, so that what others build later changes nothing; of those that it had seen, the least is
    taken. A delivered genesis comes before all of them.
    """
    if item not in candidates or any(note.kind == Kind.GENESIS for note in notes):
        return None
    known = candidates[item]
    first = min((note for note in notes if any(one.seen_by(note) for one in known)), key=_stamp_of, default=None)
    seen = [] if first is None else [one.note for one in known if one.seen_by(first)]
    return min(seen, key=lambda note: (note.stamp, note.created_ms, note.message), default=None)


def _stamp_of(note: Note) -> Stamp:
    return note.stamp


def may_begin_otherwise(
    candidates: Candidates, item: bytes, frame: Mapping[bytes, Stamp], notes: Sequence[Note]
) -> bool:
    """True if messages may give an item that began beyond a fork another genesis, so that it must be folded again.

    Only a view can have two. `frame` has the last message of each feed that the item has. The choice changes only with
    a feed that had seen, when it wrote to the item, a genesis that it had not seen when it wrote to it before.
    """
    return len(candidates.get(item, ())) > 1 and any(
        known.seen_by(note) and (note.feed not in frame or frame[note.feed].seq < known.since[note.feed])
        for known in candidates[item]
        for note in notes
    )


@dataclass(slots=True, eq=False)
class _Part:
    """One span of a branch: the geneses in it, each with its item, and their indexes."""

    first: int
    previous: bytes
    held: bool  # it is of the feed's own blocks, beyond the end of its history
    indexes: list[int] = field(default_factory=list)
    geneses: list[tuple[bytes, BranchGenesis]] = field(default_factory=list)

    def between(self, after: int, upto: int) -> list[tuple[bytes, BranchGenesis]]:
        """Return the geneses behind one index, up to another."""
        return self.geneses[bisect_right(self.indexes, after) : bisect_right(self.indexes, upto)]


def find_at_cut(store: FeedReader, bounds: Bounds) -> Candidates:
    """Return the geneses beyond forks that messages of a cut have seen, by item.

    A cut is closed but for forks: a feed of which it has seen more than it holds is forked, whether the control
    timeframe of the epoch tells so or not. So all who have the blocks of a cut find the same, at any time.
    """
    seen = {
        entry.feed
        for feed, (start, stop) in bounds.items()
        for _, entries in advances(store, feed, start, stop)
        for entry in entries
        if entry.seq >= bounds.get(entry.feed, _NOTHING)[1]
    }
    forked = [feed for feed in seen if not _is_control(store, feed)]
    return BranchGeneses(store).update(forked, {**dict.fromkeys(forked, _NOTHING), **bounds})


def _is_control(store: FeedReader, feed: bytes) -> bool:
    """True for a control feed. One that was forked at its beginning may have a branch of data as well."""
    try:
        return store.first_kind(feed) is Kind.CREDENTIAL and store.record(feed).valid_length > 0
    except UnknownFeed:
        return False


@dataclass(slots=True, eq=False)
class _Forked:
    """A forked feed, as far as it was read."""

    record: FeedRecord
    start: int  # geneses before it do not count: they are in the base
    stop: int  # where its history ends
    places: dict[bytes, tuple[_Part, int]] = field(default_factory=dict)  # its branch blocks, by hash
    geneses: dict[bytes, BranchGenesis] = field(default_factory=dict)  # by hash: spans may have some blocks in common
    held: dict[int, tuple[bytes, BranchGenesis]] = field(default_factory=dict)  # by seq: those seen in its own blocks


class BranchGeneses:
    """The geneses beyond the forks of a party's data feeds that others have seen. `update` reads only what is new.

    Of branches it reads the spans that lead to blocks which delivered messages name, and no others. A message is
    delivered after the branch blocks that it names are stored. So messages that were looked at need not be looked at
    again for blocks that come later; only for a feed that turns out to be forked, or is cut further back.
    """

    def __init__(self, store: FeedReader) -> None:
        self._store = store
        self._starts: dict[bytes, int] = {}  # of the bounds for which the branches were read
        self._begin()

    def _begin(self) -> None:
        self.by_item: dict[bytes, list[BranchGenesis]] = {}
        self._forked: dict[bytes, _Forked] = {}
        self._scanned: dict[bytes, int] = {}
        # By feed and forked feed: the last index that the one has seen of each part of the other.
        self._reached: dict[tuple[bytes, bytes], dict[_Part, int]] = {}

    def update(self, forked: Collection[bytes], bounds: Bounds) -> Candidates:
        """Find what the delivered messages have seen of the branches of forked feeds."""
        found = {feed: self._record(feed) for feed in forked if feed in bounds}
        records = {feed: record for feed, record in found.items() if record is not None and not record.ignored}
        starts = {feed: start for feed, (start, _) in bounds.items()}
        moved = any(starts.get(feed) != start for feed, start in self._starts.items())  # an epoch became final
        if moved or any(feed not in records for feed in self._forked):
            self._begin()
        self._starts = starts
        again = {feed for feed, record in records.items() if self._take(record, *bounds[feed])}
        for feed, (start, stop) in bounds.items() if self._forked else ():
            known = min(self._scanned.get(feed, start), stop)
            if again:
                self._scan(feed, start, known, again)
            self._scan(feed, known, stop, self._forked)
            self._scanned[feed] = stop
        return self.by_item

    def _record(self, feed: bytes) -> FeedRecord | None:
        try:
            return self._store.record(feed)
        except UnknownFeed:
            return None

    def _take(self, record: FeedRecord, start: int, stop: int) -> bool:
        """Take note of a forked feed: all its blocks but the first `stop` are on branches.

        True if messages that were looked at before may have seen some of them.
        """
        feed = record.feed
        known = self._forked.get(feed)
        if known is None:
            self._forked[feed] = _Forked(record, start, stop)
            return True
        known.record = record
        again = stop < known.stop  # it was cut further back
        if again:
            self._reached = {feeds: parts for feeds, parts in self._reached.items() if feeds[1] != feed}
        if known.stop != stop:
            self._move(known, stop)
        return again

    def _move(self, known: _Forked, stop: int) -> None:
        """Let a history end elsewhere: geneses in it are delivered, and those beyond it are not."""
        low, high = min(stop, known.stop), max(stop, known.stop)
        for item, found in [known.held[seq] for seq in known.held if low <= seq < high]:
            others = self.by_item.setdefault(item, [])
            if stop < known.stop:
                others.append(found)
            else:
                others.remove(found)
        known.stop = stop

    def _scan(self, feed: bytes, start: int, stop: int, forked: Container[bytes]) -> None:
        """Note which geneses of these forked feeds the messages [start, stop) of a feed have seen."""
        for seq, entries in advances(self._store, feed, start, stop):
            for entry in entries:
                if entry.feed == feed or entry.feed not in forked:
                    continue
                known = self._forked[entry.feed]
                # Inside the cut an entry counts by its lamport alone, and the branch that it names need not be here.
                if entry.seq >= known.start:
                    reached = self._reached.setdefault((feed, entry.feed), {})
                    for part, item, found in self._on_path(known, entry.seq, entry.hash, reached):
                        self._see(known, part, item, found)
                        found.since.setdefault(feed, seq)

    def _see(self, known: _Forked, part: _Part, item: bytes, found: BranchGenesis) -> None:
        """Let a genesis count that somebody has seen, unless it does already."""
        seq = found.note.seq
        if found.since:
            return
        if part.held:
            known.held[seq] = item, found
        if not part.held or seq >= known.stop:
            self.by_item.setdefault(item, []).append(found)

    def _on_path(
        self, known: _Forked, seq: int, block: bytes, reached: dict[_Part, int]
    ) -> Iterator[tuple[_Part, bytes, BranchGenesis]]:
        """Yield the geneses on the way to a block of a branch, without those that were reached before."""
        while (place := known.places.get(block) or self._fetch(known, seq, block)) is not None:
            part, index = place
            before = reached.get(part, -1)
            for item, found in part.between(before, index):
                yield part, item, found
            reached[part] = max(before, index)
            if before >= 0:
                return
            seq, block = part.first - 1, part.previous

    def _fetch(self, known: _Forked, seq: int, block: bytes) -> tuple[_Part, int] | None:
        """Read the span of a branch that has a block. Return the block's place; None if it is no branch block."""
        record, feed = known.record, known.record.feed
        start = max(known.stop, record.start)
        held = start <= seq < record.length
        span: Span | None = None
        if held:
            *_, span = self._store.held(feed, max(start, seq - FETCHED_BLOCKS), seq + 1)
            held = span.hash_at(seq) == block
        if not held:
            span = self._store.branch_with(feed, seq, block) if record.branches else None
        if span is None:
            return None
        part = self._part(known, span, held=held)
        for index in range(span.count):
            known.places.setdefault(span.hashes[index * HASH_SIZE : (index + 1) * HASH_SIZE], (part, index))
        return known.places[block]

    def _part(self, known: _Forked, span: Span, *, held: bool) -> _Part:
        part = _Part(span.first, span.previous, held)
        columns = span.columns
        small = np.equal(columns["kind"], Kind.GENESIS) & np.less_equal(columns["body_size"], BRANCH_GENESIS_SIZE_MAX)
        for index in np.flatnonzero(small).tolist():
            block = span.block(index)
            if block.message is not None and block.seq >= known.start:
                stamp = block.lamport, block.feed, block.seq
                made = BranchGenesis(Note(Kind.GENESIS, *stamp, block.created_ms, block.message, BEYOND_FORK), {})
                part.indexes.append(index)
                part.geneses.append((bytes(block.item), known.geneses.setdefault(block.hash, made)))
        return part
