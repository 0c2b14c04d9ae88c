"""Fold the control feeds of a store into the party state machine."""

from __future__ import annotations

from collections import defaultdict

from antiphon.core.errors import CorruptBlock, MissingBlocks
from antiphon.feed.block import Block
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.rules import well_formed
from antiphon.feed.store.ingest import begins_control, has_credentials
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.known_feeds import find_identity
from antiphon.halo.control.machine import PartyMachine


def fold_control_feeds(machine: PartyMachine, store: FeedReader, data: set[bytes] | None = None) -> int:
    """Fold the control feeds of a party, and of its parent, from a store; returns how many acts became known.

    Feeds that turn out to be data feeds are added to `data`, and skipped from then on.
    """
    data = set() if data is None else data
    before = machine.act_count
    _take(machine, store, data)
    named = machine.known_count
    fold_parent_feeds(machine, store, data)
    if machine.known_count > named:
        _take(machine, store, data)
    return machine.act_count - before


def fold_parent_feeds(machine: PartyMachine, store: FeedReader, data: set[bytes] | None = None) -> None:
    """Fold the control feeds of a child's parent from a store."""
    if machine.parent is not None:
        _take(machine.parent, store, set() if data is None else data)
        machine.hear_parent()


def _take(machine: PartyMachine, store: FeedReader, data: set[bytes]) -> None:
    """Take the control feeds that are known, and those that become known by what was taken: each once."""
    if machine.checkpoints.offered:
        _resume(machine, store)
    strangers: dict[bytes, list[FeedRecord]] = defaultdict(list)  # by identity
    heard = machine.known_feeds.heard
    at = len(heard)
    rotten: list[tuple[FeedRecord, CorruptBlock]] = []
    for record in machine.taken.news(store, machine.party):
        try:
            identity = _stranger(machine, store, record, data)
            if identity is None:
                _take_feed(machine, store, record, data)
            else:
                strangers[identity].append(record)
        except CorruptBlock as error:
            rotten.append((record, error))
    while strangers and at < len(heard):
        for record in strangers.pop(heard[at], ()):
            _take_feed(machine, store, record, data)
        at += 1
    for record, why in rotten:
        _pass_over(machine, record, why, data)


def _pass_over(machine: PartyMachine, record: FeedRecord, error: CorruptBlock, data: set[bytes]) -> None:
    """Take a feed whose first blocks are rotten for the data feed that it was admitted as; else raise the error.

    A party is judged by its control feeds, so it stops if one of them cannot be read. A data feed only ends there.
    """
    if machine.is_control(record.feed) or record.feed not in machine.data_feeds():
        raise error
    data.add(record.feed)
    machine.taken.folded[record.feed] = record
    machine.taken.finish(record)


def _stranger(machine: PartyMachine, store: FeedReader, record: FeedRecord, data: set[bytes]) -> bytes | None:
    """Return the identity of a control feed if nobody has named it, "" if its beginning is not here; else None."""
    feed = record.feed
    if feed in machine.taken.folded or feed in data or machine.knows(feed):
        return None
    identity = machine.taken.strangers.get(feed)
    if identity is None:
        if machine.taken.beginless.get(feed) is record:
            return b""
        first = _first_block(store, record)
        if first is None and not record.length:
            machine.taken.beginless[feed] = record
            return b""
        if first is None or first.kind is not Kind.CREDENTIAL:
            return None
        identity = machine.taken.strangers[feed] = find_identity(machine.party, first)  # a first block never changes
    return None if machine.names(identity) else identity


def _take_feed(machine: PartyMachine, store: FeedReader, record: FeedRecord, data: set[bytes]) -> None:
    """Take what is new of a feed, if it is a control feed."""
    _take_blocks(machine, store, record, data)
    machine.taken.finish(record)


