"""Ingest spans of other peers, inside a transaction: verified ones that link up. Forks and faults are recorded."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from antiphon.core.errors import BrokenChain, MissingBlocks, RefusedBlocks
from antiphon.core.reasons import Reason, because
from antiphon.feed.block import BodyState
from antiphon.feed.chain import check_bodies
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import HASH_SIZE, Flag
from antiphon.feed.rules import batch_start, judge
from antiphon.feed.span import Span
from antiphon.feed.store import quarantine
from antiphon.feed.store.quarantine import Refusal
from antiphon.feed.store.tables import Tables

_ERASED, _LEFT_OUT = bytes((BodyState.ERASED,)), bytes((BodyState.LEFT_OUT,))


@dataclass(frozen=True, slots=True)
class Base:
    """The last block before the start of a pruned feed, as a final epoch names it."""

    seq: int
    hash: bytes
    lamport: int


class Outcome(enum.Enum):
    """The outcome of an ingested span."""

    STORED = "stored"
    KNOWN = "known"  # all of its blocks were held before
    FAULT = "fault"  # stored as evidence: its writer broke a rule, and the feed ends before that block
    FORK = "fork"  # its writer signed two histories; the feed is cut at the last common block


@dataclass(frozen=True, slots=True)
class Ingested:
    """The outcome of one span, the number of new blocks, and for a fault or a fork the reason and evidence."""

    outcome: Outcome
    added: int
    reason: str = ""
    evidence: bytes = b""
    seq: int = 0


def check_complete(span: Span) -> None:
    """Refuse a span whose head lies inside a batch: a reader sees all of a batch or none."""
    if int(span.columns["flags"][-1]) & Flag.MORE:
        raise RefusedBlocks(
            f"feed {span.feed.hex()[:8]}: the head at {span.end} stands inside a batch; ask for a longer range",
            feed=span.feed,
            seq=span.end - 1,
            code=Reason.BATCH,
        )


def ingest(tables: Tables, span: Span, base: Base | None, now_ms: int) -> Ingested:
    """Store a verified span, inside a transaction."""
    if base is not None and _begins_before_base(tables.find(span.feed), span, base):
        if span.end <= base.seq + 1:
            return Ingested(Outcome.KNOWN, 0)  # the epoch includes it
        span = span.tail(base.seq + 1)
    record = _record_for(tables, span, base)
    if span.end <= record.start:
        return Ingested(Outcome.KNOWN, 0)
    if span.first < record.start:
        span = span.tail(record.start)
    if tables.hash_before(record, span.first) != span.previous:
        raise BrokenChain(
            f"feed {span.feed.hex()[:8]}: the history before block {span.first} differs from the one held here; ask "
            "for an earlier range, which shows where the writer forked",
            feed=span.feed,
            seq=span.first,
        )
    overlap = min(span.end, record.length)
    if span.first < overlap:
        forked = _compare(tables, record, span, overlap, now_ms)
        if forked is not None:
            return forked
    if span.end <= record.length:
        return Ingested(Outcome.KNOWN, 0)
    return _extend(tables, record, span.tail(record.length), now_ms)


def _begins_before_base(record: FeedRecord | None, span: Span, base: Base) -> bool:
    """True if a range does not link up with the held blocks, and begins before the base of the feed."""
    held = record.length if record is not None else 0
    return held < span.first <= base.seq


def _record_for(tables: Tables, span: Span, base: Base | None) -> FeedRecord:
    """Return the feed's record; a new one if the feed begins with this span."""
    record = tables.find(span.feed)
    if record is not None and record.party != span.party:
        raise RefusedBlocks(
            f"feed {span.feed.hex()[:8]} belongs to party {record.party.hex()[:8]}; a feed belongs to one party",
            feed=span.feed,
            seq=span.first,
            code=Reason.OTHER_PARTY,
        )
    if record is not None and span.first <= record.length:
        return record
    if record is None and span.first == 0:
        return FeedRecord(feed=span.feed, party=span.party)
    if base is not None and base.seq == span.first - 1 and base.hash == span.previous:
        if record is not None:
            _drop_before(tables, record, record.length)
        begun = record or FeedRecord(feed=span.feed, party=span.party)
        return replace(
            begun,
            start=span.first,
            start_hash=base.hash,
            start_lamport=base.lamport,
            length=span.first,
            hash=base.hash,
            lamport=base.lamport,
        )
    held = record.length if record is not None else 0
    raise MissingBlocks(
        f"feed {span.feed.hex()[:8]}: blocks {held} to {span.first - 1} are missing before this range; ask for them, "
        "or begin at a final epoch's cut"
    )


