"""`Breath`: a thread that computes for seconds lets others in between.

Python lets one thread run at a time, and one that computes gives way only every 5 ms, as often as anybody wants
something. A writer that saves for 25 ms beside it takes twice as long; with a rest every 2 ms, half as long again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from heapq import merge

from antiphon.feed.store.reader import FeedReader

WORK_S = 0.002
REST_S = 0.0005
BUSY_S = 0.2  # since the last write
SORTED_AT_ONCE = 4_000  # to sort 100,000 ids takes 50 ms, in which no other thread runs


def in_order(ids: Iterable[bytes], breathe: Callable[[], object]) -> list[bytes]:
    """Sorted, with a breath now and then."""
    left = list(ids)
    parts = []
    for start in range(0, len(left), SORTED_AT_ONCE):
        breathe()
        parts.append(sorted(left[start : start + SORTED_AT_ONCE]))
    return parts[0] if len(parts) == 1 else list(merge(*parts))


class Breath:
    """Asked at every step of a computation: whether to stop. It rests now and then, while somebody writes."""

    def __init__(self, stopped: Callable[[], bool], store: FeedReader, rest: Callable[[float], object]) -> None:
        self._stopped = stopped
        self._rest = rest  # for so many seconds, or until there is a reason to stop
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
            if now - self._moved < BUSY_S:  # else nobody is kept waiting, and the computation is not either
                self._rest(REST_S)
            self._last = time.perf_counter()
        return self._stopped()
