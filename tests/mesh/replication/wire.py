"""Peers of one party that talk through sessions over a network which a test holds in its hands."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from antiphon.mesh.replication.admits import Access, Admits, PartyAdmits
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session
from antiphon.testing.peers import Peer, Peers, pair_of

Links = list[tuple[str, str]]


@dataclass
class Weather:
    """What the network does to messages."""

    chance: random.Random
    loss: float = 0.0
    twice: float = 0.0
    delay_ms: tuple[int, int] = (5, 5)


@dataclass
class Node:
    """A peer with its replica and one session for each neighbour."""

    peer: Peer
    replica: Replica
    sessions: dict[str, Session] = field(default_factory=dict)


class AdmitsAll:
    """For a party without credentials: everybody may have all of it."""

    def version(self) -> int:
        return 0

    def access(self, device: bytes, shown: Sequence[bytes]) -> Access:
        return Access.WHOLE

    def seeks(self) -> bool:
        return False

    def proof(self) -> tuple[bytes, ...]:
        return ()


def admits_of(peer: Peer) -> Admits:
    if peer.member is None:
        return AdmitsAll()
    return PartyAdmits(peer.party, peer.member, word=peer.member.vouch(peer.identity))


def device_of(name: str) -> bytes:
    """The key of a peer's device, as `Peer` makes it."""
    return bytes(pair_of(f"{name}'s device").key)


class Wire:
    """Carries bytes between peers on virtual time, and counts them."""

    def __init__(
        self, peers: Peers, links: list[tuple[str, str]] | None = None, weather: Weather | None = None
    ) -> None:
        self.weather = weather or Weather(random.Random(0))
        self.now_ms = 0
        self.messages = self.bytes = self.blocks = self.blobs = 0
        self.peak = 0  # the largest message
        self.watch: Callable[[str, str, bytes], bool] = lambda giver, taker, data: True  # false: it is lost
        self._links = links or [
            (one.name, other.name) for at, one in enumerate(peers.all) for other in peers.all[at + 1 :]
        ]
        self._flying: list[tuple[int, int, str, str, bytes]] = []
        self._count = 0
        self.nodes: dict[str, Node] = {}
        for peer in peers.all:
            self.start(peer)

    def start(self, peer: Peer) -> None:
        """Begin, or begin again with nothing remembered, what was in memory of sessions."""
        replica = Replica(peer.party, peer.epochs if peer.member is not None else None, admits_of(peer))
        node = self.nodes[peer.name] = Node(peer, replica)
        for one, other in self._links:
            if peer.name in (one, other):
                neighbour = other if peer.name == one else one
                node.sessions[neighbour] = Session(replica, device_of(neighbour), name=f"{peer.name} to {neighbour}")

    def restart(self, name: str, *, crash: bool = False) -> None:
        peer = self.nodes[name].peer
        peer.restart(crash=crash)
        self.start(peer)

    def run(self, until_ms: int = 3_600_000, *, steps: int = 200_000) -> None:
        """Until nothing flies and nobody waits, or the time is up."""
        while steps:
            steps -= 1
            wake = [self.poll(name) for name in self.nodes]
            due = min([at for at in wake if at is not None], default=None)
            flying = min(self._flying)[0] if self._flying else None
            following = min([at for at in (due, flying) if at is not None], default=None)
            if following is None or following > until_ms:
                return
            self.now_ms = max(self.now_ms, following)
            self._deliver()
        raise AssertionError("it does not come to rest")

    def poll(self, name: str) -> int | None:
        """Let a peer look at the clock, and send what it has to say; when does it want to look again?"""
        node = self.nodes[name]
        wake = [session.tick(self.now_ms) for session in node.sessions.values()]
        for neighbour, session in node.sessions.items():
            for data in session.outgoing():
                self.send(name, neighbour, data)
        return min([at for at in wake if at is not None], default=None)

    def send(self, giver: str, taker: str, data: bytes) -> None:
        chance = self.weather.chance
        self.messages += 1
        self.bytes += len(data)
        self.peak = max(self.peak, len(data))
        for _ in range(2 if chance.random() < self.weather.twice else 1):
            if chance.random() >= self.weather.loss and self.watch(giver, taker, data):
                self._count += 1
                at = self.now_ms + chance.randint(*self.weather.delay_ms)
                self._flying.append((at, self._count, giver, taker, data))

    def _deliver(self) -> None:
        now = sorted(one for one in self._flying if one[0] <= self.now_ms)
        self._flying = [one for one in self._flying if one[0] > self.now_ms]
        for _, _, giver, taker, data in now:
            node = self.nodes[taker]
            session = node.sessions[giver]
            session.receive(data, self.now_ms)
            if session.taken or session.taken_blobs:
                self.blocks += session.taken
                self.blobs += session.taken_blobs
                session.taken = session.taken_blobs = 0
                node.peer.party.process()
                if node.peer.member is not None:
                    node.peer.epochs.step()
                node.replica.refresh()

    def flying(self, giver: str, taker: str) -> list[bytes]:
        return [data for _, _, one, other, data in sorted(self._flying) if (one, other) == (giver, taker)]
