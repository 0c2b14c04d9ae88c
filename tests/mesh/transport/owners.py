"""Owners of pipes, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from antiphon.mesh.transport.memory import MemoryNetwork, MemoryPipe
from antiphon.mesh.transport.pipe import Pipe


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
