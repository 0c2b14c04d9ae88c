"""The columns of all tables, for the Delta log and for the tasks that write files. docs/pipeline.md explains them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from antiphon.pipeline.fold import item_fold
from antiphon.pipeline.source.block_columns import DEFAULT_COLUMNS, spark_schema
from antiphon.pipeline.tables import changes, links
from antiphon.pipeline.tables.item_rows import ABOUT, SHOWN

BLOCKS = tuple(name for name in DEFAULT_COLUMNS if name != "fault")  # columns of the table `blocks`

SCHEMAS = {
    "blocks": spark_schema(BLOCKS),
    "items": StructType([*(item_fold.SCHEMA[name] for name in ABOUT), *SHOWN]),
    "links": links.SCHEMA,
    "changes": StructType([StructField("run", LongType()), *changes.SCHEMA.fields]),
    "quarantine": StructType(
        [
            StructField("party", BinaryType()),
            StructField("feed", BinaryType()),
            StructField("seq", LongType()),
            StructField("count", LongType()),
            StructField("item", BinaryType()),
            StructField("standing", StringType()),
            StructField("reason", StringType()),
            StructField("code", StringType()),
        ]
    ),
    "epochs": StructType(
        [
            StructField("party", BinaryType()),
            StructField("number", LongType()),
            StructField("snapshot", BinaryType()),
            StructField("home", StringType()),
            StructField("error", StringType()),
        ]
    ),
    "standings": StructType(
        [
            StructField("party", BinaryType()),
            StructField("feed", BinaryType()),
            StructField("start", LongType()),
            StructField("stop", LongType()),
            StructField("standing", StringType()),
            StructField("reason", StringType()),
            StructField("code", StringType()),
        ]
    ),
    "progress": StructType([StructField("party", BinaryType()), StructField("progress", StringType())]),
}


def arrow_table(name: str) -> pa.Schema:
    """Return the Arrow schema of a table's files; all columns are nullable, as for Delta readers."""
    return pa.schema([field.with_nullable(True) for field in to_arrow_schema(SCHEMAS[name])])
