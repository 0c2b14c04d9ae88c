"""The table `standings`: how each part of a feed stands. It has what changes of blocks, so that `blocks` only grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, functions as f

from antiphon.pipeline.plan.judged_blocks import BASED, CONTROL, DELIVERED, ENDED, NOT_YET, PENDING
from antiphon.pipeline.plan.party_plan import NOT_ADMITTED, LanePlan, PartyPlan

#: party, feed, start, stop, standing, reason
Row = tuple[bytes, bytes, int, int, str, str | None]


def standings(plan: PartyPlan) -> Iterator[Row]:
    """The parts of all feeds of a party, in order; together they are what is held."""
    for lane in plan.lanes:
        for low, high, standing, reason in _parts(lane, plan.error):
            if low < high:
                yield plan.party, lane.feed, low, high, standing, reason
    for feed, length in plan.control.items():
        yield plan.party, feed, 0, length, CONTROL, None
    for feed, length in plan.other.items():
        yield plan.party, feed, 0, length, PENDING, plan.error or NOT_ADMITTED


def _parts(lane: LanePlan, error: str) -> Iterator[tuple[int, int, str, str | None]]:
    yield lane.start, min(lane.base, lane.length), BASED, None
    at = max(lane.start, lane.base)
    for void in lane.voids:
        yield at, void.start, DELIVERED, None
        yield void.start, void.stop, DELIVERED, void.reason
        at = void.stop
    yield at, lane.position, DELIVERED, None
    end = max(lane.position, min(lane.end, lane.length))
    yield lane.position, end, PENDING, lane.waits or error or NOT_YET
    yield end, lane.length, ENDED, lane.ended


def with_standings(blocks: DataFrame, standings: DataFrame) -> DataFrame:
    """The table of blocks with columns `standing` and `reason`; one that is delivered and has a reason is void."""
    parts = f.broadcast(standings).alias("parts")
    same = (f.col("blocks.party") == f.col("parts.party")) & (f.col("blocks.feed") == f.col("parts.feed"))
    inside = (f.col("blocks.seq") >= f.col("parts.start")) & (f.col("blocks.seq") < f.col("parts.stop"))
    found = blocks.alias("blocks").join(parts, same & inside, "left")
    return found.select("blocks.*", "parts.standing", "parts.reason")


def counts(plan: PartyPlan) -> dict[str, int]:
    """How many blocks stand in each way, by the plan."""
    found: dict[Any, int] = {}
    for _, _, low, high, standing, _ in standings(plan):
        found[standing] = found.get(standing, 0) + high - low
    return found
