"""`Frame`: the coordinates of a picture. Time runs to the right, and each peer has a row."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from antiphon.sim.picture.lanes import Lane, arrange, lanes_of, partitions_of
from antiphon.sim.picture.svg import text_width
from antiphon.sim.trace import Trace

LANES_MAX = 64
WIDTH_MIN, WIDTH_MAX = 480, 10_000
_NAME_MAX = 120
_MARGIN = 20
BREAKS_MAX = 6
_BREAK_WIDTH = 26.0
_GAPS_MIN = 20  # with fewer gaps between events, none is broken
#: Pairs of the largest number of rows and the height of a row.
_HEIGHTS = ((6, 46), (10, 38), (16, 30), (24, 24), (36, 19), (LANES_MAX, 15))


class TimeBreak(NamedTuple):
    """A period without events, drawn as a break of the time axis."""

    begin_ms: int
    end_ms: int


class Frame:
    """The lanes of a trace, and the coordinates of times and rows. `top` is the top of the first row."""

    def __init__(self, trace: Trace, width: int) -> None:
        times = [event.at_ms for event in trace]
        self.begin_ms, self.end_ms = min(times, default=0), max(times, default=0)
        every = lanes_of(trace, self.end_ms)
        self.lanes: dict[str, Lane] = dict(list(every.items())[:LANES_MAX])
        self.partitions = partitions_of(trace, self.end_ms)
        arrange(self.lanes, self.partitions)
        self.hidden = len(every) - len(self.lanes)
        self.width = float(min(max(width, WIDTH_MIN), WIDTH_MAX))
        names = max((text_width(name) for name in self.lanes), default=0)
        self.left = _MARGIN + min(names, _NAME_MAX) + 14
        self.right = self.width - _MARGIN
        self.margin = float(_MARGIN)
        self.row_height = float(next(height for rows, height in _HEIGHTS if len(self.lanes) <= rows))
        self.top = 0.0
        self.names = {lane.row: lane.name for lane in self.lanes.values()}
        self.breaks = time_breaks(times)
        shown_ms = self.end_ms - self.begin_ms - sum(gap.end_ms - gap.begin_ms for gap in self.breaks)
        self._shown_ms = max(1, shown_ms)
        self._scale = (self.right - self.left - 12 - _BREAK_WIDTH * len(self.breaks)) / self._shown_ms

    @property
    def bottom(self) -> float:
        return self.top + self.row_height * max(1, len(self.lanes))

    @property
    def size(self) -> float:
        """The radius of a mark."""
        return min(5.0, max(2.4, self.row_height * 0.13))

    def x(self, at_ms: int) -> float:
        """The x coordinate of a time. All breaks have the same width."""
        shown, folded = at_ms - self.begin_ms, 0.0
        for gap in self.breaks:
            inside = min(max(at_ms - gap.begin_ms, 0), gap.end_ms - gap.begin_ms)
            shown -= inside
            folded += _BREAK_WIDTH * inside / (gap.end_ms - gap.begin_ms)
        return self.left + 6 + shown * self._scale + folded

    def y(self, row: int) -> float:
        """The y coordinate of the middle of a row."""
        return self.top + self.row_height * (row + 0.5)

    def seconds(self, at_ms: int) -> str:
        """A time as text, in seconds since the first event."""
        return f"{(at_ms - self.begin_ms) / 1_000:.10g} s"

    def ticks(self) -> list[int]:
        """The round times of the axis, about eight: 1, 2 or 5 times a power of ten milliseconds."""
        step = 1
        while self._shown_ms > step * 10:
            step = step * 5 // 2 if str(step).startswith("2") else step * 2
        found: list[int] = []
        for begin, end in zip(
            (self.begin_ms, *(gap.end_ms for gap in self.breaks)),
            (*(gap.begin_ms for gap in self.breaks), self.end_ms),
            strict=True,
        ):
            first = -((self.begin_ms - begin) // step)
            found += range(self.begin_ms + first * step, end + 1, step)
        return found


def time_breaks(times: list[int]) -> list[TimeBreak]:
    """The periods without events that are so long that the rest would be too narrow."""
    ordered = sorted(set(times))
    gaps = sorted((begin - end, begin, end) for begin, end in pairwise(ordered))  # the longest first
    left_ms = ordered[-1] - ordered[0] if ordered else 0
    breaks: list[TimeBreak] = []
    while len(gaps) >= _GAPS_MIN and len(breaks) < BREAKS_MAX:
        _, begin_ms, end_ms = gaps[0]
        gap_ms = end_ms - begin_ms
        # No break if the gap is one of many alike, or if it leaves enough room for the rest.
        if gap_ms * 4 < left_ms or gap_ms * len(gaps) < left_ms * 4:
            break
        breaks.append(TimeBreak(begin_ms, end_ms))
        left_ms -= gap_ms
        gaps.pop(0)
    return sorted(breaks)
