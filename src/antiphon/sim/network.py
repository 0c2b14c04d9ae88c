"""`Network`: simulated connections, each of ordered bytes. Packets may be lost, so that they arrive late; connections
break; and somebody on the way repeats bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from antiphon.sim.trace import Kind
from antiphon.sim.world import World

_RESEND_MS = 200  # from the loss of a packet until it is sent again
_BREAK_SHARE = 0.02  # of lost packets, that end a connection
_REPEAT_SHARE = 0.05  # of packets, where each connection may be repeated: a repeated packet ends a connection
_RECORDED_MAX = 16 << 10  # bytes of a connection that somebody on the way keeps
_REPLAY_MS = 5_000
_ECHO = "'s echo"  # after a peer's name: somebody that shares its place in the network


@dataclass(frozen=True, slots=True)
class Weather:
    """Delay, loss and repetition of a network."""

    delay_ms: tuple[int, int] = (5, 50)
    loss: float = 0.0
    repeat: float = 0.0

    def __str__(self) -> str:
        least, most = self.delay_ms
        return f"{least} to {most} ms late, {self.loss:.0%} lost, {self.repeat:.0%} twice"


CALM = Weather()


class ConnectionEnd(Protocol):
    """The owner of one end of a connection."""

    def arrived(self, data: bytes) -> None:
        """Bytes have come."""

    def ended(self) -> None:
        """The connection has ended. Nothing comes any more."""


class Connection:
    """Ordered bytes between two peers. `device` is the key that the dialler has in truth, if it is a device at all."""

    def __init__(self, network: Network, dialler: str, answering: str, device: bytes | None) -> None:
        self.dialler = dialler
        self.answering = answering
        self.device = device
        self.ends: dict[str, ConnectionEnd] = {}
        self.is_up = True
        self.recorded = b""  # what the dialler has sent at first
        self._network = network
        self._free_ms = {dialler: 0, answering: 0}  # when the last bytes of each end arrive

    def other(self, name: str) -> str:
        return self.answering if name == self.dialler else self.dialler

    def write(self, sender: str, data: bytes) -> None:
        """Send bytes to the other end."""
        if self.is_up:
            if sender == self.dialler and len(self.recorded) < _RECORDED_MAX:
                self.recorded += data
            self._network.carry(self, sender, data)

    def in_order(self, sender: str, at_ms: int) -> int:
        """Return the time at which bytes arrive that alone would arrive at `at_ms`: not before earlier ones."""
        self._free_ms[sender] = max(at_ms, self._free_ms[sender])
        return self._free_ms[sender]

    def cut(self) -> None:
        """End the connection. Bytes under way are lost."""
        if self.is_up:
            self.is_up = False
            self._network.forget(self)
            for end in self.ends.values():
                end.ended()


class Network:
    """Connections between all peers, by name."""

    def __init__(self, world: World, weather: Weather, *, keep_all: bool = False) -> None:
        self.weather = weather
        self._world = world
        self._keep_all = keep_all
        self._groups: tuple[frozenset[str], ...] = ()
        self._asleep: set[str] = set()
        self._connections: dict[Connection, None] = {}
        self._answers: dict[str, Callable[[Connection], ConnectionEnd | None]] = {}
        self.under_way = 0
        self.under_way_max = 0
        self.sent = 0
        self.lost = 0  # packets that were sent again, or were under way when their connection ended
        self.repeated = 0
        self.held_back = 0  # packets that had to wait for earlier ones
        self.misled: list[str] = []  # what no channel may let happen
        self._channels: dict[bytes, bytes] = {}  # by tag, the channel on which it came

    # -- who reaches whom

    def part(self, groups: Iterable[Iterable[str]]) -> None:
        """Partition the network: only peers in the same group reach each other."""
        self._groups = tuple(map(frozenset, groups))
        self._cut_unreachable()

    def heal(self) -> bool:
        """End the partition. Return True if there was one."""
        parted, self._groups = bool(self._groups), ()
        return parted

    def sleep(self, peer: str) -> None:
        """Cut a peer off from all others."""
        self._asleep.add(peer)
        self._cut_unreachable()

    def wake(self, peer: str) -> bool:
        """Connect a sleeping peer again. Return True if it was asleep."""
        asleep = peer in self._asleep
        self._asleep.discard(peer)
        return asleep

    def reaches(self, one: str, other: str) -> bool:
        """True if neither peer sleeps, and no partition separates them."""
        one = one.removesuffix(_ECHO)
        if one in self._asleep or other in self._asleep:
            return False
        return not self._groups or any(one in group and other in group for group in self._groups)

    def _cut_unreachable(self) -> None:
        for connection in list(self._connections):
            if not self.reaches(connection.dialler, connection.answering):
                connection.cut()

    # -- connections

    def listen(self, name: str, answer: Callable[[Connection], ConnectionEnd | None]) -> None:
        """Let a peer answer connections. `answer` returns None while the peer is down."""
        self._answers[name] = answer

    def dial(self, dialler: str, answering: str, device: bytes | None, end: ConnectionEnd) -> Connection | None:
        """Connect to another peer; None if it cannot be reached."""
        if not self.reaches(dialler, answering):
            return None
        connection = Connection(self, dialler, answering, device)
        answer = self._answers[answering](connection)
        if answer is None:
            return None
        connection.ends = {dialler: end, answering: answer}
        self._connections[connection] = None
        if device is not None and self._world.chance.random() < self.weather.repeat:
            self._world.after(_REPLAY_MS, lambda: self.replay(connection))
        return connection

    def forget(self, connection: Connection) -> None:
        """Note that a connection has ended."""
        self._connections.pop(connection, None)

    def replay(self, connection: Connection) -> None:
        """Dial the answering end again, with the bytes that somebody on the way has recorded."""
        self.intrude(connection.dialler, connection.answering, connection.recorded)

    def intrude(self, dialler: str, answering: str, data: bytes, end: ConnectionEnd | None = None) -> Connection | None:
        """Connect as nobody that this network knows, and send bytes."""
        again = self.dial(f"{dialler}{_ECHO}", answering, None, end or _Deaf())
        if again is not None:
            self.repeated += 1
            again.write(again.dialler, data)
        return again

    def note_tag(self, tag: bytes, channel: bytes) -> None:
        """Note a tag that came on a channel: it must come on no other."""
        if self._channels.setdefault(tag, channel) != channel:
            self.misled.append(f"tag {tag.hex()[:8]} came on two channels")

    def carry(self, connection: Connection, sender: str, data: bytes) -> None:
        """Schedule the arrival of bytes, after all that the sender has sent before."""
        chance, weather, now = self._world.chance, self.weather, self._world.now_ms
        self.sent += 1
        if self._keep_all:
            self._world.record(Kind.SEND, sender, other=connection.other(sender))
        alone_ms, wait_ms = now + chance.randint(*weather.delay_ms), _RESEND_MS
        while chance.random() < weather.loss:
            self.lost += 1
            alone_ms += wait_ms
            wait_ms *= 2
        breaks = chance.random() < weather.loss * _BREAK_SHARE
        repeats = weather.repeat > 0 and chance.random() < weather.repeat * _REPEAT_SHARE
        at_ms = connection.in_order(sender, alone_ms)
        self.held_back += at_ms > alone_ms
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        self._world.at(at_ms, lambda: self._arrive(connection, sender, data, breaks=breaks, repeats=repeats))

    def _arrive(self, connection: Connection, sender: str, data: bytes, *, breaks: bool, repeats: bool) -> None:
        self.under_way -= 1
        if breaks:
            connection.cut()
        if not connection.is_up:
            self.lost += 1
            return
        receiver = connection.other(sender)
        connection.ends[receiver].arrived(data)
        if repeats and connection in self._connections:
            self.repeated += 1
            connection.ends[receiver].arrived(data)
            if connection in self._connections and connection.device is not None:
                self.misled.append(f"{receiver} has taken bytes of {sender} twice")


class _Deaf:
    """An end that only sends."""

    def arrived(self, data: bytes) -> None:
        pass

    def ended(self) -> None:
        pass
