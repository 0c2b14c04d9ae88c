"""Find what has changed on the disk in a feed store, and drop that, so that it is fetched from a peer again.

Dropping removes only what is rotten. A feed then has the length up to which its blocks are whole. Sound blocks behind
the gap stay in the file, *kept aside* behind the feed's end: as soon as a peer has filled the gap, they are part of the
feed again (`ingest`). A feed of this device that lost blocks is retired, as nothing that it acknowledged may be written
a second time (rule 6): the device opens a new feed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from antiphon.core.errors import AntiphonError, CorruptBlock, RefusedBlocks
from antiphon.core.reasons import Reason
from antiphon.feed.chain import verify_span
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import HASH_SIZE, NO_END, NO_HASH, Entry
from antiphon.feed.rules import batch_start
from antiphon.feed.span import Span
from antiphon.feed.store import ingest, quarantine
from antiphon.feed.store.env import Env
from antiphon.feed.store.tables import (
    Tables,
    decode_branch,
    decode_entry,
    decode_evidence,
    decode_span,
    unchecked,
)

_KEY_SIZE = 32
_CHUNK_SIZE = 4 << 20  # of spans that are read in one transaction
_ROWS_OF_FEEDS = ("records", "spans", "frontiers", "forks", "branches", "branch_blocks")


class DamagedPart(enum.Enum):
    """The part of a feed that has changed."""

    RECORD = "its record"
    BLOCKS = "blocks"
    TIMEFRAME = "its timeframe"
    EVIDENCE = "the evidence of its fork"
    BRANCH = "a branch of it"
    REFUSAL = "refusals in the quarantine"


@dataclass(frozen=True, slots=True)
class Damage:
    """One part of a feed that has changed on the disk, or is missing. `count` is 0 where no blocks are concerned."""

    part: DamagedPart
    feed: bytes
    why: str
    seq: int = 0
    count: int = 0


def feed_keys(tables: Tables) -> list[bytes]:
    """Return the keys of all feeds of which anything is here, also of those without a sound record."""
    found: set[bytes] = set()
    for name in _ROWS_OF_FEEDS:
        txn, db = tables.raw(name)
        with txn.cursor(db) as cursor:
            more = cursor.first()
            while more:
                feed = bytes(cursor.key())[:_KEY_SIZE]
                found.add(feed)
                more = cursor.set_range(feed + b"\xff" * (_KEY_SIZE + 1))
    return sorted(found)


def find_damage(env: Env, feed: bytes) -> list[Damage]:
    """Read all that is here of a feed, and return what has changed."""
    with env.read() as tables:
        record, found = _read_record(tables, feed)
        found += [Damage(part, feed, why) for part, _, why in _rotten_rows(tables, feed)]
    walk = _Walk(feed, record)
    for first, stored in _stored_spans(env, feed):
        walk.take(first, *inspect_span(feed, first, stored))
    found += walk.end()
    if record is None and not found:
        found.append(Damage(DamagedPart.RECORD, feed, "its record is missing"))
    return found


def refusals_damaged(env: Env) -> list[Damage]:
    """Return the refusals in the quarantine that have changed."""
    with env.read() as tables:
        refusals = quarantine.listed(tables).refusals
    return [Damage(DamagedPart.REFUSAL, one.feed, one.reason) for one in refusals if one.code is Reason.DAMAGED]


def inspect_span(feed: bytes, first: int, stored: bytes) -> tuple[Span | None, CorruptBlock | RefusedBlocks | None]:
    """Return a stored span if all its bytes, hashes, bodies and its head are right; else the error."""
    try:
        span = decode_span(feed, first, stored)
        return verify_span(span), None
    except (CorruptBlock, RefusedBlocks) as error:
        return None, error


def drop_damage(tables: Tables, feed: bytes, now_ms: int) -> FeedRecord | None:
    """Drop what has changed of a feed, in one transaction. Return its record then; None if nothing of it is left."""
    tables.note_change(feed)
    record, _ = _read_record(tables, feed)
    rows = _rotten_rows(tables, feed)
    for _, (name, key), _ in rows:
        txn, db = tables.raw(name)
        txn.delete(key, db=db)
    walk, sound = _Walk(feed, record), 0
    for first in list(tables.firsts(feed, 0, NO_END)):
        span, error = inspect_span(feed, first, tables.raw_span(feed, first))
        walk.take(first, span, error)
        sound += span is not None
        if span is None:
            tables.drop_first(feed, first)
    if any(part is DamagedPart.BRANCH for part, _, _ in rows):
        tables.index_branches_of(feed)
    if record is None:
        record = _rebuilt(tables, feed, now_ms) if sound else _stub(tables, feed)
    elif walk.end():
        record = _cut_back(tables, record, walk)
    if record is None:
        return None
    _fold_frontiers(tables, record, {key[_KEY_SIZE:] for part, (_, key), _ in rows if part is DamagedPart.TIMEFRAME})
    return record


def drop_refusals(tables: Tables) -> int:
    """Drop the refusals that have changed. Return how many."""
    return quarantine.drop_damaged(tables)


# -- inside


def _read_record(tables: Tables, feed: bytes) -> tuple[FeedRecord | None, list[Damage]]:
    try:
        return tables.find(feed), []
    except CorruptBlock as error:
        return None, [Damage(DamagedPart.RECORD, feed, str(error))]


def _rotten_rows(tables: Tables, feed: bytes) -> list[tuple[DamagedPart, tuple[str, bytes], str]]:
    """Return the rows of a feed, apart from its record and spans, that have changed: part, table and key, reason."""
    found = []
    checks = (("frontiers", DamagedPart.TIMEFRAME), ("forks", DamagedPart.EVIDENCE), ("branches", DamagedPart.BRANCH))
    for name, part in (*checks, ("branch_blocks", DamagedPart.BRANCH)):
        txn, db = tables.raw(name)
        with txn.cursor(db) as cursor:
            more = cursor.set_range(feed)
            while more and bytes(cursor.key()[:_KEY_SIZE]) == feed:
                key = bytes(cursor.key())
                why = _row_fault(name, key, bytes(cursor.value()))
                if why:
                    found.append((part, (name, key), why))
                more = cursor.next()
    return found


def _row_fault(name: str, key: bytes, value: bytes) -> str:
    """Return why a row is rotten; else ""."""
    feed = key[:_KEY_SIZE]
    try:
        if name == "frontiers":
            entry = decode_entry(feed, value)
            return "" if entry.feed == key[_KEY_SIZE:] else "an entry of its timeframe is of another feed"
        if name == "forks":
            fork = Fork.decode(decode_evidence(feed, value))
            return "" if fork.feed == feed else "the evidence of its fork is of another feed"
        if name == "branches":
            verify_span(decode_branch(key, value))
            return ""
        return "the index of its branches has changed" if unchecked(value) is None else ""
    except AntiphonError as error:
        return str(error)


def _stored_spans(env: Env, feed: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield all spans under a feed's key as they are stored. No transaction is open across a yield."""
    after = 0
    while True:
        chunk: list[tuple[int, bytes]] = []
        with env.read() as tables:
            size = 0
            for first in tables.firsts(feed, after, NO_END):
                chunk.append((first, tables.raw_span(feed, first)))
                size += len(chunk[-1][1])
                if size > _CHUNK_SIZE:
                    break
        if not chunk:
            return
        yield from chunk
        after = chunk[-1][0] + 1


