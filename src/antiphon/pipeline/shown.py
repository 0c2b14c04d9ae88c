"""Stage `shown`: items as tables show them, with type, name, and state as JSON and as bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from antiphon.model import itemcodec
from antiphon.model.factory import ModelFactory
from antiphon.model.itemstate import ItemState
from antiphon.model.value import Reference
from antiphon.pipeline.columns import arrow_of, batch_of
from antiphon.pipeline.items import Models
from antiphon.query.facts import Facts, facts_of

ROWS_MAX = 2_000  # of a batch that goes out

#: What the stage `items` says, and is shown as it is.
ABOUT = ("party", "item", "model", "version", "parent", "deleted", "guarded", "created_ms", "messages")
_SHOWN = (
    StructField("type", StringType()),
    StructField("name", StringType()),
    StructField("state", StringType()),
    StructField("data", BinaryType()),
)

Rows = Callable[[dict[str, Any], ItemState | None], Iterator[tuple[Any, ...]]]


def shown(items: DataFrame, models: Models = ModelFactory.standard) -> DataFrame:
    """Items, with the state as bytes (`data`) and as JSON (`state`)."""
    return each_item(items, models, _rows, StructType([*(items.schema[name] for name in ABOUT), *_SHOWN]))


def each_item(items: DataFrame, models: Models, rows: Rows, schema: StructType) -> DataFrame:
    """Rows of each item, made of its state by the code of its model; of None where that is not here."""
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


def state_json(facts: Facts) -> str:
    """What an item shows, as JSON for analysts: maps are objects; bytes, times and references are text."""
    return json.dumps(_plain(facts.value), ensure_ascii=False, separators=(",", ":"))


# -- inside


def _rows(row: dict[str, Any], item: ItemState | None) -> Iterator[tuple[Any, ...]]:
    about = tuple(row[name] for name in ABOUT)
    if item is None:
        yield (*about, None, None, None, None)
        return
    facts = facts_of(item)
    yield (*about, facts.type or None, facts.name or None, state_json(facts), row["snapshot"])


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
