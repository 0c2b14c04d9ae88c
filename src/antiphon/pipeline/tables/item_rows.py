"""Stage `shown`: items as tables show them, with type, name, state as JSON and as bytes, and what queries ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.pipeline.fold.digest import item_hash
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.source.block_columns import batch_of
from antiphon.pipeline.tables import facts_column
from antiphon.pipeline.tables.state_json import state_json
from antiphon.query.codec.facts import decode_facts
from antiphon.query.facts import Facts, facts_of

ROWS_MAX = 2_000  # of a batch that goes out
SIZE_MAX = 4 << 20  # of the snapshots that its rows are made of

#: What the stage `items` says, and is shown as it is.
ABOUT = ("party", "item", "model", "version", "parent", "deleted", "guarded", "created_ms", "messages")
SHOWN = (
    StructField("type", StringType()),
    StructField("name", StringType()),
    StructField("state", StringType()),
    StructField("data", BinaryType()),
    StructField("hash", BinaryType()),
    StructField("facts", facts_column.SCHEMA),
)

Rows = Callable[[dict[str, Any], Facts], Iterator[tuple[Any, ...]]]


def shown(items: DataFrame, models: Models = ModelFactory.standard) -> DataFrame:
    """Items, with the state as bytes (`data`) and as JSON (`state`), and the column `facts` for queries."""
    return each_item(items, models, _rows, StructType([*(items.schema[name] for name in ABOUT), *SHOWN]))


def each_item(items: DataFrame, models: Models, rows: Rows, schema: StructType) -> DataFrame:
    """Rows of each item, made of its facts, which the code of its model says, or those that are there without."""
    arrow = to_arrow_schema(schema)

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = models()
        found: list[tuple[Any, ...]] = []
        size = 0
        for batch in given:
            for row in batch.to_pylist():
                found.extend(rows(row, _facts(row, known)))
                size += len(row["snapshot"] or b"")
                if len(found) >= ROWS_MAX or size >= SIZE_MAX:
                    yield batch_of(found, arrow)
                    found, size = [], 0
        if found:
            yield batch_of(found, arrow)

    return items.mapInArrow(act, schema)


# -- inside


def _facts(row: dict[str, Any], models: ModelFactory) -> Facts:
    data = row["snapshot"]
    return (
        decode_facts(row["facts"]) if data is None else facts_of(item_codec.decode(item_codec.record_of(data), models))
    )


def _rows(row: dict[str, Any], said: Facts) -> Iterator[tuple[Any, ...]]:
    data = row["snapshot"]
    kind, called, state, asked = shown_of(said, known=data is not None)
    yield (*(row[name] for name in ABOUT), kind, called, state, data, item_hash(row["item"], data), asked)


def shown_of(said: Facts, *, known: bool) -> tuple[str | None, str | None, str | None, dict[str, Any]]:
    """Type, name, state and facts of an item; it has no state for those who have no code for its model."""
    made = state_json(said.value)
    return (
        said.type or None,
        said.name or None,
        made.text if known else None,
        facts_column.facts_column(said, made.exact),
    )
