"""`World`: virtual time, the queue of scheduled calls, and the random generator of a run. All clocks derive from it."""

from __future__ import annotations

import gc
import heapq
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from antiphon.sim.trace import Event, Kind, Trace

START_MS = 1_700_000_000_000  # the time on clocks when a run begins
_ALLOCATED = 200_000  # allocations between two garbage collections
EVENTS_MAX = 5_000_000  # a run with more calls is considered endless


@contextmanager
def rare_gc() -> Iterator[None]:
    """Collect garbage less often: many peers have many objects, which each collection traverses, and few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class World:
    """A queue of calls, ordered by time, and by the order of scheduling at equal times."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.chance = random.Random(f"antiphon {seed}")  # noqa: S311
        self.now_ms = 0
        self.trace = Trace() if trace is None else trace
        self.events = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0

    def at(self, at_ms: int, act: Callable[[], None]) -> None:
        """Schedule a call at a time, now at the earliest."""
        heapq.heappush(self._queue, (max(at_ms, self.now_ms), self._asked, act))
        self._asked += 1

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Schedule a call after a delay."""
        self.at(self.now_ms + delay_ms, act)

    def run(self, until_ms: int) -> bool:
        """Run all calls that are due until a time. Return True if there were any."""
        done = False
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(self._queue)
            self.events += 1
            if self.events > EVENTS_MAX:
                raise RuntimeError(f"the run does not end: {EVENTS_MAX} events until {self.now_ms} ms")
            act()
            done = True
        self.now_ms = max(self.now_ms, until_ms)
        return done

    @property
    def next_ms(self) -> int | None:
        """The time of the next call; None if the queue is empty."""
        return self._queue[0][0] if self._queue else None

    def record(
        self, kind: Kind, peer: str = "", *, other: str = "", count: int = 0, number: int = 0, text: str = ""
    ) -> None:
        """Add an event to the trace, at the current time."""
        self.trace.add(Event(self.now_ms, kind, peer, other, count, number, text))


class WorldClock:
    """The clock of a peer: the world's time plus the skew of the peer."""

    def __init__(self, world: World, skew_ms: int = 0) -> None:
        self._world = world
        self._skew_ms = skew_ms

    def now_ms(self) -> int:
        return START_MS + self._world.now_ms + self._skew_ms
