"""The port for ordered bytes between two machines: `Transport` makes a `Pipe`, `PipeEvents` is told what happens on it.

Every adapter keeps these laws, and `antiphon.testing.run_transport_tests` checks them:

- All callbacks come in one thread, one after the other, and never from inside a call of a pipe or transport: who calls
  `write` is not called back before `write` returns.
- What is written arrives whole and in order, cut into other pieces, before the close that follows it.
- A pipe is closed once at each end, whoever closed it; nothing comes after `closed`. After its own `close` an owner
  hears nothing but `closed`.
- A reader that pauses stops the writer: what is written meanwhile is `backlog` at the writer's end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from antiphon.mesh.transport.address import Address


class PipeEvents(Protocol):
    """The owner of a pipe, as the pipe sees it. None of these methods may raise or block."""

    def received(self, data: bytes) -> None:
        """Take bytes of the other end, at least one."""

    def writable(self) -> None:
        """Write on: a backlog that was above BACKLOG_LOW after a write is not any more."""

    def closed(self, why: str) -> None:
        """Forget the pipe; comes once. `why` is for people, with a code of `antiphon.core.reasons` at its end."""


class Pipe(Protocol):
    """Ordered bytes to one other machine. Its methods may be called in the thread of its transport alone."""

    @property
    def far_end(self) -> str:
        """The other end, for people and limits: `192.0.2.7:4242`, `[2001:db8::7]:4242`, `alice:1`."""

    @property
    def backlog(self) -> int:
        """Bytes written that have not left. Owners write while it is below BACKLOG_HIGH, then wait for `writable`."""

    def write(self, data: bytes) -> None:
        """Send bytes, without blocking; after the end of the pipe they are dropped."""

    def pause(self) -> None:
        """Stop reading. A pipe that does not read does not notice that the other end has closed it."""

    def resume(self) -> None:
        """Read again after `pause`."""

    def close(self, why: str = "") -> None:
        """End the pipe after what was written has left, for which there is a bounded time. `closed` comes later."""

    def abort(self, why: str = "") -> None:
        """End the pipe at once; what has not left is lost. `closed` comes later."""


class Listener(Protocol):
    """A host and port on which connections are accepted."""

    @property
    def host(self) -> str:
        """The host that is listened on."""

    @property
    def port(self) -> int:
        """The port that is listened on, also if 0 was asked for."""

    def close(self) -> None:
        """Accept no more connections. Pipes that were accepted stay."""


class Transport(Protocol):
    """Makes pipes, by dialling and by listening. To be called in its one thread."""

    def dial(self, address: Address, events: Callable[[Pipe], PipeEvents], failed: Callable[[str], None]) -> None:
        """Connect to an address: call `events` with the pipe, or `failed` with the reason; one of them, and once."""

    def listen(self, host: str, port: int, accept: Callable[[Pipe], PipeEvents | None]) -> Listener:
        """Accept connections on a host and port (0: any free one). `accept` returns None to refuse one at once.

        `InvalidInput` if the host and port cannot be listened on.
        """