class _Walk:
    """Follows the stored spans of a feed, ascending, and notes where blocks are missing."""

    def __init__(self, feed: bytes, record: FeedRecord | None) -> None:
        self._feed = feed
        self._record = record
        self._damages: list[Damage] = []
        self._wrong: CorruptBlock | RefusedBlocks | None = None
        self.at = 0 if record is None else record.start  # the next block
        self.hash = NO_HASH if record is None else record.start_hash
        self.last: Span | None = None  # the last span of the blocks without a gap
        self._gap = False

    def take(self, first: int, span: Span | None, error: CorruptBlock | RefusedBlocks | None) -> None:
        """Take the next stored span, or the error with which it was read."""
        record = self._record
        if span is None:
            self._wrong = self._wrong or error
            return
        if record is not None and (span.end <= record.start or first >= record.length):
            return  # kept aside, behind the end or from before the feed began anew
        if record is None and self.last is None and not self._gap:
            self.at, self.hash = span.first, span.previous
        if span.first > self.at:
            self._note(span.first)
        elif span.first < self.at or span.previous != self.hash:
            self._add(span.first, span.count, "it does not link up")
            return
        self.at, self.hash = span.end, span.hash_at(span.end - 1)
        if not self._gap:
            self.last = span

    def _note(self, upto: int) -> None:
        error, self._wrong = self._wrong, None
        seq = self.at if error is None or error.seq is None else max(self.at, min(error.seq, upto - 1))
        self._add(seq, upto - self.at, str(error) if error is not None else "they are missing from the store")

    def _add(self, seq: int, count: int, why: str) -> None:
        self._gap = True
        self._damages.append(Damage(DamagedPart.BLOCKS, self._feed, why, seq, count))

    def end(self) -> list[Damage]:
        """Return all gaps."""
        record = self._record
        if record is not None and self.at < record.length:
            self._note(record.length)
            self.at = record.length
        elif self._wrong is not None:
            error, self._wrong = self._wrong, None
            self._damages.append(Damage(DamagedPart.BLOCKS, self._feed, str(error), error.seq or 0))
        elif record is not None and self.last is not None and not self._gap and self._is_other_head(self.last, record):
            self._damages.append(Damage(DamagedPart.RECORD, self._feed, "it names another head than the blocks"))
        return self._damages

    def _is_other_head(self, last: Span, record: FeedRecord) -> bool:
        return (self.hash, last.signature) != (record.hash, record.signature)


