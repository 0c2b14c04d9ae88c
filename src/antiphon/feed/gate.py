"""A gate around an LMDB map, which may only grow while no transaction is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Many may pass together, or one alone. Plain classes, because every read and write comes through here."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.inside = 0
        self.alone = False
        self._shared = _Shared(self)

    def shared(self) -> _Shared:
        return self._shared

    @contextmanager
    def exclusive(self) -> Iterator[None]:
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
    """Passing a gate together with others."""

    __slots__ = ("_gate",)

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        gate = self._gate
        with gate.condition:
            while gate.alone:
                gate.condition.wait()
            gate.inside += 1

    def __exit__(self, *_: object) -> None:
        gate = self._gate
        with gate.condition:
            gate.inside -= 1
            if not gate.inside and gate.alone:
                gate.condition.notify_all()
