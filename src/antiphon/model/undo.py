"""The rule that the undo of several models shares: the test that a written value still holds."""

from __future__ import annotations

from collections.abc import Mapping

from antiphon.core.stamp import Stamp
from antiphon.model.value import Value, value_bytes


def stands(writes: Mapping[Stamp, Value], before: frozenset[Stamp], stamp: Stamp, value: Value) -> bool:
    """True if the value that a message wrote is the only one at its place, or if its writer has since restored it."""
    later = writes.keys() - before
    if len(later) != 1:
        return False
    [only] = later
    ours = only.feed == stamp.feed and only > stamp
    return only == stamp or (ours and value_bytes(writes[only]) == value_bytes(value))
