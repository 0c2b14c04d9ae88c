"""Devices with several parties, which talk through links over ordered bytes, on virtual time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from antiphon.core.ports import SeededRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.mesh.link.link import Link
from antiphon.mesh.link.party_sessions import PartySessions
from antiphon.mesh.replication.admits import PartyAdmits
from antiphon.mesh.replication.replica import Replica
from antiphon.testing.peers import Peer, pair_of

NOW_MS = 1_700_000_000_000
DELAY_MS = 20


@dataclass
class Device:
    """One device: a peer in each of its parties."""

    name: str
    peers: dict[bytes, Peer] = field(default_factory=dict)
    host: PartySessions = field(default_factory=PartySessions)
    taken: dict[bytes, int] = field(default_factory=dict)

    def follow(self, peer: Peer) -> None:
        assert peer.member is not None
        admits = PartyAdmits(peer.party, peer.member, word=peer.member.vouch(peer.identity))
        self.peers[bytes(peer.party.key)] = peer
        self.host.follow(Replica(peer.party, peer.epochs, admits))

    def work(self, now_ms: int) -> None:
        """Process what came."""
        for taken in self.host.work(now_ms):
            peer = self.peers[taken.party]
            self.taken[taken.party] = self.taken.get(taken.party, 0) + taken.blocks
            peer.party.process()
            peer.epochs.step()
            self.host.replica(taken.party).refresh()


@dataclass
class Wire:
    """A connection: bytes under way in both directions, with the time of their arrival."""

    ends: tuple[tuple[Device, Link], tuple[Device, Link]]
    flying: tuple[deque[tuple[int, bytes]], deque[tuple[int, bytes]]] = field(
        default_factory=lambda: (deque(), deque())
    )
    carried: int = 0
    free_ms: list[int] = field(default_factory=lambda: [0, 0])  # when each end can send again


class LinkNet:
    """All devices and connections of a test."""

    def __init__(self, *devices: Device, budget: int = 1 << 16, pace_ms: int = 1) -> None:
        self.devices = devices
        self.pace_ms = pace_ms
        self.budget = budget
        self.now_ms = NOW_MS
        self.wires: list[Wire] = []
        self.seen = SeenHandshakes()

    def connect(self, one: Device, other: Device) -> Wire:
        """Let one device dial another."""
        mine, theirs = pair_of(f"{one.name}'s device"), pair_of(f"{other.name}'s device")
        chance = SeededRandomness(f"{one.name} {other.name} {len(self.wires)}")
        dial = Channel.dial(mine, theirs.key, now_ms=self.now_ms, randomness=chance)
        answer = Channel.answer(theirs, self.seen, now_ms=self.now_ms, randomness=chance)
        ends = tuple(
            (device, Link(channel, device.host, randomness=chance, now_ms=self.now_ms))
            for device, channel in ((one, dial), (other, answer))
        )
        for device, link in ends:
            device.host.connect(link)
        self.wires.append(Wire((ends[0], ends[1])))
        return self.wires[-1]

    def cut(self, wire: Wire) -> None:
        """Break a connection. What is under way is lost."""
        self.wires.remove(wire)
        for device, link in wire.ends:
            device.host.disconnect(link)

    def run(self, ms: int = 30_000) -> None:
        """Let devices talk for some time."""
        end_ms = self.now_ms + ms
        while True:
            wakes = [wake for wake in map(self._poll, self.devices) if wake is not None]
            wakes += [flying[0][0] for wire in self.wires for flying in wire.flying if flying]
            following = min(wakes, default=end_ms + 1)
            if following > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, following)
            self._deliver()

    def _poll(self, device: Device) -> int | None:
        device.work(self.now_ms)
        wake = device.host.tick(self.now_ms)
        assert not device.host.faults, device.host.faults
        for wire in self.wires:
            for at, (end, link) in enumerate(wire.ends):
                if end is device and wire.free_ms[at] <= self.now_ms:
                    data = device.host.outgoing(link, self.budget, self.now_ms)
                    if data:
                        wire.carried += len(data)
                        wire.free_ms[at] = self.now_ms + self.pace_ms
                        wire.flying[at].append((self.now_ms + DELAY_MS, data))
                if end is device and link.has_outgoing:
                    wake = min(wake or wire.free_ms[at], wire.free_ms[at])
        return wake

    def _deliver(self) -> None:
        for wire in self.wires:
            for (device, link), flying in zip(reversed(wire.ends), wire.flying, strict=True):
                while flying and flying[0][0] <= self.now_ms:
                    device.host.receive(link, flying.popleft()[1], self.now_ms)


def even(peers: Iterable[Peer]) -> bool:
    """True if peers hold the same blocks and items."""
    first, *others = peers
    return all(other.lengths() == first.lengths() and other.snapshots() == first.snapshots() for other in others)
