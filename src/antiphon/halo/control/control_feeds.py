"""Fold the control feeds of a store into the party state machine."""

from __future__ import annotations

from collections import defaultdict

from antiphon.core.errors import MissingBlocks
from antiphon.feed.block import Block
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.rules import well_formed
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
    strangers: dict[bytes, list[FeedRecord]] = defaultdict(list)  # by identity
    heard = machine.known_feeds.heard
    at = len(heard)
    for record in store.feeds(machine.party):
        identity = _stranger(machine, store, record, data)
        if identity is None:
            _take_feed(machine, store, record, data)
        else:
            strangers[identity].append(record)
    while strangers and at < len(heard):
        for record in strangers.pop(heard[at], ()):
            _take_feed(machine, store, record, data)
        at += 1


def _stranger(machine: PartyMachine, store: FeedReader, record: FeedRecord, data: set[bytes]) -> bytes | None:
    """Return the identity of a control feed if nobody has named it, "" if its beginning is not here; else None."""
    feed = record.feed
    if feed in machine.folded or feed in data or machine.knows(feed):
        return None
    identity = machine.strangers.get(feed)
    if identity is None:
        if machine.beginless.get(feed) is record:
            return b""
        first = _first_block(store, record)
        if first is None and not record.length:
            machine.beginless[feed] = record
            return b""
        if first is None or first.kind is not Kind.CREDENTIAL:
            return None
        identity = machine.strangers[feed] = find_identity(machine.party, first)  # a first block never changes
    return None if machine.names(identity) else identity


def _take_feed(machine: PartyMachine, store: FeedReader, record: FeedRecord, data: set[bytes]) -> None:
    """Take what is new of a feed, if it is a control feed."""
    feed, known = record.feed, machine.folded.get(record.feed)
    if record.why is End.FORK:
        machine.end_fork(feed, record.end)
    elif record.why is End.FAULT and machine.common(feed) == NO_END and (evidence := store.fork(feed)):
        machine.add_fork(evidence)  # it may come without a new record
    if known is record:  # the store hands out the same one until it changes
        return
    at, length = machine.length(feed), record.valid_length
    if feed in data or (length <= at and record.length == length and not record.branches):
        machine.folded[feed] = record
        return
    if record.start > at and (at or feed == machine.genesis_feed):
        raise MissingBlocks(
            f"control feed {feed.hex()[:8]}: blocks {at} to {record.start - 1} are not here, and a party is judged "
            "by all of them; fetch them from a peer"
        )
    first = None if at else _first_block(store, record)
    if not at and (first is None or first.kind is not Kind.CREDENTIAL):
        data.add(feed)
        return
    if not at:
        machine.resume(record)
        at = machine.length(feed)
    for span in store.held(feed, at, length) if at < length else ():
        machine.add(span.blocks(0, span.count))
        machine.set_aside()  # so that memory follows what counts, not what was sent
    # Beyond a fork nothing is in force, but votes count, and others may have seen these blocks.
    ended = record.why is End.FAULT
    if length < record.length and (known is None or (known.valid_length, known.length) != (length, record.length)):
        for span in store.held(feed, length, record.length):
            machine.show(span, ended=ended)
    shown = machine.branch_spans[feed]
    for span in store.branches(feed, shown) if record.branches else ():
        if not span.states:  # else bodies are missing: it came before the beginning of the feed, and is asked for again
            shown[span.hash_at(span.end - 1)] = span.first
            machine.show(span, ended=ended)
    if machine.length(feed) >= length:  # else another process wrote meanwhile
        machine.folded[feed] = record


def _first_block(store: FeedReader, record: FeedRecord) -> Block | None:
    """Return the first block of a feed, of the held branch if there is one; None if it is missing or ill-formed."""
    if record.length:
        found = next(iter(store.held(record.feed, 0, 1)), None) if record.start == 0 else None
    else:
        found = store.branch_start(record.feed) if record.branches else None
    return None if found is None or not well_formed(found) else found.block(0)
