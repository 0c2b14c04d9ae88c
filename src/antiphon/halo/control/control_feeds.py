"""Fold the control feeds of a store into the party state machine."""

from __future__ import annotations

from antiphon.core.errors import MissingBlocks
from antiphon.feed.block import Block
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.rules import well_formed
from antiphon.feed.span import Span
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
    """Take control feeds until no more of them become known by those that were taken."""
    before = -1
    while before < machine.known_count:
        before = machine.known_count
        if not _take_known(machine, store, data):
            return


def _take_known(machine: PartyMachine, store: FeedReader, data: set[bytes]) -> bool:
    """Take the control feeds that are known. True if others are here."""
    known, others = machine.folded, False
    for record in store.feeds(machine.party):
        feed = record.feed
        is_new = feed not in known and feed not in data
        if is_new and not machine.knows(feed) and _is_stranger(machine, store, record):
            others = True
            continue
        if record.why is End.FORK:
            machine.end_fork(feed, record.end)
        elif record.why is End.FAULT and machine.common(feed) == NO_END and (evidence := store.fork(feed)):
            machine.add_fork(evidence)  # it may come without a new record
        if known.get(feed) is record:  # the store hands out the same one until it changes
            continue
        at, length = machine.length(feed), record.valid_length
        if feed in data or (length <= at and record.length == length and not record.branches):
            known[feed] = record
            continue
        if record.start > at and (at or feed == machine.genesis_feed):
            raise MissingBlocks(
                f"control feed {feed.hex()[:8]}: blocks {at} to {record.start - 1} are not here, and a party is judged "
                "by all of them; fetch them from a peer"
            )
        first = None if at else _first_block(store, record)
        if not at and (first is None or first.kind is not Kind.CREDENTIAL):
            data.add(feed)
            continue
        for span in store.held(feed, at, length) if at < length else ():
            machine.add(span.blocks(0, span.count))
        # Beyond a fork nothing is in force, but votes count, and others may have seen these blocks.
        for span in store.held(feed, length, record.length) if length < record.length else ():
            machine.show(span)
        for span in _other(store, record):
            machine.show(span)
        if machine.length(feed) >= length:  # else another process wrote meanwhile
            known[feed] = record
    return others


def _is_stranger(machine: PartyMachine, store: FeedReader, record: FeedRecord) -> bool:
    """True if a feed is a control feed whose identity nobody has named. The first block of a history never changes."""
    identity = machine.strangers.get(record.feed)
    if identity is None:
        first = _first_block(store, record)
        if first is None or first.kind is not Kind.CREDENTIAL:
            return False
        identity = machine.strangers[record.feed] = find_identity(machine.party, first)
    return not machine.names(identity)


def _other(store: FeedReader, record: FeedRecord) -> list[Span]:
    return store.branches(record.feed) if record.branches else []


def _first_block(store: FeedReader, record: FeedRecord) -> Block | None:
    """Return the first block of a feed, of the held branch if there is one; None if it is missing or ill-formed."""
    held = store.held(record.feed, 0, 1) if record.length > record.start == 0 else ()
    found = next(iter(held), None) or next((span for span in _other(store, record) if not record.length), None)
    return None if found is None or not well_formed(found) else found.block(0)
