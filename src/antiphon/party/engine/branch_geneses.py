"""`BranchGeneses`: geneses beyond a fork, and which feeds have seen them (rule 26).

What a writer signed beyond a fork is no history, and begins nothing by itself. But members who saw that branch may have
written to its items. Their feeds refer to the branch by hash, so every peer that has delivered them was shown its
headers and small geneses (rule 23), and can begin the items that they wrote to. Branches that no delivered block refers
to do not count: not all peers hold them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
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

    previous: bytes
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

    first: int  # its own blocks from here up to `length` were read
    length: int
    stop: int  # where its history ends
    branches: int = 0  # how many spans of other branches there were
    spans: dict[bytes, int] = field(default_factory=dict)  # by the last hash: where those begin
    places: dict[bytes, tuple[_Part, int]] = field(default_factory=dict)  # its branch blocks, by hash
    held: dict[int, tuple[bytes, BranchGenesis]] = field(default_factory=dict)  # by seq: geneses in its own blocks


class BranchGeneses:
    """The geneses beyond the forks of a party's data feeds. `update` reads only what is new.

    A message is delivered after the branch blocks that it names are stored. So messages that were looked at need not be
    looked at again for blocks that come later; only for a feed that turns out to be forked, or is cut further back.
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
        """Read the branches of forked feeds, and what the delivered messages have seen of them."""
        found = {feed: self._record(feed) for feed in forked if feed in bounds}
        records = {feed: record for feed, record in found.items() if record is not None and not record.ignored}
        starts = {feed: start for feed, (start, _) in bounds.items()}
        moved = any(starts.get(feed) != start for feed, start in self._starts.items())  # an epoch became final
        if moved or any(feed not in records for feed in self._forked):
            self._begin()
        self._starts = starts
        again = {feed for feed, record in records.items() if self._read(record, *bounds[feed])}
        if self.by_item:
            for feed, (start, stop) in bounds.items():
                known = min(self._scanned.get(feed, start), stop)
                if again:
                    self._scan(feed, start, known, bounds, again)
                self._scan(feed, known, stop, bounds, self._forked)
                self._scanned[feed] = stop
        return self.by_item

    def _record(self, feed: bytes) -> FeedRecord | None:
        try:
            return self._store.record(feed)
        except UnknownFeed:
            return None

    def _read(self, record: FeedRecord, start: int, stop: int) -> bool:
        """Read the branches of a feed: all blocks but the first `stop`; geneses before `start` do not count.

        True if messages that were looked at before may have seen some of them.
        """
        feed = record.feed
        known, begin = self._forked.get(feed), max(stop, record.start)
        again = known is None or begin < known.first
        if known is None:
            known = self._forked[feed] = _Forked(begin, begin, stop)
        if begin < known.first:  # it was cut further back
            self._take(known, self._store.held(feed, begin, known.first), start, held=True)
            known.first = begin
            self._reached = {feeds: parts for feeds, parts in self._reached.items() if feeds[1] != feed}
        if known.length < record.length:
            self._take(known, self._store.held(feed, known.length, record.length), start, held=True)
            known.length = record.length
        if known.branches != record.branches:
            self._take(known, self._store.branches(feed, known.spans), start)
            known.branches = record.branches
        if known.stop != stop:
            self._move(known, stop)
        return again

    def _take(self, known: _Forked, spans: Iterable[Span], start: int, *, held: bool = False) -> None:
        for span in spans:
            if not held:
                known.spans[span.hash_at(span.end - 1)] = span.first
            part = self._part(span, start)
            for item, found in part.geneses:
                seq = found.note.seq
                if held:
                    known.held[seq] = item, found
                if seq >= known.stop if held else span.hash_at(seq) not in known.places:
                    self.by_item.setdefault(item, []).append(found)
            for index in range(span.count):  # spans may have some blocks in common
                known.places.setdefault(span.hashes[index * HASH_SIZE : (index + 1) * HASH_SIZE], (part, index))

    def _move(self, known: _Forked, stop: int) -> None:
        """Let a history end elsewhere: geneses in it are delivered, and those beyond it are not."""
        for seq in range(min(stop, known.stop), max(stop, known.stop)):
            if seq in known.held:
                item, found = known.held[seq]
                others = self.by_item.setdefault(item, [])
                if stop <= seq:
                    others.append(found)
                else:
                    others.remove(found)
        known.stop = stop

    def _part(self, span: Span, start: int) -> _Part:
        part = _Part(span.previous)
        columns = span.columns
        small = np.equal(columns["kind"], Kind.GENESIS) & np.less_equal(columns["body_size"], BRANCH_GENESIS_SIZE_MAX)
        for index in np.flatnonzero(small).tolist():
            block = span.block(index)
            if block.message is not None and block.seq >= start:
                stamp = block.lamport, block.feed, block.seq
                found = BranchGenesis(Note(Kind.GENESIS, *stamp, block.created_ms, block.message, BEYOND_FORK), {})
                part.indexes.append(index)
                part.geneses.append((bytes(block.item), found))
        return part

    def _scan(self, feed: bytes, start: int, stop: int, bounds: Bounds, forked: Container[bytes]) -> None:
        """Note which geneses of these forked feeds the messages [start, stop) of a feed have seen."""
        for seq, entries in advances(self._store, feed, start, stop):
            for entry in entries:
                # Inside the cut an entry counts by its lamport alone, and the branch that it names need not be here.
                if entry.feed != feed and entry.feed in forked and entry.seq >= bounds[entry.feed][0]:
                    reached = self._reached.setdefault((feed, entry.feed), {})
                    for _, found in self._on_path(entry.feed, entry.hash, reached):
                        found.since.setdefault(feed, seq)

    def _on_path(self, feed: bytes, block: bytes, reached: dict[_Part, int]) -> Iterator[tuple[bytes, BranchGenesis]]:
        """Yield the geneses on the way to a block of a branch, without those that were reached before."""
        while (place := self._forked[feed].places.get(block)) is not None:
            part, index = place
            known = reached.get(part, -1)
            yield from part.between(known, index)
            reached[part] = max(known, index)
            if known >= 0:
                return
            block = part.previous
