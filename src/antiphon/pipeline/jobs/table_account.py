"""The account of blocks from the tables: each held block is in a table, or counted by the plan in `progress`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from antiphon.pipeline.fold.block_account import Account, planned_account
from antiphon.pipeline.fold.summary import Tally, combine_tallies
from antiphon.pipeline.jobs.batch_run import party_reports
from antiphon.pipeline.jobs.report import Report
from antiphon.pipeline.plan.party_plan import NOT_ADMITTED
from antiphon.pipeline.plan.replan import PartyStep
from antiphon.pipeline.plan.standings import BASED, CONTROL, PENDING
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.tables.run_tables import RunTables
from antiphon.pipeline.tables.shard_tally import SHARDS, tally_shard


def table_accounts(
    tables: RunTables, steps: Sequence[PartyStep], applied: Mapping[bytes, int] | None = None
) -> dict[bytes, Account]:
    """Return the account of all blocks of some parties, of all runs so far.

    Applied messages are counted in `items`, unless given; refused, pending and ended blocks in `quarantine`. The number
    of held blocks comes from the feed stores.
    """
    accounts = {step.plan.party: _begin(step) for step in steps}
    for party, count in _applied(tables) if applied is None else applied.items():
        if party in accounts:
            accounts[party].applied += count
    for part in tables.scan("quarantine", ["party", "standing", "reason", "count"]):
        for party, standing, reason, count in _sums(part, ["party", "standing", "reason"], "count"):
            if party in accounts:
                accounts[party].add(standing, count, reason)
    return accounts


def report_tables(
    spark: SparkSession,
    tables: RunTables,
    homes: Sequence[str],
    steps: Sequence[PartyStep],
    tallies: Sequence[Tally] | None = None,
) -> Report:
    """Return the report of some parties from the tables; without `tallies`, Spark counts the items of all shards."""
    if tallies is None:
        shards, ours = tables.files_by_partition("items"), frozenset(step.plan.party for step in steps)
        asked = [(shards.get(f"{digit:x}", ()), ours) for digit in range(SHARDS)]
        tallies = in_workers(spark, tally_shard, asked, 2 * spark.sparkContext.defaultParallelism)
    found = combine_tallies(tallies)
    accounts = table_accounts(tables, steps, found.applied)
    return Report(tuple(homes), party_reports((step.plan for step in steps), accounts, found), found.skew)


def _applied(tables: RunTables) -> Iterator[tuple[bytes, int]]:
    for part in tables.scan("items", ["party", "messages"]):
        yield from cast(Iterator[tuple[bytes, int]], _sums(part, ["party"], "messages"))


def _sums(part: pa.Table, keys: list[str], column: str) -> Iterator[tuple[Any, ...]]:
    """Sum a column by keys; yield the keys and the sum."""
    found = part.group_by(keys).aggregate([(column, "sum")]).select([*keys, f"{column}_sum"])
    return zip(*(found.column(at).to_pylist() for at in range(found.num_columns)), strict=True)


def _begin(step: PartyStep) -> Account:
    """Return the account of a party before rows are counted: the blocks that are in no table, by its plan."""
    plan = step.plan
    made = planned_account(plan, step.held, (CONTROL, BASED))
    for feed, count in plan.beyond.items():
        if feed in plan.other:
            made.add(PENDING, count, NOT_ADMITTED)
    return made
