"""`Sheet`: builds an SVG document. Shapes have CSS classes and tooltips. The style of each class, in light and in dark
mode, is defined in one place. The document is self-contained: no script, no font, no link.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

TEXT_MAX = 200
#: Estimated widths of letters relative to the font size, a little more than in most fonts.
_WIDTHS = {**dict.fromkeys("fijlrt.,:;·|()' ", 0.36), **dict.fromkeys("mwMW", 0.92)}
_WIDTH = 0.6

Point = tuple[float, float]

#: Each in light and in dark mode.
_COLOURS = {
    "paper": ("#ffffff", "#12161c"),
    "ink": ("#1d2430", "#e4e8ee"),
    "soft": ("#68717f", "#96a0ae"),
    "faint": ("#e7eaef", "#252c36"),
    "lane": ("#c3cad4", "#465161"),
    "write": ("#2f6fde", "#6ea6ff"),
    "take": ("#5c7796", "#7f9ab8"),
    "epoch": ("#7b3fe4", "#b692ff"),
    "odd": ("#e6dcfa", "#3a2d5c"),
    "even": ("#cdbcf3", "#503c80"),
    "fault": ("#c76a00", "#ffae4d"),
    "wrong": ("#d11f3a", "#ff6b7f"),
    "good": ("#16834a", "#4fcf8b"),
    "g0": ("#0f9d94", "#2bc4ba"),
    "g1": ("#e0a100", "#e9b949"),
    "g2": ("#d2508f", "#e879ae"),
    "g3": ("#5b7be0", "#8fa6f2"),
}
_FILLED = ("write", "epoch", "odd", "even", "fault", "wrong", "good", "lane")
_DRAWN = ("lane", "take", "epoch", "fault", "wrong", "good", "faint", "soft")
_PLAIN = """
text{font:12px system-ui,"Segoe UI","DejaVu Sans",sans-serif}
.title{font-size:17px;font-weight:600}
.small{font-size:10.5px}
.bold{font-weight:600}
.end{text-anchor:end}
.middle{text-anchor:middle}
.line{fill:none;stroke-linecap:round;stroke-linejoin:round}
.dash{stroke-dasharray:2 4}
.dots{stroke-dasharray:.1 4}
.group{fill-opacity:.13}
.arrow{stroke-opacity:.5}
.hole{fill-rule:evenodd}
"""


class Sheet:
    """The shapes of a picture, in painting order."""

    def __init__(self, width: float) -> None:
        self.width = width
        self._shapes: list[str] = []

    def path(self, d: str, classes: str, tip: str = "", *, stroke: float = 0) -> None:
        """Add a path; `stroke` is the width of its line, if it has one."""
        extra = f' stroke-width="{fixed(stroke)}"' if stroke else ""
        self._add("path", f'd="{d}"{extra}', classes, tip)

    def sign(self, at: Point, d: str, classes: str, *, stroke: float = 0) -> None:
        """Add a path that was made around (0, 0), moved to a point."""
        extra = f' stroke-width="{fixed(stroke)}"' if stroke else ""
        self._add("path", f'd="{d}"{extra} transform="translate({fixed(at[0])} {fixed(at[1])})"', classes, "")

    def circle(self, at: Point, radius: float, classes: str, tip: str = "") -> None:
        """Add a circle."""
        self._add("circle", f'cx="{fixed(at[0])}" cy="{fixed(at[1])}" r="{fixed(radius)}"', classes, tip)

    def text(self, at: Point, text: str, classes: str, tip: str = "") -> None:
        """Add a text."""
        inside = _title(tip) + escape(shorten(text))
        self._shapes.append(f'<text x="{fixed(at[0])}" y="{fixed(at[1])}" class={quoteattr(classes)}>{inside}</text>')

    def document(self, height: float, title: str) -> str:
        """The complete SVG."""
        size = f'width="{fixed(self.width)}" height="{fixed(height)}"'
        box = f'viewBox="0 0 {fixed(self.width)} {fixed(height)}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">',
            _title(title),
            f"<style>{_style()}</style>",
            f'<rect class="paper" width="{fixed(self.width)}" height="{fixed(height)}" rx="8"/>',
            *self._shapes,
            "</svg>\n",
        ]
        return "\n".join(line for line in lines if line)

    def _add(self, name: str, attributes: str, classes: str, tip: str) -> None:
        head = f"<{name} class={quoteattr(classes)} {attributes}"
        self._shapes.append(f"{head}>{_title(tip)}</{name}>" if tip else f"{head}/>")


def fixed(value: float) -> str:
    """Format a length with at most one decimal, the same on every machine.

    >>> fixed(3.0), fixed(2.449), fixed(-0.01)
    ('3', '2.4', '0')
    """
    tenths = round(value * 10)
    return f"{tenths // 10}" if tenths % 10 == 0 else f"{tenths / 10:.1f}"


def shorten(text: str, limit: int = TEXT_MAX) -> str:
    """Cut a text to `limit` characters, and replace those that XML forbids."""
    kept = "".join(letter if letter.isprintable() else " " for letter in text[: limit + 1])
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def text_width(text: str, size: float = 12) -> float:
    """The estimated width of a text."""
    return sum(_WIDTHS.get(letter, _WIDTH) for letter in text) * size


def polyline(points: Iterable[Point]) -> str:
    """A line through points, as a part of a path."""
    return "M" + "L".join(f"{fixed(x)} {fixed(y)}" for x, y in points)


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle, as a part of a path."""
    return f"M{fixed(x)} {fixed(y)}h{fixed(width)}v{fixed(height)}h{fixed(-width)}z"


def ring(at: Point, radius: float) -> str:
    """A circle, as a part of a path, so that many circles are one shape."""
    radius = round(radius * 10) / 10  # rounded before it is doubled, or else the halves do not meet
    r, twice = fixed(radius), fixed(2 * radius)
    return f"M{fixed(at[0] - radius)} {fixed(at[1])}a{r} {r} 0 1 0 {twice} 0a{r} {r} 0 1 0 -{twice} 0z"


def _title(tip: str) -> str:
    return f"<title>{escape(shorten(tip))}</title>" if tip else ""


def _style() -> str:
    day, night = (_rules({name: pair[which] for name, pair in _COLOURS.items()}) for which in (0, 1))
    return f"{_PLAIN}{day}@media (prefers-color-scheme:dark){{\n{night}}}\n"


def _rules(colour: dict[str, str]) -> str:
    rules = [f".paper{{fill:{colour['paper']}}}", f"text{{fill:{colour['ink']}}}"]
    rules += [f".{name}{{fill:{colour[name]}}}" for name in (*_FILLED, "g0", "g1", "g2", "g3")]
    rules += [f".line.{name}{{fill:none;stroke:{colour[name]}}}" for name in _DRAWN]
    rules += [f".hollow.{name}{{fill:{colour['paper']};stroke:{colour[name]}}}" for name in _DRAWN]
    rules += [f".dot{{stroke:{colour['paper']}}}"]
    rules += [f"text.{name}{{fill:{colour[name]}}}" for name in ("soft", "epoch", "wrong", "good")]
    return "\n".join(rules) + "\n"
