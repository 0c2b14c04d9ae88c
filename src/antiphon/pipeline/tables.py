"""The tables of a run: blocks, items, links, epochs, quarantine and changes, for SQL and for other programs.

docs/pipeline.md has their columns. A run replaces the rows of the parties that it looked at, and leaves those of
others as they are; `changes` grows by what the run has made other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from antiphon.model import itemcodec
from antiphon.model.itemstate import ItemState
from antiphon.model.value import Reference
from antiphon.pipeline.blocks import blocks
from antiphon.pipeline.columns import DEFAULT_COLUMNS, arrow_of, batch_of
from antiphon.pipeline.items import Models, refused
from antiphon.pipeline.judged import PENDING, judged
from antiphon.pipeline.run import Run
from antiphon.pipeline.tablelog import PARTITION, Current, TableLog
from antiphon.query.facts import Facts, facts_of

REFUSED, ENDED = "refused", "ended"
ROWS_MAX = 2_000  # of a batch that goes out

_ABOUT = ("party", "item", "model", "version", "parent", "deleted", "guarded", "created_ms", "messages")
_SHOWN = {"type": "string", "name": "string", "state": "string", "data": "binary"}
_LINKS = StructType(
    [
        StructField("party", BinaryType()),
        StructField("source", BinaryType()),
        StructField("way", StringType()),
        StructField("target", BinaryType()),
        StructField("target_party", BinaryType()),
    ]
)
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
_CHANGES = StructType(
    [
        StructField("run", LongType()),
        StructField("party", BinaryType()),
        StructField("item", BinaryType()),
        StructField("change", StringType()),
        StructField("model", StringType()),
        StructField("messages", IntegerType()),
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
    fields = [run.items.schema[name] for name in _ABOUT]
    schema = StructType([*fields, *(StructField(name, _type(kind)) for name, kind in _SHOWN.items())])
    return _each(run.items, run.models, _item_rows, schema)


def links_table(run: Run) -> DataFrame:
    """Where items lead to: to parents, ends of links, embedded items, and what their values refer to."""
    return _each(run.items.where(f.col("snapshot").isNotNull()), run.models, _link_rows, _LINKS)


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
    """What is other than it was: created, changed, deleted, restored or removed."""
    old = before.select(
        "party", "item", f.col("data").alias("was"), f.col("deleted").alias("dead"), f.col("model").alias("old_model")
    )
    both = now.join(old, ["party", "item"], "full_outer")
    change = (
        f.when(f.col("dead").isNull() & f.col("deleted").isNotNull(), "created")
        .when(f.col("deleted").isNull(), "removed")
        .when(f.col("deleted") & ~f.col("dead"), "deleted")
        .when(~f.col("deleted") & f.col("dead"), "restored")
        .when(~f.col("data").eqNullSafe(f.col("was")), "changed")
    )
    found = both.select(
        f.lit(run).cast("long").alias("run"),
        "party",
        "item",
        change.alias("change"),
        f.coalesce("model", "old_model").alias("model"),
        "messages",
    )
    return found.where(f.col("change").isNotNull()).select(*_CHANGES.names)


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


def _type(kind: str) -> BinaryType | StringType:
    return BinaryType() if kind == "binary" else StringType()


Rows = Callable[[dict[str, Any], ItemState | None], Iterator[tuple[Any, ...]]]


def _each(items: DataFrame, models: Models, rows: Rows, schema: StructType) -> DataFrame:
    """Rows of each item, made of its state by the code of its model."""
    arrow = arrow_of(schema)

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = models()
        found: list[tuple[Any, ...]] = []
        for batch in given:
            for row in batch.to_pylist():
                data = row["snapshot"]
                found.extend(rows(row, None if data is None else itemcodec.restore(data, known)))
                if len(found) >= ROWS_MAX:
                    yield batch_of(found, arrow)
                    found = []
        if found:
            yield batch_of(found, arrow)

    return items.mapInArrow(act, schema)


def _item_rows(row: dict[str, Any], item: ItemState | None) -> Iterator[tuple[Any, ...]]:
    about = tuple(row[name] for name in _ABOUT)
    if item is None:
        yield (*about, None, None, None, None)
        return
    facts = facts_of(item)
    yield (*about, facts.type or None, facts.name or None, state_json(facts), row["snapshot"])


def state_json(facts: Facts) -> str:
    """What an item shows, as JSON for analysts: maps are objects; bytes, times and references are text."""
    return json.dumps(_plain(facts.value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float) and not math.isfinite(value):  # JSON has none
        return str(value)
    return str(value) if isinstance(value, Reference) else value


def _link_rows(row: dict[str, Any], item: ItemState | None) -> Iterator[tuple[Any, ...]]:
    assert item is not None
    facts, party = facts_of(item), row["party"]
    ends = [("parent", row["parent"], b"")] if row["parent"] else []
    ends += [] if facts.link is None else [("source", facts.link[0], b""), ("target", facts.link[1], b"")]
    ends += [("embeds", end, b"") for end in facts.embeds]
    ends += [("references", bytes(to.item), bytes(to.party)) for to in facts.references]
    for way, end, other in ends:
        yield party, row["item"], way, end, other or party
