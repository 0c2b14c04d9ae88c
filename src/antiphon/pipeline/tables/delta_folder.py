"""A folder of Delta tables that belong together. Executors write the Parquet files, and the driver commits them.

Each table has its own Delta log. `current.json` names the version of each table that the last complete run left. It is
replaced atomically after all tables are committed. A reader takes it once, and so sees one run (`at_last_run`). Other
Delta readers see each table at its own last version.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any

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
from pyspark.sql.types import StringType, StructField, StructType

from antiphon.core.disk_room import is_full
from antiphon.core.errors import AntiphonError, BadEncoding, DamagedTables, StoreLocked
from antiphon.core.local_path import local_path, refuse_home
from antiphon.feed.store.lock import sync_folder
from antiphon.feed.store.private_files import make_file, make_folder, replace_file
from antiphon.pipeline.source.block_columns import arrow_of, batch_of
from antiphon.pipeline.tables.dead_files import dead_files, delete_files, files_in, size_of
from antiphon.pipeline.tables.delta_log import LOG, OURS, log_entry, read_commits
from antiphon.pipeline.tables.parquet_files import GROUP_ROWS, PARTITION, WRITE_AGAIN, AddedFile, file_entry
from antiphon.pipeline.tables.run_tables import TABLES, CurrentVersions, RunTables, path_of
from antiphon.pipeline.tables.table_owner import check_of_run, check_ours, drop_parts, drop_run

CURRENT = "current.json"
CURRENT_SIZE_MAX = 1 << 20
LAYOUT = 3  # of partitions and columns; rows are looked up in the partition where they would be written
LOCK = "writer.lock"
CHECKPOINT_EVERY = 32  # versions of a table: readers start from the last checkpoint of its log
FILES_MAX = 256  # files of a table before it is compacted
DEAD_SIZE_MIN = 16 << 20  # bytes of dead files of a table below which none is deleted
#: How long dead files stay: the first that leaves no more dead bytes than live ones, or else the last.
FILES_STAY = (timedelta(days=7), timedelta(days=1), timedelta(hours=1), timedelta(minutes=15))

#: The application id of a stream, and the number of the batch that a commit belongs to.
StreamBatch = tuple[str, int]


class DeltaFolder:
    """The tables of one folder. Executors must reach the folder under the same path."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = local_path(folder).resolve()  # delta-rs resolves links in file names

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
            raise DamagedTables(f"{self.folder / CURRENT} names no tables; {WRITE_AGAIN}") from None
        if layout != LAYOUT:
            raise DamagedTables(
                f"the tables in {self.folder} are of layout {layout}, and this version writes {LAYOUT}; {WRITE_AGAIN}"
            )
        return current

    def current_run(self) -> int:
        """Return the number of the last complete run, also if nothing else can be said of the tables; or 0."""
        with suppress(BadEncoding):
            return self.current().run
        return 0

    def at_last_run(self) -> RunTables:
        """Return the tables as the last complete run left them, for any number of reads of that run."""
        return RunTables(self.folder, self.current())

    def publish(self, current: CurrentVersions) -> None:
        """Replace `current.json` atomically: from now on readers see these versions."""
        about = {"run": current.run, "versions": dict(current.versions), "streams": dict(current.streams)}
        told = {"layout": LAYOUT, **about, "owes": current.vacuum_due}
        replace_file(make_folder(self.folder) / CURRENT, json.dumps(told).encode())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one writing process; the kernel drops the lock with the process."""
        refuse_home(self.folder)
        make_folder(self.folder)
        handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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

    # -- before a run

    def recover(self) -> RunTables:
        """Make the logs of all tables agree with `current.json`, and return the tables that a run builds on.

        Commits of a run that ended before `publish` are rolled back. Commits of other programs that keep the rows (new
        properties, merged files) are kept and published. Any other commit of another program raises `DamagedTables`.
        A folder that has the name of a table and is not ours raises `InvalidInput`, before anything is deleted.
        """
        current = self.current()
        unpublished = self._check_ours(current)
        for table in unpublished:
            check_of_run(table, current.run + 1)
        for table in unpublished:
            drop_run(table, current.run + 1)
        versions = {name: self._agreed_version(name, known) for name, known in current.versions.items()}
        for name in versions:  # files of a run that died, or that failed while other tasks were writing
            drop_parts(self.folder / name, current.run + 1)
        tables = RunTables(self.folder, replace(current, versions=versions))
        for name in versions:
            tables.files(name)
        if versions != current.versions:
            self.publish(tables.current)
        return tables

    def forget(self) -> RunTables:
        """Return no tables at all, for a run that writes all of them again, whatever has happened to them."""
        current = CurrentVersions()
        with suppress(BadEncoding):
            current = self.current()
        self._check_ours(current)
        return RunTables(self.folder, CurrentVersions(current.run, {}, current.streams, vacuum_due=True))

    def discard(self, part: str) -> None:
        """Delete what a failed run has written into its subfolder `part`, and roll its commits back."""
        for name in TABLES:
            shutil.rmtree(self.folder / name / part, ignore_errors=True)
            for left in [*(self.folder / name / LOG).glob("*.tmp"), *(self.folder / name / LOG).glob("*#*")]:
                left.unlink(missing_ok=True)
        with suppress(AntiphonError, DeltaError, OSError):  # the next run does it
            self.recover()

    def _agreed_version(self, name: str, known: int) -> int:
        """Return the version of a table that a run builds on: the last one, after unpublished rows are rolled back."""
        path = self.folder / name
        try:
            last = DeltaTable(str(path))
            if last.version() == known:
                return known
            commits = list(read_commits(path, known, last.version()))
            was = DeltaTable(str(path), version=known)
            foreign = next((one for one in commits if one.changes_rows and not one.ours), None)
            same = _columns(was) == _columns(last)
            if foreign is None and same and not any(one.changes_rows for one in commits):
                return last.version()
            if foreign is None and same:
                added = dict(_properties(last).items() - _properties(was).items())
                last.restore(known, commit_properties=_ours())
                if added:
                    DeltaTable(str(path)).alter.set_table_properties(added, commit_properties=_ours())
                return self._last_version(name)
        except (DeltaError, BadEncoding) as error:
            raise DamagedTables(
                f"the table {name} in {self.folder} cannot be read: {_first_line(error)}; {WRITE_AGAIN}"
            ) from None
        did = "it has other columns" if foreign is None else f"{foreign.operation} is its version {foreign.version}"
        raise DamagedTables(
            f"another program has changed rows of the table {name} in {self.folder}: {did}, and the last run left "
            f"version {known}, which readers of that run still see; {WRITE_AGAIN}"
        )

    def _check_ours(self, current: CurrentVersions) -> list[Path]:
        """Return the folders of tables that are not in `current.json`; raise `InvalidInput` if one is not ours."""
        refuse_home(self.folder)
        found = [self.folder / name for name in TABLES if name not in current.versions]
        for table in found:
            check_ours(table)
        return found

    # -- writing: readers see nothing of it before `publish`

    def write_small(
        self,
        name: str,
        schema: StructType,
        rows: Iterable[tuple[Any, ...]],
        stream: StreamBatch | None = None,
        *,
        base: RunTables | None = None,
        part: str = "",
    ) -> int:
        """Commit a version with these rows and no others, written in this process; return the version."""
        base = base or self.at_last_run()
        added = self.added_file(name, schema, rows, part or part_of(base.run + 1))
        try:
            return self.commit(name, schema, [added], base.files(name), stream, [], base=base)
        except BaseException:
            (self.folder / name / added.path).unlink(missing_ok=True)
            raise

    def added_file(self, name: str, schema: StructType, rows: Iterable[tuple[Any, ...]], part: str) -> AddedFile:
        """Write rows into a new file of a table in this process; return its entry for a commit."""
        home = self.folder / name
        file = make_file(make_folder(home / part) / f"{uuid.uuid4().hex}.parquet")
        some, arrow = list(rows), arrow_of(schema)
        held = pa.Table.from_batches([batch_of(some, arrow)] if some else [], schema=arrow)
        try:
            pq.write_table(held, file, compression="zstd")
            return file_entry(home, file, pq.read_metadata(file))
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
        *,
        base: RunTables,
    ) -> int:
        """Commit a version that adds and removes files of the tables `base`; return the version."""
        home, known = self.folder / name, base.current.versions.get(name)
        added = [AddAction(*one[:4], True, one.stats) for one in found]
        _sync(home / file.path for file in added)
        columns = StructType([*schema.fields, *(StructField(column, StringType()) for column in partitions)])
        delta = Schema.from_json(_nullable(columns).json())
        done = _ours(base.run + 1, stream)
        if known is None:
            self._write_anew(name, delta, added, partitions, done)
            return self._last_version(name)
        now = int(time() * 1000)
        gone = [RemoveAction(str(Path(file).relative_to(home)), True, now) for file in removed]
        table = DeltaTable(str(home), version=known)
        table.create_write_transaction([*gone, *added], "append", delta, list(partitions), commit_properties=done)
        version = self._last_version(name)
        if version != known + 1:
            raise DamagedTables(
                f"another program has written to the table {name} in {self.folder} during the run, which is rolled "
                f"back; run again. If that fails too, {WRITE_AGAIN}"
            )
        if version % CHECKPOINT_EVERY == 0:
            DeltaTable(str(home)).create_checkpoint()
            _make_private(home / LOG)
        return version

    def _write_anew(
        self, name: str, schema: Schema, added: Sequence[AddAction], partitions: Sequence[str], done: CommitProperties
    ) -> None:
        """Commit a table with these files and no others; a log that cannot be continued is replaced by a new one."""
        path = str(self.folder / name)
        if DeltaTable.is_deltatable(path):
            try:
                table = DeltaTable(path)
                table.create_write_transaction([*added], "overwrite", schema, list(partitions), commit_properties=done)
                return
            except DeltaError as error:
                if is_full(error):
                    raise
        shutil.rmtree(self.folder / name / LOG, ignore_errors=True)
        make_folder(self.folder / name / LOG)
        create_table_with_add_actions(
            path, schema, [*added], partition_by=list(partitions), name=name, commit_properties=done
        )

    def _last_version(self, name: str) -> int:
        """Return the last version of a table, after syncing its log entry to disk."""
        path = self.folder / name
        version = DeltaTable(str(path)).version()
        _make_private(path / LOG)
        _sync([log_entry(path, version)])
        sync_folder(path)
        return version

    # -- merging and deleting files

    def compact_when_due(self, files: Mapping[str, int]) -> bool:
        """Compact the tables with more than `FILES_MAX` files, given their file counts; True if there was one."""
        due = [name for name, count in files.items() if count > FILES_MAX]
        if due:
            self.compact(only=due)
        return bool(due)

    def compact(
        self, *, keep: timedelta = FILES_STAY[0], only: Collection[str] | None = None
    ) -> dict[str, dict[str, int]]:
        """Merge small files, then delete files that no version younger than `keep` needs; return counts by table."""
        current = self.recover().current
        versions, done = dict(current.versions), {}
        names = [name for name in versions if only is None or name in only]
        for name in names:
            table = DeltaTable(str(self.folder / name))
            large = WriterProperties(max_row_group_size=GROUP_ROWS)
            made = table.optimize.compact(writer_properties=large, commit_properties=_ours(current.run))
            versions[name] = self._last_version(name)
            for file in DeltaTable(str(self.folder / name)).file_uris() if made["numFilesAdded"] else ():
                Path(path_of(file)).chmod(0o600)
            done[name] = {"added": made["numFilesAdded"], "removed": made["numFilesRemoved"]}
        self.publish(replace(current, versions=versions))
        for name in names:
            done[name]["deleted"] = self.vacuum(name, keep)
        return done

    def vacuum(self, name: str, keep: timedelta = timedelta()) -> int:
        """Delete files of a table that no version younger than `keep` needs; return how many."""
        return delete_files(self.folder / name, dead_files(self.folder / name, self.current().versions[name], keep))

    def vacuum_when_due(self) -> int:
        """Delete dead files of tables where they have more bytes than the live ones; return how many.

        A reader that began within the last `FILES_STAY[-1]` finds all files of its run.
        """
        tables, count = self.at_last_run(), 0
        for name, version in tables.current.versions.items():
            live = sum(Path(file).stat().st_size for file in tables.files(name))
            bound = max(live, DEAD_SIZE_MIN)
            if size_of(files_in(self.folder / name)) - live <= bound:
                continue
            for keep in FILES_STAY:
                count += delete_files(self.folder / name, dead_files(self.folder / name, version, keep))
                if size_of(files_in(self.folder / name)) - live <= bound:
                    break
        return count


def part_of(run: int) -> str:
    """Return the name of a new subfolder of tables, for the files of a run."""
    return f"part-{run}-{uuid.uuid4().hex}"


def _ours(run: int = 0, stream: StreamBatch | None = None) -> CommitProperties:
    """Return the marks of our commits: the run, and the batch of a stream."""
    transactions = [Transaction(*stream)] if stream else None
    return CommitProperties(custom_metadata={OURS: f"run {run}"}, app_transactions=transactions)


def _columns(table: DeltaTable) -> tuple[str, list[str]]:
    return table.schema().to_json(), table.metadata().partition_columns


def _properties(table: DeltaTable) -> dict[str, str]:
    return dict(table.metadata().configuration)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _make_private(log: Path) -> None:
    """Let only the owner read the files of a log, which delta-rs creates for everybody."""
    with os.scandir(log) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mode & 0o077 and entry.is_file(follow_symlinks=False):
                Path(entry).chmod(0o600)


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


def _nullable(schema: StructType) -> StructType:
    """Make all columns nullable, as Spark reads Parquet."""
    fields: list[dict[str, Any]] = [{**column, "nullable": True} for column in schema.jsonValue()["fields"]]
    return StructType.fromJson({"type": "struct", "fields": fields})
