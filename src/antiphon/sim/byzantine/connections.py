"""Attacks with connections: garbage, recorded bytes, and a device that claims to be another one."""

from __future__ import annotations

from antiphon.core.keys import KeyPair
from antiphon.mesh.channel.channel import Channel
from antiphon.sim.byzantine.attacker import Attacker
from antiphon.sim.network import Connection
from antiphon.sim.world import START_MS

_SIZES = (1, 60, 600, 20_000)


def garbage_connections(foe: Attacker) -> None:
    """Connect to neighbours and send random bytes, or garbage behind the length of a first message."""
    network = foe.peer.network
    for name in foe.names():
        for size in _SIZES:
            data = foe.chance.randbytes(size)
            prefix = foe.chance.choice((b"", (56).to_bytes(2, "big")))
            network.intrude(foe.peer.name, name, prefix + data)


def replayed_connections(foe: Attacker) -> None:
    """Dial neighbours with the bytes of connections that there were, whole and cut short."""
    network, names = foe.peer.network, foe.names()
    connections = [foe.peer.links.connection(name) for name in names]
    for recorded in [connection.recorded for connection in connections if connection is not None]:
        for name in names:
            for data in (recorded, recorded[: foe.chance.randrange(1 + len(recorded))]):
                network.intrude(foe.peer.name, name, data)


def impostors(foe: Attacker) -> None:
    """Dial each peer as a device that is admitted nowhere, and claim the device key of another member."""
    for other in foe.others:
        victim = foe.chance.choice([peer for peer in foe.others if peer is not other] or [foe.peer])
        _Impostor(foe, other.name, other.device.key, bytes(victim.device.key))


class _Impostor:
    """An end of a connection that signs with a key of its own, under another device's name."""

    def __init__(self, foe: Attacker, name: str, key: bytes, victim: bytes) -> None:
        self._network = foe.peer.network
        self._name = name
        pair = foe.key()
        now_ms = START_MS + foe.peer.world.now_ms
        self._channel = Channel.dial(pair, key, now_ms=now_ms, randomness=foe.peer.dice)
        self._channel._own = KeyPair(type(pair.key)(victim), pair._secret)  # its static key is still that of `pair`
        connection = self._network.intrude(foe.peer.name, name, self._channel.outgoing(), self)
        self._connection: Connection | None = connection

    def arrived(self, data: bytes) -> None:
        if self._channel.receive(data):
            self._network.misled.append(f"{self._name} speaks to a device that claims the key of another one")
        connection = self._connection
        if connection is not None:
            connection.write(connection.dialler, self._channel.outgoing())

    def ended(self) -> None:
        self._connection = None
