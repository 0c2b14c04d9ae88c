"""Ingest spans of other peers, inside a transaction: verified ones that link up. Forks and faults are recorded."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from antiphon.core.errors import BrokenChain, CorruptBlock, MissingBlocks, RefusedBlocks
from antiphon.core.reasons import Reason, because
from antiphon.feed.block import BodyState
from antiphon.feed.chain import check_bodies
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import HASH_SIZE, NO_END, Flag, Kind
from antiphon.feed.limits import BRANCH_GENESIS_SIZE_MAX
from antiphon.feed.rules import batch_start, judge
from antiphon.feed.span import Span
from antiphon.feed.store import quarantine
from antiphon.feed.store.quarantine import Refusal
from antiphon.feed.store.tables import Tables, decode_span

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
    lacks_bodies: bool = False  # a fork was found, and the branch that showed it is not kept for want of bodies
    repeats: bool = False  # the fork was known, and so was the branch


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
    done = _extend(tables, record, span.tail(record.length), now_ms)
    return replace(done, added=done.added + rejoin(tables, tables.record(span.feed), now_ms))


def _begins_before_base(record: FeedRecord | None, span: Span, base: Base) -> bool:
    """True if a range does not link up with the held blocks, and begins before the base of the feed."""
    held = record.length if record is not None else 0
    return held < span.first <= base.seq


def _record_for(tables: Tables, span: Span, base: Base | None) -> FeedRecord:
    """Return the feed's record; a new one if the feed begins with this span."""
    record = tables.find(span.feed)
    if record is not None and record.party != span.party:
        if record.length or record.writable or record.branches:
            raise _foreign(record, span)
        record = replace(record, party=span.party)  # of a feed of which nothing was left (`damage`)
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
        seq = _parting(held, span, at, upto)
        if seq is not None:
            return _fork(tables, record, held, span, seq, now_ms)
        if held.states and not record.ignored:
            _fill(tables, held, span)
        at = upto
    return None


def _parting(one: Span, other: Span, start: int, stop: int) -> int | None:
    """Return the first block in [start, stop) that differs between two spans; None if none does."""
    mine = one.hashes[(start - one.first) * HASH_SIZE : (stop - one.first) * HASH_SIZE]
    theirs = other.hashes[(start - other.first) * HASH_SIZE : (stop - other.first) * HASH_SIZE]
    if mine == theirs:
        return None
    pairs = range(0, len(mine), HASH_SIZE)
    return start + next(at for at in pairs if mine[at : at + HASH_SIZE] != theirs[at : at + HASH_SIZE]) // HASH_SIZE


def _fork(tables: Tables, record: FeedRecord, held: Span, span: Span, seq: int, now_ms: int) -> Ingested:
    """Note that a span parts from the history, and keep its branch."""
    found = _end_fork(tables, record, held, span, seq, now_ms)
    branch = span.tail(seq)
    whole = is_complete(branch)
    known = not (whole and _keep(tables, branch)) and found.repeats
    return replace(found, lacks_bodies=not whole, repeats=known)


def _end_fork(tables: Tables, record: FeedRecord, one: Span, other: Span, seq: int, now_ms: int) -> Ingested:
    """End a feed where two of its spans part, with the evidence."""
    evidence = Fork.between(one.tail(seq), other.tail(seq)).encode()
    end = max(record.start, one.first + batch_start(one, seq - one.first))
    reason = because(Reason.FORK, f"its writer signed two different blocks {seq}; the feed is cut there")
    known = end >= record.end and tables.fork(record.feed) is not None
    if end < record.end:
        tables.put_record(record.ended(end, End.FORK))
        tables.put_fork(record.feed, evidence)
        quarantine.add(tables, Refusal(record.feed, end, max(1, record.length - end), now_ms, reason, record.feed))
    elif not known:  # it had ended by a fault before
        tables.put_fork(record.feed, evidence)
    return Ingested(Outcome.FORK, 0, reason, evidence, seq, repeats=known)


