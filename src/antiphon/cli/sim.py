"""`antiphon sim`: simulate a whole party under faults, from a seed. `run` plays one seed; `search` plays seeds until a
law breaks, and then shrinks the scenario.

Both end with 0 if all laws hold, with 1 if a law is broken, and with 130 if they were interrupted.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from antiphon.cli.common import Json, err, out, show, table
from antiphon.core.errors import InvalidInput

if TYPE_CHECKING:
    from antiphon.sim.run import Outcome
    from antiphon.sim.scenario import Fault, Scenario
    from antiphon.sim.search import Failure

BROKEN, INTERRUPTED = 1, 130
SHOWN_MAX = 60
_FAULTS = ("part", "sleep", "slow", "crash", "full", "join", "revoke", "policy", "erase", "lie", "refuse")
_FAULT_HELP = (
    "Possible faults: `all`, `none`, or some of loss,repeat,delay,parts,sleep,crashes,full,skew,joins,revokes,liars,"
    "slow,policy,erases."
)

app = typer.Typer(no_args_is_help=True, help="Simulate a whole party under faults, on virtual time, from a seed.")

Peers = Annotated[int, typer.Option("--peers", help="Number of peers.", min=1)]
Epochs = Annotated[int, typer.Option("--epochs", help="Approximate number of epochs in the run.", min=0)]
Messages = Annotated[int, typer.Option("--messages", help="Number of messages to write.", min=0)]
Faults = Annotated[str, typer.Option("--faults", help=_FAULT_HELP)]
SvgFile = Annotated[Path | None, typer.Option("--svg", help="Draw the run into this SVG file.", dir_okay=False)]
TraceFile = Annotated[
    Path | None, typer.Option("--trace", help="Write the trace into this file, one event a line.", dir_okay=False)
]


@app.command()
def run(
    peers: Peers = 4,
    epochs: Epochs = 2,
    messages: Messages = 60,
    seed: Annotated[int, typer.Option("--seed", help="Equal seeds give equal runs.")] = 1,
    faults: Faults = "all",
    acts: Annotated[
        str, typer.Option("--acts", help="Play only these acts of the scenario, as in `0,4-7`; `search` prints them.")
    ] = "",
    calm: Annotated[bool, typer.Option("--calm", help="Lose, delay and repeat no message.")] = False,
    svg: SvgFile = None,
    trace: TraceFile = None,
    as_json: Json = False,
) -> None:
    """Play one seed until the party is quiet, and check the laws.

    Example: antiphon sim run --seed 7 --peers 5 --svg run.svg
    """
    from antiphon.sim.network import CALM

    scenario = _scenario(seed, peers, messages, epochs, faults)
    if acts:
        kept = _places(acts, len(scenario.acts))
        scenario = scenario.without(set(range(len(scenario.acts))) - kept)
    if calm:
        scenario = replace(scenario, weather=CALM)
    command = _command(seed, peers, messages, epochs, faults, acts, calm)
    try:
        with _progress(as_json) as progress:
            task = progress.add_task("the peers join", total=1.0)
            outcome = _play(scenario, lambda share, text: progress.update(task, completed=share, description=text))
    except KeyboardInterrupt:
        err.print("interrupted; nothing was checked")
        raise typer.Exit(INTERRUPTED) from None
    _keep(outcome, svg, trace, command)
    show(as_json, _row(outcome) | {"replay": command}, lambda: _tell(outcome, command))
    if not outcome.ok:
        raise typer.Exit(BROKEN)


@app.command()
def search(
    minutes: Annotated[float, typer.Option("--minutes", help="Search for this long.", min=0)] = 10,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Play at most this many seeds.", min=1)] = None,
    begin: Annotated[int, typer.Option("--from", help="The first seed.")] = 1,
    peers: Peers = 4,
    epochs: Epochs = 2,
    messages: Messages = 60,
    faults: Faults = "all",
    jobs: Annotated[int, typer.Option("--jobs", help="Processes that play; 0: one for each core.", min=0)] = 0,
    svg: SvgFile = None,
    trace: TraceFile = None,
    as_json: Json = False,
) -> None:
    """Play one seed after another until a law is broken; then shrink the scenario to the acts that break it."""
    tally = _Tally(begin)
    found: Failure | None = None
    interrupted = False
    try:
        with _progress(as_json) as progress:
            numbers = count_from(begin) if seeds is None else iter(range(begin, begin + seeds))
            scenarios = (_scenario(seed, peers, messages, epochs, faults) for seed in numbers)
            failed = _look(tally, progress, minutes, seeds, scenarios, jobs or os.cpu_count() or 1)
            if failed is not None:
                found = _unshrunk(failed)  # in case that the next step is interrupted
                found = _shrink(failed, progress)
    except KeyboardInterrupt:
        interrupted = True
    answer = tally.row() | {"interrupted": interrupted, "found": None}
    command = ""
    if found is not None:
        command = _command(found.seed, peers, messages, epochs, faults)
        shrunk = _command(found.seed, peers, messages, epochs, faults, *_rest(found))
        _keep(found.shrunk, svg, trace, shrunk)
        answer["found"] = _found_row(found) | {"replay": command, "replay_shrunk": shrunk}
    show(as_json, answer, lambda: _tell_search(answer, found))
    if found is not None:
        raise typer.Exit(BROKEN)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


# -- play


class _Tally:
    """Totals of a search so far."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.runs = self.messages = self.epochs = self.virtual_ms = 0
        self.met: Counter[str] = Counter()
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def add(self, outcome: Outcome) -> None:
        self.runs += 1
        self.messages += outcome.messages
        self.epochs += outcome.epochs
        self.virtual_ms += outcome.virtual_ms
        self.met.update(_met(outcome))

    def row(self) -> dict[str, Any]:
        return {
            "seeds": [self.begin, self.begin + self.runs],
            "runs": self.runs,
            "messages": self.messages,
            "epochs": self.epochs,
            "met": dict(sorted(self.met.items())),
            "virtual_seconds": round(self.virtual_ms / 1_000, 1),
            "seconds": round(self.seconds, 2),
            "seeds_per_minute": round(60 * self.runs / max(self.seconds, 0.01)),
        }


