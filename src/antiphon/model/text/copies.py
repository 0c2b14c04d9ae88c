"""`Copies`: which elements of a feed are copies that its undo made, and of which elements.

A row has a range of originals, and the clock of the first copy. Rows are only added; whoever undoes reads those of its
own feed. So those of a hostile writer, who names a thousand elements with a few bytes, take little memory.
"""

from __future__ import annotations

from array import array

from antiphon.model.text.clock_order import compact


class Copies:
    """The copies of one feed, in columns of rows."""

    __slots__ = ("_clocks", "_counts", "_feeds", "_firsts", "_numbers")

    def __init__(self) -> None:
        self._feeds: dict[bytes, int] = {}  # of originals, numbered
        self._numbers = array("I")
        self._firsts = compact([])
        self._counts = array("I")
        self._clocks = compact([])

    def add(self, clock: int, feed: bytes, first: int, last: int) -> None:
        """Record that elements from a clock on are copies of a feed's elements `first` to `last`."""
        if self._clocks and clock <= self._clocks[-1]:
            return  # it is known: clocks ascend
        self._numbers.append(self._feeds.setdefault(feed, len(self._feeds)))
        self._counts.append(last - first + 1)
        try:
            self._firsts.append(first)
            self._clocks.append(clock)
        except OverflowError:
            self._firsts = [*self._firsts[: len(self._clocks)], first]
            self._clocks = [*self._clocks, clock]

    def by_original(self) -> dict[tuple[bytes, int], int]:
        """Return the clock of the first copy of each element that has one."""
        feeds = list(self._feeds)
        found: dict[tuple[bytes, int], int] = {}
        for number, first, count, clock in zip(self._numbers, self._firsts, self._counts, self._clocks, strict=True):
            for at in range(count):
                found.setdefault((feeds[number], first + at), clock + at)
        return found
