"""Long work without Python's cycle collector: it would walk a hundred thousand states again and again, find nothing,
and stop every thread of the process meanwhile."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_gate = threading.Lock()
_count = 0  # of those who want it so now: threads begin and end in any order
_was = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Until this ends, and every other that began meanwhile. What is in no cycle goes at once, as ever."""
    global _count, _was  # the collector is the process's, too
    with _gate:
        if not _count:
            _was = gc.isenabled()
            gc.disable()
        _count += 1
    try:
        yield
    finally:
        with _gate:
            _count -= 1
            if not _count and _was:
                gc.enable()
