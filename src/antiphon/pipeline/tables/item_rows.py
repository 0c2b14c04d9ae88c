"""Rows of the table `items`: the folded columns of an item, and its display columns type, name, state and facts.

Stage `shown` makes them from rows of stage `items`, by decoding snapshots. A fold that writes tables makes the display
columns with each item instead (`item_display`, as `ItemFold.extra_columns`), while the state is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.item_state import ItemState
from antiphon.pipeline.fold.digest import item_hash
from antiphon.pipeline.fold.item_fold import MESSAGES, SCHEMA, STATE, Models
from antiphon.pipeline.source.block_columns import batch_of
from antiphon.pipeline.tables import facts_column
from antiphon.pipeline.tables.state_json import state_json
from antiphon.query.codec.facts import decode_facts
from antiphon.query.facts import Facts, facts_of

ROWS_MAX = 2_000  # rows of an output batch
SIZE_MAX = 4 << 20  # bytes of the snapshots that its rows are made of

#: Columns of stage `items` that are copied.
ABOUT = ("party", "item", "model", "version", "parent", "deleted", "guarded", "created_ms", "messages")
SHOWN = (
    StructField("type", StringType()),
    StructField("name", StringType()),
    StructField("state", StringType()),
    StructField("data", BinaryType()),
    StructField("hash", BinaryType()),
    StructField("facts", facts_column.SCHEMA),
)

#: A link end: the way, the item it leads to, and the party of that item if it is another.
End = tuple[str, bytes, bytes | None]
Rows = Callable[[dict[str, Any], Facts], Iterator[tuple[Any, ...]]]


def shown(items: DataFrame, models: Models = ModelFactory.standard) -> DataFrame:
    """Return rows of the table `items`: with the state as bytes (`data`) and as JSON (`state`), and `facts`."""
    return each_item(items, models, _rows, StructType([*(items.schema[name] for name in ABOUT), *SHOWN]))


def each_item(items: DataFrame, models: Models, rows: Rows, schema: StructType) -> DataFrame:
    """Map each item to rows, by its facts: decoded by its model, or the stored ones if the model is missing."""
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
    kind, called, state, asked = display_of(said, known=data is not None)
    yield (*(row[name] for name in ABOUT), kind, called, state, data, item_hash(row["item"], data), asked)


def display_of(said: Facts, *, known: bool) -> tuple[str | None, str | None, str | None, dict[str, Any]]:
    """Return type, name, state and facts of an item; the state is None if the code of its model is missing."""
    made = state_json(said.value)
    facts = facts_column.facts_column(said, made.exact)
    return said.type or None, said.name or None, made.text if known else None, facts


# -- display columns while folding

_DISPLAY = len(SCHEMA)  # the first column that `item_display` adds: type, name, state, facts, ends


def item_display(item: ItemState) -> tuple[Any, ...]:
    """Return the display columns and the link ends of an item, for `ItemFold.extra_columns`."""
    said = facts_of(item)
    return (*display_of(said, known=item.model is not None), ends_of(item.parent, said))


def item_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the row of the table `items` for a folded row with display columns."""
    kind, called, state, asked, _ = row[_DISPLAY:]
    return (*row[:STATE], row[MESSAGES], kind, called, state, row[STATE], row_hash(row), asked)


def row_hash(row: Sequence[Any]) -> bytes:
    """Return the hash of the item of a folded row."""
    return item_hash(row[1], row[STATE])


def row_ends(row: Sequence[Any]) -> list[End]:
    """Return the link ends of the item of a folded row with display columns."""
    ends: list[End] = row[_DISPLAY + 4]
    return ends


def ends_of(parent: bytes | None, facts: Facts) -> list[End]:
    """Return the link ends of an item: parent, ends of a link, embedded items, and references."""
    ends: list[End] = [("parent", parent, None)] if parent else []
    ends += [] if facts.link is None else [("source", facts.link[0], None), ("target", facts.link[1], None)]
    ends += [("embeds", end, None) for end in facts.embeds]
    ends += [("references", bytes(to.item), bytes(to.party) or None) for to in facts.references]
    return ends
