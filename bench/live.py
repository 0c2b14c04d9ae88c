"""Guards the live pipeline: how fast a party is written, followed and opened, and that opening it stays cheap.

A change that makes a write pay for a block twice, a received message cost more than its fold, or opening a party look
at everything that ever happened in it shows here. In the same run, on the same edits: raw pycrdt, npm's Yjs, and a bare
dict, which keep nothing on a disk, sign nothing and verify nothing.

    .venv/bin/python bench/live.py --json [--quick]

1. Mutations a second of objects, arrays and texts, written durably, and received by a second peer.
2. A real trace of typing, one block for each edit, received; against pycrdt, which applies one update for each.
3. Opening a party: cold, where all states are built from the feeds; warm, where they are there; and whether the latter
   depends on how long its history is, or how many items it has.
4. Parties of 10, 100 and 1,000 writers, with credentials: a device catches up with a few new messages, writes one, and
   another receives all; a home is closed and opened again. What each costs must hardly depend on the number of writers.

`--quick` has goals of its own (`QUICK_GOALS`): with a tenth of the items, a millisecond more or less is a
third of a warm open, and one round has no median.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness import live_work
from harness.report import Goal, Report, arguments, megabytes, per_second, ratio, share_harness
from harness.side import Side

HERE = Path(__file__).resolve().parent
OURS = (sys.executable, "-m", "harness.live_side")
PYCRDT = (sys.executable, "-m", "harness.live_crdt")
YJS = HERE / "anchors" / "yjs.js"
KINDS = ("object", "array", "text")
READS = 100
SPAN_BLOCKS = 1000


class Goals(NamedTuple):
    """The figures that a run is held to."""

    batch: float  # mutations/s
    trace: float  # × pycrdt
    cold: float  # messages/s
    warm: float  # ms, at most
    growth: float  # × at ten times the size, at most
    writers: float  # × at the most writers, at most: catching up, writing and receiving
    crowded: float  # × at the most writers, at most: opening, cold and at rest


FULL_GOALS = Goals(batch=50_000.0, trace=0.5, cold=100_000.0, warm=100.0, growth=1.3, writers=1.5, crowded=2.0)
QUICK_GOALS = Goals(batch=30_000.0, trace=0.4, cold=60_000.0, warm=100.0, growth=1.8, writers=1.8, crowded=2.5)

NOTES = (
    "Written: each batch, or each mutation, is signed and on the disk when it returns, through the public API "
    "(`party.live.batch()`, `item.edit`). Received: the feed was taken in and verified before (a row of its own), and "
    "`process()` is timed, which puts states into the item store as it goes. The anchors work in memory; batches are "
    "transactions there, and what they receive is one update for each.",
    f"Objects: sets of {live_work.OBJECT_KEYS} keys in {live_work.OBJECT_ITEMS} items, in turn. Arrays: one, mostly "
    "appended to, some inserts anywhere, a tenth deletes. Texts: typing, some deletes and jumps, a character each.",
    "The trace is automerge-paper (CC-BY-4.0), one writer. Ours has a signed, hash-linked block for each edit. Yjs "
    "applies the updates that pycrdt made. All end with the same text, which is checked.",
    f"Parties to open have objects of a genesis and the mutations named; a few items are worked on at a time, as in "
    f"real work, unless scattered. Feeds are in spans of {SPAN_BLOCKS:,} blocks where nothing else is said. Cold: "
    "PartyProcessor(...) without an item store file, which it makes; messages are geneses and mutations. Warm: "
    "PartyProcessor(...) with it, and the first item's value; a fresh process each time, after imports, files in the "
    "page cache; medians. Loading the models, once in a process, counts for the goal of the warm open; what must not "
    "depend on the party's size is held without it, where a constant would hide what grows.",
    f"Memory: VmRSS of that process after it read {READS} items. The growth is what opening both stores and reading "
    "added, file pages included; it is what the goals hold, as the whole is mostly the interpreter and its imports.",
    "Many writers: all have credentials, and have written a message; four of them and the measured device are at work. "
    "In each round the device takes in and verifies four new messages, catches up with them (`process()`) and writes "
    "one, durably. Then another device receives all rounds at once, and opens, cold for each message, and warm; the "
    "control feeds were folded before. Whole: opened warm with its control feeds, as after a restart. Both grow with "
    "the number of writers, whose credentials are verified and judged; what a message costs does not. A message lists "
    "each feed that has moved since its writer last wrote, so if all wrote in turn, each message would list all feeds, "
    "and cost that much.",
    "A home of many writers: the founder's, closed when all was processed. Least CPU time of several openings in one "
    "process: keys, stores, party and the value of an item; then, in the last of them, the first write, which reads "
    "the control feeds and all lanes, and lists all feeds.",
)


class Size(NamedTuple):
    """A party of objects."""

    items: int
    history: int  # mutations of each item

    @property
    def messages(self) -> int:
        return self.items * (self.history + 1)

    def __str__(self) -> str:
        return f"{self.items:,} items × {self.history} mutations"


class Plan(NamedTuple):
    """How much is measured."""

    rounds: int
    counts: dict[int, int]  # batch → mutations
    trace: int | None  # edits
    small: Size
    long: Size  # ten times the history
    many: Size  # ten times the items
    window: int
    cold_rounds: int
    warm_rounds: int
    writers: tuple[int, ...]
    writer_rounds: int  # of catching up and writing
    writer_repeats: int
    home_rounds: int  # of opening
    home_repeats: int
    goals: Goals


FULL = Plan(
    rounds=5,
    counts={100: 20_000, 1: 2_000},
    trace=None,
    small=Size(10_000, 10),
    long=Size(10_000, 100),
    many=Size(100_000, 10),
    window=1000,
    cold_rounds=3,
    warm_rounds=9,
    writers=(10, 100, 1_000),
    writer_rounds=1_000,
    writer_repeats=3,
    home_rounds=9,
    home_repeats=2,
    goals=FULL_GOALS,
)
QUICK = Plan(
    rounds=1,
    counts={100: 3_000, 1: 200},
    trace=40_000,
    small=Size(1_000, 5),
    long=Size(1_000, 50),
    many=Size(10_000, 5),
    window=200,
    cold_rounds=1,
    warm_rounds=5,
    writers=(10, 100),
    writer_rounds=100,
    writer_repeats=3,
    home_rounds=5,
    home_repeats=2,
    goals=QUICK_GOALS,
)
TINY = Plan(
    rounds=1,
    counts={100: 200, 1: 20},
    trace=500,
    small=Size(20, 3),
    long=Size(20, 30),
    many=Size(200, 3),
    window=10,
    cold_rounds=1,
    warm_rounds=1,
    writers=(5, 8),
    writer_rounds=2,
    writer_repeats=1,
    home_rounds=2,
    home_repeats=1,
    goals=QUICK_GOALS,
)

Answers = list[dict[str, Any]]


class Bench:
    """One run. Where an anchor is missing, its figures are null and its goals not met."""

    def __init__(self, plan: Plan, report: Report, folder: Path, stack: ExitStack) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder
        self.ours = stack.enter_context(closing(Side("antiphon", OURS)))
        self.pycrdt = self._pycrdt(stack)
        self.yjs = self._yjs(stack)

    def _pycrdt(self, stack: ExitStack) -> Side | None:
        if importlib.util.find_spec("pycrdt") is None:
            self.report.notes.append("NO PYCRDT, so its goals are not met: pip install 'antiphon[yjs]'.")
            return None
        return stack.enter_context(closing(Side("pycrdt", PYCRDT)))

    def _yjs(self, stack: ExitStack) -> Side | None:
        node = shutil.which("node")
        if node is None or not (YJS.parent / "node_modules" / "yjs").is_dir():
            self.report.notes.append("NO YJS: install node 20 and run `cd bench/anchors && npm ci`. No goal needs it.")
            return None
        side = stack.enter_context(closing(Side("Yjs", [node, str(YJS)])))
        self.report.figures["anchor"] = side.ask("version")
        return side

    def run(self) -> None:
        self.mutations()
        self.trace()
        self.opening()
        self.writers()
        self.homes()
        self.report.notes.extend(NOTES)

    # -- 1. mutations

    def mutations(self) -> None:
        edits = self.folder / "edits.json"
        edits.write_text(json.dumps(live_work.make(max(self.plan.counts.values()))))
        rows = []
        for kind in KINDS:
            for batch, count in self.plan.counts.items():
                rows += self._mutations(kind, batch, count, str(edits))
        columns = ("", "ours", "dict", "pycrdt", "Yjs", "ours ÷ pycrdt")
        self.report.table("Mutations a second", columns, rows)
        found = self.report.figures["object, written, batches of 100"]["ours"]
        self.report.goals.append(
            Goal.at_least("object mutations/s, durable, batches of 100", found, self.plan.goals.batch)
        )

    def _mutations(self, kind: str, batch: int, count: int, edits: str) -> list[tuple[str, ...]]:
        how = "one by one" if batch == 1 else f"batches of {batch}"
        self.report.progress(f"{kind}, {how}")
        values = {"edits": edits, "kind": kind, "count": count, "batch": batch}
        measures: dict[str, Callable[[], dict[str, Any]]] = {"ours": partial(self._ours, "work", **values)}
        if self.pycrdt is not None:
            if kind == "object":
                measures["dict"] = partial(self.pycrdt.ask, "work", **values, bare=True)
            measures["pycrdt"] = partial(self.pycrdt.ask, "work", **values, bare=False)
        if self.yjs is not None:
            measures["yjs"] = partial(self.yjs.ask, "work", **values)
        answers = turns(self.plan.rounds, measures)
        value = answers["ours"][0]["value"]
        assert all(answer["value"] == value for some in answers.values() for answer in some), "the sides differ"
        names = {"written": "local", "received": "received", "taken in and verified": "ingest"}
        return [self._rates(f"{kind}, {name}, {how}", answers, count, part) for name, part in names.items()]

    def _ours(self, do: str, **values: Any) -> dict[str, Any]:
        with self._fresh() as folder:
            return self.ours.ask(do, folder=folder, **values)

    def _rates(self, name: str, answers: dict[str, Answers], count: int, part: str) -> tuple[str, ...]:
        """A row of the table, and the raw figures."""
        rounds = {
            side: [count / answer[part] for answer in some] for side, some in answers.items() if some[0].get(part)
        }
        found: dict[str, Any] = {side: median(rates) for side, rates in rounds.items()}
        self.report.figures[name] = {**found, "rounds": rounds}
        cells = [per_second(found.get(side)) for side in ("ours", "dict", "pycrdt", "yjs")]
        return (name, *cells, _times(ratio(found["ours"], found.get("pycrdt"))))

    # -- 2. a trace

    def trace(self) -> None:
        goal = "received trace, × pycrdt"
        found = live_work.trace(self.plan.trace)
        if found is None:
            self.report.notes.append("NO TRACE, so its goal is not met: set ANTIPHON_TEST_DATA; see CONTRIBUTING.md.")
            self.report.goals.append(Goal.at_least(goal, None, self.plan.goals.trace))
            return
        edits, text = found
        self.report.progress(f"a trace of {len(edits):,} edits: making the feed and the updates")
        files = {name: str(self.folder / f"trace-{name}") for name in ("edits", "expected", "feeds", "updates")}
        Path(files["edits"]).write_text(json.dumps(edits))
        Path(files["expected"]).write_text(text)
        item = self.ours.ask("trace_feed", folder=files["feeds"], edits=files["edits"])["item"]
        measures: dict[str, Callable[[], dict[str, Any]]] = {"ours": partial(self._trace, files, item)}
        theirs = {"file": files["updates"], "expected": files["expected"]}
        if self.pycrdt is not None:
            self.pycrdt.ask("updates", edits=files["edits"], file=files["updates"])
            measures["pycrdt"] = partial(self.pycrdt.ask, "apply", **theirs)
            if self.yjs is not None:
                measures["yjs"] = partial(self.yjs.ask, "apply", **theirs)
        self.report.progress(f"a trace of {len(edits):,} edits: received")
        answers = turns(self.plan.rounds, measures)
        for answer in answers["ours"]:
            answer["both"] = answer["ingest"] + answer["process"]
        for some in (answers.get("pycrdt", []), answers.get("yjs", [])):
            for answer in some:
                answer["both"] = answer["process"]
        names = {"received": "process", "taken in, verified and received": "both", "taken in and verified": "ingest"}
        rows = [self._rates(f"trace, {name}", answers, len(edits), part) for name, part in names.items()]
        columns = ("", "ours", "pycrdt", "Yjs", "ours ÷ pycrdt")
        cells = [(name, ours, *others) for name, ours, _, *others in rows]  # there is no dict in it
        self.report.table(f"A trace of {len(edits):,} edits, edits a second", columns, cells)
        figures = self.report.figures["trace, received"]
        value = ratio(figures["ours"], figures.get("pycrdt"))
        self.report.goals.append(Goal.at_least(goal, value, self.plan.goals.trace))

    def _trace(self, files: dict[str, str], item: str) -> dict[str, Any]:
        with self._fresh() as fresh:
            return self.ours.ask("trace", folder=files["feeds"], fresh=fresh, item=item, expected=files["expected"])

    # -- 3. opening

    def opening(self) -> None:
        plan = self.plan
        parties = {"small": plan.small, "long": plan.long, "many": plan.many}
        rows = [
            self._cold(name, size, plan.window, rounds=1 if name == "long" else 0) for name, size in parties.items()
        ]
        rows.append(self._cold("small, in spans of 100 blocks", plan.small, plan.window, blocks=100))
        rows.append(self._cold("many, scattered", plan.many, None, rounds=1))
        rows.append(self._credentials())
        self.report.table("Opening cold", ("", "messages", "messages a second", "peak memory, MB"), rows)
        found = self.report.figures["cold, many"]["rate"]
        self.report.goals.append(Goal.at_least("cold open, messages/s", found, self.plan.goals.cold))
        self._warm(list(parties))

    def _cold(
        self, name: str, size: Size, window: int | None, *, blocks: int = SPAN_BLOCKS, rounds: int = 0
    ) -> tuple[str, ...]:
        """In processes of their own; what it builds stays for the warm measures."""
        self.report.progress(f"opening cold: {name} ({size})")
        folder = str(self._place(name))
        _once("build", folder=folder, items=size.items, history=size.history, window=window, blocks=blocks)
        answers = [_once("cold", folder=folder) for _ in range(rounds or self.plan.cold_rounds)]
        rate = median(answer["messages"] / answer["seconds"] for answer in answers)
        assert answers[0]["messages"] == size.messages
        self.report.figures[f"cold, {name}"] = {"rate": rate, "rounds": answers}
        peak = max(answer["memory"]["after"]["VmHWM"] for answer in answers)
        return (f"{name}: {size}", f"{size.messages:,}", per_second(rate), megabytes(peak))

    def _credentials(self) -> tuple[str, ...]:
        """The small party once more, with an authority that judges every block."""
        size = self.plan.small
        self.report.progress(f"opening cold: with credentials ({size})")
        values = {"items": size.items, "history": size.history, "window": self.plan.window}
        answers = [
            _once("credentials", folder=str(self._place("credentials")), **values) for _ in range(self.plan.cold_rounds)
        ]
        rate = median(answer["messages"] / answer["seconds"] for answer in answers)
        self.report.figures["cold, with credentials"] = {"rate": rate, "rounds": answers}
        return (f"with credentials: {size}", f"{size.messages:,}", per_second(rate), "-")

    def _warm(self, names: Sequence[str]) -> None:
        self.report.progress("opening warm")
        measures = {name: partial(_once, "warm", folder=str(self._place(name)), reads=READS) for name in names}
        answers = turns(self.plan.warm_rounds, measures, forget=0)
        found = {name: _warm_figures(some) for name, some in answers.items()}
        rows = []
        for name, figures in found.items():
            self.report.figures[f"warm, {name}"] = {**figures, "rounds": answers[name]}
            times = [f"{figures[part]:.2f}" for part in ("models, ms", "opened, ms", "first item, ms")]
            sizes = [f"{figures[part]:.1f}" for part in ("VmRSS, MB", "growth, MB")]
            rows.append((f"{name}: {getattr(self.plan, name)}", *times, *sizes))
        columns = ("", "models, ms", "opened, ms", "first item, ms", "VmRSS, MB", "growth, MB")
        self.report.table(f"Opening warm, and the memory after {READS} items", columns, rows)
        goals, wanted = self.report.goals, self.plan.goals
        goals.append(Goal.below("warm open and first item, ms", found["many"]["all, ms"], wanted.warm))
        for part, what in (("both, ms", "warm open"), ("growth, MB", "memory")):
            for name, more in (("long", "history"), ("many", "items")):
                value = ratio(found[name][part], found["small"][part])
                goals.append(Goal.below(f"{what} with 10 × the {more}, ×", value, wanted.growth))

    # -- 4. many writers

    def writers(self) -> None:
        """Figures for a message or a round, in parties of few and many writers."""
        found: dict[int, dict[str, float]] = {}
        rounds = self.plan.writer_rounds
        measures = {str(count): partial(self._writers, count, rounds) for count in self.plan.writers}
        for name, answers in turns(self.plan.writer_repeats, measures, forget=0).items():
            count = int(name)
            each = {"catch_up": rounds, "write": rounds, "receive": rounds * live_work.WRITERS_ROUND, "ingest": rounds}
            found[count] = {
                part: 1e6 * median(answer[part] for answer in answers) / each.get(part, 1) for part in answers[0]
            }
            self.report.figures[f"{count} writers"] = {**found[count], "rounds": answers}
        parts = ("ingest", "catch_up", "write", "receive", "cold", "warm", "whole")
        columns = (
            "",
            "taken in",
            "caught up",
            "written",
            "received, each",
            "opened cold, each",
            "opened warm",
            "whole",
        )
        rows = [
            (f"{count:,} writers", *(f"{figures[part]:,.0f}" for part in parts)) for count, figures in found.items()
        ]
        self.report.table("Many writers, µs", columns, rows)
        few, many = found[min(found)], found[max(found)]
        goals = {"catch_up": "catching up", "write": "writing", "receive": "receiving", "cold": "opening"}
        for part, what in goals.items():
            wanted = self.plan.goals.crowded if part == "cold" else self.plan.goals.writers
            name = f"{what} with {max(found):,} writers, × of {min(found)}"
            self.report.goals.append(Goal.below(name, ratio(many[part], few[part]), wanted))

    def _writers(self, count: int, rounds: int) -> dict[str, Any]:
        self.report.progress(f"a party of {count:,} writers")
        with self._fresh() as folder:
            return _once("writers", folder=folder, count=count, rounds=rounds)

    def homes(self) -> None:
        """Figures for opening a home, in parties of few and many writers, after which nothing has come."""
        measures = {str(count): partial(self._home, count) for count in self.plan.writers}
        found: dict[int, dict[str, float]] = {}
        for name, answers in turns(self.plan.home_repeats, measures, forget=0).items():
            best = {part: 1e3 * min(answer[part] for answer in answers) for part in answers[0]}
            found[int(name)] = best
            self.report.figures[f"a home of {name} writers"] = {**best, "rounds": answers}
        rows = [
            (f"{count:,} writers", *(f"{best[part]:,.1f}" for part in ("opened", "party", "first")))
            for count, best in found.items()
        ]
        columns = ("", "home, party and item", "the party alone", "the first write then")
        self.report.table("Opening a home of many writers, at rest, ms of CPU", columns, rows)
        few, many = found[min(found)], found[max(found)]
        name = f"opening at rest with {max(found):,} writers, × of {min(found)}"
        self.report.goals.append(Goal.below(name, ratio(many["opened"], few["opened"]), self.plan.goals.crowded))

    def _home(self, count: int) -> dict[str, Any]:
        self.report.progress(f"a home with a party of {count:,} writers")
        with self._fresh() as folder:
            return _once("home", folder=folder, count=count, rounds=self.plan.home_rounds)

    def _place(self, name: str) -> Path:
        place = self.folder / name.replace(" ", "-")
        place.mkdir(exist_ok=True)
        return place

    @contextmanager
    def _fresh(self) -> Iterator[str]:
        """A place for new stores; it goes afterwards, and with it what was still to be written to the disk."""
        place = self.folder / "fresh"
        try:
            yield str(place)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _warm_figures(some: Answers) -> dict[str, float]:
    return {
        "models, ms": 1e3 * median(answer["models"] for answer in some),
        "feeds, ms": 1e3 * median(answer["feeds"] for answer in some),
        "opened, ms": 1e3 * median(answer["open"] for answer in some),
        "first item, ms": 1e3 * median(answer["first"] for answer in some),
        "both, ms": 1e3 * median(answer["open"] + answer["first"] for answer in some),
        "all, ms": 1e3 * median(answer["models"] + answer["open"] + answer["first"] for answer in some),
        "VmRSS, MB": median(answer["memory"]["after"]["VmRSS"] for answer in some) / 1e6,
        "growth, MB": median(
            answer["memory"]["after"]["VmRSS"] - answer["memory"]["before"]["VmRSS"] for answer in some
        )
        / 1e6,
    }


def turns(rounds: int, measures: Mapping[str, Callable[[], dict[str, Any]]], *, forget: int = 1) -> dict[str, Answers]:
    """As `alternate` of the harness, for measures that answer with several figures at once."""
    found: dict[str, Answers] = {name: [] for name in measures}
    for number in range(rounds + forget):
        turn = list(measures.items())
        for name, measure in turn if number % 2 == 0 else reversed(turn):
            found[name].append(measure())
    return {name: answers[forget:] for name, answers in found.items()}


def _once(do: str, **values: Any) -> dict[str, Any]:
    """In a fresh process."""
    with closing(Side("antiphon", OURS)) as side:
        return side.ask(do, **values)


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main(plan: Plan | None = None) -> None:
    options = arguments("The live pipeline: mutations, a received trace, opening a party; beside pycrdt and Yjs.")
    report = Report("The live pipeline", options.quick)
    share_harness()
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="antiphon-bench-") as folder, ExitStack() as stack:
        Bench(plan or (QUICK if options.quick else FULL), report, Path(folder), stack).run()
    report.finish(as_json=options.json)


if __name__ == "__main__":
    main()
