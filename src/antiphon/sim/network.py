"""`Network`: the simulated links. A message may be lost, delayed, reordered, or delivered twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from antiphon.sim.trace import Kind
from antiphon.sim.world import World


@dataclass(frozen=True, slots=True)
class Weather:
    """Delay, loss and repetition of a network. Different delays reorder messages."""

    delay_ms: tuple[int, int] = (5, 50)
    loss: float = 0.0
    repeat: float = 0.0

    def __str__(self) -> str:
        least, most = self.delay_ms
        return f"{least} to {most} ms late, {self.loss:.0%} lost, {self.repeat:.0%} twice"


CALM = Weather()


class Network:
    """Links between all peers, by name."""

    def __init__(self, world: World, weather: Weather, *, keep_all: bool = False) -> None:
        self.weather = weather
        self._world = world
        self._keep_all = keep_all
        self._groups: tuple[frozenset[str], ...] = ()
        self._asleep: set[str] = set()
        self.under_way = 0
        self.under_way_max = 0
        self.sent = 0
        self.lost = 0
        self.repeated = 0
        self.overtaken = 0  # arrived after a message that was sent later
        self._newest: dict[tuple[str, str], int] = {}  # number of the newest message that arrived, by link

    def part(self, groups: Iterable[Iterable[str]]) -> None:
        """Partition the network: only peers in the same group reach each other."""
        self._groups = tuple(map(frozenset, groups))

    def heal(self) -> bool:
        """End the partition. Return True if there was one."""
        parted, self._groups = bool(self._groups), ()
        return parted

    def sleep(self, peer: str) -> None:
        """Cut a peer off from all others."""
        self._asleep.add(peer)

    def wake(self, peer: str) -> bool:
        """Connect a sleeping peer again. Return True if it was asleep."""
        asleep = peer in self._asleep
        self._asleep.discard(peer)
        return asleep

    def reaches(self, one: str, other: str) -> bool:
        """True if neither peer sleeps, and no partition separates them."""
        if one in self._asleep or other in self._asleep:
            return False
        return not self._groups or any(one in group and other in group for group in self._groups)

    def send(self, sender: str, receiver: str, deliver: Callable[[], None]) -> None:
        """Send a message: schedule `deliver`, unless the message is lost."""
        chance, weather = self._world.chance, self.weather
        self.sent += 1
        if self._keep_all:
            self._world.record(Kind.SEND, sender, other=receiver)
        if chance.random() < weather.loss or not self.reaches(sender, receiver):
            self.lost += 1
            return
        number, times = self.sent, 1 + (chance.random() < weather.repeat)
        self.repeated += times - 1
        for _ in range(times):
            self.under_way += 1
            self.under_way_max = max(self.under_way_max, self.under_way)
            self._world.after(
                chance.randint(*weather.delay_ms), lambda: self._arrive(sender, receiver, number, deliver)
            )

    def _arrive(self, sender: str, receiver: str, number: int, deliver: Callable[[], None]) -> None:
        self.under_way -= 1
        newest = self._newest.get((sender, receiver), 0)
        self.overtaken += number < newest
        self._newest[sender, receiver] = max(number, newest)
        if self.reaches(sender, receiver):  # a partition also stops messages under way
            deliver()
        else:
            self.lost += 1
