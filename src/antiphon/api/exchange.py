"""Blocks from one store to another in the same process: two folders on one machine, a stick that is carried, a test.

The network's own way, which asks and answers in pieces, is the mesh; what passes and what is checked is the same.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlocks, RefusedBlocks
from antiphon.feed.store import FeedStore
from antiphon.party.meta import SubscriptionState

if TYPE_CHECKING:
    from antiphon.api.store import Store


def exchange(one: Store, other: Store) -> int:
    """Give each store what the other has of the parties that both follow, until neither lacks anything.

    Returns how many blocks moved. Whoever was admitted meanwhile joins.
    """
    total = 0
    while True:
        shared = _followed(one) & _followed(other)
        moved = sum(_give(one, other, party) + _give(other, one, party) for party in sorted(shared))
        total += moved
        if not moved:
            return total


def _followed(store: Store) -> set[bytes]:
    return {bytes(known.party) for known in store.parties() if known.state is not SubscriptionState.PAUSED}


def _give(giver: Store, taker: Store, party: bytes) -> int:
    moved = copy(giver.manager.feeds, taker.manager.feeds, party)
    with contextlib.suppress(MissingBlocks):  # its genesis has not come yet
        taker.party(party).refresh()
    return moved


def copy(source: FeedStore, target: FeedStore, party: bytes) -> int:
    """Everything that one feed store has of a party, into another; every hash, body and signature is checked."""
    have = {record.feed: record.length for record in target.feeds(party)}
    moved = 0
    for record in source.feeds(party):
        if have.get(record.feed, 0) >= record.length:
            continue
        for span in source.spans(record.feed, have.get(record.feed, 0)):
            try:
                moved += target.ingest_bytes(span.encode()).added
            except (RefusedBlocks, MissingBlocks):  # the quarantine has the reason; the feed goes no further
                break
    return moved
