"""Synchronise two stores in one process: two folders on a machine, a memory stick, a test.

It is what happens on a network, without one: the two devices prove their keys on a channel, and all parties that both
follow share one link. Each store gives a party only to devices of its members.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from antiphon.api.held_views import learn_view_id, open_whole
from antiphon.api.network.store_end import StoreEnd
from antiphon.api.sync.store_side import StoreSide
from antiphon.api.sync.talk import Talk
from antiphon.api.sync.view_fetch import fetch_dropped, fetch_rest, fetch_view
from antiphon.mesh.replication.admits import Access
from antiphon.party.store.meta_store import SubscriptionState

if TYPE_CHECKING:
    from antiphon.api.store import Store

_GROUP = 16  # parties that share one link


def sync(one: Store, other: Store) -> int:
    """Exchange the data of the parties that both stores have joined, until neither lacks anything.

    A store gives a party only to devices of its members; to others it is silent. Return the number of blocks that
    moved. Devices whose identity was admitted join. Forks are found, and end their feeds. Epochs are attested as policy
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
    blocks = 0
    with one.manager.blobs.putting(), other.manager.blobs.putting():  # no garbage collection before their use
        while groups := _groups(one, other):
            moved = 0
            for parties in groups:
                meeting = _Meeting(one, other, parties)
                while meeting.hold():
                    moved += 1
                blocks += meeting.blocks
            if not moved or (len(groups) == 1 and _groups(one, other) == groups):
                break
    return blocks


def _groups(one: Store, other: Store) -> list[tuple[bytes, ...]]:
    """Return the parties that both stores follow, some at a time: each step of a talk asks all of its parties."""
    shared = sorted(_active_parties(one) & _active_parties(other))
    return [tuple(shared[at : at + _GROUP]) for at in range(0, len(shared), _GROUP)]


def _active_parties(store: Store) -> set[bytes]:
    return {bytes(known.party) for known in store.parties() if known.state is not SubscriptionState.PAUSED}


class _Meeting:
    """Two stores that talk about some of the parties that both follow."""

    def __init__(self, one: Store, other: Store, parties: Collection[bytes]) -> None:
        self._stores = one, other
        self._parties = frozenset(parties)
        self._sides = StoreSide(one, "one"), StoreSide(other, "other")
        self._talk: Talk | None = None
        self.blocks = 0

    def hold(self) -> bool:
        """Exchange blocks, process them, and then exchange blobs. Return True if anything moved."""
        one, other = map(_active_parties, self._stores)
        shared = sorted(self._parties & one & other)  # others may have been left or paused meanwhile
        if not shared:
            return False
        for party in shared:
            self._learn_view(party)
        for side in self._sides:
            side.follow(shared)
        talk = self._talk = self._talk or self._begin()
        progress = talk.until_quiet(len(shared))
        progress += sum([side.work() for side in self._sides])
        progress += talk.until_quiet(len(shared))
        progress += sum([side.work() for side in self._sides])
        if not progress and sum(side.take_history() for side in self._sides):
            progress += talk.until_quiet(len(shared))
            progress += sum([side.work() for side in self._sides])
        for party in shared:
            progress += self._fetch_views(party)
        self.blocks, talk.blocks = self.blocks + talk.blocks, 0
        return bool(progress)

    def _begin(self) -> Talk:
        one, other = self._stores
        return Talk(self._sides[0].host, one.manager.device.pair, self._sides[1].host, other.manager.device.pair)

    def _learn_view(self, party: bytes) -> None:
        """Let a store that holds a view alone take the id of the view from the other, if that may give the party."""
        for taker, giver in (self._stores, self._stores[::-1]):
            if taker.held_views.without_id(party) is None:
                continue
            there, here = StoreEnd(giver, party), StoreEnd(taker, party)
            if there.party is not None:
                access = there.admits.access(taker.device, here.admits.proof())
                if access is Access.WHOLE:
                    learn_view_id(taker, there.party)

    def _fetch_views(self, party: bytes) -> int:
        """Fetch views, and dropped bodies, in both directions."""
        ends = self._sides[0].ends[party], self._sides[1].ends[party]
        return sum(
            _fetch_view(giver, taker)
            for giver, taker in (ends, ends[::-1])
            if giver.is_current
            and taker.is_current  # a view that has become whole is opened anew
            and giver.admits.access(taker.store.device, ()) is Access.WHOLE
        )


def _fetch_view(giver: StoreEnd, taker: StoreEnd) -> int:
    """Transfer the data of a held view, and the rest of the party if the taker is to hold the whole party again.

    Of a whole party, transfer bodies that the taker had dropped, and ignores no longer.
    """
    party, there = taker.party, giver.party
    if party is None or there is None or party.processor.is_held():
        return 0
    view = taker.store.held_views.partial_party(party)
    if view is None:
        return fetch_dropped(there, party)
    came = fetch_view(there, party, view)
    if taker.store.held_views.wants_whole(party.key):
        rest, whole = fetch_rest(there, party)
        came += rest + whole
        if whole:
            open_whole(party)
    return came
