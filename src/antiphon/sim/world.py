"""`World`: virtual time, the queue of scheduled calls, and the random generator of a run. All clocks derive from it."""

from __future__ import annotations

import gc
import heapq
import math
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from antiphon.sim.trace import Event, Kind, Trace

START_MS = 1_700_000_000_000  # the time on clocks when a run begins
_ALLOCATED = 200_000  # allocations between two garbage collections
EVENTS_MAX = 5_000_000  # if nothing else is said
_BUSY_MAX = 50  # real time of a run on a busy machine, in multiples of its processor time


class Endless(BaseException):
    """A run has used up its limits. No code of a peer handles it, wherever it is raised."""


class Limits(NamedTuple):
    """The events and the time after which a run is considered endless."""

    events: int
    seconds: float = math.inf  # of processor time: on a busy machine a run takes longer, and not more

    @classmethod
    def of(cls, peers: int, messages: int) -> Limits:
        """Return many times what a run of this size takes."""
        return cls(50_000 + 20_000 * peers + 100 * messages, 60 + 5 * peers + messages * peers / 20)


@contextmanager
def rare_gc() -> Iterator[None]:
    """Collect garbage less often: many peers have many objects, which each collection traverses, and few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise `Endless` in code that takes more processor time, wherever it is, or waits for something that never comes.

    Only the main thread can be interrupted.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise Endless(f"the run does not end: {seconds:.0f} s, in one event")

    timers = (signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, seconds * _BUSY_MAX)
    before = [(number, timer, signal.signal(number, ring)) for number, timer, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, timer, handler in before:
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


class World:
    """A queue of calls, ordered by time, and by the order of scheduling at equal times."""

    def __init__(self, seed: int, trace: Trace | None = None, limits: Limits | None = None) -> None:
        self.chance = random.Random(f"antiphon {seed}")  # noqa: S311
        self.now_ms = 0
        self.trace = Trace() if trace is None else trace
        self.events = 0
        self._limits = limits or Limits(EVENTS_MAX)
        self._began = time.process_time()
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
            self._check_limits()
            act()
            done = True
        self.now_ms = max(self.now_ms, until_ms)
        return done

    def _check_limits(self) -> None:
        events, seconds = self._limits
        if self.events > events:
            raise Endless(f"the run does not end: {events} events until {self.now_ms} ms of virtual time")
        if time.process_time() - self._began > seconds:
            raise Endless(f"the run does not end: {seconds:.0f} s, for {self.now_ms} ms of virtual time")

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
