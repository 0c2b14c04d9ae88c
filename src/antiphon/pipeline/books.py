"""What the tables account for: every block that is held is in one of them, or in the plan that they remember."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from antiphon.pipeline.account import Account
from antiphon.pipeline.judged import BASED, CONTROL
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.report import PartyReport, Report
from antiphon.pipeline.run import NO_STATES, skew_of, states_of, waits_of
from antiphon.pipeline.standings import counts
from antiphon.pipeline.tablelog import TableLog


def report_tables(spark: SparkSession, log: TableLog, homes: Sequence[str], plans: Sequence[PartyPlan]) -> Report:
    """The report of a whole run, of what the tables have of some parties.

    What is applied is counted in `items`, and what is refused, waits or is ended in `quarantine`.
    """
    ours = f.col("party").isin([bytearray(plan.party) for plan in plans])
    items = log.read(spark, "items").where(ours).withColumnRenamed("data", "snapshot")
    states, skew = states_of(items), skew_of(items)
    books = {plan.party: _begin(plan) for plan in plans}
    for row in items.groupBy("party").agg(f.sum("messages").alias("count")).collect():
        books[bytes(row["party"])].applied = row["count"]
    listed = log.read(spark, "quarantine").where(ours).groupBy("party", "standing", "reason")
    for row in listed.agg(f.sum("count").alias("count")).collect():
        one, standing, count = books[bytes(row["party"])], row["standing"], row["count"]
        setattr(one, standing, getattr(one, standing) + count)
        if standing == "refused":
            one.reasons[row["reason"]] += count
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
