"""`Peer`: what is shown of another device: connected or not, since when, and how much has passed."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from antiphon.core.keys import PublicKey


class PeerState(enum.Enum):
    """How a device is connected."""

    DIALLING = "dialling"  # no connection yet; the address is dialled again and again
    CONNECTED = "connected"
    WAITING = "waiting"  # a dial has failed, or the connection ended; it is dialled again after a pause


@dataclass(frozen=True, slots=True)
class Peer:
    """A device that is connected, or that is dialled because `connect` asked for it."""

    device: PublicKey
    state: PeerState
    address: str  # where it was dialled, or the far end of the connection that it dialled
    dialled: bool  # this end dialled
    since_ms: int  # milliseconds in this state
    bytes_in: int = 0  # of this connection
    bytes_out: int = 0
    rtt_ms: int | None = None  # the last round trip that was measured
    parties: tuple[PublicKey, ...] = ()  # those in which both ends speak
    error: str = ""  # the last error: why a dial failed, a connection ended, or a party could not be worked on