def _scenario(seed: int, peers: int, messages: int, epochs: int, faults: str) -> Scenario:
    from antiphon.sim.scenario import make  # loads the whole simulator

    return make(seed, peers=peers, messages=messages, epochs=epochs, faults=_faults(faults))


def _play(scenario: Scenario, progress: Any) -> Outcome:
    from antiphon.sim.run import run as play
    from antiphon.sim.search import play_safely

    try:
        return play(scenario, progress=progress)
    except Exception:
        return play_safely(scenario)  # the same once more, so that the error is a broken law


def _look(
    tally: _Tally, progress: Progress, minutes: float, seeds: int | None, scenarios: Iterator[Scenario], jobs: int
) -> Outcome | None:
    """Return the first outcome that breaks a law, or None when the time or the seeds are used up."""
    from antiphon.sim.search import search as play_all

    task = progress.add_task("seeds", total=1.0)
    with closing(play_all(scenarios, jobs=jobs)) as outcomes:
        for outcome in outcomes:
            tally.add(outcome)
            if not outcome.ok:
                return outcome
            share = max(tally.seconds / (minutes * 60) if minutes else 1.0, tally.runs / seeds if seeds else 0.0)
            text = (
                f"seed {outcome.scenario.seed}: {tally.runs} runs, {tally.messages:,} messages, {tally.epochs} epochs"
            )
            progress.update(task, completed=min(share, 1.0), description=text)
            if share >= 1:
                break
    return None


def _shrink(failed: Outcome, progress: Progress) -> Failure:
    from antiphon.sim.search import RUNS_MAX, shrink

    task = progress.add_task("leaving out acts", total=RUNS_MAX)

    def tried(runs: int, acts: int) -> None:
        text = f"seed {failed.scenario.seed} breaks a law; with {acts} of {len(failed.scenario.acts)} acts, too"
        progress.update(task, completed=runs, description=text)

    return shrink(failed, tried=tried)


