"""The tables of a run: blocks, items, links, epochs, quarantine, changes, and what is remembered for the next run.

docs/pipeline.md has their columns. They are written where they change: rows of items that were touched, and of parties
that were read afresh; rows of parties that a run has not looked at stay as they are.

All of them are committed, and then published together with what is remembered of each party; a batch of a stream has
its number in the same commits. So a run that ends before that has done nothing, and one that is done twice counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from uuid import uuid4

from pyspark import inheritable_thread_target
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from antiphon.pipeline.account import REFUSED
from antiphon.pipeline.advance import Advance
from antiphon.pipeline.changes import changes
from antiphon.pipeline.columns import DEFAULT_COLUMNS
from antiphon.pipeline.items import refused
from antiphon.pipeline.judged import ENDED, PENDING
from antiphon.pipeline.onward import Step
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.run import Run
from antiphon.pipeline.showing import shown_items, shown_links
from antiphon.pipeline.standings import Row, standings
from antiphon.pipeline.tablelog import Current, Stream, TableLog

ARCHIVED = tuple(name for name in DEFAULT_COLUMNS if name != "fault")  # what the table of blocks has of each

EPOCHS = StructType(
    [
        StructField("party", BinaryType()),
        StructField("number", LongType()),
        StructField("snapshot", BinaryType()),
        StructField("home", StringType()),
        StructField("error", StringType()),
    ]
)
QUARANTINE = StructType(
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
STANDINGS = StructType(
    [
        StructField("party", BinaryType()),
        StructField("feed", BinaryType()),
        StructField("start", LongType()),
        StructField("stop", LongType()),
        StructField("standing", StringType()),
        StructField("reason", StringType()),
    ]
)
PROGRESS = StructType([StructField("party", BinaryType()), StructField("progress", StringType())])

_OF_ITEMS = {"items", "links", "changes"}  # they change where items do

Stage = Callable[[str], AbstractContextManager[None]]


def write_advance(advance: Advance, log: TableLog, stage: Stage, stream: Stream | None = None) -> Current:
    """Write what a run has come to, and let readers see it; what they see now. What fails leaves none of it."""
    current = log.current()
    items, hits = shown_items(advance.folded), advance.touched_count
    writers: dict[str, Callable[[], int]] = {
        "items": lambda: log.replace("items", items, _touched(advance, "item"), stream, hits),
        "links": lambda: log.replace("links", shown_links(advance.folded), _touched(advance, "source"), stream),
        "quarantine": lambda: log.replace("quarantine", quarantined(advance), _listed(advance), stream),
        "blocks": lambda: log.replace("blocks", advance.new_blocks(ARCHIVED), _afresh(advance), stream),
        "changes": lambda: log.replace("changes", changed(advance, current.run + 1), None, stream),
    }
    if not advance.folds:
        writers = {name: write for name, write in writers.items() if name not in {*current.versions} & _OF_ITEMS}
    versions = {**current.versions, **_together(advance.spark, writers, stage)}
    with stage("write progress"):
        plans = [step.plan for step in advance.steps]
        for name, schema, rows in (
            ("epochs", EPOCHS, [(one.party, one.number, one.base or None, one.home, one.error) for one in plans]),
            ("standings", STANDINGS, [row for plan in plans for row in standings(plan)]),
            ("progress", PROGRESS, [(step.now.party, step.now.encode()) for step in advance.steps]),
        ):
            ours = {plan.party for plan in plans}
            others = [tuple(row.values()) for row in log.read_small(name) if row["party"] not in ours]
            versions[name] = log.put_small(name, schema, [*others, *rows], stream)
    streams = {**current.streams, **(dict([stream]) if stream else {})}
    now = Current(current.run + 1, versions, streams)
    log.publish(now)
    return now


def _together(spark: SparkSession, writers: Mapping[str, Callable[[], int]], stage: Stage) -> dict[str, int]:
    """Write tables side by side: much of the time that each takes, Spark plans it, or waits for its last task."""

    def write(name: str) -> int:
        with stage(f"write {name}"):
            return writers[name]()

    tag = f"antiphon {uuid4().hex}"
    spark.addTag(tag)
    try:
        with ThreadPoolExecutor(len(writers)) as threads:
            writing = {name: threads.submit(inheritable_thread_target(spark)(write), name) for name in writers}
            try:
                return {name: done.result() for name, done in writing.items()}
            except BaseException:
                spark.interruptTag(tag)  # else it would end when all the others have
                raise
    finally:
        spark.removeTag(tag)


def quarantined(advance: Advance) -> DataFrame:
    """What is refused of what was folded; and of all parties that moved, what waits, and what lies beyond ends."""
    moved = [*advance.afresh, *(step.plan for step in advance.on if _waits_otherwise(step))]
    found = advance.refused.withColumn("standing", f.lit(REFUSED)).select("party", "feed", "seq", *_one())
    ends = [row for plan in moved for row in _ended(plan)]
    if ends:
        found = found.unionByName(advance.spark.createDataFrame(ends, QUARANTINE))
    if advance.waiting is None:
        return found
    return found.unionByName(advance.waiting.where(_of(moved)).select("party", "feed", "seq", *_one()))


def quarantine_table(run: Run) -> DataFrame:
    """The quarantine of a run that has looked at everything: what does not count, or not yet, and why."""
    ends = [row for plan in run.survey.plans for row in _ended(plan)]
    waiting = run.judged.where(f.col("standing") == PENDING).select("party", "feed", "seq", *_one())
    void = refused(run.folded).withColumn("standing", f.lit(REFUSED)).select("party", "feed", "seq", *_one())
    return waiting.unionByName(void).unionByName(run.spark.createDataFrame(ends, QUARANTINE))


def _one() -> tuple[Column, ...]:
    """A single block."""
    return f.lit(1).cast("long").alias("count"), f.col("item"), f.col("standing"), f.col("reason")


def _ended(plan: PartyPlan) -> Iterator[tuple[object, ...]]:
    """The ranges beyond the ends of feeds."""
    for party, feed, start, stop, standing, reason in standings(plan):
        if standing == ENDED:
            yield party, feed, start, stop - start, None, ENDED, reason


def changed(advance: Advance, run: int) -> DataFrame:
    """What a run has made other."""
    now = advance.items.withColumnRenamed("snapshot", "data")
    if advance.known is None:
        before = now.limit(0)
    else:
        before = advance.known.where(_of(advance.afresh))
        if advance.touched is not None:
            before = before.unionByName(advance.known.join(advance.touched, ["party", "item"], "left_semi"))
    return changes(before, now).select(f.lit(run).cast("long").alias("run"), "*")


# -- which rows go


def _of(plans: Sequence[PartyPlan]) -> Column:
    return f.col("party").isin([bytearray(plan.party) for plan in plans]) if plans else f.lit(False)


def _afresh(advance: Advance) -> Callable[[DataFrame], DataFrame] | None:
    if not advance.afresh:
        return None
    return lambda rows: rows.withColumn("gone", _of(advance.afresh))


def _marked(rows: DataFrame, keys: DataFrame | None, item: str) -> DataFrame:
    """Rows with a column `hit`: whether their item is one of these."""
    if keys is None:
        return rows.withColumn("hit", f.lit(False))
    marks = keys.select("party", f.col("item").alias(item)).distinct().withColumn("hit", f.lit(True))
    return rows.join(marks, ["party", item], "left").withColumn("hit", f.coalesce("hit", f.lit(False)))


def _touched(advance: Advance, item: str) -> Callable[[DataFrame], DataFrame] | None:
    if not advance.afresh and advance.touched is None:
        return None

    def gone(rows: DataFrame) -> DataFrame:
        return _marked(rows, advance.touched, item).withColumn("gone", f.col("hit") | _of(advance.afresh)).drop("hit")

    return gone


def _listed(advance: Advance) -> Callable[[DataFrame], DataFrame] | None:
    """What goes of the quarantine: all of parties that are read afresh; what waited; refusals of items folded whole."""
    waited = [step.plan for step in advance.on if _waits_otherwise(step)]
    if not advance.afresh and not waited and advance.whole is None:
        return None

    def gone(rows: DataFrame) -> DataFrame:
        whole = _marked(rows, advance.whole, "item")
        refused = f.col("standing") == REFUSED
        return whole.withColumn("gone", _of(advance.afresh) | (refused & f.col("hit")) | (~refused & _of(waited))).drop(
            "hit"
        )

    return gone


def _waits_otherwise(step: Step) -> bool:
    return step.before is None or _waits(step.before.plan) != _waits(step.plan)


def _waits(plan: PartyPlan) -> list[Row]:
    return [row for row in standings(plan) if row[4] in (PENDING, ENDED)]
