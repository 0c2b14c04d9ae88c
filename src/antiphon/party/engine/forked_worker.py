"""`ForkedWorker`: work on a second core, in a forked copy of this process. A rebuild from feeds uses it.

A fork shares all gathered messages at no cost, and returns plain bytes. It is used only where that is safe: on Linux,
in a process with a single thread (a fork copies locks that other threads hold, but not the threads). The copy touches
no store and runs no destructors: it computes, writes to an unnamed file, and exits. If it fails, the caller does the
work itself.
"""

from __future__ import annotations

import gc
import marshal
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from typing import Any


class ForkedWorker:
    """Starts in the constructor; `results` waits. Results are tuples, lists and dicts of bytes, text and numbers."""

    def __init__(self, work: Callable[[], Iterable[Any]]) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `results`
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                gc.disable()
                for part in work():
                    marshal.dump(part, self._file)
                self._file.flush()
                code = 0
            finally:
                os._exit(code)

    @staticmethod
    def possible() -> bool:
        """True if there is a second core, and a fork is safe."""
        if sys.platform != "linux" or threading.active_count() > 1:
            return False
        return len(os.sched_getaffinity(0)) > 1

    def results(self) -> list[Any] | None:
        """Return what the work yielded, in order; None if it failed."""
        _, status = os.waitpid(self._pid, 0)
        with self._file as file:
            if status != 0:
                return None
            end = file.seek(0, os.SEEK_END)
            file.seek(0)
            found = []
            while file.tell() < end:
                found.append(marshal.load(file))  # noqa: S302 - written by our own copy, a moment ago
            return found
