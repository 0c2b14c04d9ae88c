"""Owners of pipes, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from antiphon.mesh.transport.memory import MemoryNetwork, MemoryPipe
from antiphon.mesh.transport.pipe import Pipe
from antiphon.mesh.transport.tcp import TcpTransport

SECONDS_MAX = 20.0


class Ear:
    """An owner that remembers what it hears."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.pieces: list[bytes] = []
        self.writables = 0
        self.whys: list[str] = []

    @property
    def got(self) -> bytes:
        return b"".join(self.pieces)

    def received(self, data: bytes) -> None:
        self.pieces.append(data)

    def writable(self) -> None:
        self.writables += 1

    def closed(self, why: str) -> None:
        self.whys.append(why)


class MemorySetup:
    """A `TransportSetup` of a network in memory, pumped by hand."""

    host = "here"

    def __init__(self, seed: str | None = None, network: type[MemoryNetwork] = MemoryNetwork) -> None:
        self.network = network(seed)
        self.transport = self.network.transport(self.host)

    def run(self, until: Callable[[], bool]) -> None:
        while not until():
            assert self.network.deliver(), "nothing more happens"


@contextmanager
def in_memory(seed: str | None = None, network: type[MemoryNetwork] = MemoryNetwork) -> Iterator[MemorySetup]:
    """A setup for `run_transport_tests`."""
    yield MemorySetup(seed, network)


def joined(network: MemoryNetwork) -> tuple[tuple[MemoryPipe, MemoryPipe], tuple[Ear, Ear]]:
    """Return both ends of a new pipe, and their owners."""
    ears: list[Ear] = []

    def own(pipe: Pipe) -> Ear:
        ears.append(Ear(pipe))
        return ears[-1]

    ends = network.connect(own, own)
    return ends, (ears[0], ears[1])


class TcpSetup:
    """A `TransportSetup` of TCP on loopback."""

    def __init__(self, host: str = "127.0.0.1", transport: type[TcpTransport] = TcpTransport) -> None:
        self.host = host
        self.loop = asyncio.new_event_loop()
        self.transport = transport(self.loop)
        self.ears: list[Ear] = []

    def own(self, pipe: Pipe) -> Ear:
        """Own a pipe, which the setup ends with itself."""
        self.ears.append(Ear(pipe))
        return self.ears[-1]

    def end(self) -> None:
        """End whatever was begun."""
        self.transport.close()
        for ear in self.ears:
            ear.pipe.abort()
        self.run(lambda: all(ear.whys for ear in self.ears))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, until: Callable[[], bool]) -> None:
        self.loop.run_until_complete(asyncio.wait_for(self._watch(until), SECONDS_MAX))

    async def _watch(self, until: Callable[[], bool]) -> None:
        while not until():
            await asyncio.sleep(0.001)


@contextmanager
def over_tcp(host: str = "127.0.0.1", transport: type[TcpTransport] = TcpTransport) -> Iterator[TcpSetup]:
    """A setup for `run_transport_tests`."""
    setup = TcpSetup(host, transport)
    try:
        yield setup
    except TimeoutError:
        raise AssertionError("nothing more happens") from None
    finally:
        setup.end()
