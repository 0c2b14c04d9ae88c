"""`StoreSide`: one store in a sync: its parties, as a host of the link."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from antiphon.api.network.store_end import StoreEnd
from antiphon.core.ports import SeededRandomness
from antiphon.mesh.link.party_sessions import PartySessions
from antiphon.mesh.replication.admits import Admits, ParentAdmits
from antiphon.mesh.replication.replica import ControlReplica

if TYPE_CHECKING:
    from antiphon.api.store import Store


class StoreSide:
    """The parties of one store, open for a sync."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.host = PartySessions()
        self.ends: dict[bytes, StoreEnd] = {}
        self._randomness = SeededRandomness(name)  # for names of sessions: no message of another sync can come
        self._parents: set[bytes] = set()  # those of which the control feeds alone are exchanged

    def follow(self, parties: Collection[bytes]) -> None:
        """Open these parties, and take them up in the talk; others are left out of it."""
        for party in self.ends.keys() - set(parties):
            self.host.unfollow(party)
            del self.ends[party]
        for party in parties:
            end = self.ends.get(party)
            if end is None or not end.is_current:
                self._open(party)
        for end in list(self.ends.values()):
            if end.parent is not None and end.parent not in self.ends and end.parent not in self._parents:
                self._follow_parent(end, end.parent)

    def _open(self, party: bytes) -> None:
        if party in self.ends:
            self.host.unfollow(party)
        end = self.ends[party] = self._end(party)
        self.host.follow(end.replica)

    def _end(self, party: bytes) -> StoreEnd:
        return StoreEnd(self.store, party, lambda: self._guests(party), randomness=self._randomness)

    def _guests(self, parent: bytes) -> Iterator[Admits]:
        for end in list(self.ends.values()):
            if end.parent == parent:
                yield end.admits

    def _follow_parent(self, child: StoreEnd, parent: bytes) -> None:
        """Exchange the control feeds by which a child is judged."""
        self._parents.add(parent)
        if any(known.party == parent for known in self.store.parties()):
            self.host.follow(self._end(parent).replica)
            return
        admits = ParentAdmits(child.admits)
        self.host.follow(ControlReplica(self.store.manager.feeds, parent, admits, randomness=self._randomness))

    def take_history(self) -> bool:
        """Wait no longer for snapshots of epochs, which the other store does not have. True if a party has waited."""
        return sum(end.replica.joining.give_up() for end in self.ends.values()) > 0

    def work(self) -> bool:
        """Process what has come in all parties. True if that made progress: the other may want what was written."""
        moved = False
        for party, end in list(self.ends.items()):
            if not end.work():
                self._open(party)
                self.ends[party].work()
            moved = self.ends[party].moved or moved
        return moved