def _take_blocks(machine: PartyMachine, store: FeedReader, record: FeedRecord, data: set[bytes]) -> None:
    feed, known = record.feed, machine.taken.folded.get(record.feed)
    _note_fork(machine, store, record)
    if known is record:  # the store hands out the same one until it changes
        return
    at, length = machine.length(feed), record.valid_length
    if not record.branches and (feed in data or (length <= at and record.length == length)):
        machine.taken.folded[feed] = record
        return
    if record.start > at and (at or feed == machine.genesis_feed):
        raise MissingBlocks(
            f"control feed {feed.hex()[:8]}: blocks {at} to {record.start - 1} are not here, and a party is judged "
            "by all of them; fetch them from a peer"
        )
    first = None if at else _first_block(store, record)
    held = at > 0 or (first is not None and first.kind is Kind.CREDENTIAL)
    if not held:
        data.add(feed)
    if held:
        _take_history(machine, store, record, known)
    if record.branches and (held or _has_control_branch(machine, store, record)):
        _show_branches(machine, store, record, ended=not held or record.why is End.FAULT)
    if not held or machine.length(feed) >= length:  # else another process wrote meanwhile
        machine.taken.folded[feed] = record


def _resume(machine: PartyMachine, store: FeedReader) -> None:
    """Begin control feeds with their checkpoints, where the store knows no earlier fork."""
    offered = machine.checkpoints.offered
    records = {record.feed: record for record in store.feeds(machine.party) if record.feed in offered}
    for record in records.values():
        _note_fork(machine, store, record)
    machine.resume(records)


def _note_fork(machine: PartyMachine, store: FeedReader, record: FeedRecord) -> None:
    if record.why is End.FORK:
        machine.end_fork(record.feed, record.end)
    elif record.why is End.FAULT and machine.common(record.feed) == NO_END and (evidence := store.fork(record.feed)):
        machine.add_fork(evidence)  # it may come without a new record


def _take_history(machine: PartyMachine, store: FeedReader, record: FeedRecord, known: FeedRecord | None) -> None:
    feed, length = record.feed, record.valid_length
    at = machine.length(feed)
    for span in store.held(feed, at, length) if at < length else ():
        machine.add(span.blocks(0, span.count))
        machine.set_aside()  # so that memory follows what counts, not what was sent
    # Beyond a fork nothing is in force, but votes count, and others may have seen these blocks.
    ended = record.why is End.FAULT
    if length < record.length and (known is None or (known.valid_length, known.length) != (length, record.length)):
        for span in store.held(feed, max(length, min(machine.settled.until(feed), record.length)), record.length):
            machine.show(span, ended=ended, held=True)
        machine.settled.note_held(feed, record.length, record.hash)


def _show_branches(machine: PartyMachine, store: FeedReader, record: FeedRecord, *, ended: bool) -> None:
    shown = machine.taken.shown[record.feed]
    for span in store.branches(record.feed, shown):
        if has_credentials(span):  # else it is one of data, of which some were erased
            shown[span.hash_at(span.end - 1)] = span.first
            machine.show(span, ended=ended, kept=True)


def _has_control_branch(machine: PartyMachine, store: FeedReader, record: FeedRecord) -> bool:
    """True if a branch of a feed begins with a credential, though its history is one of data, or is not here.

    Two first blocks are a fork at block 0, unless the first one was pruned. So most feeds need not be looked at.
    """
    feed = record.feed
    if record.length and not record.start and record.end:
        return False
    looked = machine.taken.data[feed]
    for span in () if machine.has(feed) else store.branches(feed, looked):
        looked[span.hash_at(span.end - 1)] = span.first
        if begins_control(span) and well_formed(span):
            return True
    return machine.has(feed)


def _first_block(store: FeedReader, record: FeedRecord) -> Block | None:
    """Return the first block of a feed, of the held branch if there is one; None if it is missing or ill-formed."""
    if record.length:
        found = next(iter(store.held(record.feed, 0, 1)), None) if record.start == 0 else None
    else:
        found = store.branch_start(record.feed) if record.branches else None
    return None if found is None or not well_formed(found) else found.block(0)
