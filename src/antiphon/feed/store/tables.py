"""`Tables`: the tables of a feed store, inside one transaction.

    records     feed → FeedRecord
    spans       feed ‖ first seq (big-endian) → Span with hashes ‖ CRC-32
    frontiers   feed ‖ other feed → the last advance entry that `feed` has for it
    forks       feed → Fork evidence, the one with the least seq ‖ CRC-32
    branches    feed ‖ hash of the last block → Span with hashes ‖ CRC-32, of blocks that are not the held history
    branch_blocks  feed ‖ hash of a block → hash of the last block of such a span, which has the next one ‖ CRC-32
    quarantine  "n" ‖ number (big-endian) → Refusal, "d" ‖ digest → number
    meta        name → value ‖ CRC-32; also the marks of `rest_marks`

A stored span has a checksum for bulk reads; a single block is checked by its own hashes. Either way a byte that changed
on the disk is reported with feed and seq, never served.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from antiphon.core.codec import u32
from antiphon.core.errors import BadEncoding, CorruptBlock, TooLarge, UnknownFeed
from antiphon.feed import span as spans
from antiphon.feed.block import Block
from antiphon.feed.chain import check_bodies
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.hashing import chain_in_python
from antiphon.feed.header import ENTRY_SIZE, HASH_SIZE, HEADER_SIZE, NO_HASH, Entry, decode_entries
from antiphon.feed.span import BLOCK_TAG, Span

TABLES = ("records", "spans", "frontiers", "forks", "branches", "branch_blocks", "quarantine", "meta")
INDEXED = b"\2"  # version of the table `branch_blocks`: an earlier one is made anew
_MERGE_SIZE_MAX = 8 << 10  # small appends are merged into spans of up to about this size
_MERGE_BLOCKS_MAX = 256
_MEMORY_FEEDS_MAX = 1024
_MEMORY_FRONTIERS_MAX = 8192  # about 400 bytes each
_Value = TypeVar("_Value")


class DecodedCache:
    """Decoded values with the stored bytes they came from. A value is used only if the bytes are equal: never stale."""

    __slots__ = ("frontiers", "records", "tails")

    def __init__(self) -> None:
        self.records: dict[bytes, tuple[bytes, FeedRecord]] = {}
        self.tails: dict[bytes, tuple[bytes, Span]] = {}
        self.frontiers: dict[bytes, tuple[bytes, Entry]] = {}

    @staticmethod
    def keep(
        where: dict[bytes, tuple[bytes, _Value]], key: bytes, data: bytes, value: _Value, most: int = _MEMORY_FEEDS_MAX
    ) -> None:
        if len(where) >= most:
            where.clear()
        where[key] = (data, value)


class Tables:
    """Typed reads and writes of one transaction. Results are copies, and do not refer to the map."""

    __slots__ = ("_cache", "_changed", "_dbs", "_touched", "_txn")

    def __init__(
        self,
        txn: Any,
        dbs: dict[str, Any],
        cache: DecodedCache,
        touched: dict[bytes, bytes] | None = None,
        changed: set[bytes] | None = None,
    ) -> None:
        self._txn = txn
        self._dbs = dbs
        self._cache = cache
        self._touched = touched  # gets the feeds whose records are written, each with its party
        self._changed = set() if changed is None else changed  # gets the feeds of which anything else is written

    def find(self, feed: bytes) -> FeedRecord | None:
        """Return a feed's record, or None."""
        data = self._txn.get(feed, db=self._dbs["records"])
        return None if data is None else self._decoded(feed, bytes(data))

    def _decoded(self, feed: bytes, stored: bytes) -> FeedRecord:
        known = self._cache.records.get(feed)
        if known is not None and known[0] == stored:
            return known[1]
        record = FeedRecord.decode(feed, stored)
        self._cache.keep(self._cache.records, feed, stored, record)
        return record

    def record(self, feed: bytes) -> FeedRecord:
        """Return a feed's record; raise `UnknownFeed` if there is none."""
        record = self.find(feed)
        if record is None:
            raise UnknownFeed(f"no feed {feed.hex()} is held here; create it, or ingest a range of it first")
        return record

    def put_record(self, record: FeedRecord) -> None:
        data = record.encode()
        self._cache.keep(self._cache.records, record.feed, data, record)
        self._txn.put(record.feed, data, db=self._dbs["records"])
        if self._touched is not None:
            self._touched[record.feed] = record.party

    def drop_record(self, feed: bytes) -> None:
        if self._touched is not None:
            stored = self._txn.get(feed, db=self._dbs["records"])
            self._touched[feed] = (None if stored is None else FeedRecord.claimed_party(bytes(stored))) or b""
        self._txn.delete(feed, db=self._dbs["records"])

    def feeds(self, party: bytes | None = None) -> Iterator[FeedRecord]:
        """Yield the records of all feeds, or of one party's.

        A record that has changed ends the list of its own party alone: the other parties go on.
        """
        with self._txn.cursor(self._dbs["records"]) as cursor:
            for key, value in cursor:
                stored = bytes(value)
                try:
                    record = self._decoded(bytes(key), stored)
                except CorruptBlock:
                    if party is not None and FeedRecord.claimed_party(stored) in (None, party):
                        raise
                    continue
                if party is None or record.party == party:
                    yield record

    def lengths(self) -> dict[bytes, int]:
        """Return the lengths of all feeds, without a check of their records: to see which grow."""
        with self._txn.cursor(self._dbs["records"]) as cursor:
            return {bytes(key): FeedRecord.claimed_length(value) for key, value in cursor}

    # -- spans

    def span_at(self, record: FeedRecord, seq: int) -> Span:
        """Return the stored span that holds block `seq`, with every byte checked."""
        first, stored = self._stored_at(record.feed, seq)
        span = self._tail(record.feed, first, bytes(stored))
        if not span.first <= seq < span.end:
            raise _corrupt(record.feed, seq, "it is missing from the store")
        return span

    def spans_from(self, record: FeedRecord, seq: int, stop: int, size: int) -> list[Span]:
        """Return the stored spans from block `seq` to `stop`, up to about `size` bytes, with every byte checked.

        Damage ends the list; it is raised if it is in the first span.
        """
        found: list[Span] = []
        with self._txn.cursor(self._dbs["spans"]) as cursor:
            cursor.set_key(_key(record.feed, self._stored_at(record.feed, seq)[0]))
            while seq < stop and size > 0:
                try:
                    span = self._span_under(cursor, record.feed, seq)
                except CorruptBlock:
                    if found:
                        break
                    raise
                found.append(span)
                seq, size = span.end, size - span.size
                cursor.next()
        return found

    def block_at(self, record: FeedRecord, seq: int) -> Block:
        """Return one block, checked by its own hashes. The cost hardly depends on the size of its span."""
        first, stored = self._stored_at(record.feed, seq)
        try:
            span = spans.split(stored[:-4])
        except (BadEncoding, TooLarge):
            raise _corrupt(record.feed, seq, "its span cannot be read") from None
        if span.states:  # a missing body has no bytes to check: use the span's checksum
            whole = self.span_at(record, seq)
            return whole.block(seq - whole.first)
        if span.feed != record.feed or span.first != first or not span.hashes or seq >= span.end:
            raise _corrupt(record.feed, seq, "its span is labelled as another, or too short")
        block = span.verified(seq - first)
        if block is None:
            raise _corrupt(record.feed, seq, "its stored bytes have changed")
        return block

    def _stored_at(self, feed: bytes, seq: int) -> tuple[int, Any]:
        with self._txn.cursor(self._dbs["spans"]) as cursor:
            key = _key(feed, seq)
            found = cursor.set_range(key)
            if not found or bytes(cursor.key()) != key:
                found = cursor.prev() if found else cursor.last()
            if not found or bytes(cursor.key()[:32]) != feed:
                raise _corrupt(feed, seq, "it is missing from the store")
            return int.from_bytes(cursor.key()[32:], "big"), cursor.value()

    def hash_before(self, record: FeedRecord, seq: int) -> bytes:
        """Return the hash of block seq - 1, for any seq in start … length."""
        if seq == record.start:
            return record.start_hash
        if seq == record.length:
            return record.hash
        return self.span_at(record, seq - 1).hash_at(seq - 1)

    def append_span(self, record: FeedRecord, span: Span) -> None:
        """Store the blocks that follow the last one; a small last span is merged with them.

        Behind a rotten span, only blocks of others are stored, which they can send again.
        """
        if record.length > record.start and span.size < _MERGE_SIZE_MAX:
            first, stored = self._stored_at(record.feed, record.length - 1)
            small = len(stored) + span.size < _MERGE_SIZE_MAX
            if small and record.length - first + span.count <= _MERGE_BLOCKS_MAX:
                try:
                    held = self._tail(record.feed, first, bytes(stored))
                except CorruptBlock:
                    if record.writable and not record.retired:
                        raise
                    self.put_span(span)
                    return
                if held.whole_size + span.whole_size < _MERGE_SIZE_MAX:  # left-out bodies may be added
                    span = held.joined(span)
        self.put_span(span)

    def small_tail(self, record: FeedRecord, size: int) -> Span | None:
        """Return the last span, if it is cached, whole, and may grow by a block with a body of this size."""
        known = self._cache.tails.get(record.feed)
        if known is None or known[1].states or known[1].end != record.length:
            return None
        data, span = known
        room = len(data) + size + HEADER_SIZE + HASH_SIZE < _MERGE_SIZE_MAX and span.count < _MERGE_BLOCKS_MAX
        stored = self._txn.get(_key(record.feed, span.first), db=self._dbs["spans"]) if room else None
        return span if stored is not None and bytes(stored) == data else None

    def put_span(self, span: Span) -> None:
        key = _key(span.feed, span.first)
        data = span.encode_stored(key)
        if len(data) < _MERGE_SIZE_MAX:
            self._cache.keep(self._cache.tails, span.feed, data, span)
        self._txn.put(key, data, db=self._dbs["spans"])
        self._changed.add(span.feed)

    def _span_under(self, cursor: Any, feed: bytes, seq: int) -> Span:
        """Return the span at a cursor, which must hold block `seq`."""
        key = bytes(cursor.key())
        first = int.from_bytes(key[32:], "big")
        if key[:32] != feed or first > seq:
            raise _corrupt(feed, seq, "it is missing from the store")
        span = self._tail(feed, first, bytes(cursor.value()))
        if seq >= span.end:
            raise _corrupt(feed, seq, "it is missing from the store")
        return span

    def _tail(self, feed: bytes, first: int, stored: bytes) -> Span:
        """Decode a stored span with every byte checked: by its checksum, or as equal to the bytes written last."""
        known = self._cache.tails.get(feed)
        if known is not None and known[0] == stored and known[1].first == first:
            return known[1]
        return decode_span(feed, first, stored)

    def firsts(self, feed: bytes, start: int, stop: int) -> Iterator[int]:
        """Yield the first seqs, in [start, stop), of all stored spans of a feed, also of those behind its end."""
        at = start
        while True:
            with self._txn.cursor(self._dbs["spans"]) as cursor:
                key = bytes(cursor.key()) if cursor.set_range(_key(feed, at)) else b""
            at = int.from_bytes(key[32:], "big")
            if key[:32] != feed or at >= stop:
                return
            yield at
            at += 1

    def raw_span(self, feed: bytes, first: int) -> bytes:
        """Return a span as it is stored; no bytes if there is none."""
        return bytes(self._txn.get(_key(feed, first), db=self._dbs["spans"]) or b"")

    def drop_first(self, feed: bytes, first: int) -> None:
        """Delete a stored span by its first seq."""
        self._txn.delete(_key(feed, first), db=self._dbs["spans"])
        self._changed.add(feed)

    def drop_span(self, span: Span) -> None:
        self.drop_first(span.feed, span.first)

    # -- frontiers

    def frontier(self, feed: bytes, other: bytes) -> Entry | None:
        """Return the last advance entry that `feed` has for another feed."""
        key = feed + other
        data = self._txn.get(key, db=self._dbs["frontiers"])
        if data is None:
            return None
        known = self._cache.frontiers.get(key)
        if known is not None and known[0] == data:
            return known[1]
        entry = decode_entry(feed, bytes(data))
        self._cache.keep(self._cache.frontiers, key, bytes(data), entry, _MEMORY_FRONTIERS_MAX)
        return entry

    def move_frontier(self, feed: bytes, entry: Entry) -> None:
        key, data = feed + entry.feed, checked(entry.encode())
        self._cache.keep(self._cache.frontiers, key, data, entry, _MEMORY_FRONTIERS_MAX)
        self._txn.put(key, data, db=self._dbs["frontiers"])

    def frontiers(self, feed: bytes) -> Iterator[Entry]:
        with self._txn.cursor(self._dbs["frontiers"]) as cursor:
            more = cursor.set_range(feed)
            while more and bytes(cursor.key()[:32]) == feed:
                yield decode_entry(feed, bytes(cursor.value()))
                more = cursor.next()

    def drop_frontiers(self, feed: bytes) -> None:
        """Forget the timeframe of a feed."""
        for entry in list(self.frontiers(feed)):
            self._txn.delete(feed + entry.feed, db=self._dbs["frontiers"])

    # -- forks and the rest

    def fork(self, feed: bytes) -> bytes | None:
        data = self._txn.get(feed, db=self._dbs["forks"])
        return None if data is None else decode_evidence(feed, bytes(data))

    def put_fork(self, feed: bytes, evidence: bytes) -> None:
        self._txn.put(feed, checked(evidence), db=self._dbs["forks"])
        self._changed.add(feed)

    def forks(self) -> list[bytes]:
        with self._txn.cursor(self._dbs["forks"]) as cursor:
            return [decode_evidence(bytes(key), bytes(value)) for key, value in cursor]

    def put_branch(self, span: Span) -> None:
        """Keep a span of another branch, in the place of one that ends with the same block."""
        last = span.hash_at(span.end - 1)
        key = span.feed + last
        self._txn.put(key, span.encode_stored(key), db=self._dbs["branches"])
        self._changed.add(span.feed)
        self._index_branch(span, last)

    def _index_branch(self, span: Span, last: bytes) -> None:
        """Note, under each block, a span of a branch that has the next one. A span is only replaced by a longer one.

        Under the hash before a feed's first block is the span, of those with a first block, whose last hash is least.
        """
        hashes, stored, db = span.hashes, checked(last), self._dbs["branch_blocks"]
        for at in range(0, len(hashes) - HASH_SIZE, HASH_SIZE):
            self._txn.put(span.feed + hashes[at : at + HASH_SIZE], stored, db=db)
        if span.first:
            self._txn.put(span.feed + span.previous, stored, db=db, overwrite=False)  # one with both blocks is better
        else:
            known = self._span_of(span.feed, NO_HASH)
            if known is None or last < known:
                self._txn.put(span.feed + NO_HASH, stored, db=db)

    def _span_of(self, feed: bytes, hash_: bytes) -> bytes | None:
        """Return the last hash of a span of a branch that has the block after this one; None if none has."""
        data = self._txn.get(feed + hash_, db=self._dbs["branch_blocks"])
        last = None if data is None else unchecked(bytes(data))
        if data is not None and last is None:
            raise CorruptBlock(
                f"feed {feed.hex()[:8]}: the index of its branches has changed on the disk; restore it from peers",
                feed=feed,
                seq=0,
            )
        return last

    def index_branches_of(self, feed: bytes) -> None:
        """Make the index of a feed's branches anew."""
        db = self._dbs["branch_blocks"]
        with self._txn.cursor(db) as cursor:
            more = cursor.set_range(feed)
            while more and bytes(cursor.key()[:32]) == feed:
                more = cursor.delete()
        for span in list(self.branches(feed)):
            self._index_branch(span, span.hash_at(span.end - 1))

    def index_branches(self) -> None:
        """Make the index of branches, in a store that is new, or that an earlier version made."""
        with self._txn.cursor(self._dbs["branches"]) as cursor:
            for key, value in cursor:
                self._index_branch(decode_branch(bytes(key), bytes(value)), bytes(key)[32:])
        self.put_meta("branches.indexed", INDEXED)

    def branch_ending(self, feed: bytes, hash_: bytes) -> Span | None:
        """Return the span of a branch that ends with a block; None if there is none."""
        key = feed + hash_
        found = self._txn.get(key, db=self._dbs["branches"])
        return None if found is None else decode_branch(key, bytes(found))

    def branches(self, feed: bytes, known: Mapping[bytes, int] | None = None) -> Iterator[Span]:
        """Yield the spans of other branches of a feed, with every byte checked, but those that are known.

        `known` has, by the hash of its last block, the first block of a span: it is read again if it is longer now.
        """
        with self._txn.cursor(self._dbs["branches"]) as cursor:
            more = cursor.set_range(feed)
            while more and bytes(cursor.key()[:32]) == feed:
                key = bytes(cursor.key())
                first = known.get(key[32:]) if known else None
                if first is None or spans.first_of(cursor.value()) < first:
                    yield decode_branch(key, bytes(cursor.value()))
                more = cursor.next()

    def branch_firsts(self, feed: bytes) -> dict[bytes, int]:
        """Return the first blocks of the spans of other branches of a feed, by the hash of the last block."""
        found: dict[bytes, int] = {}
        with self._txn.cursor(self._dbs["branches"]) as cursor:
            more = cursor.set_range(feed)
            while more and bytes(cursor.key()[:32]) == feed:
                found[bytes(cursor.key()[32:])] = spans.first_of(cursor.value())
                more = cursor.next()
        return found

    def branch_tips(self, feed: bytes, after: bytes, count: int) -> list[tuple[int, bytes]]:
        """Return seq and hash of the last blocks of kept spans, by hash: the first `count` behind the hash `after`."""
        found: list[tuple[int, bytes]] = []
        with self._txn.cursor(self._dbs["branches"]) as cursor:
            more = cursor.set_range(feed + after)
            while more and len(found) < count and bytes(cursor.key()[:32]) == feed:
                tip = bytes(cursor.key()[32:])
                if tip != after:
                    found.append((spans.end_of(cursor.value()) - 1, tip))
                more = cursor.next()
        return found

    def branch_start(self, feed: bytes) -> Span | None:
        """Return a span of a branch that begins with the feed's first block; None if there is none."""
        last = self._span_of(feed, NO_HASH)
        return None if last is None else self.branch_ending(feed, last)

    def span_with(self, record: FeedRecord, seq: int, hash_: bytes) -> Span | None:
        """Return the span of the held history, or of a branch, that holds a block by its hash; None if none does."""
        if record.start <= seq < record.length:
            held = self.span_at(record, seq)
            if held.hash_at(seq) == hash_:
                return held
        return self.branch_with(record.feed, seq, hash_)

    def branch_with(self, feed: bytes, seq: int, hash_: bytes) -> Span | None:
        """Return the span of a branch that holds a block; None if none does. No other span is read."""
        span = self.branch_ending(feed, hash_)
        if span is None:  # it ends no span; the index names the span that holds the next block
            last = self._span_of(feed, hash_)
            span = None if last is None else self.branch_ending(feed, last)
        if span is None or not span.first <= seq < span.end:
            return None
        return span if span.hash_at(seq) == hash_ else None

    def missing(self, record: FeedRecord, blocks: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Return those blocks, by seq and hash, that are neither in the held history nor on a kept branch, by seq.

        Each span of the history is read once, and none of a branch. What is damaged counts as here.
        """
        found: list[tuple[int, bytes]] = []
        held: Span | None = None
        for seq, hash_ in sorted(blocks):
            try:
                if self._is_on_branch(record.feed, seq, hash_):
                    continue
                if record.start <= seq < record.length:
                    held = held if held is not None and seq < held.end else self.span_at(record, seq)
                    if held.hash_at(seq) == hash_:
                        continue
            except CorruptBlock:
                continue  # local readers report it
            found.append((seq, hash_))
        return found

    def _is_on_branch(self, feed: bytes, seq: int, hash_: bytes) -> bool:
        """True if a block with this hash is kept on a branch, if it has this seq."""
        if self._txn.get(feed + hash_, db=self._dbs["branches"]) is not None:
            return True
        last = self._span_of(feed, hash_)  # of a span with the next block, which perhaps begins with that
        span = None if last is None else self._txn.get(feed + last, db=self._dbs["branches"])
        return span is not None and bool(spans.first_of(span) <= seq)

    def branch_after(self, feed: bytes, seq: int, before: bytes) -> Span | None:
        """Return a span of a branch that has a block `seq` after the block with the hash `before`; None if none has."""
        last = self._span_of(feed, before)
        span = None if last is None else self.branch_ending(feed, last)
        if span is None or not span.first <= seq < span.end:
            return None
        return span if before == (span.previous if seq == span.first else span.hash_at(seq - 1)) else None

    def meta(self, name: str) -> bytes | None:
        """Return an entry about the store itself; None if there is none, or if it has changed on the disk."""
        data = self._txn.get(name.encode(), db=self._dbs["meta"])
        return None if data is None else unchecked(bytes(data))

    @property
    def is_new(self) -> bool:
        """True if nothing was ever written to the store."""
        entries: int = self._txn.stat(self._dbs["meta"])["entries"]
        return not entries

    def put_meta(self, name: str, value: bytes) -> None:
        self._txn.put(name.encode(), checked(value), db=self._dbs["meta"])

    def note_change(self, feed: bytes) -> None:
        """Note that something of a feed changes, so that its party is at rest no more."""
        self._changed.add(feed)

    def raw(self, table: str) -> tuple[Any, Any]:
        """Return the transaction and a database handle, for what other modules keep in a table."""
        return self._txn, self._dbs[table]


def checked(data: bytes) -> bytes:
    """Append a checksum to data; `unchecked` removes it."""
    return data + u32(zlib.crc32(data))


def unchecked(data: bytes) -> bytes | None:
    """Return data without its checksum; None if the data has changed."""
    right = len(data) >= 4 and zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little")
    return data[:-4] if right else None


def decode_entry(feed: bytes, data: bytes) -> Entry:
    entry = unchecked(data)
    if entry is None or len(entry) != ENTRY_SIZE:
        raise CorruptBlock(
            f"feed {feed.hex()[:8]}: its timeframe on disk has changed; run `antiphon doctor --repair`, then sync",
            feed=feed,
            seq=0,
        )
    return decode_entries(entry)[0]


def decode_evidence(feed: bytes, data: bytes) -> bytes:
    evidence = unchecked(data)
    if evidence is None:
        raise CorruptBlock(
            f"feed {feed.hex()[:8]}: the evidence of its fork has changed on the disk; fetch it from a peer",
            feed=feed,
            seq=0,
        )
    return evidence


def decode_branch(key: bytes, stored: bytes) -> Span:
    """Decode a stored span of a branch with every byte checked."""
    if zlib.crc32(memoryview(stored)[:-4], zlib.crc32(key)) != int.from_bytes(stored[-4:], "little"):
        raise CorruptBlock(
            f"feed {key[:32].hex()[:8]}: a branch of it has changed on the disk; fetch it from a peer",
            feed=key[:32],
            seq=0,
        )
    return spans.split(stored[:-4])


def _key(feed: bytes, first: int) -> bytes:
    return feed + first.to_bytes(8, "big")


def _corrupt(feed: bytes, seq: int, why: str) -> CorruptBlock:
    return CorruptBlock(
        f"feed {feed.hex()[:8]}, block {seq}: {why}; run `antiphon doctor --repair`, sync, and check the disk",
        feed=feed,
        seq=seq,
    )


def _intact(feed: bytes, first: int, stored: bytes) -> bool:
    return zlib.crc32(memoryview(stored)[:-4], zlib.crc32(_key(feed, first))) == int.from_bytes(stored[-4:], "little")


def decode_span(feed: bytes, first: int, stored: bytes) -> Span:
    """Decode a stored span with every byte checked."""
    if not _intact(feed, first, stored):
        raise _damage(feed, first, stored)
    return spans.split(stored[:-4])


def _damage(feed: bytes, first: int, stored: bytes) -> CorruptBlock:
    """Return the error for a changed span. It names the first changed block, if that can be found."""
    try:
        span = spans.split(stored[:-4])
    except (BadEncoding, TooLarge):
        return _corrupt(feed, first, "its span cannot be read")
    if span.feed != feed or span.first != first or not span.hashes:
        return _corrupt(feed, first, "its span is labelled as another")
    # The sizes may have changed, too: use the Python version, which checks bounds.
    wanted = chain_in_python(
        BLOCK_TAG + span.party + feed, span.previous, span.headers, span.advance, span.advance_offsets
    )
    for index in range(span.count):
        at = index * HASH_SIZE
        if wanted[at : at + HASH_SIZE] != span.hashes[at : at + HASH_SIZE]:
            return _corrupt(feed, first + index, "its stored header has changed")
    wrong = check_bodies(span) if span.fits else 0
    return _corrupt(feed, first + (wrong or 0), "its stored bytes have changed")
