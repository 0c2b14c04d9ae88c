"""Stage `messages`: the messages to fold, by item and in the total order. Void messages are included with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from antiphon.core.cid import Cid
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.pipeline.plan.standings import DELIVERED
from antiphon.pipeline.plan.survey import Survey
from antiphon.pipeline.source.block_columns import arrow_of
from antiphon.pipeline.source.home import open_blobs

#: The kind of a row that holds no message but the state of its item in the base. It precedes the item's messages.
BASE_STATE = 0
BASE_ROWS = 500

SCHEMA = StructType(
    [
        StructField("party", BinaryType(), nullable=False),
        StructField("item", BinaryType(), nullable=False),
        StructField("lamport", LongType(), nullable=False),
        StructField("feed", BinaryType(), nullable=False),
        StructField("seq", LongType(), nullable=False),
        StructField("kind", IntegerType(), nullable=False),
        StructField("created_ms", LongType(), nullable=False),
        StructField("message", BinaryType(), nullable=True),
        StructField("reason", StringType(), nullable=True),
    ]
)
_ARROW = arrow_of(SCHEMA)


def messages(judged: DataFrame, bases: DataFrame | None = None) -> DataFrame:
    """The messages of each item in the total order, behind its state in `bases`.

    Rows are partitioned by party and item, and sorted within each partition.
    """
    found = judged.where(f.col("standing") == DELIVERED).select(*SCHEMA.names)
    if bases is not None:
        found = found.unionByName(bases)
    return found.repartition("party", "item").sortWithinPartitions("party", "item", "lamport", "feed", "seq")


def bases(spark: SparkSession, survey: Survey) -> DataFrame | None:
    """The item states in the base snapshots of a survey's parties, as rows of `SCHEMA`; None if no party has a base."""
    based = [(plan.home, plan.party, plan.base) for plan in survey.plans if plan.base]
    if not based:
        return None
    schema = "home string, party binary, base binary"
    rows = spark.createDataFrame(based, schema).repartition(len(based))
    return rows.mapInArrow(_states, SCHEMA)


def _states(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in given:
        for row in batch.to_pylist():
            with open_blobs(row["home"]) as blobs:
                entries = EpochBase.load(Cid(row["base"]), blobs, party=row["party"]).all()
                while some := list(islice(entries, BASE_ROWS)):
                    yield base_rows(row["party"], some)


def base_rows(party: bytes, some: list[tuple[bytes, bytes]]) -> pa.RecordBatch:
    """States of some items in a base, as rows of `SCHEMA`."""
    rows = [
        {
            "party": party,
            "item": item,
            "lamport": -1,
            "feed": b"",
            "seq": -1,
            "kind": BASE_STATE,
            "created_ms": 0,
            "message": data,
        }
        for item, data in some
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_ARROW)
