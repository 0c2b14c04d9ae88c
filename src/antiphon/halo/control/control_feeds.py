"""Fold the control feeds of a store into the party state machine."""

from __future__ import annotations

from antiphon.core.errors import MissingBlocks
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import Kind
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
        if known.get(feed) is record:  # the store hands out the same one until it changes
            continue
        if feed not in data and not machine.knows(feed) and _is_stranger(machine, store, feed):
            others = True
            continue
        at = machine.length(feed)
        if record.why is End.FORK:
            machine.end_fork(feed, record.end)
        elif record.why is End.FAULT and (evidence := store.fork(feed)):
            machine.add_fork(evidence)
        # Beyond a fork nothing is in force, but votes about epochs count where they are held, also after a restart.
        length = record.length if record.why is End.FORK else record.valid_length
        if feed in data or length <= at:
            _remember(known, record)
            continue
        if record.start > at and (at or feed == machine.genesis_feed):
            raise MissingBlocks(
                f"control feed {feed.hex()[:8]}: blocks {at} to {record.start - 1} are not here, and a party is judged "
                "by all of them; fetch them from a peer"
            )
        if at == 0 and store.first_kind(feed) is not Kind.CREDENTIAL:
            data.add(feed)
            continue
        for span in store.held(feed, at, length):
            machine.add(span.blocks(0, span.count))
        if machine.length(feed) >= length:  # else another process wrote meanwhile
            _remember(known, record)
    return others


def _is_stranger(machine: PartyMachine, store: FeedReader, feed: bytes) -> bool:
    """True if a feed is a control feed whose identity nobody has named. The first block of a feed never changes."""
    identity = machine.strangers.get(feed)
    if identity is None:
        if store.first_kind(feed) is not Kind.CREDENTIAL:
            return False
        identity = machine.strangers[feed] = find_identity(machine.party, store.block(feed, 0))
    return not machine.names(identity)


def _remember(known: dict[bytes, FeedRecord], record: FeedRecord) -> None:
    """Note that a feed was folded up to a record. After a fault, evidence of a fork may come without a new record."""
    if record.why is not End.FAULT:
        known[record.feed] = record
