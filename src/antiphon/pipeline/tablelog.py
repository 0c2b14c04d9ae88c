"""A folder of Delta tables that belong together: Parquet is written by executors, and committed by the driver.

Each table has Delta's own log, and `current.json` names the version of each that the last whole run has left. It is
replaced at once when all tables are committed, so whoever reads through it never sees one half of a run. Other readers
of Delta see each table at its own last version.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from antiphon.core.errors import BadEncoding, InvalidInput

CURRENT = "current.json"
PARTITION = "bucket"  # the first hex digit of the party's key: sixteen folders, however many parties there are
_STATS = ("INT32", "INT64")


@dataclass(frozen=True, slots=True)
class Current:
    """What the last whole run has left."""

    run: int = 0
    versions: Mapping[str, int] = field(default_factory=dict)


class TableLog:
    """The tables of one folder. Executors must reach it under the same path."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().absolute()

    def current(self) -> Current:
        """The last whole run; run 0 if there was none."""
        try:
            found = json.loads((self.folder / CURRENT).read_bytes())
            return Current(int(found["run"]), {str(name): int(at) for name, at in found["versions"].items()})
        except FileNotFoundError:
            return Current()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadEncoding(f"{self.folder / CURRENT} names no tables; remove the folder, and run again") from None

    def publish(self, current: Current) -> None:
        """From here on readers see these versions: all of them, or none if this is not reached."""
        written = self.folder / f"{CURRENT}.{uuid.uuid4().hex}"
        with written.open("w") as file:
            json.dump({"run": current.run, "versions": dict(current.versions)}, file)
            file.flush()
            os.fsync(file.fileno())
        written.replace(self.folder / CURRENT)

    def table(self, name: str, version: int | None = None) -> DeltaTable:
        """One table as the last whole run has left it, or at another version."""
        known = self.current().versions
        if name not in known:
            raise InvalidInput(f"there is no table {name!r} in {self.folder}; there are: {', '.join(known) or 'none'}")
        return DeltaTable(str(self.folder / name), version=known[name] if version is None else version)

    def read(self, spark: SparkSession, name: str, version: int | None = None) -> DataFrame:
        """The rows of one table, as Spark has them; without the column that only says where files lie."""
        return self._rows(spark, self.table(name, version))

    def read_at(self, spark: SparkSession, name: str, version: int) -> DataFrame:
        """The same of a version that is not published yet."""
        return self._rows(spark, DeltaTable(str(self.folder / name), version=version))

    def _rows(self, spark: SparkSession, table: DeltaTable) -> DataFrame:
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        files = table.file_uris()
        if not files:
            return spark.createDataFrame([], schema).drop(PARTITION)
        paths = [file if "://" in file else f"file://{file}" for file in files]
        return spark.read.schema(schema).parquet(*paths).drop(PARTITION)

    def write(self, name: str, rows: DataFrame, *, append: bool = False) -> int:
        """A new version of a table; what is in it before the commit is seen by nobody. The version is given back.

        A version that no whole run has published is passed over: it is written anew from the one that is published.
        """
        home = self.folder / name
        part = f"part-{uuid.uuid4().hex}"
        try:
            put = rows.hint("rebalance", PARTITION).write.partitionBy(PARTITION)
            put = put.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            put.option("compression", "zstd").parquet(f"file://{home / part}")
            added = [_action(home, file) for file in sorted((home / part).rglob("*.parquet"))]
            return self._commit(name, rows.schema, added, append=append)
        except BaseException:
            shutil.rmtree(home / part, ignore_errors=True)
            raise

    def _commit(self, name: str, schema: StructType, added: list[AddAction], *, append: bool) -> int:
        path = str(self.folder / name)
        delta = Schema.from_json(_nullable(schema).json())
        if not DeltaTable.is_deltatable(path):
            create_table_with_add_actions(path, delta, added, partition_by=[PARTITION], name=name)
            return DeltaTable(path).version()
        table = DeltaTable(path)
        known = self.current().versions.get(name)
        if append and table.version() != known:
            if known is None:  # it was never published: nothing of it counts
                append = False
            else:
                table.restore(known)
                table = DeltaTable(path)
        table.create_write_transaction([*added], "append" if append else "overwrite", delta, [PARTITION])
        return DeltaTable(path).version()

    def compact(self, *, keep: timedelta = timedelta(days=7)) -> dict[str, dict[str, int]]:
        """Put small files together, and let go of files that no version needs which is younger than `keep`."""
        current = self.current()
        versions, done = dict(current.versions), {}
        for name in versions:
            path = str(self.folder / name)
            if DeltaTable(path).version() != versions[name]:
                DeltaTable(path).restore(versions[name])
            table = DeltaTable(path)
            made = table.optimize.compact()
            versions[name] = DeltaTable(path).version()
            done[name] = {"added": made["numFilesAdded"], "removed": made["numFilesRemoved"]}
        self.publish(Current(current.run, versions))
        for name in versions:
            hours = int(keep.total_seconds() // 3600)
            table = DeltaTable(str(self.folder / name))
            gone = table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
            done[name]["deleted"] = len(gone)
        return done

    def describe(self) -> Iterator[dict[str, Any]]:
        """Each table: its version, how many rows, files and bytes it has, and its columns."""
        for name in sorted(self.current().versions):
            table = self.table(name)
            sizes = [Path(unquote(urlparse(file).path)).stat().st_size for file in table.file_uris()]
            columns = {column.name: str(column.type.type) for column in table.schema().fields}
            about = {"rows": table.count(), "files": len(sizes), "bytes": sum(sizes)}
            yield {"table": name, "version": table.version(), **about, "columns": columns}


def _nullable(schema: StructType) -> StructType:
    """As Parquet has it: what Spark reads back may be null, for all that it knows."""
    fields: list[dict[str, Any]] = [{**column, "nullable": True} for column in schema.jsonValue()["fields"]]
    return StructType.fromJson({"type": "struct", "fields": fields})


def _action(home: Path, file: Path) -> AddAction:
    """A file for Delta's log, with what readers skip files by."""
    meta = pq.read_metadata(file)
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for group in range(meta.num_row_groups):
        for at in range(meta.num_columns):
            column = meta.row_group(group).column(at)
            stats = column.statistics
            if column.physical_type in _STATS and stats is not None and stats.has_min_max:
                name = column.path_in_schema
                low[name] = min(stats.min, low.get(name, stats.min))
                high[name] = max(stats.max, high.get(name, stats.max))
    stats_text = json.dumps({"numRecords": meta.num_rows, "minValues": low, "maxValues": high, "nullCount": {}})
    values = dict(part.split("=", 1) for part in file.relative_to(home).parts if "=" in part)
    about = file.stat()
    path = file.relative_to(home).as_posix()
    return AddAction(path, about.st_size, values, int(about.st_mtime * 1000), True, stats_text)
