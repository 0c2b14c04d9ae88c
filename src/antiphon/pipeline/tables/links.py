"""Stage `links`: the edges between items: parents, ends of links, embedded items, and references in values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from antiphon.model.factory import ModelFactory
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.tables.item_rows import End, each_item, ends_of
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
    """Return a row for each item that an item names, in its own party or another; forks are not followed.

    `way` is parent (as last claimed), source or target (of a link), embeds or references.
    """
    return each_item(items, models, _rows, SCHEMA)


def link_rows(party: bytes, item: bytes, ends: Iterable[End]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an item with these link ends."""
    for way, end, other in ends:
        yield party, item, way, end, other or party


def _rows(row: dict[str, Any], facts: Facts) -> Iterator[tuple[Any, ...]]:
    return link_rows(row["party"], row["item"], ends_of(row["parent"], facts))
