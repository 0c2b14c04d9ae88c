"""The lower part of a picture: a legend of the signs that occur in it, and the laws that were checked."""

from __future__ import annotations

from antiphon.sim.picture.frame import Frame
from antiphon.sim.picture.glyphs import NAMES, Glyph, glyph
from antiphon.sim.picture.svg import Sheet, box, polyline, shorten, text_width
from antiphon.sim.trace import Event, Kind, Trace

CHECKS_MAX = 24
_LINE = 20.0
_TICK = polyline(((-4, 0), (-1, 3.5), (5, -4)))
_CROSS = polyline(((-4, -4), (4, 4))) + polyline(((-4, 4), (4, -4)))


def summary(frame: Frame, trace: Trace) -> str:
    """Summarise a run in one line."""
    writes = sum(event.count for event in trace.of(Kind.WRITE))
    epochs = {stand.number for lane in frame.lanes.values() for stand in lane.stands}
    counts = trace.counts()
    parts = [_many(len(frame.lanes) + frame.hidden, "peer"), _many(writes, "message"), _many(len(epochs), "epoch")]
    for kind, name in (
        (Kind.PART, "partition"),
        (Kind.SLEEP, "sleep"),
        (Kind.CRASH, "crash"),
        (Kind.FULL, "full disk"),
        (Kind.SLOW, "slow peer"),
        (Kind.LIE, "lie"),
    ):
        if counts[kind]:
            parts.append(_many(counts[kind], name))
    return " · ".join([*parts, f"{(frame.end_ms - frame.begin_ms) / 1_000:,.1f} s of virtual time"])


def draw_legend(sheet: Sheet, frame: Frame, trace: Trace, y: float) -> float:
    """Draw the legend of the signs in the picture. Return the y coordinate of its end."""
    counts = trace.counts()
    size = 4.6
    samples: list[tuple[Glyph, str]] = []
    if counts[Kind.WRITE]:
        samples.append((Glyph("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "write"), "writes messages"))
    if counts[Kind.TAKE]:
        samples.append((Glyph("M-7 0H7m-4 -3l4 3l-4 3", "line take", 1.2), "takes them from another"))
    samples += [(glyph(kind, (0, 0), size), name) for kind, name in NAMES.items() if counts[kind]]
    if counts[Kind.PART]:
        samples.append((Glyph(box(-8, -6, 16, 12), "group g0"), "cannot hear other colours"))
    if counts[Kind.QUIET]:
        samples.append((Glyph(polyline(((0, -7), (0, 7))), "line good dash", 1.2), "all is quiet"))
    x = frame.margin
    for sign, name in samples:
        width = 26 + text_width(name)
        if x + width > frame.right:
            x, y = frame.margin, y + _LINE
        sheet.sign((x + 8, y - 4), sign.d, sign.classes, stroke=sign.stroke)
        sheet.text((x + 20, y), name, "soft")
        x += width + 8
    return y + _LINE


def draw_checks(sheet: Sheet, frame: Frame, trace: Trace, y: float) -> float:
    """Draw the laws that were checked, and their results. Return the y coordinate of the end."""
    checks = trace.of(Kind.CHECK)
    # Broken laws first, because the list is limited.
    checks = sorted(checks, key=lambda check: not check.text)[:CHECKS_MAX]
    x, y = frame.margin, y + 6
    for check in checks:
        label, good = _law(check), not check.text
        text = label if good else f"{label}: {shorten(check.text.removeprefix(f'{label}: '), 120)}"
        width = 26 + text_width(text)
        if x > frame.margin and (x + width > frame.right or not good):
            x, y = frame.margin, y + _LINE
        sheet.sign((x + 8, y - 4), _TICK if good else _CROSS, "line good" if good else "line wrong", stroke=2)
        sheet.text((x + 20, y), text, "" if good else "bold wrong", check.text)
        x = x + width + 8 if good else frame.right
    return y + _LINE


def _law(check: Event) -> str:
    return check.other or check.peer or (f"law {check.number}" if check.number else "checked")


def _many(count: int, name: str) -> str:
    plural = name[:-2] + "shes" if name.endswith("sh") else f"{name}s"
    return f"{count:,} {name if count == 1 else plural}"
