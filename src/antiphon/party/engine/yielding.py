"""`YieldPoint`: lets a thread that computes for seconds yield to writers.

Python runs one thread at a time, and a computing thread yields only every 5 ms. Beside it, a writer that saves for
25 ms takes twice as long. If the computing thread sleeps briefly every 2 ms, the writer takes 1.5 times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from heapq import merge

from antiphon.feed.store.reader import FeedReader

WORK_S = 0.002
REST_S = 0.0005
BUSY_S = 0.2  # for so long after a write, yield
SORTED_AT_ONCE = 4_000  # sorting 100,000 ids takes 50 ms, in which no other thread runs


def in_order(ids: Iterable[bytes], breathe: Callable[[], object]) -> list[bytes]:
    """Sort ids, with a yield point between parts."""
    left = list(ids)
    parts = []
    for start in range(0, len(left), SORTED_AT_ONCE):
        breathe()
        parts.append(sorted(left[start : start + SORTED_AT_ONCE]))
    return parts[0] if len(parts) == 1 else list(merge(*parts))


class YieldPoint:
    """Called at every step of a computation. Returns True to stop; sleeps now and then while the store is written."""

    def __init__(self, stopped: Callable[[], bool], store: FeedReader, rest: Callable[[float], object]) -> None:
        self._stopped = stopped
        self._rest = rest  # sleeps for so many seconds, or until stopped
        self._store = store
        self._seen = store.transaction
        self._last = time.perf_counter()
        self._moved = self._last - BUSY_S

    def __call__(self) -> bool:
        now = time.perf_counter()
        if now - self._last >= WORK_S:
            seen = self._store.transaction
            if seen != self._seen:
                self._seen, self._moved = seen, now
            if now - self._moved < BUSY_S:  # without writers there is no need
                self._rest(REST_S)
            self._last = time.perf_counter()
        return self._stopped()
