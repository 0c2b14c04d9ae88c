"""Each law of transports is broken by an adapter that is wrong in one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from tests.mesh.transport.owners import in_memory

from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.memory import MemoryListener, MemoryNetwork, MemoryPipe
from antiphon.mesh.transport.pipe import Pipe, PipeEvents
from antiphon.testing import run_transport_tests


class Shuffling(MemoryPipe):
    def _take(self, size: int) -> bytes:
        return super()._take(size)[::-1]


class Empty(MemoryPipe):
    def write(self, data: bytes) -> None:
        super().write(data)
        if not data:
            self.close()


class Heedless(MemoryPipe):
    def pause(self) -> None: ...


class WritableOnce(MemoryPipe):
    def step(self, size: int) -> bool:
        if self.sent > 1 << 20:
            self._above_low = False
        return super().step(size)


class Hasty(MemoryPipe):
    """Calls itself writable whatever waits."""

    def write(self, data: bytes) -> None:
        super().write(data)
        self._is_hasty = True

    def step(self, size: int) -> bool:
        if self.backlog and self._far._paused and getattr(self, "_is_hasty", False):
            self._is_hasty = False
            self._events.writable()
        return super().step(size)


class LatePause(MemoryPipe):
    """Heeds a pause from inside `received` a piece later."""

    is_receiving = False
    wants_pause = False

    def _send(self, size: int) -> bool:
        far = self._far
        assert isinstance(far, LatePause)
        far.is_receiving = True
        moved = super()._send(size // 2)
        super()._send(size // 2)
        far.is_receiving = False
        far._paused = far._paused or far.wants_pause
        return moved

    def pause(self) -> None:
        self.wants_pause = self.is_receiving
        if not self.is_receiving:
            super().pause()

    def resume(self) -> None:
        self.wants_pause = False
        super().resume()


class Abrupt(MemoryPipe):
    def close(self, why: str = "") -> None:
        super().close(why)
        self._drop()


class AbruptInStream(MemoryPipe):
    """Takes its last words back if bytes are on their way to it, as TCP does."""

    def close(self, why: str = "") -> None:
        super().close(why)
        if self._far.backlog:
            self._drop()


class Polite(MemoryPipe):
    def close(self, why: str = "") -> None:
        if self._far._ending is None:
            super().close(why)


class Patient(MemoryPipe):
    def abort(self, why: str = "") -> None:
        self.close(why)


class Hoarding(MemoryPipe):
    def write(self, data: bytes) -> None:
        super().write(data)
        if self._is_over:
            self.backlog += len(data)


class Deaf(MemoryPipe):
    """Does not tell its owner of a close by the other end."""

    def _why_over(self) -> str | None:
        return self._ending and super()._why_over()


class Eager(MemoryPipe):
    def write(self, data: bytes) -> None:
        super().write(data)
        self._network.deliver()


class Repeating(MemoryPipe):
    def step(self, size: int) -> bool:
        was_over, done = self._is_over, super().step(size)
        if self._is_over and not was_over:
            self._events.closed("again")
        return done


class Talkative(MemoryPipe):
    """Hands over bytes after its owner has closed it."""

    def _send(self, size: int) -> bool:
        if self._out and self._far._ending is not None and not self._far._is_over:
            self._far._events.received(b"late")
        return super()._send(size)


PIPES: list[tuple[type[MemoryPipe], str]] = [
    (Shuffling, "whole and in order"),
    (Eager, "from inside a call"),
    (Empty, "A write of no bytes"),
    (Heedless, "While a reader pauses"),
    (Hasty, "a full pipe called itself writable"),
    (WritableOnce, "goes on at each `writable`"),
    (LatePause, "pauses at each piece"),
    (Abrupt, "arrive, then the end"),
    (Deaf, "nothing more happens"),
    (Repeating, "after `closed`"),
    (AbruptInStream, "even if the other end is sending"),
    (Talkative, "after this end had closed"),
    (Polite, "close at once"),
    (Patient, "`abort` ends a pipe"),
    (Hoarding, "Calls of a closed pipe"),
]


@pytest.mark.parametrize(("wrong", "law"), PIPES, ids=[wrong.__name__ for wrong, _ in PIPES])
def test_a_wrong_pipe_is_found_out(wrong: type[MemoryPipe], law: str) -> None:
    class Network(MemoryNetwork):
        pipe_type: ClassVar[type[MemoryPipe]] = wrong

    with pytest.raises(AssertionError, match=law):
        run_transport_tests(lambda: in_memory(network=Network))


Events = Callable[[Pipe], PipeEvents]
Accept = Callable[[Pipe], PipeEvents | None]


class Nameless(MemoryNetwork):
    def dial(self, host: str, address: Address, events: Events, failed: Callable[[str], None]) -> None:
        super().dial("", address, events, failed)


class Crossed(MemoryNetwork):
    """Gives the tenth dialler the owner of the first."""

    first: PipeEvents | None = None
    count = 0

    def listen(self, host: str, port: int, accept: Accept) -> MemoryListener:
        def cross(pipe: Pipe) -> PipeEvents | None:
            self.count += 1
            owner = self.first if self.count == 10 else accept(pipe)
            self.first = self.first or owner
            return owner

        return super().listen(host, port, cross)


class Silent(MemoryNetwork):
    """Does not tell a dialler that it was refused."""

    def listen(self, host: str, port: int, accept: Accept) -> MemoryListener:
        class Nobody:
            def received(self, data: bytes) -> None: ...
            def writable(self) -> None: ...
            def closed(self, why: str) -> None: ...

        return super().listen(host, port, lambda pipe: accept(pipe) or Nobody())


class Insisting(MemoryNetwork):
    def dial(self, host: str, address: Address, events: Events, failed: Callable[[str], None]) -> None:
        for _ in range(1 if (address.host, address.port) in self._listeners else 2):
            super().dial(host, address, events, failed)


class Sweeping(MemoryNetwork):
    """Ends the pipes of a listener with it."""

    accepted: ClassVar[list[Pipe]] = []

    def listen(self, host: str, port: int, accept: Accept) -> MemoryListener:
        def keep(pipe: Pipe) -> PipeEvents | None:
            self.accepted.append(pipe)
            return accept(pipe)

        return super().listen(host, port, keep)

    def forget(self, listener: MemoryListener) -> None:
        super().forget(listener)
        while self.accepted:
            self.accepted.pop().close()


NETWORKS: list[tuple[type[MemoryNetwork], str]] = [
    (Crossed, "Many pipes carry their own bytes"),
    (Silent, "is refused hears the end once"),
    (Insisting, "fails once, with a reason"),
    (Sweeping, "its pipes stay"),
]


@pytest.mark.parametrize(("wrong", "law"), NETWORKS, ids=[wrong.__name__ for wrong, _ in NETWORKS])
def test_a_wrong_network_is_found_out(wrong: type[MemoryNetwork], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        run_transport_tests(lambda: in_memory(network=wrong))
