"""Guards queries: what they cost beside SQLite alone, how soon a subscriber is told, and that others cost nothing.

A change that makes a query do more than its SQL, or a write look at subscriptions or items that it has nothing to do
with, shows here. In the same run, on the same rows: a plain SQLite table with real columns and the same indexes, and
SQL written by hand. Both sides must give the same ids in the same order.

    .venv/bin/python bench/query.py --json [--quick]

1. Filters, aggregates, text match and traversals over 100,000 items.
2. The time from when a write is durable to when a subscriber is told, alone and with 10,000 subscriptions standing.
3. What a change costs to match, and a subscription to hold, with ten times the subscriptions and ten times the items.

`--quick` has goals of its own (`QUICK_GOALS`): with a quarter of the writes, the slowest of a hundred is one
of five, and one busy moment decides.
"""

from __future__ import annotations

import gc
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import antiphon
from antiphon.api.store import Store
from antiphon.query.filters import Fact
from antiphon.query.query import Query
from harness import query_asked, query_data
from harness.query_standing import Place, Sample, Told, Watched, compare, memory, write_and_tell
from harness.report import Goal, Report, alternate, arguments, ratio


class Goals(NamedTuple):
    """The figures that a run is held to, all of them at most."""

    filtered: float  # × bare SQLite
    notified: float  # ms
    growth: float  # × at ten times the size


FULL_GOALS = Goals(filtered=3.0, notified=1.0, growth=1.3)
QUICK_GOALS = Goals(filtered=4.0, notified=2.0, growth=1.6)

NOTES = (
    "Ours are asked through `Party.query` and `Party.aggregate`, with a query that was made before; bare SQLite "
    "through Python's sqlite3, with the same page cache and journal mode. "
    "Each question is asked with several values in a row. The goal is about the worst of those marked with a star.",
    "The party is made of feeds written apart, so its making is not measured here. The first query of all makes the "
    "index; the first about a property makes its column, the first match the words.",
    "A write is `task[key] = value`, one durable message. Told: from the return of the append that made it durable to "
    "the call of the observer, which is in the same thread. Each write changes the result of one of five "
    "subscriptions, in turn.",
    "Standing: equalities, parents, ranges, words, a step, orders with limits and counts, none of which the write has "
    "to do with; results of up to 100 items. A filter that hangs on no value, such as a negation alone, is tried on "
    "each write, so it is not unrelated.",
    "Matched: all that live queries do for one change, the call of the observer included. The two sizes take turns, "
    "and the ratio is of medians, for the worst of the five kinds.",
    "Memory: bytes by tracemalloc for one more subscription, the median of several with 20 items each (a step: 100).",
)


class Plan(NamedTuple):
    """How much is measured."""

    items: int
    standing: int
    rounds: int
    values: int  # for each question
    writes: int
    pairs: int  # writes for each comparison; both are multiples of ten
    goals: Goals

    @property
    def few_items(self) -> int:
        return self.items // 10

    @property
    def few_standing(self) -> int:
        return self.standing // 10


FULL = Plan(items=100_000, standing=10_000, rounds=9, values=50, writes=2_000, pairs=1_000, goals=FULL_GOALS)
QUICK = Plan(items=10_000, standing=1_000, rounds=5, values=30, writes=500, pairs=300, goals=QUICK_GOALS)
TINY = Plan(items=6_000, standing=40, rounds=1, values=3, writes=20, pairs=20, goals=QUICK_GOALS)


