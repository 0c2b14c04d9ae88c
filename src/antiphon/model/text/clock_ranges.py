"""Ranges of clocks, ascending, of which no two overlap or touch: the first and the last clock of each, in turn.

They are an array, so that a range takes 16 bytes: a hostile deletion of something that does not exist takes 6. None at
all are an empty tuple, as in nearly all writers; clocks of more than 64 bits are in a list. Functions return the ranges
that replace those given, which may be the same object.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from antiphon.model.text.clock_order import compact

ClockRanges: TypeAlias = "tuple[int, ...] | list[int] | array[int]"
NONE: ClockRanges = ()


def pairs(ranges: ClockRanges) -> Iterator[tuple[int, int]]:
    """Yield the first and the last clock of each range."""
    bounds = iter(ranges)
    return zip(bounds, bounds, strict=True)


def with_range(ranges: ClockRanges, first: int, last: int) -> ClockRanges:
    """Return ranges and one more."""
    if isinstance(ranges, tuple):
        return compact([first, last])
    begin = end = len(ranges)
    if first <= ranges[-1] + 1:
        begin, end = _from(ranges, first - 1), _until(ranges, last + 1)
        if begin < end:
            first, last = min(first, ranges[begin]), max(last, ranges[end - 1])
    if isinstance(ranges, array):
        try:
            ranges[begin:end] = array("Q", (first, last))
        except OverflowError:
            return [*ranges[:begin], first, last, *ranges[end:]]
    else:
        ranges[begin:end] = [first, last]
    return ranges


def overlapping(ranges: ClockRanges, first: int, last: int) -> list[tuple[int, int]]:
    """Return the ranges that overlap a range."""
    return list(pairs(ranges[_from(ranges, first) : _until(ranges, last)]))


def since(ranges: ClockRanges, floor: int) -> ClockRanges:
    """Return the parts of ranges from a clock on."""
    if isinstance(ranges, tuple) or ranges[0] >= floor:
        return ranges
    del ranges[: _from(ranges, floor)]
    if not ranges:
        return NONE
    ranges[0] = max(ranges[0], floor)
    return ranges


def _from(ranges: ClockRanges, clock: int) -> int:
    """Return the index of the first range that ends at a clock or later."""
    return 2 * bisect_left(range(len(ranges) // 2), clock, key=lambda nth: ranges[2 * nth + 1])


def _until(ranges: ClockRanges, clock: int) -> int:
    """Return the index after the last range that begins at a clock or before."""
    return 2 * bisect_right(range(len(ranges) // 2), clock, key=lambda nth: ranges[2 * nth])
