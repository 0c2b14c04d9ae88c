"""The tables of a folder as one run left them, for readers: every read is of that run, whatever is published meanwhile.

tables = DeltaFolder("tables").at_last_run()
items, blocks = tables.read(spark, "items"), tables.read(spark, "blocks")
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from antiphon.core.errors import DamagedTables, InvalidInput
from antiphon.pipeline.tables.parquet_files import PARTITION, WRITE_AGAIN, partition_values, table_file

#: All tables. A name in `current.json` becomes a path, so no other name is accepted.
TABLES = ("blocks", "changes", "epochs", "items", "links", "progress", "quarantine", "standings")


@dataclass(frozen=True, slots=True)
class CurrentVersions:
    """The contents of `current.json`: the table versions that the last complete run left."""

    run: int = 0
    versions: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)  # by application id: the last batch in the tables
    vacuum_due: bool = False  # older files contain erased bodies, and must still be deleted


class RunTables:
    """The tables of one run. `current.json` was read once; files stay as long as `DeltaFolder.vacuum` says."""

    def __init__(self, folder: Path, current: CurrentVersions) -> None:
        self.folder = folder
        self.current = current
        self._opened: dict[str, DeltaTable] = {}

    @property
    def run(self) -> int:
        """The number of the run; 0 if there was none."""
        return self.current.run

    def __contains__(self, name: str) -> bool:
        return name in self.current.versions

    def table(self, name: str) -> DeltaTable:
        """Open a table at its version."""
        known = self.current.versions
        if name not in known:
            raise InvalidInput(f"there is no table {name!r} in {self.folder}; there are: {', '.join(known) or 'none'}")
        if name not in self._opened:
            try:
                self._opened[name] = DeltaTable(str(self.folder / name), version=known[name])
            except DeltaError as error:
                why = str(error).split("\n", 1)[0]
                raise DamagedTables(f"the table {name} in {self.folder} cannot be read: {why}; {WRITE_AGAIN}") from None
        return self._opened[name]

    def files(self, name: str) -> list[str]:
        """Return the paths of the files of a table; none if the table does not exist. All of them are there."""
        files = [path_of(file) for file in self.table(name).file_uris()] if name in self else []
        gone = next((file for file in files if not Path(file).is_file()), None)
        if gone is not None:
            raise DamagedTables(
                f"{gone} is gone, a file of the table {name} of run {self.run}. If a run has been published since, "
                "open the tables again. Else another program has deleted it (VACUUM): the next "
                f"`antiphon pipeline run` puts that right if only the layout has changed (OPTIMIZE), and {WRITE_AGAIN}"
            )
        return files

    def files_by_partition(self, name: str) -> dict[str, list[str]]:
        """Return the paths of the files of a table by partition; none if the table does not exist."""
        found: dict[str, list[str]] = {}
        for file in self.files(name):
            found.setdefault(partition_values(Path(file).relative_to(self.folder))[PARTITION], []).append(file)
        return found

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """Read a table into Spark, without the partition column."""
        schema = StructType.fromJson(json.loads(self.table(name).schema().to_json()))
        files = [f"file://{file}" for file in self.files(name)]
        rows = spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)
        return rows.drop(PARTITION)

    def scan(
        self, name: str, columns: list[str] | None = None, filters: list[tuple[str, str, Any]] | None = None
    ) -> Iterator[pa.Table]:
        """Read columns of a table in this process, file by file: for tables so small that a Spark job takes longer."""
        for file in self.files(name):
            with table_file(file):
                found = pq.read_table(file, columns=columns, filters=filters, partitioning=None)
            yield found

    def read_small(self, name: str) -> list[dict[str, Any]]:
        """Read all rows of a small table in this process (a row for each party or feed); none if it does not exist."""
        return [row for part in self.scan(name) for row in part.to_pylist()]

    def rows_after(self, name: str, column: str, value: int) -> Iterator[dict[str, Any]]:
        """Read the rows with `column` > `value` in this process, file by file; none if the table does not exist."""
        for part in self.scan(name, filters=[(column, ">", value)]):
            yield from part.to_pylist()

    def describe(self) -> Iterator[dict[str, Any]]:
        """Yield for each table its version, number of rows, files and bytes, and its columns."""
        for name in sorted(self.current.versions):
            table = self.table(name)
            sizes = [Path(file).stat().st_size for file in self.files(name)]
            columns = {column.name: str(column.type.type) for column in table.schema().fields}
            about = {"rows": table.count(), "files": len(sizes), "bytes": sum(sizes)}
            yield {"table": name, "version": table.version(), **about, "columns": columns}


def path_of(file: str) -> str:
    """Return the path of a file that delta-rs names as a URL."""
    return unquote(urlparse(file).path)
