"""A folder of Delta tables that belong together. Executors write the Parquet files, and the driver commits them.

Each table has its own Delta log. `current.json` names the version of each table that the last complete run left. It is
replaced atomically after all tables are committed, so a reader that goes through it never sees half of a run. Other
Delta readers see each table at its own last version.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema, WriterProperties
from deltalake.exceptions import DeltaError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    RemoveAction,
    Transaction,
    create_table_with_add_actions,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from antiphon.core.errors import BadEncoding, InvalidInput, StoreLocked
from antiphon.feed.store.lock import sync_folder
from antiphon.pipeline.source.block_columns import arrow_of, batch_of
from antiphon.pipeline.tables.parquet_files import GROUP_ROWS, PARTITION, AddedFile, file_entry, partition_values

CURRENT = "current.json"
CURRENT_SIZE_MAX = 1 << 20
LAYOUT = 3  # of partitions and columns; rows are looked up in the partition where they would be written
#: All tables. A name in `current.json` becomes a path, so no other name is accepted.
TABLES = ("blocks", "changes", "epochs", "items", "links", "progress", "quarantine", "standings")
LOCK = "writer.lock"
CHECKPOINT_EVERY = 32  # versions of a table: readers start from the last checkpoint of its log
FILES_MAX = 256  # files of a table before it is compacted

#: The application id of a stream, and the number of the batch that a commit belongs to.
StreamBatch = tuple[str, int]


@dataclass(frozen=True, slots=True)
class CurrentVersions:
    """The contents of `current.json`: the table versions that the last complete run left."""

    run: int = 0
    versions: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)  # by application id: the last batch in the tables
    vacuum_due: bool = False  # older files contain erased bodies, and must still be deleted


class DeltaFolder:
    """The tables of one folder. Executors must reach the folder under the same path."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().resolve()  # delta-rs resolves links in file names

    def current(self) -> CurrentVersions:
        """Read `current.json`; run 0 if there was no run."""
        try:
            with (self.folder / CURRENT).open("rb") as file:
                text = file.read(CURRENT_SIZE_MAX + 1)
            found = json.loads(text if len(text) <= CURRENT_SIZE_MAX else b"")
            streams, owes = _numbers(found.get("streams", {})), bool(found.get("owes", False))
            current = CurrentVersions(int(found["run"]), _numbers(found["versions"]), streams, owes)
            if not current.versions.keys() <= set(TABLES):
                raise ValueError("of these tables none is ours")
            layout = int(found.get("layout", 1))
        except FileNotFoundError:
            return CurrentVersions()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadEncoding(f"{self.folder / CURRENT} names no tables; remove the folder, and run again") from None
        if layout != LAYOUT:
            raise BadEncoding(
                f"the tables in {self.folder} are of layout {layout}, and this version writes {LAYOUT}; "
                "remove the folder, and run again: all of it is in the feeds"
            )
        return current

    def publish(self, current: CurrentVersions) -> None:
        """Replace `current.json` atomically: from now on readers see these versions."""
        written = self.folder / f"{CURRENT}.{uuid.uuid4().hex}"
        with written.open("w") as file:
            about = {"run": current.run, "versions": dict(current.versions), "streams": dict(current.streams)}
            json.dump({"layout": LAYOUT, **about, "owes": current.vacuum_due}, file)
            file.flush()
            os.fsync(file.fileno())
        written.replace(self.folder / CURRENT)
        sync_folder(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one writing process; the kernel drops the lock with the process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "another process"
                raise StoreLocked(
                    f"the tables in {self.folder} are being written by {holder}; wait for it, or stop it"
                ) from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)

    def table(self, name: str, version: int | None = None) -> DeltaTable:
        """Open a table as the last complete run left it, or at another version."""
        known = self.current().versions
        if name not in known:
            raise InvalidInput(f"there is no table {name!r} in {self.folder}; there are: {', '.join(known) or 'none'}")
        try:
            return DeltaTable(str(self.folder / name), version=known[name] if version is None else version)
        except DeltaError as error:
            why = str(error).split("\n", 1)[0]
            raise BadEncoding(
                f"the table {name} in {self.folder} cannot be read: {why}; remove the folder, and run again"
            ) from None

    def read(self, spark: SparkSession, name: str, version: int | None = None) -> DataFrame:
        """Read a table into Spark, without the partition column."""
        table = self.table(name, version)
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        files = [f"file://{_path_of(file)}" for file in table.file_uris()]
        rows = spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)
        return rows.drop(PARTITION)

    def read_small(self, name: str) -> list[dict[str, Any]]:
        """Read all rows of a small table in this process (a row for each party or feed); none if it does not exist."""
        return [row for part in self.scan(name) for row in part.to_pylist()]

    def rows_after(self, name: str, column: str, value: int) -> Iterator[dict[str, Any]]:
        """Read the rows with `column` > `value` in this process, file by file; none if the table does not exist."""
        for part in self.scan(name, filters=[(column, ">", value)]):
            yield from part.to_pylist()

    def scan(
        self, name: str, columns: list[str] | None = None, filters: list[tuple[str, str, Any]] | None = None
    ) -> Iterator[pa.Table]:
        """Read columns of a table in this process, file by file: for tables so small that a Spark job takes longer."""
        if name in self.current().versions:
            for file in self.files(name):
                yield pq.read_table(file, columns=columns, filters=filters, partitioning=None)

    def files(self, name: str) -> list[str]:
        """Return the paths of the files of a table."""
        return [_path_of(file) for file in self.table(name).file_uris()]

    def files_by_partition(self, name: str) -> dict[str, list[str]]:
        """Return the paths of the files of a table by partition; none if the table does not exist."""
        found: dict[str, list[str]] = {}
        for file in self.files(name) if name in self.current().versions else ():
            found.setdefault(partition_values(Path(file).relative_to(self.folder))[PARTITION], []).append(file)
        return found

    # -- writing: readers see nothing of it before `publish`

    def write_small(
        self, name: str, schema: StructType, rows: Iterable[tuple[Any, ...]], stream: StreamBatch | None
    ) -> int:
        """Commit a version with these rows and no others, written in this process; return the version."""
        home = self.folder / name
        file = home / f"{uuid.uuid4().hex}.parquet"
        removed = self.table(name).file_uris() if name in self.current().versions else []
        home.mkdir(parents=True, exist_ok=True)
        some, arrow = list(rows), arrow_of(schema)
        held = pa.Table.from_batches([batch_of(some, arrow)] if some else [], schema=arrow)
        try:
            pq.write_table(held, file, compression="zstd")
            return self.commit(
                name,
                schema,
                [file_entry(home, file, pq.read_metadata(file))],
                [_path_of(one) for one in removed],
                stream,
                [],
            )
        except BaseException:
            file.unlink(missing_ok=True)
            raise

    def commit(
        self,
        name: str,
        schema: StructType,
        found: Iterable[AddedFile],
        removed: Iterable[str],
        stream: StreamBatch | None = None,
        partitions: Sequence[str] = (PARTITION,),
    ) -> int:
        """Commit a version that adds and removes files; return the version."""
        path = str(self.folder / name)
        added = [AddAction(*one[:4], True, one.stats) for one in found]
        _sync(Path(path, file.path) for file in added)
        columns = StructType([*schema.fields, *(StructField(column, StringType()) for column in partitions)])
        delta = Schema.from_json(_nullable(columns).json())
        done = CommitProperties(app_transactions=[Transaction(*stream)] if stream else None)
        if not DeltaTable.is_deltatable(path):
            create_table_with_add_actions(
                path, delta, added, partition_by=list(partitions), name=name, commit_properties=done
            )
            return self._last_version(name)
        known, table = self.current().versions.get(name), self._published_table(name)
        now = int(time() * 1000)
        home = str(self.folder / name)
        gone = [RemoveAction(str(Path(file).relative_to(home)), True, now) for file in removed]
        mode = "overwrite" if known is None else "append"  # a table that was never published is overwritten
        table.create_write_transaction([*gone, *added], mode, delta, list(partitions), commit_properties=done)
        version = self._last_version(name)
        if version % CHECKPOINT_EVERY == 0:
            DeltaTable(path).create_checkpoint()
        return version

    def _published_table(self, name: str) -> DeltaTable:
        """Open a table at its published version; commits of a run that ended before `publish` are rolled back."""
        path, known = str(self.folder / name), self.current().versions.get(name)
        table = DeltaTable(path)
        if known is not None and table.version() != known:
            table.restore(known)
            table = DeltaTable(path)
        return table

    def _last_version(self, name: str) -> int:
        """Return the last version of a table, after syncing its log entry to disk."""
        version = DeltaTable(str(self.folder / name)).version()
        _sync([self.folder / name / "_delta_log" / f"{version:020}.json"])
        sync_folder(self.folder / name)
        return version

    def compact_when_due(self, files: Mapping[str, int]) -> bool:
        """Compact the tables with more than `FILES_MAX` files, given their file counts; True if there was one."""
        due = [name for name, count in files.items() if count > FILES_MAX]
        if due:
            self.compact(only=due)
        return bool(due)

    def compact(
        self, *, keep: timedelta = timedelta(days=7), only: Collection[str] | None = None
    ) -> dict[str, dict[str, int]]:
        """Merge small files, then delete files that no version younger than `keep` needs; return counts by table."""
        current = self.current()
        versions, done = dict(current.versions), {}
        names = [name for name in versions if only is None or name in only]
        for name in names:
            table = self._published_table(name)
            made = table.optimize.compact(writer_properties=WriterProperties(max_row_group_size=GROUP_ROWS))
            versions[name] = DeltaTable(str(self.folder / name)).version()
            done[name] = {"added": made["numFilesAdded"], "removed": made["numFilesRemoved"]}
        self.publish(replace(current, versions=versions))
        for name in names:
            done[name]["deleted"] = self.vacuum(name, keep)
        return done

    def vacuum(self, name: str, keep: timedelta = timedelta()) -> int:
        """Delete files of a table that no version younger than `keep` needs; return how many."""
        hours = int(keep.total_seconds() // 3600)
        table = self._published_table(name)
        return len(table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True))

    def describe(self) -> Iterator[dict[str, Any]]:
        """Yield for each table its version, number of rows, files and bytes, and its columns."""
        for name in sorted(self.current().versions):
            table = self.table(name)
            sizes = [Path(_path_of(file)).stat().st_size for file in table.file_uris()]
            columns = {column.name: str(column.type.type) for column in table.schema().fields}
            about = {"rows": table.count(), "files": len(sizes), "bytes": sum(sizes)}
            yield {"table": name, "version": table.version(), **about, "columns": columns}


def _numbers(found: Mapping[str, Any]) -> dict[str, int]:
    if any(int(number) < 0 for number in found.values()):
        raise ValueError("a version or a batch is at least 0")
    return {str(name): int(number) for name, number in found.items()}


def _sync(files: Iterable[Path]) -> None:
    """Sync files and their folders to disk."""
    known = list(files)
    for file in known:
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    for folder in {folder for file in known for folder in (file.parent, file.parent.parent)}:
        sync_folder(folder)


def _path_of(file: str) -> str:
    return unquote(urlparse(file).path)


def _nullable(schema: StructType) -> StructType:
    """Make all columns nullable, as Spark reads Parquet."""
    fields: list[dict[str, Any]] = [{**column, "nullable": True} for column in schema.jsonValue()["fields"]]
    return StructType.fromJson({"type": "struct", "fields": fields})