def _part(tables: Tables, span: Span, now_ms: int) -> Ingested | None:
    """Find a kept branch from which a span parts: two blocks after the same one are a fork, wherever they are kept.

    What is pruned, and what lies beyond a known fork, is not looked at: it would change nothing.
    """
    record = tables.record(span.feed)
    at, stop = max(span.first, record.start), min(span.end, record.end)
    while record.branches and at < stop:
        before = span.previous if at == span.first else span.hash_at(at - 1)
        other = tables.branch_after(span.feed, at, before)
        upto = at + 1 if other is None else min(other.end, stop)
        seq = None if other is None else _parting(other, span, at, upto)
        if other is not None and seq is not None:
            return _end_fork(tables, record, other, span, seq, now_ms)
        at = upto
    return None


def check_trail(trail: Sequence[Span], seq: int, hash_: bytes) -> None:
    """Refuse verified spans that do not follow each other, or do not lead to the block with this seq and hash."""
    last = trail[-1]
    linked = all(one.feed == after.feed and after.first == one.end for one, after in pairwise(trail))
    linked = linked and all(after.previous == one.hash_at(one.end - 1) for one, after in pairwise(trail))
    if not linked or not last.first <= seq < last.end or last.hash_at(seq) != hash_:
        raise RefusedBlocks(
            f"feed {last.feed.hex()[:8]}: these blocks do not lead to block {seq} as it was named; ask another peer",
            feed=last.feed,
            seq=seq,
            code=Reason.CHAIN,
        )


def ingest_branch(tables: Tables, span: Span, now_ms: int) -> Ingested:
    """Keep a verified span of any branch, for blocks that refer to it. It shows a fork if it parts from held blocks."""
    record = tables.find(span.feed)
    if record is None:
        tables.put_record(FeedRecord(feed=span.feed, party=span.party))
    elif record.party != span.party:
        raise _foreign(record, span)
    elif record.start <= span.first <= record.length and tables.hash_before(record, span.first) == span.previous:
        overlap = min(span.end, record.length)
        forked = _compare(tables, record, span, overlap, now_ms) if span.first < overlap else None
        if forked is not None or span.end <= record.length:
            repeats = forked is not None and forked.repeats and not forked.lacks_bodies
            return Ingested(Outcome.KNOWN, 0) if forked is None or repeats else forked
        span = span.tail(overlap)
    if not is_complete(span):
        raise without_bodies(span.feed, span.first)
    forked = _part(tables, span, now_ms)
    kept = _keep(tables, span)
    return forked or (Ingested(Outcome.STORED, span.count) if kept else Ingested(Outcome.KNOWN, 0))


def without_bodies(feed: bytes, seq: int) -> RefusedBlocks:
    """Return the error for a branch that cannot be kept."""
    return RefusedBlocks(
        f"feed {feed.hex()[:8]}: a branch from {seq} without the bodies that belong to it, those of "
        "credentials and small geneses; ask another peer",
        feed=feed,
        seq=seq,
        code=Reason.NO_BODY,
    )


def _keep(tables: Tables, span: Span) -> bool:
    """Keep what belongs to a span of a branch. False if it is kept.

    Of two spans that end with the same block, the longer one is kept, with the bodies of both.
    """
    span = branch_part(span)
    held = tables.branch_ending(span.feed, span.hash_at(span.end - 1))
    if held is not None:
        span = _joined(held, span)
        if (span.first, span.states) == (held.first, held.states):
            return False
    tables.put_branch(span)
    record = tables.record(span.feed)
    tables.put_record(replace(record, branches=record.branches + 1))
    return True


def _joined(held: Span, span: Span) -> Span:
    """Return the longer of two spans that end with the same block, with the bodies of both; erased ones stay erased."""
    filled = _filled(held, span)
    before = held.first - span.first
    if before <= 0:
        return filled
    states = (span.states or bytes(span.count))[:before] + (filled.states or bytes(filled.count))
    return span.with_bodies(span.body_list()[:before] + filled.body_list(), states)


def is_complete(span: Span) -> bool:
    """True if a span has all bodies that are kept of a branch; a body that is marked as erased is not demanded."""
    return not span.states or BodyState.LEFT_OUT not in np.frombuffer(span.states, dtype=np.uint8)[_kept_bodies(span)]


def has_credentials(span: Span) -> bool:
    """True if a span has the bodies of all its credentials, so that their acts can be read."""
    credentials = np.equal(span.columns["kind"], Kind.CREDENTIAL)
    return not span.states or not np.frombuffer(span.states, dtype=np.uint8)[credentials].any()


