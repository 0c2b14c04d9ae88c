"""`Door`: which connections of a node have a place, and how much may wait on each; in the network thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError, ChannelFault, InvalidInput
from antiphon.core.keys import PublicKey
from antiphon.core.reasons import Reason, because
from antiphon.mesh.node.limits import HOARDERS_MS
from antiphon.mesh.node.network_thread import NetworkThread
from antiphon.mesh.transport.doorkeeper import Doorkeeper, Guest
from antiphon.mesh.transport.waiting_budget import Share, WaitingBudget

if TYPE_CHECKING:
    from antiphon.mesh.node.connection import Connection

_LOG = logging.getLogger("antiphon.mesh")


class Door:
    """Gives places to connections, and lets go those whose time is over, by a `Doorkeeper` and a `WaitingBudget`."""

    def __init__(self, thread: NetworkThread, is_admitted: Callable[[bytes], bool]) -> None:
        self._thread = thread
        self._is_admitted = is_admitted
        self._keeper = Doorkeeper(self._evict)
        self._budget = WaitingBudget()
        self._guests: dict[Guest, Connection] = {}
        self._timer = thread.call_at(0, lambda: None)
        self._hoarders = thread.call_at(thread.now_ms() + HOARDERS_MS, self._end_hoarders)

    def arrive(self, far_end: str, *, dialled: bool) -> Guest | str:
        """Give a place to a connection, or return why it is refused."""
        now_ms = self._thread.now_ms()
        guest = self._keeper.dial(far_end, now_ms) if dialled else self._keeper.arrive(far_end, now_ms)
        self._set_timer()
        if isinstance(guest, str):
            _LOG.info("mesh.refused: %s: %s", far_end, guest)
        return guest

    def enter(self, guest: Guest, connection: Connection) -> None:
        """Note the connection of a guest."""
        self._guests[guest] = connection

    def shares(self, connection: Connection) -> tuple[Share, Share]:
        """Return what the bytes that have come, and those to be sent, are counted by."""
        return self._budget.share(connection), self._budget.share(connection)

    def receive(self, guest: Guest, size: int) -> str | None:
        """Count bytes of a device that is not proven. Return why it loses its place, if it does."""
        return self._keeper.receive(guest, size)

    def prove(self, guest: Guest, device: bytes) -> str | None:
        """Note the device of a connection. Return why it is refused, if it is."""
        admitted = self._is_admitted(device)
        why = self._keeper.prove(guest, PublicKey(device), self._thread.now_ms(), is_admitted=admitted)
        self._set_timer()
        return why

    def judge(self, guest: Guest) -> str | None:
        """Ask again whether the device of a connection is admitted. Return why it loses its place, if it does."""
        if guest.device is None:
            return None
        admitted = self._is_admitted(bytes(guest.device))
        why = self._keeper.judge(guest, self._thread.now_ms(), is_admitted=admitted)
        self._set_timer()
        return why

    def leave(self, guest: Guest, error: AntiphonError | None) -> None:
        """Take a connection off the books; ban the other end if it has broken the protocol.

        Bytes that break a channel of a proven device may have been changed on their way.
        """
        self._guests.pop(guest, None)
        broken = isinstance(error, InvalidInput) and not (isinstance(error, ChannelFault) and guest.device is not None)
        if broken:
            self._keeper.ban(guest, self._thread.now_ms())
        else:
            self._keeper.leave(guest)
        self.resume()

    def pardon(self, device: bytes) -> None:
        """End the ban of a device, because the user wants it connected."""
        self._keeper.pardon(PublicKey(device))

    def resume(self) -> None:
        """Let connections go on that had to wait for others to give something back."""
        for share in self._budget.resumable():
            connection = share.owner
            connection.go_on()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Stop the timers."""
        self._timer.cancel()
        self._hoarders.cancel()

    def _evict(self, guest: Guest, why: str) -> None:
        connection = self._guests.get(guest)
        if connection is not None:
            self._thread.loop.call_soon(lambda: connection.end(why, abort=True))

    def _set_timer(self) -> None:
        self._timer.cancel()
        at_ms = self._keeper.tick(self._thread.now_ms())
        if at_ms is not None:
            self._timer = self._thread.call_at(at_ms, self._set_timer)

    def _end_hoarders(self) -> None:
        """End connections that hold much, and have given nothing back for long, while others wait."""
        for share in self._budget.hoarders(self._thread.now_ms()):
            why = because(Reason.DOOR_SLOW, "too much waits on this connection for too long")
            share.owner.end(why, abort=True)  # type: ignore[attr-defined]
        self._hoarders = self._thread.call_at(self._thread.now_ms() + HOARDERS_MS, self._end_hoarders)
