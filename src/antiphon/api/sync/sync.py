"""Synchronise two stores in one process: two folders on a machine, a memory stick, a test.

Both ends are sessions of `antiphon.mesh`, as on a network: messages pass as bytes, and each store gives a party only to
devices of its members. In one process, each store's own device key stands for what a channel would prove.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from antiphon.api.held_views import learn_view_id, open_whole
from antiphon.api.sync.store_end import StoreEnd
from antiphon.api.sync.view_fetch import fetch_dropped, fetch_rest, fetch_view
from antiphon.core.errors import InvalidInput, RefusedBlocks
from antiphon.mesh.replication.admits import Access
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session
from antiphon.party.store.meta_store import SubscriptionState

if TYPE_CHECKING:
    from antiphon.api.store import Store

_LOG = logging.getLogger("antiphon")
_QUIET_MS = 3_000  # of the sessions' own time: longer than any delay after which one of them has something to add


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
    total = 0
    while True:
        shared = _active_parties(one) & _active_parties(other)
        meetings = [_Meeting(one, other, party, shared) for party in sorted(shared)]
        progress = [meeting.hold() for meeting in meetings]
        total += sum(meeting.blocks for meeting in meetings)
        if not any(progress):
            return total


def _active_parties(store: Store) -> set[bytes]:
    return {bytes(known.party) for known in store.parties() if known.state is not SubscriptionState.PAUSED}


class _Meeting:
    """One pass of two stores about one party."""

    def __init__(self, one: Store, other: Store, key: bytes, shared: set[bytes]) -> None:
        self._stores = one, other
        self._key = key
        self._shared = shared
        self.blocks = 0

    def hold(self) -> bool:
        """Exchange blocks, process them, and then exchange blobs. Return True if anything moved."""
        one, other = self._stores
        with one.manager.blobs.putting(), other.manager.blobs.putting():  # no garbage collection before their use
            self._learn_views()
            ends = StoreEnd(one, self._key, "one"), StoreEnd(other, self._key, "other")
            talk = Conversation(ends[0].replica, other.device, ends[1].replica, one.device)
            for end in ends:
                end.replica.fetches_blobs = False  # what it can compute from blocks need not be fetched
            progress = talk.until_quiet() + self._talk_about_parent(ends)
            progress += sum([end.work() for end in ends])
            for end in ends:
                end.replica.fetches_blobs = end.party is not None and self._key not in end.store.held_views
            progress += talk.until_quiet()
            progress += sum([end.work() for end in ends])
            for taker, giver, session in ((ends[0], ends[1], talk.other), (ends[1], ends[0], talk.one)):
                if session.access is Access.WHOLE:
                    progress += _fetch_view(giver, taker)
        self.blocks += talk.blocks
        return bool(progress)

    def _learn_views(self) -> None:
        """Let a store that holds a view alone take the id of the view from the other, if that may give the party."""
        for taker, giver in (self._stores, self._stores[::-1]):
            if taker.held_views.without_id(self._key) is None:
                continue
            there, here = StoreEnd(giver, self._key), StoreEnd(taker, self._key)
            if there.party is not None:
                access = there.admits.access(taker.device, here.admits.proof())
                if access is Access.WHOLE:
                    learn_view_id(taker, there.party)

    def _talk_about_parent(self, ends: tuple[StoreEnd, StoreEnd]) -> int:
        """Exchange the control feeds of a child's parent, by which it is judged, unless both stores follow that."""
        one, other = ends
        parent = one.parent or other.parent
        if parent is None or parent in self._shared or one.party is None or other.party is None:
            return 0
        talk = Conversation(
            one.parent_replica(parent), other.store.device, other.parent_replica(parent), one.store.device
        )
        moved = talk.until_quiet()
        self.blocks += talk.blocks
        return moved


class Conversation:
    """Two sessions about one party that talk in memory. Their time passes only while they wait."""

    def __init__(self, one: Replica, other_device: bytes, other: Replica, one_device: bytes) -> None:
        self.one = Session(one, other_device)
        self.other = Session(other, one_device)
        self.blocks = 0
        self._now_ms = 0
        self._over = False

    def until_quiet(self) -> int:
        """Talk until neither has anything to add. Return the number of blocks, forks and blobs that moved."""
        moved, last_ms = 0, self._now_ms
        while not self._over:
            wake = [session.tick(self._now_ms) for session in (self.one, self.other)]
            spoken = self._pass(self.one, self.other) + self._pass(self.other, self.one)
            if came := self._came():
                moved, last_ms = moved + came, self._now_ms
            due_ms = self._now_ms + 1 if spoken else min([at for at in wake if at is not None], default=None)
            if due_ms is None or due_ms > last_ms + _QUIET_MS:
                break
            self._now_ms = due_ms
        return moved

    def _pass(self, speaker: Session, listener: Session) -> int:
        messages = speaker.outgoing()
        for data in messages:
            try:
                listener.receive(data, self._now_ms)
            except (InvalidInput, RefusedBlocks) as error:  # the quarantine lists what was refused
                _LOG.warning("party %s: the sync ends here: %s", listener.replica.key.hex()[:8], error)
                self._over = True
                break
        return len(messages)

    def _came(self) -> int:
        came = 0
        for session in (self.one, self.other):
            self.blocks += session.taken
            came += session.taken + session.taken_blobs
            session.taken = session.taken_blobs = 0
        return came


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