def _unshrunk(failed: Outcome) -> Failure:
    from antiphon.sim.search import Failure

    return Failure(failed, failed, 0)


# -- options


def _faults(text: str) -> frozenset[Fault]:
    from antiphon.sim.scenario import ALL_FAULTS, Fault

    if text in ("all", "none"):
        return ALL_FAULTS if text == "all" else frozenset()
    names = {name.strip() for name in text.split(",")}
    unknown = sorted(names - {fault.value for fault in Fault})
    if unknown:
        known = ", ".join(fault.value for fault in Fault)
        raise InvalidInput(f"--faults {text!r:.80}: {unknown[0]!r:.40} is none of {known}; or write all, or none")
    return frozenset(map(Fault, names))


def _places(text: str, count: int) -> set[int]:
    """The numbers in `0,4-7`, or in `none`."""
    found: set[int] = set()
    for part in text.split(",") if text != "none" else ():
        first, _, last = part.strip().partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) < count):
            raise InvalidInput(f"--acts {text!r:.80}: write numbers below {count} as in 0,4-7; {part!r:.40} is none")
        found.update(range(int(first), int(last) + 1))
    return found


def _ranges(places: list[int]) -> str:
    """The numbers as `0,4-7`, or as `none`."""
    parts: list[list[int]] = []
    for place in places:
        if parts and parts[-1][-1] == place - 1:
            parts[-1][1:] = [place]
        else:
            parts.append([place])
    return ",".join("-".join(map(str, part)) for part in parts) or "none"


def _rest(found: Failure) -> tuple[str, bool]:
    """The acts that shrinking left, as `--acts` takes them, and True if it calmed the network."""
    left = iter(found.shrunk.scenario.acts)
    wanted = next(left, None)
    places = []
    for place, act in enumerate(found.outcome.scenario.acts):
        if act is wanted or act == wanted:
            places.append(place)
            wanted = next(left, None)
    changed = found.shrunk.scenario.weather != found.outcome.scenario.weather
    whole = len(places) == len(found.outcome.scenario.acts)
    return ("" if whole else _ranges(places)), changed


def _command(seed: int, peers: int, messages: int, epochs: int, faults: str, acts: str = "", calm: bool = False) -> str:
    """The command that plays the same run again."""
    numbers = (
        f"--peers {peers} --epochs {epochs} --messages {messages} --seed {seed} --faults {faults.replace(' ', '')}"
    )
    return f"antiphon sim run {numbers}" + (f" --acts {acts}" if acts else "") + (" --calm" if calm else "")


# -- answers


def _progress(as_json: bool) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err, transient=True, disable=as_json)


def _keep(outcome: Outcome, svg: Path | None, trace: Path | None, title: str) -> None:
    from antiphon.sim.picture.draw import draw

    if svg is not None:
        svg.write_text(draw(outcome.trace, title=title), encoding="utf-8")
    if trace is not None:
        trace.write_text(outcome.trace.text(), encoding="utf-8")


def _met(outcome: Outcome) -> dict[str, int]:
    """The faults that happened, by kind. Late joins count, those at the beginning do not."""
    counts = {kind.value: number for kind, number in outcome.trace.counts().items()}
    counts["join"] = len(outcome.scenario.cast.late)
    met = {name: counts[name] for name in _FAULTS if counts.get(name)}
    return met | ({"lost": outcome.lost} if outcome.lost else {})