def _cut_back(tables: Tables, record: FeedRecord, walk: _Walk) -> FeedRecord:
    """Store the record of a feed that has only the blocks before its first gap."""
    last = walk.last
    cut = replace(
        record,
        length=record.start if last is None else last.end,
        hash=record.start_hash if last is None else last.hashes[-HASH_SIZE:],
        lamport=record.start_lamport if last is None else int(last.columns["lamport"][-1]),
        signature=bytes(64) if last is None else last.signature,
    )
    if cut.why is End.FAULT and cut.end >= cut.length:  # it is judged again when the blocks come
        cut = replace(cut, end=NO_END, why=End.NONE)
    cut = replace(cut, retired=cut.retired or (cut.writable and cut.length < record.length))
    tables.put_record(cut)
    return cut


def _rebuilt(tables: Tables, feed: bytes, now_ms: int) -> FeedRecord:
    """Make the record of a feed from its blocks: they are taken as if they came from a peer.

    If the first ones are missing, all are kept aside until these come; but not if the old record says that they were
    pruned: it has the right hash before the first one that is here.
    """
    first = next(tables.firsts(feed, 0, NO_END))  # only sound spans are left
    begin = decode_span(feed, first, tables.raw_span(feed, first))
    record = FeedRecord(feed=feed, party=begin.party)
    txn, db = tables.raw("records")
    if first and FeedRecord.claimed_start(bytes(txn.get(feed, db=db) or b"")) == (first, begin.previous):
        lamport = int(begin.columns["lamport"][0]) - 1
        record = replace(record, start=begin.first, start_hash=begin.previous, start_lamport=lamport)
        record = replace(record, length=begin.first, hash=begin.previous, lamport=lamport)
    tables.put_record(record)
    ingest.rejoin(tables, record, now_ms)
    record = replace(tables.record(feed), retired=True, branches=len(list(tables.branches(feed))))
    evidence = tables.fork(feed)
    if evidence is not None:
        seq = Fork.decode(evidence).seq
        held = tables.span_at(record, seq) if record.start <= seq < record.length else None
        record = record.ended(seq if held is None else held.first + batch_start(held, seq - held.first), End.FORK)
    tables.put_record(record)
    return record


def _stub(tables: Tables, feed: bytes) -> FeedRecord | None:
    """Keep the place of a feed of which nothing is left, so that no device begins it a second time."""
    txn, db = tables.raw("records")
    party = FeedRecord.claimed_party(bytes(txn.get(feed, db=db) or b""))
    if party is None:
        tables.drop_record(feed)
        return None
    record = FeedRecord(feed=feed, party=party, retired=True)
    tables.put_record(record)
    return record


def _fold_frontiers(tables: Tables, record: FeedRecord, others: set[bytes]) -> None:
    """Make the lost entries of a feed's timeframe again, from the blocks that are here."""
    moved: dict[bytes, Entry] = {}
    at = record.start
    while others and at < record.length:
        span = tables.span_at(record, at)
        for block in span.blocks(0, span.count):
            moved |= {entry.feed: entry for entry in block.advance if entry.feed in others}
        at = span.end
    for entry in moved.values():
        tables.move_frontier(record.feed, entry)
