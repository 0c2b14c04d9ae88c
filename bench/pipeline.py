"""Guards the pipeline on Spark: how fast feeds become items, and that neither size nor a hot item makes that slow.

A change that makes Spark turn each message into a row, reads blocks twice, calls a function for each message, or holds
a party in memory shows here. In the same run, on the same messages: bare Spark, which scans them as Parquet,
repartitions and sorts them, without Python; and a live peer, which builds its items anew from the same feeds.

    .venv/bin/python bench/pipeline.py --json [--quick]

1. From feeds to items, at several sizes: messages a second, what one costs, and memory; and what a run costs at least.
2. Where the time of the largest goes.
3. Against bare Spark, and against a live peer's cold rebuild, whose states must be the same.
4. A hot item with a fifth of all messages.
5. Tables: the first time, and after 1 % new messages; as a stream, its rate and latency.

`--quick` has goals of its own (`QUICK_GOALS`): a run of 30,000 messages is mostly what any run costs, so one
of three times the size takes hardly longer, and one after 1 % new is not much shorter than the first.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness.pipeline_parts import FOLDER, REST
from harness.processes import DRIVER, JVM, WORKERS
from harness.report import Goal, Report, megabytes, per_second, ratio, run_in_folder
from harness.side import Side

OURS = (sys.executable, "-m", "harness.pipeline_side")
JVM_REST = "JVM: rows to Python, planning, scheduling, the rest"
HOT = 0.2  # of all messages go to one item
NEW = 0.01  # of all messages are new


class Goals(NamedTuple):
    """The figures that a run is held to."""

    rate: float  # messages/s
    flat: float  # × from the cheapest size to the dearest, at most
    memory: float  # × a worker's peak, from the smallest size to the largest, at most
    attributed: float  # % of the time that is some part's
    bare: float  # × bare Spark
    live: float  # × a live peer's cold rebuild
    hot: float  # × the even case, at most
    new: float  # % of the first run, at most


FULL_GOALS = Goals(rate=300_000.0, flat=1.15, memory=1.5, attributed=90.0, bare=0.4, live=1.8, hot=1.5, new=10.0)
QUICK_GOALS = Goals(rate=15_000.0, flat=4.0, memory=1.5, attributed=70.0, bare=0.4, live=0.5, hot=2.0, new=80.0)

SHORT_MAX = 5  # runs of a small home in each round

NOTES = (
    "Homes are made by `antiphon generate --plain`: ten parties of very different sizes, five writers each, who are "
    "often apart; items are objects, some with access lists, and texts and numbers are written to their registers, in"
    " place of what others wrote; moves, deletes and names between them. The last table has one with all models.",
    "From feeds to items: hashes, links, heads, bodies and rules of all blocks are verified, parties planned, what "
    "counts is folded, and states have their digests; as with bare Spark nothing is written. Tables are counted apart."
    " Two cores (`local[2]`), one Spark for all runs. It has read each home before, the smaller ones twice, which is "
    "not counted; then rounds go over all of them in turn, the small ones up to five times in each, so that a busy "
    "moment, and what Java compiles meanwhile, meets all alike.",
    "Bare Spark is the same session: Parquet with zstd, of the eight columns that a fold needs, repartitioned by "
    "party and item, sorted by party, item and stamp, written nowhere. The live peer uses both cores as it does by "
    "itself. Of several runs the median counts, on all sides; bare Spark has one more before, which does not count.",
    "Parts are CPU time: of workers by wrapped methods, where time in a part that another calls is its own; of the "
    "JVM what Spark's own count says of tasks (scan, shuffle, sort), and threads that compile or collect garbage. "
    "What is left of the workers' and of the JVM's time is no part's.",
    "A run after 1 % new messages is the whole command with its report, as `antiphon pipeline run --tables` does it, "
    "and so is the first. There are several, each from a copy of the first's tables; the median counts, and one before "
    "them does not.",
    "Memory is the most that a process has held since it began, up to the first run over a home, from the smallest to "
    "the largest: of driver and JVM as the kernel counts it (VmHWM; the JVM's heap is set), of a worker what it has "
    "allocated, without the pages of feeds that are mapped, which are the kernel's cache. A worker holds a partition's "
    "messages, or those of its hottest item.",
)


class Plan(NamedTuple):
    """How much is measured."""

    least: int  # messages of a home that shows what a run costs at least
    sizes: tuple[int, ...]  # messages
    each: int  # messages of an item, on average
    rounds: int
    live: int  # messages of the home that a live peer gets; one of the sizes
    grown: int  # that tables are made of, and go on from; likewise
    streamed: int  # that a stream gets, and of the home with all models; likewise
    hot: int  # of that with the hot item; likewise
    batch: int  # blocks of a micro-batch
    goals: Goals


FULL = Plan(
    least=2_000,
    sizes=(500_000, 1_000_000, 2_000_000, 5_000_000),
    each=50,
    rounds=3,
    live=1_000_000,
    grown=5_000_000,
    streamed=500_000,
    hot=2_000_000,
    batch=50_000,
    goals=FULL_GOALS,
)
QUICK = Plan(
    least=2_000,
    sizes=(10_000, 30_000),
    each=50,
    rounds=1,
    live=10_000,
    grown=30_000,
    streamed=10_000,
    hot=30_000,
    batch=6_000,
    goals=QUICK_GOALS,
)
TINY = QUICK._replace(least=200, sizes=(300, 900), each=30, live=300, grown=900, streamed=300, hot=900, batch=200)

Answer = dict[str, Any]


class Bench:
    """One run."""

    def __init__(self, plan: Plan, report: Report, folder: Path, side: Side, other: Side) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder
        self.sides = {"generate": other, "rows": other, "live": other}  # without Spark
        self.spark = side
        self.runs: dict[str, list[Answer]] = {}

    def run(self) -> None:
        for size in self.all_sizes:
            self.home(f"{size:,}", size)
        self.home("hot", self.plan.hot, hot=HOT)
        self.home("all models", self.plan.streamed, plain=False)
        self.report.progress("Spark begins")
        self.sizes()
        self.parts()
        self.anchors()
        self.hot()
        self.tables()
        self.report.notes.extend(NOTES)

    @property
    def all_sizes(self) -> tuple[int, ...]:
        return (self.plan.least, *self.plan.sizes)

    def at(self, name: str) -> str:
        return str(self.folder / name.replace(",", ""))

    def ask(self, do: str, what: str, **values: Any) -> Answer:
        self.report.progress(what)
        return self.sides.get(do, self.spark).ask(do, **values)

    def home(self, name: str, messages: int, *, hot: float = 0.0, plain: bool = True) -> None:
        values = {"messages": messages, "items": messages // self.plan.each, "hot": hot, "plain": plain}
        self.ask("generate", f"a home: {name}", folder=self.at(name), **values)

    def measure(self, name: str, rounds: int) -> Answer:
        """The median of some runs over a home."""
        for _ in range(rounds):
            found = self.ask("run", f"feeds to items: {name}", folder=self.at(name))
            self.report.progress(f"… {found['seconds']:.1f} s, {found['messages'] / found['seconds']:,.0f}/s")
            self.runs.setdefault(name, []).append(found)
        runs = sorted(self.runs[name], key=lambda one: float(one["seconds"]))
        return runs[(len(runs) - 1) // 2]

    # -- 1. sizes

    def sizes(self) -> None:
        memory: dict[int, dict[str, int]] = {}
        for size in (*self.all_sizes, *self.all_sizes[:-1]):  # Java compiles what the small ones need while they run
            held = self.ask("run", f"not counted: {size:,}", folder=self.at(f"{size:,}"))["memory"]
            memory.setdefault(size, held)
        most = self.plan.sizes[-1]
        for _ in range(self.plan.rounds):
            for size in self.all_sizes:  # a short run is sooner spoilt by a busy moment, so there are more of them
                self.measure(f"{size:,}", min(SHORT_MAX, max(1, most // (2 * size))))
        found = {size: self.measure(f"{size:,}", 0) for size in self.all_sizes}
        costs = {size: 1e6 * one["seconds"] / one["messages"] for size, one in found.items()}
        rows = []
        for size, one in found.items():
            cpu = sum(one["cpu"].values())
            cells = (f"{one['seconds']:.2f}", per_second(one["messages"] / one["seconds"]), f"{costs[size]:.2f}")
            held = (megabytes(memory[size][kind]) for kind in (DRIVER, JVM, WORKERS))
            rows.append((f"{size:,}", *cells, f"{1e6 * cpu / one['messages']:.2f}", *held))
        columns = ("messages", "s", "messages/s", "µs each", "CPU µs each", "driver MB", "JVM MB", "a worker MB")
        self.report.table("From feeds to items", columns, rows)
        self.report.figures["runs"], self.report.figures["memory"] = self.runs, memory
        least = self.plan.sizes[0]
        flat = [costs[size] for size in self.plan.sizes]
        largest = found[most]
        goals, wanted = self.report.goals, self.plan.goals
        rate = largest["messages"] / largest["seconds"]
        goals.append(Goal.at_least("messages/s, feeds to items", rate, wanted.rate))
        goals.append(Goal.below("a message, dearest size × cheapest", max(flat) / min(flat), wanted.flat))
        peak = memory[most][WORKERS] / memory[least][WORKERS]
        goals.append(Goal.below(f"a worker's memory at {most:,}, × {least:,}", peak, wanted.memory))

    # -- 2. where the time goes

    def parts(self) -> None:
        most = self.plan.sizes[-1]
        one = self.measure(f"{most:,}", 0)
        whole, count = sum(one["cpu"].values()), one["messages"]
        jvm = {f"JVM: {name}": seconds for name, seconds in one["jvm"].items()}
        parts = {**one["parts"], **jvm, JVM_REST: one["cpu"][JVM] - sum(jvm.values())}
        parts["driver's Python"] = one["cpu"][DRIVER]
        parts[REST] = one["cpu"][WORKERS] - sum(value for name, value in one["parts"].items() if name != REST)
        rows = [
            (name, f"{seconds:.2f}", f"{100 * seconds / whole:.1f}", f"{1e6 * seconds / count:.2f}")
            for name, seconds in sorted(parts.items(), key=lambda entry: -entry[1])
        ]
        self.report.table(f"Where the CPU time goes, {most:,} messages", ("part", "s", "%", "µs of each"), rows)
        stages = [
            (name, f"{value:.2f}", f"{100 * value / one['seconds']:.1f}") for name, value in one["stages"].items()
        ]
        self.report.table("The same by stages, wall time", ("stage", "s", "%"), stages)
        share = 100 * (whole - sum(max(0.0, parts[name]) for name in (REST, JVM_REST))) / whole
        self.report.goals.append(Goal.at_least("time that a part was found for, %", share, self.plan.goals.attributed))

    # -- 3. anchors

    def anchors(self) -> None:
        most, small = f"{self.plan.sizes[-1]:,}", f"{self.plan.live:,}"
        rows_at = str(self.folder / "rows")
        count = self.ask("rows", f"Parquet of {most}", folder=self.at(most), to=rows_at)["messages"]
        taken = [self.ask("bare", "bare Spark", rows=rows_at)["seconds"] for _ in range(self.plan.rounds + 1)][1:]
        bare, ours, alike = count / median(taken), self._rate(most), self._rate(small)
        lives = [
            self.ask("live", f"a live peer, cold: {small}", folder=self.at(small)) for _ in range(self.plan.rounds)
        ]
        mine = self.measure(small, 0)
        assert all(live["states"] == mine["states"] for live in lives), "Spark and a live peer come to different states"
        alive = lives[0]["messages"] / median(live["seconds"] for live in lives)
        self.report.figures["anchors"] = {"bare": taken, "live": [live["seconds"] for live in lives]}
        rows = [
            (f"bare Spark, {most}", per_second(bare), per_second(ours), f"{ours / bare:.2f}"),
            (
                f"a live peer, {small}",
                per_second(alive),
                per_second(self._rate(small)),
                f"{self._rate(small) / alive:.2f}",
            ),
        ]
        self.report.table("Anchors, messages a second", ("", "theirs", "ours", "ours ÷ theirs"), rows)
        goals, wanted = self.report.goals, self.plan.goals
        goals.append(Goal.at_least("× bare Spark", ratio(ours, bare), wanted.bare))
        goals.append(Goal.at_least("× a live peer's cold rebuild", ratio(alike, alive), wanted.live))

    def _rate(self, name: str) -> float:
        one = self.measure(name, 0)
        return float(one["messages"] / one["seconds"])

    # -- 4. a hot item

    def hot(self) -> None:
        even, hot = self._rate(f"{self.plan.hot:,}"), self.measure("hot", self.plan.rounds)
        rate = hot["messages"] / hot["seconds"]
        mixed = self.measure("all models", self.plan.rounds)
        rows = [
            (f"even, {self.plan.hot:,}", per_second(even), "1.0"),
            (f"a hot item, {self.plan.hot:,}", per_second(rate), f"{even / rate:.2f}"),
            (f"all models, {self.plan.streamed:,}", per_second(mixed["messages"] / mixed["seconds"]), "-"),
        ]
        self.report.table("Other homes", ("", "messages/s", "× the time of the even one"), rows)
        self.report.goals.append(Goal.below("a hot item, × the even case", even / rate, self.plan.goals.hot))

    # -- 5. tables

    def tables(self) -> None:
        name = f"{self.plan.grown:,}"
        values = {"tables": self.at("t1"), "share": NEW, "rounds": self.plan.rounds}
        grown = self.ask("grow", f"tables, and 1 % more: {name}", folder=self.at(name), **values)
        share = 100 * grown["more"] / grown["first"]
        self.report.goals.append(Goal.below("a run after 1 % new, % of the first", share, self.plan.goals.new))
        values = {"tables": self.at("t2"), "checkpoint": self.at("c2"), "blocks": self.plan.batch}
        small = f"{self.plan.streamed:,}"
        flown = self.ask("stream", f"a stream: {small}", folder=self.at(small), **values)
        self.report.figures["tables"] = {"grown": grown, "stream": flown}
        batches = flown["batches"]
        blocks, latency = sum(batch["blocks"] for batch in batches), [batch["latency"] for batch in batches]
        rate = per_second(blocks / flown["seconds"])
        rows = [
            (f"tables of {name}, the first time", f"{grown['first']:.2f}", "-"),
            ("after 1 % new messages", f"{grown['more']:.2f}", "-"),
            (f"a stream of {small}, {len(batches)} batches", f"{flown['seconds']:.2f}", rate),
            ("… latency of a batch, median", f"{median(latency):.2f}", "-"),
            ("… and of the slowest", f"{max(latency):.2f}", "-"),
        ]
        self.report.table("Tables", ("", "s", "blocks/s"), rows)


def measure(plan: Plan, report: Report, folder: Path) -> None:
    for name in ("scratch", "parts"):
        (folder / name).mkdir()
    os.environ["ANTIPHON_BENCH_SCRATCH"], os.environ[FOLDER] = str(folder / "scratch"), str(folder / "parts")
    with closing(Side("antiphon on Spark", OURS)) as side, closing(Side("antiphon", OURS)) as other:
        Bench(plan, report, folder, side, other).run()


def main(plan: Plan | None = None) -> None:
    run_in_folder(
        "Pipeline",
        "The pipeline on Spark: from feeds to items, where its time goes, anchors, a hot item, tables.",
        lambda quick, report, folder: measure(plan or (QUICK if quick else FULL), report, folder),
    )


if __name__ == "__main__":
    main()