def _row(outcome: Outcome) -> dict[str, Any]:
    from antiphon.sim.trace import Kind

    return {
        "seed": outcome.scenario.seed,
        "peers": len(outcome.scenario.cast.names),
        "messages": outcome.messages,
        "delivered": outcome.delivered,
        "epochs": outcome.epochs,
        "met": _met(outcome),
        "laws": [check.other for check in outcome.trace.of(Kind.CHECK)],
        "broken": [{"law": broken.law, "text": broken.text} for broken in outcome.broken],
        "sent": outcome.sent,
        "virtual_seconds": round(outcome.virtual_ms / 1_000, 3),
        "seconds": round(outcome.seconds, 3),
        "messages_per_second": round(outcome.messages / outcome.seconds, 1) if outcome.seconds else 0.0,
        "trace": outcome.trace.digest(),
    }


def _found_row(found: Failure) -> dict[str, Any]:
    return {
        "seed": found.seed,
        "broken": [{"law": broken.law, "text": broken.text} for broken in found.shrunk.broken],
        "acts": [str(act) for act in found.shrunk.scenario.acts],
        "acts_before": len(found.outcome.scenario.acts),
        "runs": found.runs,
    }


def _said(met: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in met.items()) or "none"


def _tell(outcome: Outcome, command: str) -> None:
    row = _row(outcome)
    laws, broken = len(row["laws"]), {one["law"] for one in row["broken"]}
    facts = {
        "peers": row["peers"],
        "messages": f"{row['messages']:,} acknowledged, {row['delivered']:,} blocks taken from others",
        "epochs": row["epochs"],
        "faults met": _said(row["met"]),
        "laws": f"{laws} checked, {f'{len(broken)} BROKEN' if broken else 'all hold'}",
        "virtual time": f"{row['virtual_seconds']:,} s",
        "real time": f"{row['seconds']:,} s, {row['messages_per_second']:,} messages/s",
        "trace": row["trace"][:16],
    }
    out.print(
        table(["seed", str(row["seed"])], [{"seed": name, str(row["seed"]): text} for name, text in facts.items()])
    )
    _tell_broken(outcome)
    if not outcome.ok:
        out.print(f"again: {command}", markup=False, highlight=False, soft_wrap=True)


def _tell_broken(outcome: Outcome) -> None:
    for broken in outcome.broken:
        err.print(f"✗ {broken}"[:600], style="red", markup=False, highlight=False, soft_wrap=True)


def _tell_search(answer: dict[str, Any], found: Failure | None) -> None:
    first, end = answer["seeds"]
    seconds = max(answer["seconds"], 0.01)
    facts = {
        "runs": f"{answer['runs']:,}, seeds {first} to {end - 1}" if answer["runs"] else "none",
        "messages": f"{answer['messages']:,}",
        "epochs": f"{answer['epochs']:,}",
        "faults met": _said(answer["met"]),
        "virtual time": f"{answer['virtual_seconds']:,} s",
        "real time": f"{seconds:,} s, {answer['seeds_per_minute']:,} seeds/minute",
        "laws": "all hold" if found is None else f"BROKEN by seed {found.seed}",
    }
    if answer["interrupted"]:
        facts["laws"] += "; interrupted"
    out.print(table(["search", " "], [{"search": name, " ": text} for name, text in facts.items()]))
    if found is not None:
        _tell_found(answer["found"], found)


def _tell_found(row: dict[str, Any], found: Failure) -> None:
    from antiphon.sim.trace import Kind

    _tell_broken(found.shrunk)
    out.print(f"{len(row['acts'])} of {row['acts_before']} acts are enough, found in {row['runs']} runs:")
    # Events of blocks received are most of a trace and explain least; `--trace` has them.
    dull = (Kind.TAKE, Kind.SEND, Kind.CHECK)
    lines = [str(event) for event in found.shrunk.trace if event.kind not in dull] or row["acts"]
    for line in lines[:SHOWN_MAX]:
        out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    if len(lines) > SHOWN_MAX:
        out.print(f"  and {len(lines) - SHOWN_MAX} lines more; --trace FILE keeps all")
    out.print(f"again: {row['replay']}", markup=False, highlight=False, soft_wrap=True)
    if row["replay_shrunk"] != row["replay"]:
        out.print(f"shrunk: {row['replay_shrunk']}", markup=False, highlight=False, soft_wrap=True)
