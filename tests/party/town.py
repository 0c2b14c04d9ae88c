"""Peers with drivers of epochs, in virtual time: who is awake, who hears whom, and what is final."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.halo.credentials.claims import Policy
from antiphon.halo.finality.epoch_values import ranked
from antiphon.model.factory import ModelFactory
from antiphon.party.epochs.driver import EpochDriver
from antiphon.testing.peers import Peer, Peers, Ticks

SILENT_MS = 1_000
NAMES = ("alice", "bob", "carol", "dave", "erin")


class Town:
    """Peers with drivers, in virtual time. Whoever is not awake neither hears nor speaks."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.now_ms = 1_800_000_000_000
        self.awake = list(peers.all)
        self.drivers: dict[str, EpochDriver] = {}
        self.wakes: dict[str, int | None] = {}
        self.skews_ms: dict[str, int] = {}  # by which clocks are ahead
        for peer in peers.all:
            self.begin(peer)

    def begin(self, peer: Peer) -> None:
        """A driver that has seen nothing yet, as after a restart."""
        assert peer.member is not None
        self.drivers[peer.name] = EpochDriver(peer.party, peer.member, peer.epochs)

    def tick(self, peer: Peer) -> int | None:
        assert isinstance(peer.clock, Ticks)
        skew_ms = self.skews_ms.get(peer.name, 0)
        peer.clock.ms = self.now_ms + skew_ms
        wake_ms = self.drivers[peer.name].tick(self.now_ms + skew_ms)
        self.wakes[peer.name] = None if wake_ms is None else wake_ms - skew_ms
        return self.wakes[peer.name]

    def talk(self) -> None:
        """Until nobody who is awake has more to say at this moment."""
        while True:
            before = [peer.lengths() for peer in self.awake]
            for peer in self.awake:
                self.tick(peer)
            self.sync()
            if [peer.lengths() for peer in self.awake] == before:
                return

    def sync(self) -> None:
        while sum(self.peers.pass_on(one, other) for one in self.awake for other in self.awake if one is not other):
            pass

    def run(self, ms: int) -> None:
        """Let time pass, from one wake-up to the next."""
        until = self.now_ms + ms
        self.talk()
        while True:
            wakes = [wake for peer in self.awake if (wake := self.wakes[peer.name]) is not None]
            following = min((wake for wake in wakes if wake > self.now_ms), default=until)
            if following >= until:
                break
            self.now_ms = following
            self.talk()
        self.now_ms = until
        self.talk()

    def sleep(self, *peers: Peer) -> None:
        self.awake = [peer for peer in self.awake if peer not in peers]

    def wake(self, *peers: Peer) -> None:
        self.awake += peers

    def device(self, peer: Peer) -> bytes:
        assert peer.member is not None
        return bytes(peer.member.device.key)

    def by_rank(self, number: int = 1) -> list[Peer]:
        devices = [self.device(peer) for peer in self.peers.all]
        order = ranked(number, self.peers.all[0].party.key, devices)
        return sorted(self.peers.all, key=lambda peer: order.index(self.device(peer)))


def town(
    peers: Peers, count: int, *, generator: int | None = None, without_code: int = 0, **limits: int | bool
) -> Town:
    """So many peers, all attesters, under a policy that the founder sets at once. The last may lack all models."""
    have = [None] * (count - without_code) + [ModelFactory()] * without_code
    everybody = [peers.add(name, models=models) for name, models in zip(NAMES[:count], have, strict=True)]
    devices = [bytes(peer.member.device.key) for peer in everybody if peer.member is not None]
    policy = Policy(
        attesters=tuple(sorted(devices)),
        generator=b"" if generator is None else devices[generator],
        silent_ms=SILENT_MS,
        **limits,  # type: ignore[arg-type]
    )
    founder = everybody[0].member
    assert founder is not None
    founder.set_policy(policy)
    peers.sync()
    return Town(peers)


def write(peer: Peer, count: int = 1, text: str = "x") -> None:
    """A new item takes two messages: its genesis, and what is set."""
    for _ in range(count):
        peer.party.create("antiphon/object").edit("set", "title", text)


def numbers(peers: Iterable[Peer]) -> list[int]:
    return [peer.epochs.number for peer in peers]


def terms(peer: Peer) -> list[int]:
    return [epoch.term for epoch in peer.epochs.chain().final]


def snapshots(peers: Iterable[Peer]) -> set[bytes]:
    return {peer.epochs.chain().final[-1].snapshot for peer in peers}
