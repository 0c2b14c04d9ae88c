"""`EpochLine`: an epoch as it reaches one peer after the other, and the line that it draws across the lanes."""

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
_APART = 40.0  # from where most others are: who slept does not bend the line


class EpochLine(NamedTuple):
    """Where each row came to stand on an epoch, by the place on the time axis."""

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
        """Where it begins, at the top."""
        return self.near[min(self.near)]

    def crosses(self, row: int) -> float:
        """Where the line is on the row of somebody who came much later, or earlier."""
        above = max((other for other in self.near if other < row), default=-1)
        below = min((other for other in self.near if other > row), default=-1)
        if above < 0 or below < 0:
            return self.near[max(above, below)]
        share = (row - above) / (below - above)
        return self.near[above] * (1 - share) + self.near[below] * share


class EpochLines:
    """The epochs of a picture: of very many some, the first and the last among them."""

    def __init__(self, frame: Frame) -> None:
        found: dict[tuple[int, str], dict[int, float]] = {}
        for lane in frame.lanes.values():
            for stand in lane.stands:
                found.setdefault((stand.number, stand.cid), {}).setdefault(lane.row, frame.x(stand.at_ms))
        every = sorted(found)
        last = len(every) - 1
        kept = every if last < EPOCHS_MAX else [every[n * last // (EPOCHS_MAX - 1)] for n in range(EPOCHS_MAX)]
        self._fronts = [_front(number, cid, found[number, cid]) for number, cid in kept]
        numbers = [front.number for front in self._fronts]
        self._twice = {number for number in numbers if numbers.count(number) > 1}
        self._labels = self._place(frame)

    @property
    def height(self) -> float:
        """Of the labels, over the lanes."""
        return LABEL_HEIGHT * (1 + max((row for _, row in self._labels), default=-1))

    def draw(self, sheet: Sheet, frame: Frame, trace: Trace) -> None:
        for front, (x, label_row) in zip(self._fronts, self._labels, strict=True):
            # Two snapshots of one number: peers do not agree, which no run should ever show.
            colour = "wrong" if front.number in self._twice else "epoch"
            standing = len(front.near) + len(front.apart)
            tip = f"epoch {front.number}: {standing} of {len(frame.lanes)} peers stand on {front.cid}"
            label = (x, frame.top - 8 - LABEL_HEIGHT * label_row)
            _draw_line(sheet, frame, front, colour, tip, label)
            sheet.text(label, front.label, f"small bold middle {colour}", tip)
        _draw_attested(sheet, frame, trace)

    def _place(self, frame: Frame) -> list[tuple[float, int]]:
        """Where the labels go: over the heads of their lines, in the lowest row that is free there."""
        ends = [-1e9] * _LABEL_ROWS
        placed = {}
        for n, front in sorted(enumerate(self._fronts), key=lambda one: (one[1].head, one[0])):
            half = text_width(front.label, 10.5) / 2 + 4
            x = min(max(front.head, frame.left + half), frame.right - half)
            free = (row for row, end in enumerate(ends) if end <= x - half)
            row = next(free, min(range(_LABEL_ROWS), key=lambda row: ends[row]))
            ends[row] = x + half
            placed[n] = (x, row)
        return [placed[n] for n in range(len(self._fronts))]


def _front(number: int, cid: str, places: dict[int, float]) -> EpochLine:
    middle = sorted(places.values())[(len(places) - 1) // 2]
    near = {row: x for row, x in places.items() if abs(x - middle) <= _APART}
    return EpochLine(number, cid, near, {row: x for row, x in places.items() if row not in near})


def _draw_line(sheet: Sheet, frame: Frame, front: EpochLine, colour: str, tip: str, label: Point) -> None:
    points = [(x, frame.y(row)) for row, x in sorted(front.near.items())]
    head = ((label[0], label[1] + 3), (front.head, frame.top))
    sheet.path(polyline((*head, *points)), f"line {colour}", tip, stroke=1.4)
    apart = [(x, frame.y(row)) for row, x in sorted(front.apart.items())]
    if apart:
        waits = ((front.crosses(row), x, frame.y(row)) for row, x in sorted(front.apart.items()))
        sheet.path("".join(polyline(((x0, y), (x, y))) for x0, x, y in waits), f"line {colour} dots", tip, stroke=1.4)
    sheet.path("".join(glyph(Kind.STAND, at, frame.size).d for at in (*points, *apart)), colour, tip)


def _draw_attested(sheet: Sheet, frame: Frame, trace: Trace) -> None:
    """Who attested an epoch, and when: one shape for each epoch."""
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
