"""`Gate`: a shared/exclusive lock around an LMDB map, which may only grow while no transaction is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Any number of threads inside, or one alone. Kept simple, as every read and write passes it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.condition = threading.Condition(self.lock)
        self.inside = 0
        self.alone = False
        self._shared = _Shared(self)

    def shared(self) -> _Shared:
        """Return a context manager for `enter` and `leave`."""
        return self._shared

    def enter(self) -> None:
        """Enter together with others; `leave` must follow."""
        with self.lock:  # a plain lock is taken without running Python code
            while self.alone:
                self.condition.wait()
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and self.alone:
                self.condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Wait until nobody is inside, and keep others out."""
        with self.condition:
            while self.alone:
                self.condition.wait()
            self.alone = True
            while self.inside:
                self.condition.wait()
        try:
            yield
        finally:
            with self.condition:
                self.alone = False
                self.condition.notify_all()


class _Shared:
    """Context manager: inside a gate together with others."""

    __slots__ = ("_gate",)

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        self._gate.enter()

    def __exit__(self, *_: object) -> None:
        self._gate.leave()
