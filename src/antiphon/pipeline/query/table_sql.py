"""SQL over the tables of a folder, and the entry point for queries over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from antiphon.core.errors import InvalidInput
from antiphon.pipeline.plan.standings import with_standings
from antiphon.pipeline.query.resolved_items import Seen
from antiphon.pipeline.tables.delta_folder import DeltaFolder

ROWS_MAX = 1_000  # default limit of rows


@contextmanager
def views(spark: SparkSession, tables: DeltaFolder) -> Iterator[list[str]]:
    """Register all tables as temporary views under their names, at the versions of the last complete run."""
    names = sorted(tables.current().versions)
    if not names:
        raise InvalidInput(f"there are no tables in {tables.folder}; `antiphon pipeline run --tables` writes them")
    try:
        for name in names:
            rows = tables.read(spark, name)
            if name == "blocks":
                rows = with_standings(rows, tables.read(spark, "standings"))
            rows.createOrReplaceTempView(name)
        yield names
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def ask(spark: SparkSession, tables: DeltaFolder, text: str, limit: int = ROWS_MAX) -> list[dict[str, Any]]:
    """Run a SQL statement, and return at most `limit` rows."""
    with views(spark, tables) as names:
        try:
            found: DataFrame = spark.sql(text)
            return [row.asDict(recursive=True) for row in found.limit(limit).collect()]
        except PySparkException as error:
            why = str(error).split("\n", 1)[0]
            raise InvalidInput(f"{why}; there are the tables {', '.join(names)}") from None


def open_tables(spark: SparkSession, tables: DeltaFolder, parties: Iterable[bytes] = ()) -> Seen:
    """Open the items of the last complete run for queries, of some parties or of all."""
    items = tables.read(spark, "items")
    if "facts" not in items.columns:
        raise InvalidInput(f"the table items in {tables.folder} is of an older version; remove it, and run again")
    return Seen(items, parties)
