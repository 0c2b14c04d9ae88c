"""What tables show of an item, told while it is folded: else its state would be read from its bytes again and again.

`SHOWING` is the form of such a fold; `shown_items` and `shown_links` are what the stages `shown` and `links` would make
of its items.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from antiphon.model.itemstate import ItemState
from antiphon.pipeline import facts
from antiphon.pipeline.items import SCHEMA, Form, items
from antiphon.pipeline.links import ends_of
from antiphon.pipeline.shown import ABOUT, shown_of
from antiphon.query.facts import facts_of

_END = StructType(
    [StructField("way", StringType()), StructField("target", BinaryType()), StructField("target_party", BinaryType())]
)
_TOLD = (
    StructField("type", StringType()),
    StructField("name", StringType()),
    StructField("state", StringType()),
    StructField("asked", facts.SCHEMA),
    StructField("ends", ArrayType(_END)),
)


def _tell(item: ItemState) -> tuple[Any, ...]:
    said = facts_of(item)
    kind, called, state = shown_of(said)
    return kind, called, None if item.model is None else state, facts.facts_column(said), ends_of(item.parent, said)


_SCHEMA = StructType([*SCHEMA.fields, *_TOLD])
SHOWING = Form(_SCHEMA, to_arrow_schema(_SCHEMA), _tell)


def shown_items(folded: DataFrame) -> DataFrame:
    """Items as the stage `shown` has them."""
    rows = items(folded, "type", "name", "state", "asked")
    return rows.select(*ABOUT, "type", "name", "state", f.col("snapshot").alias("data"), f.col("asked").alias("facts"))


def shown_links(folded: DataFrame) -> DataFrame:
    """Links as the stage `links` has them."""
    ends = items(folded, "ends").select("party", f.col("item").alias("source"), f.explode("ends").alias("end"))
    other = f.coalesce("end.target_party", "party").alias("target_party")
    return ends.select("party", "source", "end.way", "end.target", other)
