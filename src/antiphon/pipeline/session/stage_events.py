"""Stages of a job as they begin: who watches is told, and how long each takes is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

#: That a stage begins, and over how many messages it goes, as soon as that is known; 0 until then.
Tell = Callable[[str, int], None]

VERIFY = "verify and plan"


def silent(_: str, __: int) -> None:
    """Tell nobody."""


@contextmanager
def timed(name: str, tell: Tell, seconds: dict[str, float], messages: int = 0) -> Iterator[None]:
    """Tell that a stage begins, and measure it."""
    tell(name, messages)
    begun = monotonic()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + monotonic() - begun