def begins_control(span: Span) -> bool:
    """True if a span begins a branch of control: the first block of the feed, and a credential.

    A writer may sign two first blocks of different kinds. So a branch is one of control or of data, and not its feed.
    """
    return span.first == 0 and int(span.columns["kind"][0]) == Kind.CREDENTIAL


def branch_part(span: Span) -> Span:
    """Return the part of a span that is kept of a branch: other bodies than credentials and small geneses go."""
    wanted = _kept_bodies(span).tolist()
    kept = [body if keep else None for body, keep in zip(span.body_list(), wanted, strict=True)]
    states = bytearray(BodyState.PRESENT if body is not None else BodyState.LEFT_OUT for body in kept)
    for index, state in enumerate(span.states):  # one that was erased is not demanded of anybody
        states[index] = BodyState.ERASED if state == BodyState.ERASED and wanted[index] else states[index]
    return span.with_bodies(kept, bytes(states))


def _kept_bodies(span: Span) -> npt.NDArray[np.bool_]:
    """Return which bodies belong to a branch, by what their headers say: of credentials, and of small geneses."""
    small = np.less_equal(span.columns["body_size"], BRANCH_GENESIS_SIZE_MAX)
    geneses = np.equal(span.columns["kind"], Kind.GENESIS) & small
    return np.asarray(geneses | np.equal(span.columns["kind"], Kind.CREDENTIAL), dtype=np.bool_)


def _foreign(record: FeedRecord, span: Span) -> RefusedBlocks:
    return RefusedBlocks(
        f"feed {span.feed.hex()[:8]} belongs to party {record.party.hex()[:8]}; a feed belongs to one party",
        feed=span.feed,
        seq=span.first,
        code=Reason.OTHER_PARTY,
    )


def _fill(tables: Tables, held: Span, span: Span) -> None:
    """Store the bodies of a span that were left out of the held one; erased bodies are not stored."""
    filled = _filled(held, span)
    if filled.states != held.states:
        tables.put_span(filled)


def _filled(held: Span, span: Span) -> Span:
    """Return the held span with the bodies of another one that were left out of it; not with erased ones."""
    if not held.states:
        return held
    bodies, states = held.body_list(), bytearray(held.states)
    offered = span.body_list()
    for index in range(held.count):
        at = held.first + index - span.first
        if states[index] == BodyState.LEFT_OUT and 0 <= at < span.count and offered[at] is not None:
            bodies[index], states[index] = offered[at], BodyState.PRESENT
    filled = held.with_bodies(bodies, bytes(states))
    assert check_bodies(filled) is None
    return filled


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
        span = _geneses_only(span)
    span, others = _take_aside(tables, record, span)
    verdict = judge(span, record.lamport, lambda other: tables.frontier(span.feed, other))
    tables.append_span(record, span)
    for entry in verdict.moved.values():
        tables.move_frontier(span.feed, entry)
    lamport = int(span.columns["lamport"][-1])
    longer = record.extended(span.end, span.hashes[-HASH_SIZE:], lamport, span.signature)
    if retired != record.retired:
        longer = replace(longer, retired=True)
    if span.first < record.end < span.end:  # the fork was known before these blocks: round it down to a whole batch
        longer = longer.ended(span.first + batch_start(span, record.end - span.first), End.FORK)
    done, fault = Ingested(Outcome.STORED, span.count), verdict.fault
    if fault is not None:
        longer = longer.ended(fault.seq, End.FAULT)
        refusal = Refusal(span.feed, fault.seq, span.end - fault.seq, now_ms, fault.reason, span.feed)
        quarantine.add(tables, refusal)
        done = Ingested(Outcome.FAULT, fault.seq - span.first, fault.reason, seq=fault.seq)
    tables.put_record(longer)
    for other in others:
        _keep(tables, other)
    return _part(tables, span, now_ms) or done


def begin(tables: Tables, party: bytes, feed: bytes, base: Base) -> bool:
    """Let a feed begin behind its last block inside an epoch, as if the blocks before had been pruned.

    False if anything of it is here.
    """
    if tables.find(feed) is not None:
        return False
    begun = FeedRecord(feed=feed, party=party, start=base.seq + 1, start_hash=base.hash, start_lamport=base.lamport)
    tables.put_record(replace(begun, length=begun.start, hash=base.hash, lamport=base.lamport))
    return True


