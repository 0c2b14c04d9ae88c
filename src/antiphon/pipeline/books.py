"""What the tables account for: every block that is held is in one of them, or in the plan that they remember."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from antiphon.pipeline.account import Account
from antiphon.pipeline.judged import BASED, CONTROL
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.report import PartyReport, Report, Skew
from antiphon.pipeline.run import NO_STATES, states_of, waits_of
from antiphon.pipeline.standings import counts
from antiphon.pipeline.tablelog import TableLog
from antiphon.pipeline.tables import REFUSED


def report_tables(spark: SparkSession, log: TableLog, homes: Sequence[str], plans: Sequence[PartyPlan]) -> Report:
    """The report of a whole run, of what the tables have of some parties.

    What is applied is counted in `items`, and what is refused, waits or is ended in `quarantine`.
    """
    ours = f.col("party").isin([bytearray(plan.party) for plan in plans])
    states = states_of(log.read(spark, "items").where(ours).withColumnRenamed("data", "snapshot"))
    books = {plan.party: _begin(plan) for plan in plans}
    skew = Skew()
    for part in log.parts("items", ["party", "item", "messages"]):
        for party, count in _sums(part, ["party"], "messages"):
            if party in books:
                books[party].applied += count
                skew = _hotter(skew, part.filter(pc.equal(part["party"], pa.scalar(party, pa.binary()))))
    for part in log.parts("quarantine", ["party", "standing", "reason", "count"]):
        for party, standing, reason, count in _sums(part, ["party", "standing", "reason"], "count"):
            if party in books:
                setattr(books[party], standing, getattr(books[party], standing) + count)
                if standing == REFUSED:
                    books[party].reasons[reason] += count
    parties = tuple(
        PartyReport(
            books[plan.party],
            *states.get(plan.party, (0, NO_STATES)),
            plan.number,
            plan.base,
            plan.error,
            waits_of(plan),
        )
        for plan in plans
    )
    return Report(tuple(homes), parties, skew)


def _sums(part: pa.Table, keys: list[str], column: str) -> Iterator[tuple[Any, ...]]:
    """The sum of a column for each of some keys."""
    found = part.group_by(keys).aggregate([(column, "sum")]).select([*keys, f"{column}_sum"])
    return zip(*(found.column(at).to_pylist() for at in range(found.num_columns)), strict=True)


def _hotter(skew: Skew, part: pa.Table) -> Skew:
    """The skew with some items more. Of two that are equally hot the one with the greater id counts, as on Spark."""
    most = pc.max(part["messages"]).as_py()
    item = max(part.filter(pc.equal(part["messages"], most))["item"].to_pylist())
    hottest, name = max((skew.hottest, skew.item), (most, item))
    return Skew(skew.messages + pc.sum(part["messages"]).as_py(), hottest, name)


def _begin(plan: PartyPlan) -> Account:
    """A party before anything is counted: what no table has a row of is its plan's word."""
    held = sum(lane.length - lane.start for lane in plan.lanes) + sum(plan.control.values()) + sum(plan.other.values())
    found = counts(plan)
    waits = {lane.feed: lane.waits for lane in plan.lanes if lane.waits}
    return Account(
        plan.party,
        held,
        control=found.get(CONTROL, 0),
        based=found.get(BASED, 0),
        pending=sum(count for feed, count in plan.beyond.items() if feed in plan.other),
        reasons=Counter(),
        waits=waits,
    )
