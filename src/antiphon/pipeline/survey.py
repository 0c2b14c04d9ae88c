"""Surveys a home: verifies its feeds and plans its parties, in Spark's workers. What comes back is small."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from antiphon.core.errors import UnknownParty
from antiphon.core.timeframe import Timeframe
from antiphon.pipeline.home import open_blobs, open_feeds
from antiphon.pipeline.plan import PartyPlan, Planner
from antiphon.pipeline.ranges import RANGE_BLOCKS, Fault, Limits, Range, divided, read_ranges, wanted

TASKS_PER_CORE = 8

Given = TypeVar("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Survey:
    """Homes at one moment: where each of their parties stands, and what does not verify."""

    homes: tuple[str, ...]
    plans: tuple[PartyPlan, ...]

    @property
    def anchor(self) -> Timeframe:
        """Every block that is held, and was looked at."""
        return Timeframe({feed: seq for plan in self.plans for feed, seq in plan.anchor.items()})

    def plan(self, party: bytes) -> PartyPlan:
        for plan in self.plans:
            if plan.party == party:
                return plan
        raise UnknownParty(f"party {party.hex()[:8]} is not in {', '.join(self.homes)}, or was not asked for")


def survey(
    spark: SparkSession,
    homes: str | Path | Sequence[str | Path],
    parties: Collection[bytes] = (),
    *,
    verify: bool = True,
    blocks: int = RANGE_BLOCKS,
    open_parties: Collection[bytes] = (),
) -> Survey:
    """Look at some parties of a home or of several, or at all. With `verify`, everything that can be is checked first.

    Every hash, link, body, head and header is, that is; what depends on others of the party's blocks is planned.
    `open_parties` run without credentials: every feed of theirs counts, as with an `OpenAuthority`.
    """
    # Workers may stand in another folder: that of the program when Spark began.
    places = tuple(str(Path(home).expanduser().absolute()) for home in _each(homes))
    ranges = in_workers(spark, _list, [(places, frozenset(map(bytes, parties)))])[0]
    faults: dict[bytes, list[Fault]] = defaultdict(list)
    if verify:
        for found in in_workers(spark, verify_task, divided(ranges, blocks)):
            for fault in found:
                faults[fault.party].append(fault)
    known = sorted({(one.party, one.home) for one in ranges})
    ends: dict[bytes, dict[bytes, int]] = defaultdict(dict)  # what came meanwhile was not looked at
    for one in ranges:
        ends[one.party][one.feed] = one.stop - 1
    alone = frozenset(map(bytes, open_parties))
    asked = [(home, party, tuple(faults[party]), Timeframe(ends[party]), party in alone) for party, home in known]
    return Survey(places, tuple(in_workers(spark, _plan, asked)))


def _each(homes: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    return [homes] if isinstance(homes, str | Path) else homes


def in_workers(spark: SparkSession, act: Callable[[Given], Result], given: Sequence[Given]) -> list[Result]:
    """Do something with each value, in Spark's Python workers; the results in the same order."""
    if not given:
        return []
    tasks = min(len(given), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    return spark.sparkContext.parallelize(given, tasks).map(act).collect()


def _list(asked: tuple[tuple[str, ...], frozenset[bytes]]) -> list[Range]:
    homes, parties = asked
    return wanted(homes, Limits(parties=parties))


def verify_task(task: tuple[Range, ...]) -> list[Fault]:
    """What does not verify of some ranges."""
    faults: list[Fault] = []
    for spans in read_ranges(task, faults.append):
        for _ in spans:
            pass
    return faults


def _plan(asked: tuple[str, bytes, tuple[Fault, ...], Timeframe, bool]) -> PartyPlan:
    home, party, faults, until, alone = asked
    with open_feeds(home) as store, open_blobs(home) as blobs:
        return Planner(home, store, blobs, party, faults, until, alone, exact=True).plan()