def rejoin(tables: Tables, record: FeedRecord, now_ms: int) -> int:
    """Append the blocks that follow a feed's last one and were kept aside (`damage`). Return how many."""
    added = 0
    while record.end > record.length:
        span = next(_kept_aside(tables, record, record.length + 1), None)
        if span is None:
            break
        if span.previous != record.hash:
            tables.drop_span(span)
            _keep(tables, span)
            break
        added += _extend(tables, record, span, now_ms).added
        record = tables.record(record.feed)
    return added


def _kept_aside(tables: Tables, record: FeedRecord, stop: int) -> Iterator[Span]:
    """Yield the spans behind the end of a feed that begin before `stop`. One that has changed is dropped."""
    for first in list(tables.firsts(record.feed, record.length, stop)):
        try:
            yield decode_span(record.feed, first, tables.raw_span(record.feed, first))
        except CorruptBlock:
            tables.drop_first(record.feed, first)


def _take_aside(tables: Tables, record: FeedRecord, span: Span) -> tuple[Span, list[Span]]:
    """Remove what is kept aside where a span comes to lie, but the rest behind it.

    Return the span with the bodies from there, and what belongs to other branches.
    """
    others = []
    for kept in _kept_aside(tables, record, span.end):
        tables.drop_span(kept)
        if _parting(kept, span, kept.first, min(kept.end, span.end)) is not None:
            others.append(kept)
            continue
        span = _filled(span, kept)
        if kept.end > span.end:
            tables.put_span(kept.tail(span.end))
    return span, others


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


def change_branch(tables: Tables, record: FeedRecord, base: Base, signature: bytes) -> None:
    """Let a feed begin behind a block that its writer signed on another branch. The held blocks are kept as a branch.

    A feed of this store is retired: its next block would contradict one that was signed before (rule 6).
    """
    at = record.start
    while at < record.length:
        held = tables.span_at(record, at)
        tables.drop_span(held)
        _keep(tables, held)
        at = held.end
    tables.drop_frontiers(record.feed)
    kept = replace(tables.record(record.feed), end=NO_END, why=End.NONE, retired=record.retired or record.writable)
    begun = replace(kept, start=base.seq + 1, start_hash=base.hash, start_lamport=base.lamport)
    tables.put_record(begun.extended(begun.start, base.hash, base.lamport, signature))


def ignore(tables: Tables, record: FeedRecord, *, ignored: bool) -> None:
    """Drop the bodies of a feed, and take none from now on; or take them again. Erased bodies stay erased.

    Small geneses stay, unread: with the headers, they are what others need to be shown of a feed (rule 23).
    """
    tables.put_record(replace(record, ignored=ignored))
    at = record.start
    while ignored and at < record.length:
        held = tables.span_at(record, at)
        tables.put_span(_geneses_only(held))
        at = held.end


def _geneses_only(span: Span) -> Span:
    """Return a span without the bodies that are not kept of a branch; erased ones stay erased."""
    kept = branch_part(span)
    states = bytearray(kept.states)
    for index, state in enumerate(span.states):
        states[index] = BodyState.ERASED if state == BodyState.ERASED else states[index]
    return replace(kept, states=bytes(states))


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
    tables.put_span(_without_body(tables.span_at(record, seq), seq))


def erase_in_branches(tables: Tables, feed: bytes, seqs: Collection[int]) -> int:
    """Erase the bodies of these blocks in all kept branches of a feed. Return how many were there.

    Credentials stay: the branch may be one of control, whose acts are not erased.
    """
    count = 0
    for span in list(tables.branches(feed)):
        inside = [seq for seq in seqs if span.first <= seq < span.end and span.present[seq - span.first]]
        here = [seq for seq in inside if int(span.columns["kind"][seq - span.first]) != Kind.CREDENTIAL]
        count += len(here)
        for seq in here:
            span = _without_body(span, seq)
        if here:
            tables.put_branch(span)
    return count


def _without_body(span: Span, seq: int) -> Span:
    bodies, states = span.body_list(), bytearray(span.states or bytes(span.count))
    bodies[seq - span.first], states[seq - span.first] = None, BodyState.ERASED
    return span.with_bodies(bodies, bytes(states))
