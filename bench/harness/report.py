"""The frame of every benchmark: `--quick`, `--json`, alternating rounds, goals, tables.

With `--json` the last line of stdout is one object: `goals` (name, value, goal, met), the raw figures, and the machine.
A goal whose value could not be measured, say because an anchor is not installed, has the value null and is not met.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

_WIDTH = 118


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure that the benchmark holds the code to."""

    name: str
    value: float | None
    goal: float
    met: bool

    @classmethod
    def at_least(cls, name: str, value: float | None, goal: float) -> Goal:
        return cls(name, _short(value), goal, value is not None and value >= goal)

    @classmethod
    def below(cls, name: str, value: float | None, goal: float) -> Goal:
        return cls(name, _short(value), goal, value is not None and value < goal)


@dataclass
class Report:
    """The results of a benchmark. Progress goes to stderr at once, the rest to stdout at the end."""

    title: str
    quick: bool
    goals: list[Goal] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    parts: tuple[str, ...] = ()
    _began: float = field(default_factory=time.monotonic)
    _load: float = field(default_factory=lambda: os.getloadavg()[0])
    _tables: list[Table] = field(default_factory=list)

    def progress(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", file=sys.stderr, flush=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(title=title, title_justify="left")
        for index, column in enumerate(columns):
            table.add_column(column, justify="right" if index else "left")
        for row in rows:
            table.add_row(*row)
        self._tables.append(table)

    def finish(self, *, as_json: bool) -> None:
        rows = [
            (goal.name, _cell(goal.value), _cell(goal.goal), "met" if goal.met else "NOT MET") for goal in self.goals
        ]
        self.table("Goals", ("goal", "value", "wanted", ""), rows)
        console = Console(file=sys.stdout, width=_WIDTH, highlight=False)
        console.print(f"[bold]{self.title}[/bold]" + (" (quick: less data, wider noise)" if self.quick else ""))
        for table in self._tables:
            console.print(table)
        for note in self.notes:
            console.print(f"- {note}", markup=False)
        if as_json:
            print(json.dumps(self._json()), flush=True)

    def _json(self) -> dict[str, Any]:
        return {
            "benchmark": self.title,
            "quick": self.quick,
            "goals": [asdict(goal) for goal in self.goals],
            "figures": self.figures,
            "notes": self.notes,
            "machine": {
                "cpus": os.cpu_count(),
                "cpu": _cpu(),
                "python": platform.python_version(),
                "load_before": self._load,
                "load_after": os.getloadavg()[0],
            },
            "seconds": round(time.monotonic() - self._began, 1),
        }


def arguments(description: str, parts: Sequence[str] = ()) -> argparse.Namespace:
    """The options that every benchmark has: `quick`, `json`, `dir`; and `only`, of one with parts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="less data, under 45 seconds")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--dir", type=Path, default=_scratch(), help="where the stores go; a disk, not tmpfs")
    if parts:
        parser.add_argument("--only", action="append", choices=parts, help="measure this part alone; may be repeated")
    return parser.parse_args()


def share_harness() -> None:
    """Let the processes that a benchmark starts find this package."""
    here = str(Path(__file__).resolve().parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def run_in_folder(
    title: str, description: str, measure: Callable[[bool, Report, Path], None], parts: Sequence[str] = ()
) -> None:
    """Run a whole benchmark with its stores in one folder. `measure` gets True for `--quick`.

    Of one with parts, `report.parts` has those that the caller asks for with `--only`, or all.
    """
    options = arguments(description, parts)
    report = Report(title, options.quick)
    report.parts = tuple(options.only or parts) if parts else ()
    share_harness()
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="antiphon-bench-") as folder:
        measure(options.quick, report, Path(folder))
    report.finish(as_json=options.json)


def alternate(rounds: int, measures: Sequence[Callable[[], float]]) -> list[list[float]]:
    """Run the measures in turns and return their values by round, so that a busy moment affects all of them alike.

    One round more is made first and forgotten: caches fill, and V8 compiles what is hot.
    """
    found: list[list[float]] = [[] for _ in measures]
    for number in range(rounds + 1):
        turn = list(enumerate(measures))
        for index, measure in turn if number % 2 == 0 else reversed(turn):
            found[index].append(measure())
    return [values[1:] for values in found]


def ratio(ours: float, theirs: float | None) -> float | None:
    return None if not theirs else ours / theirs


def per_second(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def times(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}×"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def _scratch() -> Path:
    """/tmp is often in memory, where a sync costs nothing."""
    place = Path("/var/tmp")
    return place if os.access(place, os.W_OK) else Path.cwd()


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _cell(value: float | None) -> str:
    return "none" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
