"""`StoreEnd`: one store's side of a sync about one party: its replica, who may have it, and the work on what came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlocks
from antiphon.core.ports import SeededRandomness
from antiphon.halo.member.device_proof import vouch
from antiphon.mesh.replication.admits import Admits, NewcomerAdmits, ParentAdmits, PartyAdmits
from antiphon.mesh.replication.replica import ControlReplica, Replica

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.api.store import Store


class StoreEnd:
    """A party that a store follows. Until its genesis is known, the store is a newcomer that takes control feeds."""

    def __init__(self, store: Store, key: bytes, name: str = "") -> None:
        self.store = store
        self.key = bytes(key)
        self._name = name
        self._names = SeededRandomness(name)  # of sessions in memory: no message of another session can come
        self.party = open_party(store, self.key)
        self.admits = self._admits()
        self.replica = self._replica()

    def _admits(self) -> Admits:
        store = self.store
        if self.party is None:
            device = store.manager.device
            return NewcomerAdmits(vouch(self.key, store.identity, device) if store.may_vouch else b"")
        children = [party for party in store.open_parties() if _parent(party) == self.key]
        return admits_of(self.party, [admits_of(child) for child in children])

    def _replica(self) -> Replica:
        manager = self.store.manager
        if self.party is None:
            return ControlReplica(manager.feeds, self.key, self.admits, randomness=self._names)
        keeps = self.store.held_views.keeps(self.key)
        epochs = manager.epochs(self.key)
        return Replica(self.party.processor, epochs, self.admits, keeps=keeps, randomness=self._names)

    @property
    def parent(self) -> bytes | None:
        """The key of the parent, if the party is a child whose genesis is here."""
        return None if self.party is None else _parent(self.party)

    def parent_replica(self, parent: bytes) -> Replica:
        """Return a replica of the parent's control feeds: of the parent itself, if the store follows it."""
        if any(known.party == parent for known in self.store.parties()):
            above = StoreEnd(self.store, parent, self._name)
            if above.party is not None:
                return above.replica
        feeds, admits = self.store.manager.feeds, ParentAdmits(self.admits)
        return ControlReplica(feeds, parent, admits, randomness=SeededRandomness(self._name))

    def work(self) -> bool:
        """Process what has arrived, join if this device's identity was admitted, and work on epochs.

        Return True if that made progress: the other store may want what was written.
        """
        feeds = self.store.manager.feeds
        written = feeds.transaction
        party = self.party = open_party(self.store, self.key)
        if party is None:
            return False
        party.refresh()
        wrote = feeds.transaction != written
        if party.processor.is_held():  # inside a batch
            return wrote
        moved = party.epochs.step() or wrote
        self.replica.refresh()
        return moved


def admits_of(party: Party, children: list[PartyAdmits] | None = None) -> PartyAdmits:
    """Return who may have a party, by its control feeds as this store holds them."""
    store, known = party.store, tuple(children or ())
    word = party.member.vouch(store.identity) if party.member.control is None and store.may_vouch else b""
    return PartyAdmits(party.processor, party.member, word=word, children=lambda: known)


def open_party(store: Store, key: bytes) -> Party | None:
    """Open a party; None if its genesis has not arrived yet."""
    try:
        return store.party(key)
    except MissingBlocks:
        return None


def _parent(party: Party) -> bytes | None:
    above = party.member.machine.parent
    return None if above is None else bytes(above.party)
