"""SQL over the tables of a folder, and the entry point for queries over them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from antiphon.core.errors import InvalidInput
from antiphon.pipeline.plan.standings import with_standings
from antiphon.pipeline.query.resolved_items import Seen
from antiphon.pipeline.tables.delta_folder import DeltaFolder
from antiphon.pipeline.tables.run_tables import RunTables

ROWS_MAX = 1_000  # default limit of rows
LINE_MAX = 160  # characters of a statement that an error quotes
_PLACE = re.compile(r"line (\d+),? pos (\d+)")


def tables_of(tables: DeltaFolder | RunTables) -> RunTables:
    """Return the tables of one run: those given, or those of the last complete run. There must be a run."""
    found = tables.at_last_run() if isinstance(tables, DeltaFolder) else tables
    if not found.current.versions:
        raise InvalidInput(f"there are no tables in {tables.folder}; `antiphon pipeline run --tables` writes them")
    return found


@contextmanager
def views(spark: SparkSession, tables: DeltaFolder | RunTables) -> Iterator[list[str]]:
    """Register all tables of one run as temporary views under their names."""
    found = tables_of(tables)
    names = sorted(found.current.versions)
    try:
        for name in names:
            rows = found.read(spark, name)
            if name == "blocks":
                rows = with_standings(rows, found.read(spark, "standings"))
            rows.createOrReplaceTempView(name)
        yield names
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def ask(spark: SparkSession, tables: DeltaFolder | RunTables, text: str, limit: int = ROWS_MAX) -> list[dict[str, Any]]:
    """Run a SQL statement over the tables of one run, and return at most `limit` rows."""
    with views(spark, tables) as names:
        try:
            found: DataFrame = spark.sql(text)
            return [row.asDict(recursive=True) for row in found.limit(limit).collect()]
        except PySparkException as error:
            raise InvalidInput(f"{told_place(str(error), text)}\nThe tables are {', '.join(names)}.") from None


def told_place(error: str, statement: str) -> str:
    """Return the first line of an error of Spark SQL, with the line of the statement that it is about, marked."""
    why = next((line.strip() for line in error.splitlines() if line.strip()), "the statement failed")
    place, lines = _PLACE.search(error), statement.splitlines()
    if place is None or not 0 < int(place[1]) <= len(lines):
        return f"{why} In the statement: {statement!r:.500}"
    line, at = lines[int(place[1]) - 1], int(place[2])
    start = max(0, at - LINE_MAX // 2)
    return f"{why}\n  {line[start : start + LINE_MAX]}\n  {' ' * (at - start)}^"


def open_tables(spark: SparkSession, tables: DeltaFolder | RunTables, parties: Iterable[bytes] = ()) -> Seen:
    """Open the items of one run for queries, of some parties or of all; by default of the last complete run."""
    items = tables_of(tables).read(spark, "items")
    if "facts" not in items.columns:
        raise InvalidInput(f"the table items in {tables.folder} is of an older version; remove it, and run again")
    return Seen(items, parties)
