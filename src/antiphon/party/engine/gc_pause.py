"""`gc_paused`: long work without Python's garbage collector for cycles.

The collector would walk a hundred thousand item states again and again, find nothing, and stop all threads meanwhile.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_gate = threading.Lock()
_count = 0  # of concurrent uses, which begin and end in any order
_was = False


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable garbage collection until the last concurrent use exits. Objects outside cycles are freed as always."""
    global _count, _was  # the collector is global as well
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
