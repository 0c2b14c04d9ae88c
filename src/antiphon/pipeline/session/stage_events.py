"""Report the stages of a job as they begin, and measure how long each takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

#: Called when a stage begins, with its name and the number of its messages; 0 while that is not known.
Tell = Callable[[str, int], None]

VERIFY = "verify and plan"


def silent(_: str, __: int) -> None:
    """A `Tell` that does nothing."""


@contextmanager
def timed(name: str, tell: Tell, seconds: dict[str, float], messages: int = 0) -> Iterator[None]:
    """Report that a stage begins, and add its duration to `seconds`."""
    tell(name, messages)
    begun = monotonic()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + monotonic() - begun
