"""Stage `links`: where items lead to. To parents, ends of links, embedded items, and what their values refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from antiphon.model.factory import ModelFactory
from antiphon.pipeline.items import Models
from antiphon.pipeline.shown import each_item
from antiphon.query.facts import Facts

SCHEMA = StructType(
    [
        StructField("party", BinaryType()),
        StructField("source", BinaryType()),
        StructField("way", StringType()),
        StructField("target", BinaryType()),
        StructField("target_party", BinaryType()),
    ]
)


def links(items: DataFrame, models: Models = ModelFactory.standard) -> DataFrame:
    """A row for each item that an item names, of its own party or of another, in the item's own words.

    `way` is parent (as last claimed), source or target (of a link), embeds or references.
    """
    return each_item(items, models, _rows, SCHEMA)


def _rows(row: dict[str, Any], facts: Facts) -> Iterator[tuple[Any, ...]]:
    party = row["party"]
    ends = [("parent", row["parent"], b"")] if row["parent"] else []
    ends += [] if facts.link is None else [("source", facts.link[0], b""), ("target", facts.link[1], b"")]
    ends += [("embeds", end, b"") for end in facts.embeds]
    ends += [("references", bytes(to.item), bytes(to.party)) for to in facts.references]
    for way, end, other in ends:
        yield party, row["item"], way, end, other or party
