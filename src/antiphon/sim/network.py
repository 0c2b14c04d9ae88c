"""`Network`: what happens to a message between two peers. It may be lost, late, overtaken, or come twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from antiphon.sim.trace import Kind
from antiphon.sim.world import World


@dataclass(frozen=True, slots=True)
class Weather:
    """A network's manners. Messages overtake each other where delays differ."""

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
        self.overtaken = 0  # came after one that was sent later
        self._newest: dict[tuple[str, str], int] = {}  # of the messages that came from one peer to another

    def part(self, groups: Iterable[Iterable[str]]) -> None:
        """Only those who are in one group hear each other."""
        self._groups = tuple(map(frozenset, groups))

    def heal(self) -> bool:
        """All hear each other again; whether they did not before."""
        parted, self._groups = bool(self._groups), ()
        return parted

    def sleep(self, peer: str) -> None:
        self._asleep.add(peer)

    def wake(self, peer: str) -> bool:
        """It hears again; whether it did not before."""
        asleep = peer in self._asleep
        self._asleep.discard(peer)
        return asleep

    def reaches(self, one: str, other: str) -> bool:
        if one in self._asleep or other in self._asleep:
            return False
        return not self._groups or any(one in group and other in group for group in self._groups)

    def send(self, sender: str, receiver: str, deliver: Callable[[], None]) -> None:
        """Have a message delivered, if it comes through."""
        chance, weather = self._world.chance, self.weather
        self.sent += 1
        if self._keep_all:
            self._world.tell(Kind.SEND, sender, other=receiver)
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
        if self.reaches(sender, receiver):  # a partition cuts what is on its way, too
            deliver()
        else:
            self.lost += 1
