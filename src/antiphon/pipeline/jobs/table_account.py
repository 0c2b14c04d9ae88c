"""What the tables account for: every block that is held is in one of them, or in the plan that they remember."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from antiphon.pipeline.fold.block_account import Account, begin
from antiphon.pipeline.fold.summary import Tally, total
from antiphon.pipeline.jobs.batch_run import party_reports
from antiphon.pipeline.jobs.report import Report
from antiphon.pipeline.plan.party_plan import NOT_ADMITTED
from antiphon.pipeline.plan.replan import PartyStep
from antiphon.pipeline.plan.standings import BASED, CONTROL, PENDING
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.tables.delta_folder import TableLog
from antiphon.pipeline.tables.shard_tally import SHELVES, tally_shelf


def books_of(
    log: TableLog, steps: Sequence[PartyStep], applied: Mapping[bytes, int] | None = None
) -> dict[bytes, Account]:
    """What has become of all blocks of some parties, also of those that came long ago.

    What is applied is counted in `items`, unless that is known already, and what is refused, waits or is ended in
    `quarantine`; what is held is the stores' word.
    """
    books = {step.plan.party: _begin(step) for step in steps}
    for party, count in _applied(log) if applied is None else applied.items():
        if party in books:
            books[party].applied += count
    for part in log.parts("quarantine", ["party", "standing", "reason", "count"]):
        for party, standing, reason, count in _sums(part, ["party", "standing", "reason"], "count"):
            if party in books:
                books[party].add(standing, count, reason)
    return books


def report_tables(
    spark: SparkSession,
    log: TableLog,
    homes: Sequence[str],
    steps: Sequence[PartyStep],
    tallies: Sequence[Tally] | None = None,
) -> Report:
    """The report of a whole run, of what the tables have of some parties; `tallies` if that is known already."""
    if tallies is None:
        shelves, ours = log.shelves("items"), frozenset(step.plan.party for step in steps)
        asked = [(shelves.get(f"{digit:x}", ()), ours) for digit in range(SHELVES)]
        tallies = in_workers(spark, tally_shelf, asked, 2 * spark.sparkContext.defaultParallelism)
    found = total(tallies)
    books = books_of(log, steps, found.applied)
    return Report(tuple(homes), party_reports((step.plan for step in steps), books, found), found.skew)


def _applied(log: TableLog) -> Iterator[tuple[bytes, int]]:
    for part in log.parts("items", ["party", "messages"]):
        yield from cast(Iterator[tuple[bytes, int]], _sums(part, ["party"], "messages"))


def _sums(part: pa.Table, keys: list[str], column: str) -> Iterator[tuple[Any, ...]]:
    """The sum of a column for each of some keys."""
    found = part.group_by(keys).aggregate([(column, "sum")]).select([*keys, f"{column}_sum"])
    return zip(*(found.column(at).to_pylist() for at in range(found.num_columns)), strict=True)


def _begin(step: PartyStep) -> Account:
    """A party before anything is counted: what no table has a row of is its plan's word."""
    plan = step.plan
    made = begin(plan, step.held, (CONTROL, BASED))
    for feed, count in plan.beyond.items():
        if feed in plan.other:
            made.add(PENDING, count, NOT_ADMITTED)
    return made
