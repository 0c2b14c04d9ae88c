"""What became of every block: nothing is dropped silently.

    held = control + based + applied + refused + pending + ended

The left side comes from the stores' own records, the right side from what the stages counted, each on its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from antiphon.pipeline.judged import BASED, CONTROL, PENDING
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.survey import Survey

_NAMES = {CONTROL: "control", BASED: "based", PENDING: "pending"}


@dataclass(slots=True)
class Account:
    """The blocks of one party."""

    party: bytes
    held: int
    control: int = 0
    based: int = 0
    applied: int = 0
    refused: int = 0
    pending: int = 0
    ended: int = 0
    reasons: Counter[str] = field(default_factory=Counter)  # of what was refused
    waits: dict[bytes, str] = field(default_factory=dict)  # why feeds do not go on

    @property
    def lost(self) -> int:
        """Blocks that nobody accounts for; other than 0 only if the pipeline is wrong, or a home changed under it."""
        return self.held - self.control - self.based - self.applied - self.refused - self.pending - self.ended


def account(survey: Survey, judged: DataFrame | None, folded: DataFrame) -> dict[bytes, Account]:
    """What became of the blocks of each party of a survey.

    Blocks that do not count, or not yet, are counted in `judged`; without it, they are as many as the plans say, and no
    block is read again. What is applied is what items say that they took in, and each refusal is a row.
    """
    if judged is None:
        found = {plan.party: _settled(plan) for plan in survey.plans}
    else:
        found = {plan.party: _begin(plan) for plan in survey.plans}
        for row in judged.where(f.col("standing").isin(*_NAMES)).groupBy("party", "standing").count().collect():
            one, name = found[bytes(row["party"])], _NAMES[row["standing"]]
            setattr(one, name, getattr(one, name) + row["count"])
    sums = (f.sum("messages").alias("messages"), f.count("*").alias("count"))
    for row in folded.groupBy("party", "reason").agg(*sums).collect():
        one = found[bytes(row["party"])]
        if row["reason"] is None:
            one.applied += row["messages"] or 0
        else:
            one.refused += row["count"]
            one.reasons[row["reason"]] += row["count"]
    return found


def _begin(plan: PartyPlan) -> Account:
    """A party before anything is counted. Blocks beyond the end of a feed are not read, so they are its plan's word."""
    lanes = plan.lanes
    held = sum(lane.length - lane.start for lane in lanes) + sum(plan.control.values()) + sum(plan.other.values())
    ended = sum(max(0, lane.length - max(lane.end, lane.position)) for lane in lanes)
    waits = {lane.feed: lane.waits for lane in lanes if lane.waits}
    control = sum(count for feed, count in plan.beyond.items() if feed in plan.control)  # votes count there
    pending = sum(plan.beyond.values()) - control
    return Account(plan.party, held, control=control, pending=pending, ended=ended, waits=waits)


def _settled(plan: PartyPlan) -> Account:
    """A party with all that its plan says."""
    made = _begin(plan)
    made.control = sum(plan.control.values())
    made.based = sum(max(0, min(lane.base, lane.length) - lane.start) for lane in plan.lanes)
    waiting = sum(max(0, min(lane.end, lane.length) - max(lane.position, lane.start)) for lane in plan.lanes)
    made.pending = sum(plan.other.values()) + waiting
    return made
