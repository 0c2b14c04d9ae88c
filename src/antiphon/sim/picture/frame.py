"""`Frame`: where things are in a picture: time runs to the right, and each peer has a row."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from antiphon.sim.picture.lanes import Lane, arrange, lanes_of, partings_of
from antiphon.sim.picture.svg import wide
from antiphon.sim.trace import Trace

LANES_MAX = 64
WIDTH_MIN, WIDTH_MAX = 480, 10_000
_NAME_MAX = 120
_MARGIN = 20
FOLDS_MAX = 6
_FOLD_WIDTH = 26.0
_GAPS_MIN = 20  # of so few events each is a part of the picture
#: Height of a row, for up to so many rows.
_HEIGHTS = ((6, 46), (10, 38), (16, 30), (24, 24), (36, 19), (LANES_MAX, 15))


class Fold(NamedTuple):
    """A time in which nothing happens."""

    begin_ms: int
    end_ms: int


class Frame:
    """The lanes of a trace, and the places of times and rows. `top` is where the first row begins."""

    def __init__(self, trace: Trace, width: int) -> None:
        times = [event.at_ms for event in trace]
        self.begin_ms, self.end_ms = min(times, default=0), max(times, default=0)
        every = lanes_of(trace, self.end_ms)
        self.lanes: dict[str, Lane] = dict(list(every.items())[:LANES_MAX])
        self.partings = partings_of(trace, self.end_ms)
        arrange(self.lanes, self.partings)
        self.hidden = len(every) - len(self.lanes)
        self.width = float(min(max(width, WIDTH_MIN), WIDTH_MAX))
        names = max((wide(name) for name in self.lanes), default=0)
        self.left = _MARGIN + min(names, _NAME_MAX) + 14
        self.right = self.width - _MARGIN
        self.margin = float(_MARGIN)
        self.row_height = float(next(height for rows, height in _HEIGHTS if len(self.lanes) <= rows))
        self.top = 0.0
        self.names = {lane.row: lane.name for lane in self.lanes.values()}
        self.folds = folds_in(times)
        shown_ms = self.end_ms - self.begin_ms - sum(fold.end_ms - fold.begin_ms for fold in self.folds)
        self._shown_ms = max(1, shown_ms)
        self._scale = (self.right - self.left - 12 - _FOLD_WIDTH * len(self.folds)) / self._shown_ms

    @property
    def bottom(self) -> float:
        return self.top + self.row_height * max(1, len(self.lanes))

    @property
    def size(self) -> float:
        """Of a mark: from its middle to its edge."""
        return min(5.0, max(2.4, self.row_height * 0.13))

    def x(self, at_ms: int) -> float:
        """Where a time is. Folds are as wide as each other."""
        shown, folded = at_ms - self.begin_ms, 0.0
        for fold in self.folds:
            inside = min(max(at_ms - fold.begin_ms, 0), fold.end_ms - fold.begin_ms)
            shown -= inside
            folded += _FOLD_WIDTH * inside / (fold.end_ms - fold.begin_ms)
        return self.left + 6 + shown * self._scale + folded

    def y(self, row: int) -> float:
        """The middle of a row."""
        return self.top + self.row_height * (row + 0.5)

    def seconds(self, at_ms: int) -> str:
        return f"{(at_ms - self.begin_ms) / 1_000:.10g} s"

    def ticks(self) -> list[int]:
        """The round times of the axis, about eight: 1, 2 or 5 times a power of ten milliseconds."""
        step = 1
        while self._shown_ms > step * 10:
            step = step * 5 // 2 if str(step).startswith("2") else step * 2
        found: list[int] = []
        for begin, end in zip(
            (self.begin_ms, *(fold.end_ms for fold in self.folds)),
            (*(fold.begin_ms for fold in self.folds), self.end_ms),
            strict=True,
        ):
            first = -((self.begin_ms - begin) // step)
            found += range(self.begin_ms + first * step, end + 1, step)
        return found


def folds_in(times: list[int]) -> list[Fold]:
    """The times in which nothing happens for so long that the rest would be too narrow to see."""
    ordered = sorted(set(times))
    gaps = sorted((begin - end, begin, end) for begin, end in pairwise(ordered))  # the longest first
    left_ms = ordered[-1] - ordered[0] if ordered else 0
    folds: list[Fold] = []
    while len(gaps) >= _GAPS_MIN and len(folds) < FOLDS_MAX:
        _, begin_ms, end_ms = gaps[0]
        gap_ms = end_ms - begin_ms
        # A gap among others like it is no fold, nor is one that leaves room enough.
        if gap_ms * 4 < left_ms or gap_ms * len(gaps) < left_ms * 4:
            break
        folds.append(Fold(begin_ms, end_ms))
        left_ms -= gap_ms
        gaps.pop(0)
    return sorted(folds)
