"""Copy blocks and blobs between two stores in one process: two folders on a machine, a memory stick, a test.

Over a network, `antiphon.mesh` transfers the same data in requests and answers, with the same checks.
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
    """Exchange the data of the parties that both stores have joined, until neither lacks anything.

    Return the number of blocks that moved. Devices whose identity was admitted join. Epochs are attested as policy
    says, and both stores move to new final epochs, with the blobs of their snapshots.

    >>> import antiphon
    >>> ada, bob = (antiphon.open(name, unprotected=True) for name in ("ada", "bob"))
    >>> with ada, bob:
    ...     party = ada.create_party("Household")
    ...     bob.join(party.invite(bob.me))
    ...     note = party.text("Hello")
    ...     moved = antiphon.sync(ada, bob)
    ...     str(bob.party(party.key).item(note.id))
    'Hello'
    """
    total = 0
    while True:
        shared = sorted(_active_parties(one) & _active_parties(other))
        passed = [_transfer(giver, taker, party) for party in shared for giver, taker in ((one, other), (other, one))]
        total += sum(moved.blocks for moved in passed)
        if not any(map(any, passed)):
            return total


class _Transfer(NamedTuple):
    """The number of blocks and blobs that one store gave to another, and true if the receiver made progress."""

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
    wrote = store.transaction != written  # it has joined, or ended feeds in a child party
    begins = taker.manager.epochs(key).begins() if before is not None else {}
    blocks = copy_feeds(giver.manager.feeds, store, key, begins, keeps=taker.held_views.keeps(key))
    parent = parent_of(store, key)
    if parent is not None:  # a child is judged by its parent's control feeds, even if nobody joined the parent
        blocks += copy_feeds(giver.manager.feeds, store, parent, control=True)
    written = store.transaction
    party = _open_party(taker, key)
    if party is None:
        return _Transfer(blocks)
    party.refresh()
    wrote = wrote or store.transaction != written
    if party.processor.is_held():  # inside a batch
        return _Transfer(blocks, moved=wrote)
    moved = party.epochs.step() or wrote
    view = taker.held_views.partial_party(party)
    if view is not None:
        return _Transfer(blocks, 0 if there is None else _transfer_view(there, party, view), moved)
    return _Transfer(blocks, party.epochs.fetch(giver.manager.blobs), moved)


def _transfer_view(there: Party, party: Party, view: PartialParty) -> int:
    """Transfer the data of a held view; and the rest of the party, if the receiver is to hold the whole party again."""
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
    except MissingBlocks:  # its genesis has not arrived yet
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
    """Copy the blocks of a party from one feed store to another. Every hash, body and signature is checked.

    - `begins`: where a feed may begin if its first blocks are inside the epoch of the target.
    - `control`: copy control feeds only.
    - `keeps`: a function (kind, item) that is True for the bodies to copy; by default all.

    Returns the number of blocks.
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
            elif BodyState.LEFT_OUT in span.states:  # the source holds one view alone: other stores have all bodies
                break
            try:
                moved += target.ingest_bytes(span.encode(), base).added
            except (RefusedBlocks, MissingBlocks):  # the quarantine has the reason; the rest of the feed is not taken
                break
    return moved
