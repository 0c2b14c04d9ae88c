"""`Waiting`: what keeps a control block from being delivered."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.stamp import Stamp
from antiphon.feed.header import Entry


@dataclass(frozen=True, slots=True)
class Waiting:
    """A control block that is not delivered yet, and the entry that it waits for."""

    stamp: Stamp
    entry: Entry
    forked: bool  # the block held there is another: only evidence of a fork can settle it
