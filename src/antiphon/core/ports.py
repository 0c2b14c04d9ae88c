"""Ports: `Clock` and `Randomness` are passed in, so that tests and simulations are deterministic."""

from __future__ import annotations

import os
import random
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time in milliseconds. It labels messages; it never orders them and decides nothing."""

    def now_ms(self) -> int:
        """Return the milliseconds since the Unix epoch."""


class Randomness(Protocol):
    """A source of unpredictable bytes."""

    def bytes(self, count: int) -> bytes:
        """Return `count` random bytes."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Return the machine's time in milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000


class SystemRandomness:
    """The operating system's generator."""

    def bytes(self, count: int) -> bytes:
        """Return `count` random bytes from the operating system."""
        return os.urandom(count)


class SeededRandomness:
    """Bytes that follow from a seed, in every version of Python: for simulations and test data, never for real keys."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)  # noqa: S311

    def bytes(self, count: int) -> bytes:
        return self._chance.randbytes(count)
