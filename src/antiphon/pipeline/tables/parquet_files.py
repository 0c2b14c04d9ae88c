"""Parquet files of tables: workers write them partition by partition, with the entry of each file for the Delta log.

A partition of a table is a folder. Files whose rows change are rewritten, together with new rows (copy on write). Small
files are rewritten along, so that their number does not grow.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.core.errors import DamagedTables
from antiphon.feed.store.private_files import make_file, make_folder

WRITE_AGAIN = "`antiphon pipeline run --full` with all homes of these tables writes them again from the feeds"
PARTITION = "bucket"  # the partition column; files do not contain it
FILE_ROWS, FILE_SIZE = 200_000, 128 << 20  # a file that reaches one of these is closed
GROUP_ROWS = 50_000  # of a row group
BATCH_ROWS, BATCH_SIZE = 8_192, 16 << 20  # of a batch that is read
GROUP_SIZE = 32 << 20  # bytes of a row group, before compression
SMALL_SIZE = 32 << 10  # files below this size are rewritten whenever the partition is written
_STATS = ("INT32", "INT64")
_HASHES = ("hash", "body_hash")  # they do not compress
#: Columns of mostly distinct, incomparable values: no dictionary, and no statistics to skip rows by.
_UNLIKE = (*_HASHES, "advance", "body", "data", "state", "facts.data", "facts.value", "facts.keys.key_value.value")

#: Returns the rows of a batch that stay, by file, number of the first row of the batch in it, and batch.
KeepRows = Callable[[str, int, pa.RecordBatch], pa.RecordBatch]


class AddedFile(NamedTuple):
    """A file entry for the Delta log, with the statistics by which readers skip files."""

    path: str  # relative to the folder of its table
    size: int
    values: dict[str, str]
    modified_ms: int
    stats: str


@dataclass(frozen=True, slots=True)
class PartitionPath:
    """Where one run writes the files of one partition."""

    table: str  # the folder of the table
    run_folder: str  # a subfolder for this run alone
    partition: str  # the value of the partition column


@dataclass
class PartitionWriter:
    """Writes rows of one partition of a table.

    New rows of a row group are sorted, so that similar rows compress together. Rewritten rows come from such groups,
    and keep their order.
    """

    place: PartitionPath
    schema: pa.Schema
    order: Sequence[str] = ()
    compression: str = "zstd"
    added: list[AddedFile] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # files whose rows were rewritten or deleted
    on_write: Callable[[pa.RecordBatch], None] | None = None  # called with all rows that are written
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _kept: list[pa.RecordBatch] = field(default_factory=list)  # rewritten rows, in order
    _rows: int = 0  # rows in both lists
    _size: int = 0
    _file: pq.ParquetWriter | None = None
    _about: list[pq.FileMetaData] = field(default_factory=list)  # the footer of the open file, once it is closed
    _path: Path = Path()
    _written: int = 0  # rows of the open file

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are on disk after `finish`."""
        self._add(self._waiting, batch)

    def _add(self, waiting: list[pa.RecordBatch], batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self.on_write is not None:
            self.on_write(batch)
        waiting.append(batch)
        self._rows += batch.num_rows
        self._size += batch.nbytes
        if self._rows >= GROUP_ROWS or self._size >= GROUP_SIZE:
            self._flush()

    def rewrite(
        self,
        files: Iterable[str],
        hit: Collection[str],
        stays: KeepRows,
        *,
        small: bool = True,
        read: Callable[[str], Iterable[pa.RecordBatch]] | None = None,
    ) -> None:
        """Rewrite the files in `hit`, and with `small` also small files if anything is written."""
        read = read or read_batches
        for file in files:
            if file not in hit and not (small and self._is_small(file)):
                continue
            start = 0
            for batch in read(file):
                self._add(self._kept, stays(file, start, batch))
                start += batch.num_rows
            self.removed.append(file)

    def _is_small(self, file: str) -> bool:
        return bool(self._rows or self.added) and Path(file).stat().st_size < SMALL_SIZE

    def finish(self) -> WrittenFiles:
        """Sync everything to disk; return the files added and removed."""
        self._flush()
        self._close()
        return WrittenFiles(self.added, self.removed)

    def _flush(self) -> None:
        if not self._rows:
            return
        table = pa.Table.from_batches(self._waiting, schema=self.schema)
        if self.order:
            table = table.sort_by([(name, "ascending") for name in self.order])
        table = pa.concat_tables([table, pa.Table.from_batches(self._kept, schema=self.schema)])
        self._waiting, self._kept, self._rows, self._size = [], [], 0, 0
        if self._file is None:
            self._open()
        assert self._file is not None
        self._file.write_table(table, row_group_size=table.num_rows)
        self._written += table.num_rows
        if self._written >= FILE_ROWS or self._path.stat().st_size >= FILE_SIZE:
            self._close()

    def _open(self) -> None:
        folder = Path(self.place.table, self.place.run_folder, f"{PARTITION}={self.place.partition}")
        self._path, self._written = make_file(make_folder(folder) / f"{uuid4().hex}.parquet"), 0
        leaves = dict(_leaves(self.schema))
        alike = [path for path, kind in leaves.items() if path not in _UNLIKE or pa.types.is_integer(kind)]
        self._file = pq.ParquetWriter(
            self._path,
            self.schema,
            compression={path: "none" if path in _HASHES else self.compression for path in leaves},
            use_dictionary=alike,
            write_statistics=alike,
            metadata_collector=self._about,
        )

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            with self._path.open("rb") as handle:
                os.fsync(handle.fileno())
            self.added.append(file_entry(self.place.table, self._path, self._about.pop()))


def _leaves(fields: Iterable[pa.Field], above: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the leaf columns of a schema, by their Parquet paths."""
    for one in fields:
        path, kind = above + one.name, one.type
        if pa.types.is_struct(kind):
            yield from _leaves(kind, f"{path}.")
        elif pa.types.is_map(kind):
            inner = [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
            yield from _leaves(inner, f"{path}.key_value.")
        elif pa.types.is_list(kind):
            yield from _leaves([pa.field("element", kind.value_type)], f"{path}.list.")
        else:
            yield path, kind


class WrittenFiles(NamedTuple):
    """Files that a task added and removed."""

    added: list[AddedFile]
    removed: list[str]


def read_batches(file: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches."""
    with table_file(file), pq.ParquetFile(file) as held:
        for group in range(held.num_row_groups):
            about = held.metadata.row_group(group)
            rows = max(1, min(BATCH_ROWS, about.num_rows * BATCH_SIZE // max(1, about.total_byte_size)))
            yield from held.iter_batches(rows, [group], columns, use_threads=False)


@contextmanager
def table_file(file: str) -> Iterator[None]:
    """Raise `DamagedTables` if a file of a table is gone, or is no Parquet file with these columns."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DamagedTables(f"{file} cannot be read: {str(error).splitlines()[0]:.200}; {WRITE_AGAIN}") from None


def partition_values(path: Path) -> dict[str, str]:
    """Return the partition values in the path of a file (`column=value`)."""
    return dict(part.split("=", 1) for part in path.parts if "=" in part)


def file_entry(home: str | Path, file: Path, meta: pq.FileMetaData) -> AddedFile:
    """Return the Delta log entry of a written file, with statistics from its footer."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for group in range(meta.num_row_groups):
        for at in range(meta.num_columns):
            column = meta.row_group(group).column(at)
            stats, name = column.statistics, column.path_in_schema
            is_plain = column.physical_type in _STATS and "." not in name  # a top-level column
            if is_plain and stats is not None and stats.has_min_max:
                low[name] = min(stats.min, low.get(name, stats.min))
                high[name] = max(stats.max, high.get(name, stats.max))
    stats_text = json.dumps({"numRecords": meta.num_rows, "minValues": low, "maxValues": high, "nullCount": {}})
    path = file.relative_to(home)
    found = file.stat()
    return AddedFile(path.as_posix(), found.st_size, partition_values(path), int(found.st_mtime * 1000), stats_text)
