"""A folder of Delta tables that belong together: Parquet is written by executors, and committed by the driver.

Each table has Delta's own log, and `current.json` names the version of each that the last whole run has left. It is
replaced at once when all tables are committed, so whoever reads through it never sees one half of a run. Other readers
of Delta see each table at its own last version.
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
from antiphon.pipeline.tables.parquet_files import GROUP_ROWS, PARTITION, Added, about, values_in

CURRENT = "current.json"
CURRENT_SIZE_MAX = 1 << 20
LAYOUT = 3  # by what tables are divided, and what is in them: rows are looked for where they would be written
#: All that there are: what `current.json` names beside them may lie anywhere.
TABLES = ("blocks", "changes", "epochs", "items", "links", "progress", "quarantine", "standings")
LOCK = "writer.lock"
CHECKPOINT_EVERY = 32  # versions of a table: its log is read from the last one
FILES_MAX = 256  # of a table, before small ones are put together

#: The id of an application, and the number of its batch that a commit belongs to.
Stream = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Current:
    """What the last whole run has left."""

    run: int = 0
    versions: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)  # by application id: the last batch that is in it
    owes: bool = False  # files of versions before have what was erased, and are still to be deleted


class TableLog:
    """The tables of one folder. Executors must reach it under the same path."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().resolve()  # delta-rs names files so, whatever links lead there

    def current(self) -> Current:
        """The last whole run; run 0 if there was none."""
        try:
            with (self.folder / CURRENT).open("rb") as file:
                text = file.read(CURRENT_SIZE_MAX + 1)
            found = json.loads(text if len(text) <= CURRENT_SIZE_MAX else b"")
            streams, owes = _numbers(found.get("streams", {})), bool(found.get("owes", False))
            current = Current(int(found["run"]), _numbers(found["versions"]), streams, owes)
            if not current.versions.keys() <= set(TABLES):
                raise ValueError("of these tables none is ours")
            layout = int(found.get("layout", 1))
        except FileNotFoundError:
            return Current()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadEncoding(f"{self.folder / CURRENT} names no tables; remove the folder, and run again") from None
        if layout != LAYOUT:
            raise BadEncoding(
                f"the tables in {self.folder} are of layout {layout}, and this version writes {LAYOUT}; "
                "remove the folder, and run again: all of it is in the feeds"
            )
        return current

    def publish(self, current: Current) -> None:
        """From here on readers see these versions: all of them, or none if this is not reached."""
        written = self.folder / f"{CURRENT}.{uuid.uuid4().hex}"
        with written.open("w") as file:
            about = {"run": current.run, "versions": dict(current.versions), "streams": dict(current.streams)}
            json.dump({"layout": LAYOUT, **about, "owes": current.owes}, file)
            file.flush()
            os.fsync(file.fileno())
        written.replace(self.folder / CURRENT)
        sync_folder(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One program writes into a folder at a time; the kernel drops the lock with the process."""
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
        """One table as the last whole run has left it, or at another version."""
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
        """The rows of one table, as Spark has them; without the column that only says where files lie."""
        table = self.table(name, version)
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        files = [f"file://{_path_of(file)}" for file in table.file_uris()]
        rows = spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)
        return rows.drop(PARTITION)

    def read_small(self, name: str) -> list[dict[str, Any]]:
        """The rows of one table, here; none if it is not there. For those that have a row for a party or a feed."""
        return [row for part in self.parts(name) for row in part.to_pylist()]

    def since(self, name: str, column: str, value: int) -> Iterator[dict[str, Any]]:
        """The rows of a table that have more than this in a column, here, file by file; none if it is not there."""
        for part in self.parts(name, filters=[(column, ">", value)]):
            yield from part.to_pylist()

    def parts(
        self, name: str, columns: list[str] | None = None, filters: list[tuple[str, str, Any]] | None = None
    ) -> Iterator[pa.Table]:
        """Columns of a table, here, file by file: for what is so little that a job of Spark's takes longer."""
        if name in self.current().versions:
            for file in self.files(name):
                yield pq.read_table(file, columns=columns, filters=filters, partitioning=None)

    def files(self, name: str) -> list[str]:
        """Where the files of a table are."""
        return [_path_of(file) for file in self.table(name).file_uris()]

    def shelves(self, name: str) -> dict[str, list[str]]:
        """The same by partition; none if the table is not there."""
        found: dict[str, list[str]] = {}
        for file in self.files(name) if name in self.current().versions else ():
            found.setdefault(values_in(Path(file).relative_to(self.folder))[PARTITION], []).append(file)
        return found

    # -- writing: nobody sees any of it before `publish`

    def put_small(self, name: str, schema: StructType, rows: Iterable[tuple[Any, ...]], stream: Stream | None) -> int:
        """A new version that has these rows and no others, written here: no job of Spark's is worth it."""
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
                [about(home, file, pq.read_metadata(file))],
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
        found: Iterable[Added],
        removed: Iterable[str],
        stream: Stream | None = None,
        partitions: Sequence[str] = (PARTITION,),
    ) -> int:
        """A new version with some files more, and without some that it had. The version is given back."""
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
            return self._committed(name)
        known, table = self.current().versions.get(name), self._behind(name)
        now = int(time() * 1000)
        home = str(self.folder / name)
        gone = [RemoveAction(str(Path(file).relative_to(home)), True, now) for file in removed]
        mode = "overwrite" if known is None else "append"  # what was never published is written over
        table.create_write_transaction([*gone, *added], mode, delta, list(partitions), commit_properties=done)
        version = self._committed(name)
        if version % CHECKPOINT_EVERY == 0:
            DeltaTable(path).create_checkpoint()
        return version

    def _behind(self, name: str) -> DeltaTable:
        """A table as it was published: if a run ended before it published, none of it counts."""
        path, known = str(self.folder / name), self.current().versions.get(name)
        table = DeltaTable(path)
        if known is not None and table.version() != known:
            table.restore(known)
            table = DeltaTable(path)
        return table

    def _committed(self, name: str) -> int:
        """The last version of a table, which is on the disk before it is published."""
        version = DeltaTable(str(self.folder / name)).version()
        _sync([self.folder / name / "_delta_log" / f"{version:020}.json"])
        sync_folder(self.folder / name)
        return version

    def compact_when_due(self, files: Mapping[str, int]) -> bool:
        """Put small files together in tables that have so many of them, where these are many; whether it was done."""
        due = [name for name, count in files.items() if count > FILES_MAX]
        if due:
            self.compact(only=due)
        return bool(due)

    def compact(
        self, *, keep: timedelta = timedelta(days=7), only: Collection[str] | None = None
    ) -> dict[str, dict[str, int]]:
        """Put small files together, and let go of files that no version needs which is younger than `keep`."""
        current = self.current()
        versions, done = dict(current.versions), {}
        names = [name for name in versions if only is None or name in only]
        for name in names:
            table = self._behind(name)
            made = table.optimize.compact(writer_properties=WriterProperties(max_row_group_size=GROUP_ROWS))
            versions[name] = DeltaTable(str(self.folder / name)).version()
            done[name] = {"added": made["numFilesAdded"], "removed": made["numFilesRemoved"]}
        self.publish(replace(current, versions=versions))
        for name in names:
            done[name]["deleted"] = self.let_go(name, keep)
        return done

    def let_go(self, name: str, keep: timedelta = timedelta()) -> int:
        """Delete files of a table that no version needs which is younger than `keep`; how many."""
        hours = int(keep.total_seconds() // 3600)
        table = self._behind(name)
        return len(table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True))

    def describe(self) -> Iterator[dict[str, Any]]:
        """Each table: its version, how many rows, files and bytes it has, and its columns."""
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
    """Have files on the disk, and in their folders."""
    known = list(files)
    for file in known:
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    for folder in {folder for file in known for folder in (file.parent, file.parent.parent)}:
        sync_folder(folder)


def _path_of(file: str) -> str:
    return unquote(urlparse(file).path)


def _nullable(schema: StructType) -> StructType:
    """As Parquet has it: what Spark reads back may be null, for all that it knows."""
    fields: list[dict[str, Any]] = [{**column, "nullable": True} for column in schema.jsonValue()["fields"]]
    return StructType.fromJson({"type": "struct", "fields": fields})
