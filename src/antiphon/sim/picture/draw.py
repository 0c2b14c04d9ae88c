"""`draw`: a trace as a self-contained SVG picture.

Each peer has a lane; time runs to the right. Dots are messages that the peer wrote, arrows are messages that it
received from others. The band behind a lane changes its shade where the peer reaches the next epoch, and a line
connects these positions across the lanes.
"""

from __future__ import annotations

from antiphon.sim.picture.epoch_lines import EpochLines
from antiphon.sim.picture.frame import Frame
from antiphon.sim.picture.glyphs import glyph
from antiphon.sim.picture.lanes import Lane
from antiphon.sim.picture.legend import draw_checks, draw_legend, summary
from antiphon.sim.picture.marks import draw_marks, draw_takes, draw_writes
from antiphon.sim.picture.svg import Sheet, box, polyline, shorten
from antiphon.sim.trace import Kind, Trace

PARTITIONS_MAX = 16
_GROUP_COLOURS = 4
_TICK_ROOM = 28.0


def draw(trace: Trace, *, title: str = "", width: int = 1200) -> str:
    """Draw a run as SVG. Equal traces give equal bytes."""
    frame = Frame(trace, width)
    sheet = Sheet(frame.width)
    lines = EpochLines(frame)
    y = 30.0
    if title:
        sheet.text((frame.margin, y), title, "title")
        y += 20
    sheet.text((frame.margin, y), summary(frame, trace), "soft")
    frame.top = y + 16 + lines.height
    _draw_partitions(sheet, frame)
    _draw_axis(sheet, frame, trace)
    _draw_lanes(sheet, frame)
    draw_takes(sheet, frame, trace)
    lines.draw(sheet, frame, trace)
    draw_writes(sheet, frame, trace)
    _draw_breaks(sheet, frame)
    _draw_joins(sheet, frame, trace)
    draw_marks(sheet, frame, trace)
    y = draw_legend(sheet, frame, trace, frame.bottom + 44)
    y = draw_checks(sheet, frame, trace, y)
    return sheet.document(y, title or "A simulated party")


# -- inside


def _draw_partitions(sheet: Sheet, frame: Frame) -> None:
    """Draw the duration of each partition, with its groups in different colours."""
    for partition in frame.partitions[:PARTITIONS_MAX]:
        x0, x1 = frame.x(partition.begin_ms), frame.x(partition.end_ms)
        when = f"parted from {frame.seconds(partition.begin_ms)} to {frame.seconds(partition.end_ms)}"
        for n, group in enumerate(partition.groups):
            rows = [frame.lanes[name].row for name in group if name in frame.lanes]
            if rows:
                d = "".join(box(x0, frame.y(row) - frame.row_height / 2, x1 - x0, frame.row_height) for row in rows)
                sheet.path(d, f"group g{n % _GROUP_COLOURS}", f"{when}: {' '.join(group)}")
        sides = "".join(polyline(((x, frame.top), (x, frame.bottom))) for x in (x0, x1))
        sheet.path(sides, "line soft dash", when, stroke=1)


def _draw_axis(sheet: Sheet, frame: Frame, trace: Trace) -> None:
    torn = [(frame.x(gap.begin_ms) + frame.x(gap.end_ms)) / 2 for gap in frame.breaks]
    ticks = [at for at in frame.ticks() if all(abs(frame.x(at) - x) > _TICK_ROOM for x in torn)]
    grid = "".join(polyline(((frame.x(at), frame.top), (frame.x(at), frame.bottom + 5))) for at in ticks)
    sheet.path(grid, "line faint", stroke=1)
    for at in ticks:
        sheet.text((frame.x(at), frame.bottom + 18), frame.seconds(at), "small soft middle")
    for event in trace.of(Kind.QUIET)[-1:]:
        x = frame.x(event.at_ms)
        line = polyline(((x, frame.top), (x, frame.bottom + 5)))
        sheet.path(line, "line good dash", "nothing is on its way any more", stroke=1.2)


