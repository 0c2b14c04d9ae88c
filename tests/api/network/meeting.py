"""Waiting for what threads do: by looking again and again, for a bounded time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from antiphon import AntiphonError

PATIENCE_S = 30.0


def until(done: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait until `done` is true. An error of the store counts as not yet, and is raised when the time is up."""
    pause = threading.Event()
    for left in range(int(patience_s / 0.02), -1, -1):
        try:
            if done():
                return
        except AntiphonError:
            if not left:
                raise
        pause.wait(0.02)
    raise AssertionError(f"after {patience_s} s it is still not so")
