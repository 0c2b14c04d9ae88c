"""The tables of a run: blocks, items, links, epochs, quarantine and changes, for SQL and for other programs.

docs/pipeline.md has their columns. A run replaces the rows of the parties that it looked at, and leaves those of
others as they are; `changes` grows by what the run has made other.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from antiphon.pipeline.blocks import blocks
from antiphon.pipeline.changes import changes
from antiphon.pipeline.columns import DEFAULT_COLUMNS
from antiphon.pipeline.items import refused
from antiphon.pipeline.judged import PENDING, judged
from antiphon.pipeline.links import links
from antiphon.pipeline.run import Run
from antiphon.pipeline.shown import shown
from antiphon.pipeline.tablelog import PARTITION, Current, TableLog

REFUSED, ENDED = "refused", "ended"

_EPOCHS = StructType(
    [
        StructField("party", BinaryType()),
        StructField("number", LongType()),
        StructField("snapshot", BinaryType()),
        StructField("home", StringType()),
        StructField("error", StringType()),
    ]
)
_QUARANTINE = StructType(
    [
        StructField("party", BinaryType()),
        StructField("feed", BinaryType()),
        StructField("seq", LongType()),
        StructField("count", LongType()),
        StructField("item", BinaryType()),
        StructField("standing", StringType()),
        StructField("reason", StringType()),
    ]
)


def write_tables(run: Run, log: TableLog) -> dict[str, int]:
    """Write all tables of a run, and let readers see them together; their versions. What fails leaves none of it."""
    current = log.current()
    made: dict[str, Callable[[], DataFrame]] = {
        "items": lambda: items_table(run),
        "links": lambda: links_table(run),
        "epochs": lambda: epochs_table(run),
        "quarantine": lambda: quarantine_table(run),
        "blocks": lambda: blocks_table(run),
    }
    versions = {}
    for name, make in made.items():
        with run.stage(f"write {name}"):
            versions[name] = log.write(name, _bucketed(_with_others(run, log, name, make())))
    with run.stage("write changes"):
        now = log.read_at(run.spark, "items", versions["items"])
        rows = changes_table(_before(run, log, now), now, current.run + 1)
        versions["changes"] = log.write("changes", _bucketed(rows), append=True)
    log.publish(Current(current.run + 1, versions))
    return versions


def items_table(run: Run) -> DataFrame:
    """Items with the state as bytes (`data`) and as JSON (`state`)."""
    return shown(run.items, run.models)


def links_table(run: Run) -> DataFrame:
    """Where items lead to."""
    return links(run.items, run.models)


def epochs_table(run: Run) -> DataFrame:
    """The epoch that each party stands on; number 0 for none."""
    rows = [(plan.party, plan.number, plan.base or None, plan.home, plan.error) for plan in run.survey.plans]
    return run.spark.createDataFrame(rows, _EPOCHS)


def quarantine_table(run: Run) -> DataFrame:
    """What does not count, or not yet, and why: single blocks, and ranges beyond the ends of feeds."""
    ends = [
        (plan.party, lane.feed, at, lane.length - at, None, ENDED, lane.ended)
        for plan in run.survey.plans
        for lane in plan.lanes
        if (at := max(lane.end, lane.position)) < lane.length
    ]
    one, names = f.lit(1).cast("long").alias("count"), ("item", "standing", "reason")
    waiting = run.judged.where(f.col("standing") == PENDING).select("party", "feed", "seq", one, *names)
    void = refused(run.folded).withColumn("standing", f.lit(REFUSED)).select("party", "feed", "seq", one, *names)
    return waiting.unionByName(void).unionByName(run.spark.createDataFrame(ends, _QUARANTINE))


def blocks_table(run: Run) -> DataFrame:
    """Every block that could be read, verified, with its standing. It is the archive of what was looked at."""
    rows = judged(blocks(run.spark, run.survey, DEFAULT_COLUMNS), run.survey.plans)
    return rows.where(f.col("hash") != f.unhex(f.lit(""))).drop("lane")


def changes_table(before: DataFrame, now: DataFrame, run: int) -> DataFrame:
    """What a run has made other."""
    return changes(before, now).select(f.lit(run).cast("long").alias("run"), "*")


# -- inside


def _bucketed(rows: DataFrame) -> DataFrame:
    return rows.withColumn(PARTITION, f.lower(f.substring(f.hex("party"), 1, 1)))


def _ours(run: Run) -> Column:
    return f.col("party").isin([bytearray(plan.party) for plan in run.survey.plans])


def _with_others(run: Run, log: TableLog, name: str, rows: DataFrame) -> DataFrame:
    """The rows, and those of parties that this run has not looked at."""
    if name not in log.current().versions:
        return rows
    return rows.unionByName(log.read(run.spark, name).where(~_ours(run)))


def _before(run: Run, log: TableLog, now: DataFrame) -> DataFrame:
    return log.read(run.spark, "items") if "items" in log.current().versions else now.limit(0)
