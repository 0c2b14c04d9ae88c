"""Stage `links`: where items lead to. To parents, ends of links, embedded items, and what their values refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from antiphon.model.factory import ModelFactory
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.tables.item_rows import each_item
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

#: Which way, to which item, and of which party, if it is another.
End = tuple[str, bytes, bytes | None]


def links(items: DataFrame, models: Models = ModelFactory.standard) -> DataFrame:
    """A row for each item that an item names, of its own party or of another, in the item's own words.

    `way` is parent (as last claimed), source or target (of a link), embeds or references.
    """
    return each_item(items, models, _rows, SCHEMA)


def ends_of(parent: bytes | None, facts: Facts) -> list[End]:
    """Where an item leads to: which way, to which item, and of which party, if it is another."""
    ends: list[End] = [("parent", parent, None)] if parent else []
    ends += [] if facts.link is None else [("source", facts.link[0], None), ("target", facts.link[1], None)]
    ends += [("embeds", end, None) for end in facts.embeds]
    ends += [("references", bytes(to.item), bytes(to.party) or None) for to in facts.references]
    return ends


def link_rows(party: bytes, item: bytes, ends: Iterable[End]) -> Iterator[tuple[Any, ...]]:
    """The rows of an item that leads there."""
    for way, end, other in ends:
        yield party, item, way, end, other or party


def _rows(row: dict[str, Any], facts: Facts) -> Iterator[tuple[Any, ...]]:
    return link_rows(row["party"], row["item"], ends_of(row["parent"], facts))