def _draw_lanes(sheet: Sheet, frame: Frame) -> None:
    """Draw the names, the bands of the epochs, and the lines with their gaps."""
    for lane in frame.lanes.values():
        name = shorten(lane.name, 18)
        classes = "end bold wrong" if lane.lies else "end bold"
        sheet.text((frame.left - 8, frame.y(lane.row) + 4), name, classes, lane.name)
    if frame.hidden:
        sheet.text((frame.left - 8, frame.bottom + 32), f"and {frame.hidden} more", "small soft end")
    bands = {"odd": "", "even": ""}
    lines, gaps, full = "", "", ""
    half = frame.row_height * 0.2
    for lane in frame.lanes.values():
        y, end_ms = frame.y(lane.row), lane.end_ms if lane.revoked_ms is None else lane.revoked_ms
        for number, begin, end in lane.bands(end_ms):
            x = frame.x(begin)
            bands["odd" if number % 2 else "even"] += box(x, y - half, frame.x(end) - x, 2 * half)
        for begin, end in lane.present():
            if begin < end_ms:
                lines += polyline(((frame.x(begin), y), (frame.x(min(end, end_ms)), y)))
        if lane.revoked_ms is not None:
            gaps += polyline(((frame.x(lane.revoked_ms), y), (frame.x(lane.end_ms), y)))
        full += "".join(_stripe(frame, lane, kind) for kind in (Kind.FULL,))
    for name, d in bands.items():
        if d:
            sheet.path(d, name)
    _draw_absences(sheet, frame)
    for d, classes, stroke in ((gaps, "line lane dash", 1.2), (lines, "line lane", 1.6), (full, "line fault", 3)):
        if d:
            sheet.path(d, classes, stroke=stroke)


def _stripe(frame: Frame, lane: Lane, kind: Kind) -> str:
    y = frame.y(lane.row)
    spans = [absence for absence in lane.absences if absence.kind is kind]
    return "".join(polyline(((frame.x(span.begin_ms), y), (frame.x(span.end_ms), y))) for span in spans)


def _draw_absences(sheet: Sheet, frame: Frame) -> None:
    """Draw absences: the band of a sleeping peer is empty with a dashed edge; a peer that is down has no band."""
    half = frame.row_height * 0.2
    asleep, down = "", ""
    for lane in frame.lanes.values():
        for span in lane.absences:
            x, y = frame.x(span.begin_ms), frame.y(lane.row) - half
            part = box(x, y, frame.x(span.end_ms) - x, 2 * half)
            asleep += part if span.kind is Kind.SLEEP else ""
            down += part if span.kind is Kind.CRASH else ""
    if asleep:
        sheet.path(asleep, "hollow fault dash", "asleep: hears nothing", stroke=1)
    if down:
        sheet.path(down, "paper", "down")


def _draw_breaks(sheet: Sheet, frame: Frame) -> None:
    """Draw breaks in time, where nothing happens, across all lanes."""
    for gap in frame.breaks:
        x0, x1 = frame.x(gap.begin_ms) + 4, frame.x(gap.end_ms) - 4
        length = frame.seconds(frame.begin_ms + gap.end_ms - gap.begin_ms)
        top, height = frame.top - 2, frame.bottom - frame.top + 4
        sheet.path(box(x0, top, x1 - x0, height), "paper", f"nothing happens for {length}")
        sheet.path("".join(_wave(x, top, height) for x in (x0, x1)), "line lane", stroke=1)
        sheet.text(((x0 + x1) / 2, frame.bottom + 18), "…", "small soft middle", f"nothing happens for {length}")


def _wave(x: float, top: float, height: float) -> str:
    count = max(2, int(height / 12))
    step = height / count
    return polyline((x + (2.5 if n % 2 else -2.5), top + step * n) for n in range(count + 1))


def _draw_joins(sheet: Sheet, frame: Frame, trace: Trace) -> None:
    joins = {event.peer: event.at_ms for event in reversed(trace.of(Kind.JOIN)) if event.peer in frame.lanes}
    places = [(frame.x(at), frame.y(frame.lanes[name].row)) for name, at in sorted(joins.items())]
    signs = [glyph(Kind.JOIN, place, frame.size) for place in places]
    if signs:
        sheet.path("".join(sign.d for sign in signs), signs[0].classes, "joins", stroke=signs[0].stroke)
