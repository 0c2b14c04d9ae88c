"""`StoreEnd`: one store's side of replication of one party: its replica, who may have it, and the work on what came."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlocks
from antiphon.core.ports import Randomness
from antiphon.halo.member.device_proof import vouch
from antiphon.mesh.replication.admits import Admits, NewcomerAdmits, PartyAdmits
from antiphon.mesh.replication.replica import ControlReplica, Replica

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.api.store import Store

FETCHING = "antiphon.fetching"  # preference of a party on this device: blobs of its last epoch are to be fetched


class StoreEnd:
    """A party that a store follows. Until its genesis is known, the store is a newcomer that takes control feeds.

    `guests` returns the parties below it, whose members may have its control feeds.
    """

    def __init__(
        self,
        store: Store,
        key: bytes,
        guests: Callable[[], Iterable[Admits]] = tuple,
        *,
        randomness: Randomness | None = None,
    ) -> None:
        self.store = store
        self.key = bytes(key)
        self._randomness = randomness
        self.moved = False  # the last `work` has written blocks, or moved to another epoch
        self._fetching = bool(store.manager.meta.get(FETCHING, False, party=self.key))
        self.party = open_party(store, self.key)
        self.admits = self._admits(guests)
        self.replica = self._replica()

    def _admits(self, guests: Callable[[], Iterable[Admits]]) -> Admits:
        store = self.store
        if self.party is None:
            device = store.manager.device
            return NewcomerAdmits(vouch(self.key, store.identity, device) if store.may_vouch else b"")
        return admits_of(self.party, guests)

    def _replica(self) -> Replica:
        manager = self.store.manager
        if self.party is None:
            return ControlReplica(manager.feeds, self.key, self.admits, randomness=self._randomness)
        keeps = self.store.held_views.keeps(self.key)
        epochs = manager.epochs(self.key)
        replica = Replica(self.party.processor, epochs, self.admits, keeps=keeps, randomness=self._randomness)
        replica.fetches_blobs = False  # what can be computed from blocks need not be fetched: `work` comes first
        return replica

    @property
    def parent(self) -> bytes | None:
        """The key of the parent, if the party is a child whose genesis is here."""
        above = None if self.party is None else self.party.member.machine.parent
        return None if above is None else bytes(above.party)

    @property
    def is_current(self) -> bool:
        """True if the party is still the one that was opened; False if its genesis has come, or it was closed."""
        return open_party(self.store, self.key) is self.party

    @property
    def in_use(self) -> bool:
        """True if the application holds the party."""
        return self.store.is_held(self.key)

    def work(self) -> bool:
        """Process what has arrived, join if this device's identity was admitted, and work on epochs.

        False if the party must be opened again: its genesis has come, or somebody has closed it meanwhile.
        """
        self.moved = False
        feeds = self.store.manager.feeds
        written = feeds.transaction
        if not self.is_current:
            return False
        party = self.party
        if party is None:
            return True
        party.refresh()
        held = party.processor.is_held()  # inside a batch
        self.moved = (not held and party.epochs.step()) or feeds.transaction != written
        self.replica.fetches_blobs = self.key not in self.store.held_views
        self.replica.refresh()
        self._note_fetching(bool(self.replica.wanted_blobs()))
        return True

    def _note_fetching(self, fetching: bool) -> None:
        """Note durably that blobs are to be fetched: equal blocks at both ends do not show it."""
        if fetching != self._fetching:
            self._fetching = fetching
            self.store.manager.meta.set(FETCHING, fetching, party=self.key)

    def close(self) -> None:
        """Close the party, unless the application holds it."""
        if self.party is not None:
            self.store.release(self.key)


def admits_of(party: Party, guests: Callable[[], Iterable[Admits]] = tuple) -> PartyAdmits:
    """Return who may have a party, by its control feeds as this store holds them."""
    store = party.store
    word = party.member.vouch(store.identity) if party.member.control is None and store.may_vouch else b""
    return PartyAdmits(party.processor, party.member, word=word, children=guests)


def open_party(store: Store, key: bytes) -> Party | None:
    """Open a party; None if its genesis has not arrived yet."""
    try:
        return store.lend(key)
    except MissingBlocks:
        return None
