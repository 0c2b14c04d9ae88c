"""`Workers`: a few threads that work on many things, each thing in one thread at a time, and all in turns."""

from __future__ import annotations

import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable

_LOG = logging.getLogger("antiphon.mesh")


class Workers:
    """Calls `turn` with each key that was woken, until `turn` returns None: it wants no further turn.

    `turn` returns the time in milliseconds of its next turn, by the clock that is handed in; 0 is at once, after all
    others that wait.
    """

    def __init__(
        self, count: int, name: str, turn: Callable[[Hashable], int | None], now_ms: Callable[[], int]
    ) -> None:
        self._turn = turn
        self._now_ms = now_ms
        self._wanted = threading.Condition()
        self._ready: deque[Hashable] = deque()
        self._waiting: set[Hashable] = set()  # those in `_ready`
        self._running: set[Hashable] = set()
        self._again: set[Hashable] = set()  # woken while they run
        self._due: dict[Hashable, int] = {}
        self._timers: list[tuple[int, int, Hashable]] = []  # those that are not in `_due` any more are passed over
        self._count = 0
        self._stopping = False
        self.threads = [threading.Thread(target=self._run, daemon=True, name=f"{name} {at + 1}") for at in range(count)]
        for thread in self.threads:
            thread.start()

    def wake(self, key: Hashable) -> None:
        """Give a key a turn soon. Never blocks for long."""
        with self._wanted:
            self._make_ready(key)

    def _make_ready(self, key: Hashable) -> None:
        if key in self._running:
            self._again.add(key)
        elif key not in self._waiting and not self._stopping:
            self._due.pop(key, None)
            self._waiting.add(key)
            self._ready.append(key)
            self._wanted.notify()

    def stop(self, timeout_s: float) -> bool:
        """Let the turns that run end, begin no others, and wait for the threads. False if the time was up first."""
        with self._wanted:
            self._stopping = True
            self._ready.clear()
            self._waiting.clear()
            self._wanted.notify_all()
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(timeout_s)
        return not any(thread.is_alive() for thread in self.threads if thread is not threading.current_thread())

    def _run(self) -> None:
        while (key := self._next()) is not None:
            at_ms: int | None = None
            try:
                at_ms = self._turn(key)
            except Exception:
                _LOG.exception("mesh.worker_failed: a worker of the network met an error that nobody handled")
            self._end(key, at_ms)

    def _next(self) -> Hashable | None:
        with self._wanted:
            while not self._stopping:
                left_ms = self._look_at_timers()
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.remove(key)
                    self._running.add(key)
                    return key
                self._wanted.wait(None if left_ms is None else left_ms / 1_000)
            return None

    def _look_at_timers(self) -> int | None:
        """Make those ready whose time has come. Return how long to wait for the next one."""
        while self._timers:
            at_ms, _, key = self._timers[0]
            left_ms = at_ms - self._now_ms()
            if self._due.get(key) != at_ms:
                heapq.heappop(self._timers)
            elif left_ms > 0:
                return left_ms
            else:
                heapq.heappop(self._timers)
                self._make_ready(key)
        return None

    def _end(self, key: Hashable, at_ms: int | None) -> None:
        with self._wanted:
            self._running.discard(key)
            again = key in self._again
            self._again.discard(key)
            if again or (at_ms is not None and at_ms <= self._now_ms()):
                self._make_ready(key)
            elif at_ms is not None:
                self._count += 1
                self._due[key] = at_ms
                heapq.heappush(self._timers, (at_ms, self._count, key))
                self._wanted.notify()  # the thread that waits for a later one
