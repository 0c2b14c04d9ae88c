"""`MemoryNetwork`: pipes within one process, moved by hand or by a loop, always in the same order.

>>> network = MemoryNetwork()
>>> network.deliver()  # nothing waits
False

With a seed, bytes arrive in odd pieces. A test can stall an end of a pipe, and cut it at a byte.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from antiphon.core.errors import InvalidInput
from antiphon.core.reasons import Reason, because, coded
from antiphon.mesh.transport.address import Address, endpoint, read_host
from antiphon.mesh.transport.limits import BACKLOG_LOW, READ_SIZE
from antiphon.mesh.transport.pipe import Pipe, PipeEvents

_PIECES = (1, 2, 17, 300, 5_000, READ_SIZE)  # the greatest size of a piece is drawn from these
_FAR_CLOSE = because(Reason.PIPE_CLOSED, "the other end closed the connection")


class MemoryPipe:
    """One end of a pipe. Every change of it is told to its network, which calls `step`."""

    def __init__(self, network: MemoryNetwork, far_end: str) -> None:
        self.far_end = far_end
        self.backlog = 0
        self.sent = 0  # bytes that have left
        self._network = network
        self._far: MemoryPipe
        self._events: PipeEvents
        self._out: deque[memoryview] = deque()
        self._paused = False
        self._stalled = False
        self._cut_at: int | None = None
        self._above_low = False  # the owner waits for `writable`
        self._ending: str | None = None  # why the owner closed this end
        self._lost: str | None = None  # why there is no other end any more
        self._is_over = False  # the owner has been told that the pipe is closed

    def write(self, data: bytes) -> None:
        if not data or self._ending is not None or self._is_over:
            return
        self._out.append(memoryview(bytes(data)))
        self.backlog += len(data)
        self._above_low = self._above_low or self.backlog > BACKLOG_LOW
        self._network.changed(self)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._network.changed(self._far)
        self._network.changed(self)

    def close(self, why: str = "") -> None:
        if self._ending is None and not self._is_over:
            self._ending = coded(Reason.PIPE_CLOSED, why or "closed here")
            self._network.changed(self._far)
            self._network.changed(self)

    def abort(self, why: str = "") -> None:
        self.close(why)
        self._drop()
        self._network.changed(self)

    # -- faults, for tests

    @property
    def stalled(self) -> bool:
        """True if nothing leaves this end, neither bytes nor its end."""
        return self._stalled

    @stalled.setter
    def stalled(self, value: bool) -> None:
        self._stalled = value
        self._network.changed(self)

    def cut_at(self, position: int) -> None:
        """Lose the connection once `position` bytes have left this end, counted from its beginning."""
        self._cut_at = position
        self._network.changed(self)

    # -- for the network

    def attach(self, far: MemoryPipe, events: PipeEvents) -> None:
        """Begin: the other end, and the owner of this one."""
        self._far, self._events = far, events

    def step(self, size: int) -> bool:
        """Move at most `size` bytes to the other end, and tell both owners what that means. True if anything came."""
        done = not self._stalled and (self._send(size) or self._break())
        if not self._is_over and (why := self._why_over()) is not None:
            self._is_over = done = True
            self._drop()
            self._network.changed(self)
            self._network.changed(self._far)
            self._events.closed(why)
        if self._is_over and not self._stalled and self._far._lost is None:
            self._far._lost, done = _FAR_CLOSE, True
            self._network.changed(self._far)
        return done

    def _why_over(self) -> str | None:
        if self._ending is not None:
            return self._ending if not self._out or self._far._is_over or self._lost is not None else None
        return None if self._paused else self._lost

    def _send(self, size: int) -> bool:
        if self._lost is not None:
            self._drop()
        far = self._far
        takes = far._ending is None and not far._is_over
        if self._cut_at is not None:
            size = min(size, self._cut_at - self.sent)
        if not self._out or size <= 0 or (takes and far._paused):
            return False
        data = self._take(size)
        if takes:
            far._events.received(data)
        if self._above_low and self.backlog <= BACKLOG_LOW:
            self._above_low = False
            if self._ending is None and not self._is_over:
                self._events.writable()
        self._network.changed(self)
        return True

    def _take(self, size: int) -> bytes:
        """Take bytes off the backlog, from one write or from several."""
        pieces: list[memoryview] = []
        left = size
        while left and self._out:
            piece = self._out.popleft()
            if len(piece) > left:
                self._out.appendleft(piece[left:])
                piece = piece[:left]
            pieces.append(piece)
            left -= len(piece)
        self.backlog -= size - left
        self.sent += size - left
        return b"".join(pieces)

    def _break(self) -> bool:
        """Lose both ends if this one has sent all that it may."""
        if self._cut_at is None or self.sent < self._cut_at or self._lost is not None:
            return False
        for end in (self, self._far):
            end._drop()
            end._lost = because(Reason.PIPE_LOST, "the connection was cut")
            self._network.changed(end)
        return True

    def _drop(self) -> None:
        self._out.clear()
        self.backlog = 0


class MemoryNetwork:
    """All machines of one process and the pipes between them.

    Without `call_soon` somebody calls `deliver` or `run`; with it (a loop's `call_soon`) the network moves by itself.
    """

    pipe_type: ClassVar[type[MemoryPipe]] = MemoryPipe

    def __init__(
        self, seed: str | None = None, *, call_soon: Callable[[Callable[[], object]], object] | None = None
    ) -> None:
        self._chance = random.Random(seed) if seed is not None else None  # noqa: S311
        self._call_soon = call_soon
        self._is_called = False
        self._changed: dict[MemoryPipe, None] = {}
        self._dials: deque[Callable[[], None]] = deque()
        self._listeners: dict[tuple[str, int], MemoryListener] = {}
        self._hosts: set[str] = set()
        self._dialled = 0

    def transport(self, host: str) -> MemoryTransport:
        """Return the transport of one machine."""
        self._hosts.add(read_host(host))
        return MemoryTransport(self, read_host(host))

    def connect(
        self,
        one: Callable[[Pipe], PipeEvents],
        other: Callable[[Pipe], PipeEvents | None],
        *,
        far_ends: tuple[str, str] = ("memory:2", "memory:1"),
    ) -> tuple[MemoryPipe, MemoryPipe]:
        """Lay a pipe between two owners, without a dial. `far_ends` are the names that each sees of the other."""
        ends = self.pipe_type(self, far_ends[0]), self.pipe_type(self, far_ends[1])
        for end, far in zip(ends, reversed(ends), strict=True):
            end.attach(far, _Nobody())
        ends[0].attach(ends[1], one(ends[0]))
        accepted = other(ends[1])
        if accepted is None:
            ends[1].abort(because(Reason.PIPE_CLOSED, "refused"))
        else:
            ends[1].attach(ends[0], accepted)
        return ends

    def deliver(self, size_max: int = READ_SIZE) -> bool:
        """Answer every dial and move at most one piece out of every end. True if anything was moved or told."""
        dials, self._dials = self._dials, deque()
        changed, self._changed = self._changed, {}
        for answer in dials:
            answer()
        moved = [end.step(self._piece(size_max)) for end in changed]
        return bool(dials) or any(moved)

    def run(self, rounds_max: int = 1_000_000) -> None:
        """Deliver until nothing moves."""
        for _ in range(rounds_max):
            if not self.deliver() and not self._changed:
                return
        raise RuntimeError(f"after {rounds_max} rounds there is still something to deliver")

    def _piece(self, size_max: int) -> int:
        if self._chance is None:
            return size_max
        return self._chance.randint(1, min(size_max, self._chance.choice(_PIECES)))

    # -- for pipes and transports

    def changed(self, end: MemoryPipe) -> None:
        """Remember an end that may have something to move or to tell."""
        self._changed[end] = None
        self._wake()

    def dial(
        self, host: str, address: Address, events: Callable[[Pipe], PipeEvents], failed: Callable[[str], None]
    ) -> None:
        """Answer a dial in the next round."""
        self._dialled += 1
        caller = endpoint(host, self._dialled)

        def answer() -> None:
            listener = self._listeners.get((address.host, address.port))
            far_end = endpoint(address.host, address.port)
            if listener is not None:
                self.connect(events, listener.accept, far_ends=(far_end, caller))
            elif address.host in self._hosts:
                failed(because(Reason.DIAL_REFUSED, f"nothing listens on {far_end}"))
            else:
                failed(because(Reason.DIAL_UNKNOWN_HOST, f"there is no host {address.host} in this network"))

        self._dials.append(answer)
        self._wake()

    def listen(self, host: str, port: int, accept: Callable[[Pipe], PipeEvents | None]) -> MemoryListener:
        """Accept dials to a host and port."""
        if not port:
            port = next(port for port in range(1, len(self._listeners) + 2) if (host, port) not in self._listeners)
        if (host, port) in self._listeners:
            raise InvalidInput(f"{endpoint(host, port)} is listened on already; choose another port, or 0 for any")
        listener = MemoryListener(self, host, port, accept)
        self._listeners[host, port] = listener
        return listener

    def forget(self, listener: MemoryListener) -> None:
        """Refuse dials to a listener from now on."""
        if self._listeners.get((listener.host, listener.port)) is listener:
            del self._listeners[listener.host, listener.port]

    def _wake(self) -> None:
        if self._call_soon is not None and not self._is_called:
            self._is_called = True
            self._call_soon(self._deliver_soon)

    def _deliver_soon(self) -> None:
        self._is_called = False
        self.deliver()


class MemoryListener:
    """A host and port of a `MemoryNetwork` that accepts dials."""

    def __init__(
        self, network: MemoryNetwork, host: str, port: int, accept: Callable[[Pipe], PipeEvents | None]
    ) -> None:
        self.host = host
        self.port = port
        self.accept = accept
        self._network = network

    def close(self) -> None:
        self._network.forget(self)


class MemoryTransport:
    """One machine of a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, host: str) -> None:
        self.host = host
        self._network = network

    def dial(self, address: Address, events: Callable[[Pipe], PipeEvents], failed: Callable[[str], None]) -> None:
        self._network.dial(self.host, address, events, failed)

    def listen(self, host: str, port: int, accept: Callable[[Pipe], PipeEvents | None]) -> MemoryListener:
        """Accept dials to this machine, which has one host, whatever `host` says."""
        return self._network.listen(self.host, port, accept)


class _Nobody:
    """The owner of an end that was refused, or has no owner yet."""

    def received(self, data: bytes) -> None: ...

    def writable(self) -> None: ...

    def closed(self, why: str) -> None: ...
