"""The standing of blocks: parts of feeds that count, are void, wait, or lie beyond an end, each with its reason.

`standings` derives them from the plan of a party, and is the only place that does. The table `standings` has its rows;
the stages `judged` and `quarantine`, and the table `blocks` in SQL, are joins with them; accounts are sums over them.
They are ranges, so their number follows from rights and feeds, not from messages. The table `blocks` only grows: what
may change about a block is in `standings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pyspark.sql import Column, DataFrame, functions as f

from antiphon.core.reasons import Reason, because
from antiphon.pipeline.plan.party_plan import NOT_ADMITTED, LanePlan, PartyPlan

CONTROL = "control"  # a credential, folded into the state of the party
BASED = "based"  # inside the cut of the party's last final epoch
DELIVERED = "delivered"  # everything that it has seen is held: it is folded; with a reason, it is void
PENDING = "pending"  # it waits, for the reason given
ENDED = "ended"  # beyond the end of its feed, or unreadable

NOT_YET = because(Reason.WAITS_DELIVERY, "it is not delivered yet")

#: party, feed, start, stop, standing, reason
Row = tuple[bytes, bytes, int, int, str, str | None]

_PARTS = "party binary, feed binary, start long, stop long, lane int, standing string, reason string"


def standings(plan: PartyPlan) -> Iterator[Row]:
    """Yield the parts of all feeds of a party, in order. Together they are all blocks that are held."""
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


def counts(plan: PartyPlan) -> Counter[str]:
    """Count the blocks of each standing, by the plan."""
    found: Counter[str] = Counter()
    for _, _, low, high, standing, _ in standings(plan):
        found[standing] += high - low
    return found


def with_standings(blocks: DataFrame, standings: DataFrame) -> DataFrame:
    """Join blocks with the parts that hold them: with all columns of `standings` behind party, feed, start and stop."""
    parts = f.broadcast(standings).alias("parts")
    same = (f.col("blocks.party") == f.col("parts.party")) & (f.col("blocks.feed") == f.col("parts.feed"))
    inside = (f.col("blocks.seq") >= f.col("parts.start")) & (f.col("blocks.seq") < f.col("parts.stop"))
    found = blocks.alias("blocks").join(parts, same & inside, "left")
    return found.select("blocks.*", *(f"parts.{name}" for name in standings.columns[4:]))


def judged(blocks: DataFrame, plans: Iterable[PartyPlan]) -> DataFrame:
    """Stage `judged`: blocks with columns `lane`, `standing`, `reason`, `code`. A delivered block with one is void."""
    parts = blocks.sparkSession.createDataFrame([row for plan in plans for row in _read(plan)], _PARTS)
    rows = blocks if "fault" in blocks.columns else blocks.withColumn("fault", f.lit(None).cast("string"))
    faulty, unknown = f.col("fault").isNotNull(), f.col("standing").isNull()
    columns = {
        "standing": f.when(faulty, ENDED).when(unknown, PENDING).otherwise(f.col("standing")),
        "reason": f.when(faulty, f.col("fault")).when(unknown, NOT_ADMITTED).otherwise(f.col("reason")),
    }
    return with_standings(rows, parts).withColumns(columns).drop("fault").withColumn("code", code_column())


def _read(plan: PartyPlan) -> Iterator[tuple[object, ...]]:
    """Yield the parts with the numbers of lanes. Blocks behind a fault, in feeds without a lane, are ended if read."""
    numbers = {lane.feed: number for number, lane in enumerate(plan.lanes)}  # feeds ascend
    for party, feed, start, stop, standing, reason in standings(plan):
        number, end = numbers.get(feed, -1), stop - plan.beyond.get(feed, 0) * (standing == PENDING)
        yield party, feed, start, end, number, standing, reason
        if end < stop:
            yield party, feed, end, stop, number, ENDED, ""


def code_column() -> Column:
    """Return the column `code`: the stable code of the column `reason`, by the rule of `code_of`."""
    found = f.regexp_extract("reason", r" \[([a-z.-]+)\]$", 1)
    return f.when(f.length("reason") > 0, f.when(f.length(found) > 0, found).otherwise(Reason.OTHER.value)).alias(
        "code"
    )


def quarantine(judged: DataFrame) -> DataFrame:
    """Stage `quarantine`: blocks that do not count, or not yet, by their feed and rights; the fold may refuse more."""
    return judged.where("reason IS NOT NULL").select("party", "feed", "seq", "item", "standing", "reason", "code")
