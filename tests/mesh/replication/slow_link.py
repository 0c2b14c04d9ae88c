"""Two sessions on a link with a rate and a delay, on virtual time: bytes in order, cut into frames."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.mesh.replication.wire import Node, admits_of, device_of

from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session
from antiphon.testing.peers import Peer

FRAME = 16 << 10
LOW_MARK = 64 << 10


@dataclass
class Direction:
    """Bytes on their way from one end to the other."""

    queue: deque[tuple[bytes, int]] = field(default_factory=deque)  # messages, and how much of each has left
    backlog: int = 0
    free_ms: float = 0.0  # when the link can take the next frame
    flying: deque[tuple[float, bytes | None]] = field(default_factory=deque)  # a message arrives with its last frame
    bytes: int = 0


class SlowLink:
    """Two peers with one link. `rate` is in bytes a millisecond, `delay_ms` one way."""

    def __init__(self, one: Peer, other: Peer, *, rate: float, delay_ms: float) -> None:
        self.now_ms = 0
        self._rate, self._delay_ms = rate, delay_ms
        self.nodes = {}
        for peer, neighbour in ((one, other), (other, one)):
            replica = Replica(peer.party, peer.epochs if peer.member is not None else None, admits_of(peer))
            session = Session(replica, device_of(neighbour.name), name=peer.name)
            self.nodes[peer.name] = Node(peer, replica, {neighbour.name: session})
        self.ways = {one.name: Direction(), other.name: Direction()}  # by the sender
        self._names = one.name, other.name

    @property
    def bytes(self) -> int:
        return sum(way.bytes for way in self.ways.values())

    def session(self, name: str) -> Session:
        return next(iter(self.nodes[name].sessions.values()))

    def run(self, until_ms: int = 600_000) -> None:
        """Until nothing flies and nobody waits, or the time is up."""
        while True:
            wake = []
            for name in self._names:
                wake.append(self.session(name).tick(self.now_ms))
                self._fill(name)
            due = [at for at in wake if at is not None and at > self.now_ms]
            due += [int(-(-way.flying[0][0] // 1)) for way in self.ways.values() if way.flying]
            due += [int(-(-way.free_ms // 1)) for way in self.ways.values() if way.queue]
            if not due or min(due) > until_ms:
                return
            self.now_ms = max(self.now_ms + (min(due) <= self.now_ms), min(due))
            for at, name in enumerate(self._names):
                self._deliver(name, self._names[1 - at])

    def _fill(self, name: str) -> None:
        way = self.ways[name]
        while True:
            if way.backlog < LOW_MARK:
                for data in self.session(name).outgoing(LOW_MARK, self.now_ms):
                    way.queue.append((data, 0))
                    way.backlog += len(data)
            if not way.queue or way.free_ms >= self.now_ms + 1:
                return
            data, gone = way.queue.popleft()
            size = min(FRAME, len(data) - gone)
            way.backlog -= size
            way.bytes += size
            way.free_ms = max(way.free_ms, self.now_ms) + size / self._rate
            whole = gone + size == len(data)
            way.flying.append((way.free_ms + self._delay_ms, data if whole else None))
            if not whole:
                way.queue.appendleft((data, gone + size))

    def _deliver(self, giver: str, taker: str) -> None:
        way, node, session = self.ways[giver], self.nodes[taker], self.session(taker)
        while way.flying and way.flying[0][0] <= self.now_ms:
            data = way.flying.popleft()[1]
            session.arriving(self.now_ms)
            if data is not None:
                session.receive(data, self.now_ms)
        if session.taken or session.taken_blobs:
            session.taken = session.taken_blobs = 0
            node.peer.party.process()
            if node.peer.member is not None:
                node.peer.epochs.step()
            node.replica.refresh()
