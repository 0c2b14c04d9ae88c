"""`ReplicatedParty`: what a party tells of its replication to other devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.api.network.replication import PartyReplication
from antiphon.core.keys import PublicKey
from antiphon.mesh.transport.address import Address

if TYPE_CHECKING:
    from antiphon.api.store import Store


class ReplicatedParty:
    """The part of `Party` that is about other devices."""

    store: Store
    _replication: PartyReplication | None = None

    @property
    def key(self) -> PublicKey:
        """The key that names the party everywhere."""
        raise NotImplementedError

    @property
    def replication(self) -> PartyReplication:
        """The state of replication to each connected device: blocks held, wanted, and how fast they come."""
        known = self._replication
        if known is None:
            known = self._replication = PartyReplication(self.store, bytes(self.key))
        return known

    def synced(self, with_: Address | bytes | str | None = None, timeout: float | None = None) -> bool:
        """Wait until other devices hold all that is held here of the party, and nothing is wanted from them.

        `with_` names a device by its address or key, or all connected devices of an identity by its key. Without it,
        all connected devices that share the party are waited for. True once there is one, and all hold the same; False
        if the time is up first, in seconds.
        """
        return self.store.network.synced(bytes(self.key), with_, timeout)
