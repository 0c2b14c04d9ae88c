"""`PartyHost`: the port behind a node: the parties of a device, open or not. `antiphon.api` implements it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from antiphon.mesh.replication.replica import Replica


@dataclass(frozen=True, slots=True)
class PartyView:
    """The devices that may speak about a party, by its control feeds alone. A node keeps one for each party."""

    party: bytes
    devices: frozenset[bytes]  # those of members, and for a parent, of guests in its children
    version: int = 0  # changes whenever control feeds have grown
    seeks: bool = False  # this device is no member as far as known here: it speaks first, to everybody


class PartyEnd(Protocol):
    """A party that is open for its sessions. One worker at a time uses it."""

    @property
    def replica(self) -> Replica:
        """The replica that the sessions read and extend."""

    def work(self) -> bool:
        """Process what has come, join if this device was admitted, and take part in epochs.

        False if the party has outgrown this end: its genesis has come, and it must be opened again.
        """

    @property
    def in_use(self) -> bool:
        """True if somebody else than the node holds the party open."""

    def close(self) -> None:
        """Close the party, unless it is in use."""


class PartyHost(Protocol):
    """The parties of a device. `views` is called in workers, one call at a time; the other methods in any thread."""

    def look(self, parties: Collection[bytes] | None) -> Iterable[PartyView]:
        """Return the views of those of these parties, with None of all, that have changed since the last call.

        A party that is followed no more has a view without devices. None of them is opened.
        """

    def digest(self, party: bytes) -> bytes:
        """Return 32 bytes that are equal where the same is held of a party. It is not opened."""

    def lacks(self, party: bytes) -> bool:
        """True if something of a party is still to be fetched though all blocks are here: blobs of its last epoch."""

    def stale(self, party: bytes) -> None:
        """Take note that blocks of a party were committed. It must not block."""

    def open(self, party: bytes) -> PartyEnd | None:
        """Open a party for sessions; None if it is followed no more, or paused."""

    def taking(self) -> AbstractContextManager[object]:
        """Return a context in which nothing that comes is deleted before it is used."""
