"""`EpochLines`: each epoch as a line across the lanes, through the times at which peers reached it."""

from __future__ import annotations

from typing import NamedTuple

from antiphon.sim.picture.frame import Frame
from antiphon.sim.picture.glyphs import glyph, offset
from antiphon.sim.picture.svg import Point, Sheet, polyline, text_width
from antiphon.sim.trace import Kind, Trace

EPOCHS_MAX = 24
LABEL_HEIGHT = 15.0
_LABEL_ROWS = 3
_CID_PREFIX = 7  # version, codec and hash function: the same for all snapshots
_APART = 40.0  # peers that are further from the median do not bend the line, for example after a sleep


class EpochLine(NamedTuple):
    """The x coordinate at which each row reached an epoch, near the line and apart from it."""

    number: int
    cid: str
    near: dict[int, float]
    apart: dict[int, float]

    @property
    def label(self) -> str:
        letters = self.cid[_CID_PREFIX:] if self.cid.startswith("baf") else self.cid
        return f"{self.number} · {letters[:6]}" if letters else f"{self.number}"

    @property
    def head(self) -> float:
        """The x coordinate of its upper end."""
        return self.near[min(self.near)]

    def crosses(self, row: int) -> float:
        """The x coordinate of the line on the row of a peer that is apart from it."""
        above = max((other for other in self.near if other < row), default=-1)
        below = min((other for other in self.near if other > row), default=-1)
        if above < 0 or below < 0:
            return self.near[max(above, below)]
        share = (row - above) / (below - above)
        return self.near[above] * (1 - share) + self.near[below] * share


class EpochLines:
    """The lines of a picture: all epochs, or a selection if there are very many, the first and the last included."""

    def __init__(self, frame: Frame) -> None:
        found: dict[tuple[int, str], dict[int, float]] = {}
        for lane in frame.lanes.values():
            for stand in lane.stands:
                found.setdefault((stand.number, stand.cid), {}).setdefault(lane.row, frame.x(stand.at_ms))
        every = sorted(found)
        last = len(every) - 1
        kept = every if last < EPOCHS_MAX else [every[n * last // (EPOCHS_MAX - 1)] for n in range(EPOCHS_MAX)]
        self._lines = [_line(number, cid, found[number, cid]) for number, cid in kept]
        numbers = [line.number for line in self._lines]
        self._twice = {number for number in numbers if numbers.count(number) > 1}
        self._labels = self._place(frame)

    @property
    def height(self) -> float:
        """The height of the labels above the lanes."""
        return LABEL_HEIGHT * (1 + max((row for _, row in self._labels), default=-1))

    def draw(self, sheet: Sheet, frame: Frame, trace: Trace) -> None:
        for line, (x, label_row) in zip(self._lines, self._labels, strict=True):
            # Two snapshots of one epoch: peers disagree, which no run should show.
            colour = "wrong" if line.number in self._twice else "epoch"
            standing = len(line.near) + len(line.apart)
            tip = f"epoch {line.number}: {standing} of {len(frame.lanes)} peers reach {line.cid}"
            label = (x, frame.top - 8 - LABEL_HEIGHT * label_row)
            _draw_line(sheet, frame, line, colour, tip, label)
            sheet.text(label, line.label, f"small bold middle {colour}", tip)
        _draw_attested(sheet, frame, trace)

    def _place(self, frame: Frame) -> list[tuple[float, int]]:
        """Positions of the labels: above their lines, in the lowest row with room."""
        ends = [-1e9] * _LABEL_ROWS
        placed = {}
        for n, line in sorted(enumerate(self._lines), key=lambda one: (one[1].head, one[0])):
            half = text_width(line.label, 10.5) / 2 + 4
            x = min(max(line.head, frame.left + half), frame.right - half)
            free = (row for row, end in enumerate(ends) if end <= x - half)
            row = next(free, min(range(_LABEL_ROWS), key=lambda row: ends[row]))
            ends[row] = x + half
            placed[n] = (x, row)
        return [placed[n] for n in range(len(self._lines))]


def _line(number: int, cid: str, places: dict[int, float]) -> EpochLine:
    middle = sorted(places.values())[(len(places) - 1) // 2]
    near = {row: x for row, x in places.items() if abs(x - middle) <= _APART}
    return EpochLine(number, cid, near, {row: x for row, x in places.items() if row not in near})


def _draw_line(sheet: Sheet, frame: Frame, line: EpochLine, colour: str, tip: str, label: Point) -> None:
    points = [(x, frame.y(row)) for row, x in sorted(line.near.items())]
    head = ((label[0], label[1] + 3), (line.head, frame.top))
    sheet.path(polyline((*head, *points)), f"line {colour}", tip, stroke=1.4)
    apart = [(x, frame.y(row)) for row, x in sorted(line.apart.items())]
    if apart:
        waits = ((line.crosses(row), x, frame.y(row)) for row, x in sorted(line.apart.items()))
        sheet.path("".join(polyline(((x0, y), (x, y))) for x0, x, y in waits), f"line {colour} dots", tip, stroke=1.4)
    sheet.path("".join(glyph(Kind.STAND, at, frame.size).d for at in (*points, *apart)), colour, tip)


def _draw_attested(sheet: Sheet, frame: Frame, trace: Trace) -> None:
    """Draw the attestations, one shape for each epoch."""
    places: dict[int, dict[int, float]] = {}
    for event in trace.of(Kind.ATTEST):
        lane = frame.lanes.get(event.peer)
        if lane is not None:
            places.setdefault(event.number, {}).setdefault(lane.row, frame.x(event.at_ms))
    raised = frame.row_height * offset(Kind.ATTEST)
    for number, rows in sorted(places.items())[-EPOCHS_MAX:]:
        signs = [glyph(Kind.ATTEST, (x, frame.y(row) + raised), frame.size) for row, x in sorted(rows.items())]
        who = ", ".join(frame.names[row] for row in sorted(rows))
        d, one = "".join(sign.d for sign in signs), signs[0]
        sheet.path(d, one.classes, f"epoch {number}: attested by {who}", stroke=one.stroke)
