"""`StoreHost`: the parties of a store, for the node of its network."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from antiphon.api.network.party_index import PartyIndex
from antiphon.api.network.store_end import FETCHING, StoreEnd
from antiphon.core.errors import InvalidInput, PartyPaused, UnknownParty
from antiphon.mesh.node.ports import PartyEnd, PartyView
from antiphon.mesh.replication.admits import Access, Admits, ParentAdmits, PartyAdmits
from antiphon.mesh.replication.replica import ControlReplica, Replica

if TYPE_CHECKING:
    from antiphon.api.store import Store


class StoreHost:
    """Implements `antiphon.mesh.node.ports.PartyHost` for a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.index = PartyIndex(store)

    def look(self, parties: Collection[bytes] | None) -> Iterable[PartyView]:
        """Return the views of parties that have changed."""
        return self.index.look(parties)

    def digest(self, party: bytes) -> bytes:
        """Return the digest of what is held of a party."""
        return self.index.digest(party)

    def lacks(self, party: bytes) -> bool:
        """True if blobs of the party's last epoch are still to be fetched, also after a restart."""
        return bool(self._store.manager.meta.get(FETCHING, False, party=party))

    def stale(self, party: bytes) -> None:
        """Forget the digest of a party: blocks were committed."""
        self.index.stale(party)

    def open(self, party: bytes) -> PartyEnd | None:
        """Open a party, or the control feeds of a parent that is not followed here."""
        child = self.index.child_of(party)
        try:
            if child is not None and not self._follows(party):
                return ParentEnd(self._store, party, child)
            return StoreEnd(self._store, party, lambda: self._guests(party))
        except (UnknownParty, PartyPaused, InvalidInput):  # left or paused meanwhile
            return None

    def _guests(self, party: bytes) -> list[Admits]:
        return [IndexAdmits(self.index, one) for one in self.index.children(party)]

    def _follows(self, party: bytes) -> bool:
        return any(known.party == party for known in self._store.parties())

    def taking(self) -> AbstractContextManager[object]:
        """Return a context in which no garbage is collected."""
        return self._store.manager.blobs.putting()


class IndexAdmits:
    """Which devices are members of a child party, by the index: the child may be closed."""

    def __init__(self, index: PartyIndex, party: bytes) -> None:
        self._index = index
        self._party = party

    def version(self) -> int:
        """Return the version of the child's control feeds."""
        return self._index.version(self._party)

    def access(self, device: bytes, shown: Sequence[bytes]) -> Access:
        """Members may have the child; what is shown is judged in sessions about the child itself."""
        return Access.WHOLE if device in self._index.members(self._party) else Access.NOTHING

    def seeks(self) -> bool:
        """Return False: sessions about the child itself speak first, if it is so."""
        return False

    def proof(self) -> tuple[bytes, ...]:
        """Return nothing: this device shows its place in the child in sessions about the child."""
        return ()


class ParentEnd:
    """The control feeds of a parent that is not followed here, by which its child is judged."""

    def __init__(self, store: Store, party: bytes, child: bytes) -> None:
        self._store = store
        self._child = bytes(child)
        below = store.lend(child)
        admits = ParentAdmits(PartyAdmits(below.processor, below.member))
        self.replica: Replica = ControlReplica(store.manager.feeds, party, admits)

    def work(self) -> bool:
        """Process what the child is judged by. False if the child was closed meanwhile."""
        below = self._store.running(self._child)
        if below is None:
            return False
        below.refresh()
        self.replica.refresh()
        return True

    @property
    def in_use(self) -> bool:
        """Return False: nobody else uses the control feeds of a party that is not followed."""
        return False

    def close(self) -> None:
        """Close the child, unless the application holds it."""
        self._store.release(self._child)
