"""From a store's control feeds to the party state machine."""

from __future__ import annotations

from antiphon.core.errors import MissingBlocks
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import Kind
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine


def fold_control_feeds(machine: PartyMachine, store: FeedReader, data: set[bytes] | None = None) -> int:
    """Take what a store has of a party's control feeds, and of its parent's; returns how many acts became known.

    Feeds that turn out to be data feeds are put into `data`, and not looked at again.
    """
    data = set() if data is None else data
    before = machine.act_count
    _take(machine, store, data)
    fold_parent_feeds(machine, store, data)
    return machine.act_count - before


def fold_parent_feeds(machine: PartyMachine, store: FeedReader, data: set[bytes] | None = None) -> None:
    """Let a child have what a store has of its parent's control feeds."""
    if machine.parent is not None:
        _take(machine.parent, store, set() if data is None else data)
        machine.hear_parent()


def _take(machine: PartyMachine, store: FeedReader, data: set[bytes]) -> None:
    known = machine.synced
    for record in store.feeds(machine.party):
        feed = record.feed
        if known.get(feed) is record:  # the store hands out the same one until it changes
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
        if machine.length(feed) >= length:  # else somebody else wrote meanwhile
            _remember(known, record)


def _remember(known: dict[bytes, FeedRecord], record: FeedRecord) -> None:
    """All that a record tells was taken. Behind a fault, evidence of a fork may come that no record tells of."""
    if record.why is not End.FAULT:
        known[record.feed] = record
