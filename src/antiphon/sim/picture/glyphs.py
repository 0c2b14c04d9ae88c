"""`Glyph`: the sign for each kind of event, in the lanes and in the legend."""

from __future__ import annotations

from typing import NamedTuple

from antiphon.sim.picture.svg import Point, box, polyline, ring
from antiphon.sim.trace import Kind


class Glyph(NamedTuple):
    """A path around a point, its CSS classes, and the width of its line."""

    d: str
    classes: str
    stroke: float = 0


#: Texts of the legend by kind, in its order.
NAMES = {
    Kind.FOUND: "founds the party",
    Kind.JOIN: "joins",
    Kind.REVOKE: "is revoked",
    Kind.POLICY: "changes the policy",
    Kind.ERASE: "erases a message",
    Kind.DECLARE: "declares an epoch",
    Kind.ATTEST: "attests it",
    Kind.ENDORSE: "endorses a takeover",
    Kind.STAND: "reaches it",
    Kind.PRUNE: "prunes messages",
    Kind.SLEEP: "sleeps",
    Kind.CRASH: "crashes",
    Kind.RESTART: "restarts",
    Kind.SLOW: "is slow",
    Kind.FULL: "disk full",
    Kind.ROOM: "room again",
    Kind.REFUSE: "refuses",
    Kind.LIE: "lies",
}
#: Texts of tooltips, which follow the name of a peer.
TOOLTIPS = NAMES | {Kind.FULL: "has a full disk", Kind.ROOM: "has room again", Kind.WRITE: "writes"}
#: Distance from the line of a lane, in heights of a row: acts in the control feed are above it, pruning is below.
_OFFSETS = {Kind.DECLARE: -0.3, Kind.ATTEST: -0.3, Kind.ENDORSE: -0.3, Kind.PRUNE: 0.3}


def offset(kind: Kind) -> float:
    """Distance of a sign from the line of its lane, in heights of a row."""
    return _OFFSETS.get(kind, 0.0)


def glyph(kind: Kind, at: Point, size: float) -> Glyph:
    """The sign of a kind. `size` is its radius."""
    x, y = at
    s, thin = size, max(1.0, size * 0.3)
    if kind is Kind.DECLARE:
        r = s * 1.25
        return Glyph(polyline(((x, y - r), (x + r, y), (x, y + r), (x - r, y))) + "z", "epoch")
    if kind is Kind.ATTEST:
        return Glyph(ring(at, s * 0.62), "hollow epoch", thin)
    if kind is Kind.ENDORSE:
        return Glyph(_triangle(at, s * 1.05), "hollow epoch", thin)
    if kind is Kind.STAND:
        return Glyph(ring(at, s * 0.55), "epoch")
    if kind is Kind.PRUNE:
        return Glyph(polyline(((x - s * 0.8, y), (x + s * 0.8, y))), "line soft", thin * 1.4)
    if kind is Kind.SLEEP:
        return Glyph(_moon(at, s * 1.25), "fault")
    if kind is Kind.CRASH:
        arms = polyline(((x - s, y - s), (x + s, y + s))) + polyline(((x - s, y + s), (x + s, y - s)))
        return Glyph(arms, "line fault", thin * 1.6)
    if kind in (Kind.RESTART, Kind.WAKE):
        return Glyph(polyline(((x - s * 0.7, y - s), (x + s, y), (x - s * 0.7, y + s))) + "z", "fault")
    if kind is Kind.FULL:
        return Glyph(box(x - s * 0.8, y - s * 0.8, s * 1.6, s * 1.6), "fault")
    if kind is Kind.SLOW:
        glass = ((x - s * 0.8, y - s), (x + s * 0.8, y - s), (x - s * 0.8, y + s), (x + s * 0.8, y + s))
        return Glyph(polyline(glass) + "z", "hollow fault", thin)
    if kind is Kind.POLICY:
        return Glyph(box(x - s * 0.7, y - s, s * 1.4, s * 2), "hollow good", thin)
    if kind is Kind.ERASE:
        return Glyph(box(x - s, y - s * 0.3, s * 2, s * 0.6), "hollow fault", thin)
    if kind is Kind.ROOM:
        return Glyph(box(x - s * 0.8, y - s * 0.8, s * 1.6, s * 1.6), "hollow fault", thin)
    if kind is Kind.LIE:
        bang = box(x - s * 0.14, y - s * 0.35, s * 0.28, s * 0.7) + box(x - s * 0.14, y + s * 0.5, s * 0.28, s * 0.28)
        return Glyph(_triangle(at, s * 1.5) + bang, "wrong hole")
    if kind is Kind.REFUSE:
        slash = polyline(((x - s * 0.5, y + s * 0.5), (x + s * 0.5, y - s * 0.5)))
        return Glyph(ring(at, s * 0.75) + slash, "hollow wrong", thin)
    if kind is Kind.REVOKE:
        return Glyph(polyline(((x, y - s * 1.5), (x, y + s * 1.5))), "line wrong", thin * 2.2)
    return Glyph(ring(at, s * 0.85), "good" if kind is Kind.FOUND else "hollow good", 0 if kind is Kind.FOUND else thin)


def _triangle(at: Point, r: float) -> str:
    x, y = at
    return polyline(((x, y - r * 0.85), (x + r * 0.9, y + r * 0.7), (x - r * 0.9, y + r * 0.7))) + "z"


def _moon(at: Point, r: float) -> str:
    x, y = at
    outer, inner = f"{r:.1f} {r:.1f}", f"{r * 0.82:.1f} {r * 0.82:.1f}"
    tip = f"{x + r * 0.45:.1f} {y - r * 0.9:.1f}"
    return f"M{tip}A{outer} 0 1 0 {x + r * 0.9:.1f} {y + r * 0.45:.1f}A{inner} 0 1 1 {tip}z"
