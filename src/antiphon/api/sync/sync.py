"""Blocks and blobs from one store to another in one process: two folders on a machine, a stick that is carried, a test.

The network's own way, which asks and answers in pieces, is the mesh; what passes and what is checked is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from antiphon.api.held_views import learn_view_id, open_whole
from antiphon.api.sync.view_fetch import fetch_rest, fetch_view
from antiphon.core.errors import MissingBlocks, RefusedBlocks
from antiphon.feed.block import BodyState
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Base
from antiphon.party.live.manager import parent_of
from antiphon.party.store.meta_store import SubscriptionState

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.api.store import Store
    from antiphon.party.views.partial_party import PartialParty


def sync(one: Store, other: Store) -> int:
    """Give each store what the other has of the parties that both follow, until neither lacks anything.

    Returns how many blocks moved. Whoever was admitted meanwhile joins; epochs are attested where policy asks for it,
    and stood on, with the blobs of their snapshots where those are lacking.
    """
    total = 0
    while True:
        shared = sorted(_active_parties(one) & _active_parties(other))
        passed = [_transfer(giver, taker, party) for party in shared for giver, taker in ((one, other), (other, one))]
        total += sum(moved.blocks for moved in passed)
        if not any(map(any, passed)):
            return total


class _Transfer(NamedTuple):
    """What one store gave another, and whether that let it go on with epochs."""

    blocks: int
    blobs: int = 0
    moved: bool = False


def _active_parties(store: Store) -> set[bytes]:
    return {bytes(known.party) for known in store.parties() if known.state is not SubscriptionState.PAUSED}


def _transfer(giver: Store, taker: Store, key: bytes) -> _Transfer:
    store, there = taker.manager.feeds, _open_party(giver, key)
    if there is not None:
        learn_view_id(taker, there)
    written = store.transaction
    before = _open_party(taker, key)
    said = store.transaction != written  # it has joined, or said in a child where feeds end
    begins = taker.manager.epochs(key).begins() if before is not None else {}
    blocks = copy_feeds(giver.manager.feeds, store, key, begins, keeps=taker.held_views.keeps(key))
    parent = parent_of(store, key)
    if parent is not None:  # a child is judged by its parent's control feeds, also where nobody follows the parent
        blocks += copy_feeds(giver.manager.feeds, store, parent, control=True)
    written = store.transaction
    party = _open_party(taker, key)
    if party is None:
        return _Transfer(blocks)
    party.refresh()
    said = said or store.transaction != written
    if party.processor.is_held():  # inside a batch
        return _Transfer(blocks, moved=said)
    moved = party.epochs.step() or said
    view = taker.held_views.partial_party(party)
    if view is not None:
        return _Transfer(blocks, 0 if there is None else _transfer_view(there, party, view), moved)
    return _Transfer(blocks, party.epochs.fetch(giver.manager.blobs), moved)


def _transfer_view(there: Party, party: Party, view: PartialParty) -> int:
    """What a device that follows a view alone wants; and the rest, where it wants the whole party again."""
    came = fetch_view(there, party, view)
    if party.store.held_views.wants_whole(party.key):
        rest, whole = fetch_rest(there, party)
        came += rest + whole
        if whole:
            open_whole(party)
    return came


def _open_party(store: Store, key: bytes) -> Party | None:
    try:
        return store.party(key)
    except MissingBlocks:  # its genesis has not come yet
        return None


def copy_feeds(
    source: FeedStore,
    target: FeedStore,
    party: bytes,
    begins: Mapping[bytes, Base] | None = None,
    *,
    control: bool = False,
    keeps: Callable[[int, bytes], bool] | None = None,
) -> int:
    """Everything that one feed store has of a party, into another; every hash, body and signature is checked.

    `begins` says where a feed may begin whose first blocks are in an epoch that the target stands on. With `control`,
    only control feeds are copied. `keeps` says by kind and item which bodies are wanted, where not all are.
    """
    have = {record.feed: record.length for record in target.feeds(party)}
    moved = 0
    for record in source.feeds(party):
        if have.get(record.feed, 0) >= record.length:
            continue
        if control and (record.start or source.first_kind(record.feed) is not Kind.CREDENTIAL):
            continue
        base = begins.get(record.feed) if begins else None
        for span in source.spans(record.feed, max(record.start, have.get(record.feed, 0))):
            if keeps is not None:
                span = span.keeping(keeps)
            elif BodyState.LEFT_OUT in span.states:  # from one who follows a view: others have them whole
                break
            try:
                moved += target.ingest_bytes(span.encode(), base).added
            except (RefusedBlocks, MissingBlocks):  # the quarantine has the reason; the feed goes no further
                break
    return moved
