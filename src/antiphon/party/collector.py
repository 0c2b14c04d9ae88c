"""Long work without Python's cycle collector: it would walk a hundred thousand states again and again, find nothing,
and stop every thread of the process meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Until this ends. What is in no cycle goes at once, as ever."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
