"""Stages `judged` and `quarantine`: each block with its standing, and why it does not count if it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql import Column, DataFrame, functions as f
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from antiphon.pipeline.plan.party_plan import NOT_ADMITTED, PartyPlan

# How a block stands.
CONTROL = "control"  # a credential, folded into the party's state
BASED = "based"  # inside the cut of the epoch that the party stands on
DELIVERED = "delivered"  # everything that it has seen is here: it is folded, void or not
PENDING = "pending"  # it waits, for the reason given
ENDED = "ended"  # beyond the end of its feed, or what cannot be read

NOT_YET = "it is not delivered yet"

_LANES = StructType(
    [
        StructField("party", BinaryType(), nullable=False),
        StructField("feed", BinaryType(), nullable=False),
        StructField("lane", IntegerType(), nullable=False),  # by ascending feed: sorts as the feeds do
        StructField("base", LongType(), nullable=False),
        StructField("position", LongType(), nullable=False),
        StructField("end", LongType(), nullable=False),
        StructField("waits", StringType(), nullable=False),
        StructField("ended", StringType(), nullable=False),
        StructField("control", IntegerType(), nullable=False),
    ]
)
_VOIDS = StructType(
    [
        StructField("party", BinaryType(), nullable=False),
        StructField("feed", BinaryType(), nullable=False),
        StructField("start", LongType(), nullable=False),
        StructField("stop", LongType(), nullable=False),
        StructField("void", StringType(), nullable=False),
    ]
)


def judged(blocks: DataFrame, plans: Iterable[PartyPlan]) -> DataFrame:
    """The blocks with columns `lane`, `standing` and `reason`. One that is delivered and has a reason is void."""
    known = list(plans)
    spark = blocks.sparkSession
    lanes = spark.createDataFrame(list(_lane_rows(known)), _LANES)
    rows = blocks if "fault" in blocks.columns else blocks.withColumn("fault", f.lit(None).cast("string"))
    rows = rows.join(f.broadcast(lanes), ["party", "feed"], "left")
    voids = [(plan.party, lane.feed, *void) for plan in known for lane in plan.lanes for void in lane.voids]
    rows = _with_voids(rows, voids).withColumn("standing", _standing())
    reason = (
        f.when(f.col("standing") == ENDED, f.coalesce("fault", "ended"))
        .when(f.col("standing") == PENDING, f.coalesce(f.col("waits"), f.lit(NOT_ADMITTED)))
        .when(f.col("standing") == DELIVERED, f.col("void"))
    )
    return rows.withColumn("reason", reason).drop(
        "base", "position", "end", "waits", "ended", "control", "void", "fault"
    )


def _with_voids(rows: DataFrame, voids: Sequence[tuple[object, ...]]) -> DataFrame:
    if not voids:
        return rows.withColumn("void", f.lit(None).cast("string"))
    ranges = f.broadcast(rows.sparkSession.createDataFrame(list(voids), _VOIDS)).alias("voids")
    same = (f.col("rows.party") == f.col("voids.party")) & (f.col("rows.feed") == f.col("voids.feed"))
    inside = (f.col("rows.seq") >= f.col("voids.start")) & (f.col("rows.seq") < f.col("voids.stop"))
    return rows.alias("rows").join(ranges, same & inside, "left").select("rows.*", "voids.void")


def quarantine(judged: DataFrame) -> DataFrame:
    """What does not count, or not yet, by what its feed and the control state say; the fold may refuse more."""
    return judged.where(f.col("reason").isNotNull() & (f.col("standing") != BASED)).select(
        "party", "feed", "seq", "item", "standing", "reason"
    )


def _standing() -> Column:
    seq = f.col("seq")
    return (
        f.when(f.col("fault").isNotNull(), ENDED)
        .when(f.col("lane").isNull(), PENDING)
        .when(f.col("control") == 1, CONTROL)
        .when(seq < f.col("base"), BASED)
        .when(seq < f.col("position"), DELIVERED)
        .when(seq >= f.col("end"), ENDED)
        .otherwise(PENDING)
    )


def _lane_rows(plans: Iterable[PartyPlan]) -> Iterator[tuple[object, ...]]:
    for plan in plans:
        for number, lane in enumerate(plan.lanes):
            places = (lane.base, lane.position, lane.end)
            yield (plan.party, lane.feed, number, *places, lane.waits or plan.error or NOT_YET, lane.ended, 0)
        for feed in plan.control:
            yield (plan.party, feed, -1, 0, 0, 0, "", "", 1)
        for feed, length in plan.other.items():
            yield (plan.party, feed, -1, 0, 0, length - plan.beyond.get(feed, 0), NOT_ADMITTED, "", 0)