def _compare(tables: Tables, record: FeedRecord, span: Span, stop: int, now_ms: int) -> Ingested | None:
    """Compare hashes with the held blocks; store bodies that were left out."""
    at = span.first
    while at < stop:
        held = tables.span_at(record, at)
        upto = min(held.end, stop)
        mine = held.hashes[(at - held.first) * HASH_SIZE : (upto - held.first) * HASH_SIZE]
        theirs = span.hashes[(at - span.first) * HASH_SIZE : (upto - span.first) * HASH_SIZE]
        if mine != theirs:
            index = next(
                i for i in range(0, len(mine), HASH_SIZE) if mine[i : i + HASH_SIZE] != theirs[i : i + HASH_SIZE]
            )
            return _fork(tables, record, held, span, at + index // HASH_SIZE, now_ms)
        if held.states and not record.ignored:
            _fill(tables, held, span)
        at = upto
    return None


def _fork(tables: Tables, record: FeedRecord, held: Span, span: Span, seq: int, now_ms: int) -> Ingested:
    evidence = Fork.between(held.tail(seq), span.tail(seq)).encode()
    end = held.first + batch_start(held, seq - held.first)
    reason = because(Reason.FORK, f"its writer signed two different blocks {seq}; the feed is cut there")
    if end < record.end:
        tables.put_record(record.ended(end, End.FORK))
        tables.put_fork(record.feed, evidence)
        quarantine.add(tables, Refusal(record.feed, end, record.length - end, now_ms, reason, record.feed))
    elif tables.fork(record.feed) is None:  # it had ended by a fault before
        tables.put_fork(record.feed, evidence)
    return Ingested(Outcome.FORK, 0, reason, evidence, seq)


def _fill(tables: Tables, held: Span, span: Span) -> None:
    """Store the bodies of a span that were left out of the held one; erased bodies are not stored."""
    bodies, states = held.body_list(), bytearray(held.states)
    offered = span.body_list()
    for index in range(held.count):
        at = held.first + index - span.first
        if states[index] == BodyState.LEFT_OUT and 0 <= at < span.count and offered[at] is not None:
            bodies[index], states[index] = offered[at], BodyState.PRESENT
    if bytes(states) != held.states:
        filled = held.with_bodies(bodies, bytes(states))
        assert check_bodies(filled) is None
        tables.put_span(filled)


def fill(tables: Tables, record: FeedRecord, bodies: Mapping[int, bytes]) -> int:
    """Store bodies that were left out, by seq. Refuse one that does not match its header. Return how many were new."""
    count, waiting = 0, [] if record.ignored else sorted(bodies)
    while waiting:
        held = tables.span_at(record, waiting[0])
        here = [seq for seq in waiting if seq < held.end]
        waiting = waiting[len(here) :]
        known, states = held.body_list(), bytearray(held.states)
        for seq in here if held.states else ():
            index = seq - held.first
            if states[index] == BodyState.LEFT_OUT:
                _check_body(held, index, bodies[seq])
                known[index], states[index] = bodies[seq], BodyState.PRESENT
                count += 1
        if states != held.states:
            tables.put_span(held.with_bodies(known, bytes(states)))
    return count


def _check_body(held: Span, index: int, body: bytes) -> None:
    if sha256(body).digest() != bytes(held.columns["body_hash"][index]):
        seq = held.first + index
        raise RefusedBlocks(
            f"feed {held.feed.hex()[:8]}: the body of block {seq} is not the one in its header; ask another peer",
            feed=held.feed,
            seq=seq,
            code=Reason.BODY,
        )


def _extend(tables: Tables, record: FeedRecord, span: Span, now_ms: int) -> Ingested:
    if record.end <= record.length:
        raise RefusedBlocks(
            f"feed {span.feed.hex()[:8]} ended at {record.end}; nothing after that is taken",
            feed=span.feed,
            seq=span.first,
            code=Reason.FEED_ENDED,
        )
    # Peers send the feed's own writer blocks that it does not have: this store was restored from an old backup, and its
    # next block would contradict one that it wrote before (rule 6).
    retired = record.retired or record.writable
    # Only a credential can erase a body (rule 13). A sender's mark only means that it does not send the body.
    if span.states:
        span = replace(span, states=span.states.replace(_ERASED, _LEFT_OUT))
    if record.ignored:
        span = _bodiless(span)
    verdict = judge(span, record.lamport, lambda other: tables.frontier(span.feed, other))
    tables.append_span(record, span)
    for entry in verdict.moved.values():
        tables.move_frontier(span.feed, entry)
    lamport = int(span.columns["lamport"][-1])
    longer = record.extended(span.end, span.hashes[-HASH_SIZE:], lamport, span.signature)
    if retired != record.retired:
        longer = replace(longer, retired=True)
    if verdict.fault is None:
        tables.put_record(longer)
        return Ingested(Outcome.STORED, span.count)
    fault = verdict.fault
    tables.put_record(longer.ended(fault.seq, End.FAULT))
    refusal = Refusal(span.feed, fault.seq, span.end - fault.seq, now_ms, fault.reason, span.feed)
    quarantine.add(tables, refusal)
    return Ingested(Outcome.FAULT, fault.seq - span.first, fault.reason, seq=fault.seq)


def prune(tables: Tables, record: FeedRecord, before: int) -> FeedRecord:
    """Delete the blocks before `before`, rounded down to a batch's end. Evidence past a feed's end is kept."""
    before = min(before, record.valid_length)
    if before <= record.start:
        return record
    if before < record.length:
        held = tables.span_at(record, before)
        before = held.first + batch_start(held, before - held.first)
    if before <= record.start:
        return record
    held = tables.span_at(record, before - 1)
    last = held.block(before - 1 - held.first)
    _drop_before(tables, record, before)
    pruned = replace(record, start=before, start_hash=last.hash, start_lamport=last.lamport)
    tables.put_record(pruned)
    return pruned


def ignore(tables: Tables, record: FeedRecord, *, ignored: bool) -> None:
    """Drop all bodies of a feed, and take none from now on; or take them again. Erased bodies stay erased."""
    tables.put_record(replace(record, ignored=ignored))
    at = record.start
    while ignored and at < record.length:
        held = tables.span_at(record, at)
        tables.put_span(_bodiless(held))
        at = held.end


def _bodiless(span: Span) -> Span:
    return span.keeping(lambda kind, item: False)


def _drop_before(tables: Tables, record: FeedRecord, before: int) -> None:
    at = record.start
    while at < before:
        held = tables.span_at(record, at)
        tables.drop_span(held)
        if held.end > before:
            tables.put_span(held.tail(before))
        at = held.end


def erase(tables: Tables, record: FeedRecord, seq: int) -> None:
    """Erase a body permanently; the chain stays verifiable through its hash."""
    held = tables.span_at(record, seq)
    bodies, states = held.body_list(), bytearray(held.states or bytes(held.count))
    bodies[seq - held.first], states[seq - held.first] = None, BodyState.ERASED
    tables.put_span(held.with_bodies(bodies, bytes(states)))
