"""`Mark`s: events on the lanes. Events of one kind that are close together become one mark with a count. The more marks
there are, the larger the distance that counts as close, so the size of a picture is bounded for any trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

from antiphon.sim.picture.frame import Frame
from antiphon.sim.picture.glyphs import TOOLTIPS, glyph, offset
from antiphon.sim.picture.lanes import subject
from antiphon.sim.picture.svg import Sheet, fixed, polyline
from antiphon.sim.trace import Event, Kind, Trace

WRITES_MAX = 140
TAKES_MAX = 90
MARKS_MAX = 110
COMMON_MAX = 20
_NEAR = 7.0
_COLUMN = 16.0
#: Kinds that are drawn one by one, the most important first. The last ones are left out if there are too many.
_TELLING = (
    Kind.LIE,
    Kind.CRASH,
    Kind.FOUND,
    Kind.REVOKE,
    Kind.DECLARE,
    Kind.ENDORSE,
    Kind.FULL,
    Kind.SLEEP,
    Kind.RESTART,
    Kind.ROOM,
    Kind.SLOW,
    Kind.POLICY,
    Kind.ERASE,
)
_COMMON = (Kind.REFUSE, Kind.PRUNE)


class Mark(NamedTuple):
    """Events of one kind on one lane that are close together."""

    kind: Kind
    row: int
    first_ms: int
    last_ms: int
    times: int
    amount: int
    text: str

    @property
    def middle_ms(self) -> int:
        return (self.first_ms + self.last_ms) // 2


def gather(frame: Frame, events: Iterable[Event], limit: int) -> list[Mark]:
    """Join events into at most `limit` marks, if joining neighbours suffices."""
    marks: list[Mark] = []
    for event in events:
        lane = frame.lanes.get(subject(event))
        if lane is not None:
            marks.append(Mark(event.kind, lane.row, event.at_ms, event.at_ms, 1, event.count, _word(event)))
    near = _NEAR
    marks = _join(frame, marks, near)
    while len(marks) > limit and near < frame.width:
        near *= 1.5
        marks = _join(frame, marks, near)
    return marks


def draw_writes(sheet: Sheet, frame: Frame, trace: Trace) -> None:
    """Draw writes as dots whose area is the number of messages."""
    marks = gather(frame, trace.of(Kind.WRITE), WRITES_MAX)
    most = max((mark.amount for mark in marks), default=1)
    largest = min(9.0, frame.row_height * 0.3)
    for mark in marks:
        radius = max(1.8, largest * sqrt(mark.amount / max(most, 1)))
        sheet.circle((frame.x(mark.middle_ms), frame.y(mark.row)), radius, "dot write", _tip(frame, mark))


def draw_takes(sheet: Sheet, frame: Frame, trace: Trace) -> None:
    """Draw received messages as thin arrows from lane to lane; of many at one time, those with the most messages."""
    sums: Counter[tuple[int, int, int]] = Counter()
    last: dict[tuple[int, int, int], int] = {}
    for event in trace.of(Kind.TAKE):
        source, taker = frame.lanes.get(event.other), frame.lanes.get(event.peer)
        if source is not None and taker is not None and source is not taker:
            key = (int(frame.x(event.at_ms) / _COLUMN), source.row, taker.row)
            sums[key] += max(1, event.count)
            last[key] = event.at_ms
    columns: Counter[int] = Counter()
    ranked = []
    for key, count in sorted(sums.items(), key=lambda pair: (-pair[1], pair[0])):
        ranked.append((columns[key[0]], -count, key))
        columns[key[0]] += 1
    for _, negative, key in sorted(sorted(ranked)[:TAKES_MAX], key=lambda one: one[2]):
        _, source_row, taker_row = key
        tip = f"{frame.seconds(last[key])}: {frame.names[taker_row]} takes {-negative} from {frame.names[source_row]}"
        _arrow(sheet, frame, (source_row, taker_row), last[key], -negative, tip)


def draw_marks(sheet: Sheet, frame: Frame, trace: Trace) -> None:
    """Draw the events of single peers: acts about epochs, faults, attacks."""
    telling = gather(frame, trace.of(*_TELLING), MARKS_MAX)
    marks = sorted(telling, key=lambda mark: _TELLING.index(mark.kind))[:MARKS_MAX]
    for kind in _COMMON:
        marks += gather(frame, trace.of(kind), COMMON_MAX)[:COMMON_MAX]
    for mark in reversed(marks):  # the most important on top
        y = frame.y(mark.row) + frame.row_height * offset(mark.kind)
        sign = glyph(mark.kind, (frame.x(mark.middle_ms), y), frame.size)
        sheet.path(sign.d, sign.classes, _tip(frame, mark), stroke=sign.stroke)


# -- inside


def _join(frame: Frame, marks: list[Mark], near: float) -> list[Mark]:
    """Join neighbouring marks of one kind that are within a distance."""
    found: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.row, mark.kind, mark.first_ms)):
        before = found[-1] if found else None
        if (
            before is not None
            and (before.row, before.kind) == (mark.row, mark.kind)
            and frame.x(mark.last_ms) - frame.x(before.first_ms) < near
        ):
            found[-1] = before._replace(
                last_ms=mark.last_ms,
                times=before.times + mark.times,
                amount=before.amount + mark.amount,
                text=before.text if before.text == mark.text else "",
            )
        else:
            found.append(mark)
    return found


def _arrow(sheet: Sheet, frame: Frame, rows: tuple[int, int], at_ms: int, count: int, tip: str) -> None:
    source, taker = rows
    down = 1 if taker > source else -1
    x, y0 = frame.x(at_ms), frame.y(source)
    y1 = frame.y(taker) - down * frame.row_height * 0.12
    # The arrow starts a little to the left, so that its direction in time is visible, whatever the distance of lanes.
    x0, wing = x - 9, min(3.2, frame.row_height * 0.12)
    curve = (x0 + 7, y0, x, y1 - down * 9, x, y1)
    barbs = ((x - wing, y1 - down * wing * 1.4), (x, y1), (x + wing, y1 - down * wing * 1.4))
    d = f"M{fixed(x0)} {fixed(y0)}C{' '.join(map(fixed, curve))}{polyline(barbs)}"
    sheet.path(d, "line take arrow", tip, stroke=min(2.2, 0.7 + sqrt(count) * 0.12))


def _word(event: Event) -> str:
    number = f"epoch {event.number}" if event.number else ""
    return ", ".join(filter(None, (number, event.text)))


def _tip(frame: Frame, mark: Mark) -> str:
    name = frame.names[mark.row]
    first, last = frame.seconds(mark.first_ms), frame.seconds(mark.last_ms)
    when = first if first == last else f"{first} to {last}"
    what = TOOLTIPS[mark.kind] + (f" {mark.amount}" if mark.amount else "")
    often = f" ({mark.times} times)" if mark.times > 1 and mark.kind is not Kind.WRITE else ""
    return f"{when}: {name} {what}{often}" + (f": {mark.text}" if mark.text else "")
