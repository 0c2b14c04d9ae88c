"""`LateOpening`: work that is done before the first use of a value, once, whichever thread asks first."""

from __future__ import annotations

import threading
from collections.abc import Callable


class LateOpening:
    """Call it before each use. An error of the work is raised, and the next call tries again."""

    __slots__ = ("_lock", "_owner", "_work")

    def __init__(self, work: Callable[[], None] | None = None) -> None:
        """Take the work; without one, all is done."""
        self._work = work
        self._lock = threading.Lock()
        self._owner = 0  # the thread that works

    @property
    def done(self) -> bool:
        """True if nothing is left to do."""
        return self._work is None

    def __call__(self) -> None:
        """Do the work, unless it is done. The work itself may call this, and goes on."""
        if self._work is None or self._owner == threading.get_ident():
            return
        with self._lock:
            if self._work is not None:
                self._owner = threading.get_ident()
                try:
                    self._work()
                    self._work = None
                finally:
                    self._owner = 0