class Bench:
    """One run."""

    def __init__(self, plan: Plan, report: Report, folder: Path, stack: ExitStack) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder
        self.stack = stack
        self.store: Store = stack.enter_context(antiphon.open(folder / "store", unprotected=True))

    def run(self) -> None:
        many, few = self._place("many", self.plan.items), self._place("few", self.plan.few_items)
        self.questions(many)
        self.writes(many, few)
        self.report.notes.extend(NOTES)

    def _place(self, name: str, tasks: int) -> Place:
        """A party, with its index made."""
        world = query_data.make(tasks)
        self.report.progress(f"making a party of {world.items:,} items")
        party = self.store.create_party(name)
        start = time.perf_counter()
        ids = query_data.write(party, world)
        made = time.perf_counter() - start
        self.report.progress(f"indexing {world.items:,} items")
        start = time.perf_counter()
        assert len(party.query(Query(Fact.TYPE.is_("task")))) == len(world.tasks)
        indexed = time.perf_counter() - start
        self.report.figures[f"party, {name}"] = {"items": world.items, "made, s": made, "indexed, s": indexed}
        return Place(party, world, ids)

    # -- 1. questions

    def questions(self, place: Place) -> None:
        db = self.stack.enter_context(closing(query_data.bare(self.folder / "bare.db", place.world, place.ids)))
        asked = query_asked.questions(place.world, place.ids, self.plan.values)
        rows = [self._question(place, db, question) for question in asked]
        title = f"Questions over {place.world.items:,} items, µs each"
        self.report.table(title, ("", "rows", "ours", "SQLite", "ours ÷ SQLite", "the first, ms"), rows)
        worst = max(self.report.figures[question.name]["ratio"] for question in asked if question.is_filter)
        self.report.goals.append(Goal.below("filtered query, the worst, × SQLite", worst, self.plan.goals.filtered))

    def _question(self, place: Place, db: sqlite3.Connection, asked: query_asked.Asked) -> tuple[str, ...]:
        self.report.progress(asked.name)
        start = time.perf_counter()
        query_asked.answer(place.party, asked.pairs[0][0])
        first = time.perf_counter() - start
        size = query_asked.agree(asked, place.party, db)
        measures = (partial(query_asked.seconds, asked, place.party), partial(query_asked.seconds_bare, asked, db))
        rounds = alternate(self.plan.rounds, measures)
        ours, theirs = (median(some) for some in rounds)
        found = {"ours": ours, "sqlite": theirs, "ratio": ours / theirs, "rows": size, "first": first}
        self.report.figures[asked.name] = {**found, "rounds": {"ours": rounds[0], "sqlite": rounds[1]}}
        name = f"{asked.name} *" if asked.is_filter else asked.name
        cells = (f"{size:,.0f}", f"{ours * 1e6:,.0f}", f"{theirs * 1e6:,.0f}")
        return (name, *cells, f"{ours / theirs:.2f}", f"{first * 1e3:,.1f}")

    # -- 2. and 3. writes

    def writes(self, many: Place, few: Place) -> None:
        plan = self.plan
        self.report.progress(f"{plan.writes:,} writes, a few subscriptions")
        told = Told(many, many.party.subscribe)
        rows = self._told("write to subscriber", write_and_tell(many, told, plan.writes))
        many.party.close_subscriptions()
        self.report.progress(f"{plan.standing:,} subscriptions")
        with closing(Watched(many, plan.standing)) as full:
            self.report.progress(f"{plan.writes:,} writes, {plan.standing:,} subscriptions")
            name = f"write to subscriber, {plan.standing:,} standing"
            rows += self._told(name, write_and_tell(many, full.told, plan.writes))
            columns = ("", "told, median", "p99", "the whole call, median", "p99")
            self.report.table("From a durable write to its subscriber, ms", columns, rows)
            self.report.progress(f"{plan.few_standing:,} more subscriptions, and {plan.standing:,} of a small party")
            with closing(Watched(many, plan.few_standing)) as alone, closing(Watched(few, plan.standing)) as small:
                self._depends(full, alone, small)

    def _told(self, name: str, found: Mapping[str, Sequence[Sample]]) -> list[tuple[str, ...]]:
        every = [sample for some in found.values() for sample in some]
        rows = [self._times(name, every), *(self._times(f"{name}: {kind}", some) for kind, some in found.items())]
        figures = self.report.figures[name]
        self.report.goals.append(Goal.below(f"{name}, p99, ms", figures["told, p99"], self.plan.goals.notified))
        return rows

    def _times(self, name: str, samples: Sequence[Sample]) -> tuple[str, ...]:
        figures = {
            "told, median": 1e3 * median(sample.told for sample in samples),
            "told, p99": 1e3 * percentile([sample.told for sample in samples]),
            "whole, median": 1e3 * median(sample.whole for sample in samples),
            "whole, p99": 1e3 * percentile([sample.whole for sample in samples]),
        }
        self.report.figures[name] = {**figures, "writes": len(samples)}
        return (name, *(f"{value:.3f}" for value in figures.values()))

    def _depends(self, full: Watched, alone: Watched, small: Watched) -> None:
        gc.collect()
        rows, sizes = [], []
        held = {watched: memory(watched) for watched in (full, alone, small)}
        for name, other in (("subscriptions", alone), ("items", small)):
            self.report.progress(f"matching with 10 × the {name}")
            more, less = compare(full, other, self.plan.pairs)
            times = {kind: (1e6 * median(less[kind]), 1e6 * median(more[kind])) for kind in more}
            rows += self._ratios("matching", name, times)
            sizes += self._ratios(
                "memory of a subscription", name, {kind: (held[other][kind], held[full][kind]) for kind in held[full]}
            )
        self.report.table("Matching one change, µs", ("", "", "10 ×", "ratio"), rows)
        self.report.table("Memory of one subscription, bytes", ("", "", "10 ×", "ratio"), sizes)
        self.report.figures["subscribing, ms"] = 1e3 * mean(watched.filled for watched in held)

    def _ratios(self, what: str, more: str, found: Mapping[str, tuple[float, float]]) -> list[tuple[str, ...]]:
        title = f"{what} with 10 × the {more}"
        ratios = {kind: ratio(high, low) or 0.0 for kind, (low, high) in found.items()}
        self.report.figures[title] = {kind: (*pair, ratios[kind]) for kind, pair in found.items()}
        self.report.goals.append(Goal.below(f"{title}, ×", max(ratios.values()), self.plan.goals.growth))
        return [
            (f"10 × the {more}: {kind}", f"{low:,.0f}", f"{high:,.0f}", f"{ratios[kind]:.2f}")
            for kind, (low, high) in found.items()
        ]


def percentile(values: Sequence[float], part: float = 0.99) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def main(plan: Plan | None = None) -> None:
    options = arguments("Queries and subscriptions, beside SQLite alone on the same rows.")
    report = Report("Queries", options.quick)
    folder = Path(tempfile.mkdtemp(dir=options.dir, prefix="antiphon-bench-"))
    try:
        with ExitStack() as stack:
            Bench(plan or (QUICK if options.quick else FULL), report, folder, stack).run()
    finally:
        shutil.rmtree(folder)
    report.finish(as_json=options.json)


if __name__ == "__main__":
    main()
