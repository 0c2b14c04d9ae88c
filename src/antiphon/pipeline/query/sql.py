"""SQL, and queries, over the tables that runs have written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from antiphon.core.errors import InvalidInput
from antiphon.pipeline.plan.standings import with_standings
from antiphon.pipeline.query.resolved_items import Seen
from antiphon.pipeline.tables.delta_folder import TableLog

ROWS_MAX = 1_000  # that an answer has, unless more are asked for


@contextmanager
def views(spark: SparkSession, log: TableLog) -> Iterator[list[str]]:
    """The tables under their names, as SQL knows them, all as one run has left them."""
    names = sorted(log.current().versions)
    if not names:
        raise InvalidInput(f"there are no tables in {log.folder}; `antiphon pipeline run --tables` writes them")
    try:
        for name in names:
            rows = log.read(spark, name)
            if name == "blocks":
                rows = with_standings(rows, log.read(spark, "standings"))
            rows.createOrReplaceTempView(name)
        yield names
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def ask(spark: SparkSession, log: TableLog, text: str, limit: int = ROWS_MAX) -> list[dict[str, Any]]:
    """The rows that a statement gives, at most so many."""
    with views(spark, log) as names:
        try:
            found: DataFrame = spark.sql(text)
            return [row.asDict(recursive=True) for row in found.limit(limit).collect()]
        except PySparkException as error:
            told = str(error).split("\n", 1)[0]
            raise InvalidInput(f"{told}; there are the tables {', '.join(names)}") from None


def open_tables(spark: SparkSession, log: TableLog, parties: Iterable[bytes] = ()) -> Seen:
    """The items that the last whole run has left in a folder of tables, of some parties or of all."""
    items = log.read(spark, "items")
    if "facts" not in items.columns:
        raise InvalidInput(f"the table items in {log.folder} was written by an older version; remove it, and run again")
    return Seen(items, parties)
