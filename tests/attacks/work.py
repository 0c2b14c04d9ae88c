"""Work counted in function calls, so that a test of costs does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

GROWTH_MAX = 2.4  # the work of twice the input


def calls(work: Callable[[], object]) -> int:
    """Run something, and count the functions that it calls."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
