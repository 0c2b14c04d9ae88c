"""`StorePeer`: another device, as `Store.peers` shows it."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.keys import PublicKey
from antiphon.mesh.node.peer import Peer


@dataclass(frozen=True, slots=True)
class StorePeer(Peer):
    """A device that is connected, or that `Store.connect` keeps dialling.

    `identity` is the member whose device it is, as far as the parties here tell; `name` is the label of a key of this
    machine, empty for others.
    """

    identity: PublicKey | None = None
    name: str = ""

    @classmethod
    def of(cls, peer: Peer, identity: bytes | None, name: str) -> StorePeer:
        """Return a peer with its identity."""
        return cls(
            peer.device,
            peer.state,
            peer.address,
            peer.dialled,
            peer.since_ms,
            peer.bytes_in,
            peer.bytes_out,
            peer.rtt_ms,
            peer.parties,
            peer.error,
            None if identity is None else PublicKey(identity),
            name,
        )
