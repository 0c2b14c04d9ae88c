"""Files of tables: Parquet that workers write, partition by partition, and what Delta's log says of each.

A partition of a table is a folder. It is written where rows of it change: files with rows that go are written anew
without them, and with new rows; so are small ones, lest there be more and more of those.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

PARTITION = "bucket"  # the column that names it; it is in no file
FILE_ROWS, FILE_SIZE = 200_000, 128 << 20  # of which a file has enough
GROUP_ROWS = 50_000
BATCH_ROWS, BATCH_SIZE = 8_192, 16 << 20  # that are looked at together
GROUP_SIZE = 32 << 20  # bytes of a group of rows, before they are packed
SMALL_SIZE = 32 << 10  # bytes of a file that is written anew with whatever is written
_STATS = ("INT32", "INT64")
_HASHES = ("hash", "body_hash")  # nobody can pack them
#: Values of which hardly two are equal, or comparable: no dictionary is made of them, and nobody skips rows by them.
_UNLIKE = (*_HASHES, "advance", "body", "data", "state", "facts.data", "facts.value", "facts.keys.key_value.value")

#: What stays of a batch: of which file, and how far in it it begins.
Stays = Callable[[str, int, pa.RecordBatch], pa.RecordBatch]


class Added(NamedTuple):
    """A file, for Delta's log, with what readers skip files by."""

    path: str  # in the folder of its table
    size: int
    values: dict[str, str]
    modified_ms: int
    stats: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where files of one run go."""

    home: str  # the folder of the table
    part: str  # a folder in it that is this run's alone
    partition: str


@dataclass
class TableFiles:
    """Writes rows of one partition of a table.

    New rows of a group are sorted: those that are alike are packed best when they lie together. What is written anew
    comes from such groups, and stays as it was.
    """

    place: Place
    schema: pa.Schema
    order: Sequence[str] = ()
    packing: str = "zstd"
    added: list[Added] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # whose rows were written anew, or are gone
    told: Callable[[pa.RecordBatch], None] | None = None  # who wants to know all rows that are written
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _kept: list[pa.RecordBatch] = field(default_factory=list)  # that wait, too, and are in order
    _rows: int = 0  # that wait
    _size: int = 0
    _file: pq.ParquetWriter | None = None
    _about: list[pq.FileMetaData] = field(default_factory=list)  # of that file, when it is closed
    _path: Path = Path()
    _written: int = 0  # rows of that file

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are on the disk when it is done."""
        self._add(self._waiting, batch)

    def _add(self, waiting: list[pa.RecordBatch], batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self.told is not None:
            self.told(batch)
        waiting.append(batch)
        self._rows += batch.num_rows
        self._size += batch.nbytes
        if self._rows >= GROUP_ROWS or self._size >= GROUP_SIZE:
            self._flush()

    def rewrite(
        self,
        files: Iterable[str],
        hit: Collection[str],
        stays: Stays,
        *,
        small: bool = True,
        read: Callable[[str], Iterable[pa.RecordBatch]] | None = None,
    ) -> None:
        """Write files anew of which rows go, or change; and with `small` small ones, if anything is written."""
        read = read or batches_in
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

    def done(self) -> Written:
        """Have all of it on the disk."""
        self._flush()
        self._close()
        return Written(self.added, self.removed)

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
        folder = Path(self.place.home, self.place.part, f"{PARTITION}={self.place.partition}")
        folder.mkdir(parents=True, exist_ok=True)
        self._path, self._written = folder / f"{uuid4().hex}.parquet", 0
        leaves = dict(_leaves(self.schema))
        alike = [path for path, kind in leaves.items() if path not in _UNLIKE or pa.types.is_integer(kind)]
        self._file = pq.ParquetWriter(
            self._path,
            self.schema,
            compression={path: "none" if path in _HASHES else self.packing for path in leaves},
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
            self.added.append(about(self.place.home, self._path, self._about.pop()))


def _leaves(fields: Iterable[pa.Field], above: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """The columns of a file, by their paths in Parquet: parts of what is nested are columns of their own."""
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


class Written(NamedTuple):
    """What has become of files."""

    added: list[Added]
    removed: list[str]


def batches_in(file: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a file, some at a time."""
    with pq.ParquetFile(file) as held:
        for group in range(held.num_row_groups):
            about = held.metadata.row_group(group)
            rows = max(1, min(BATCH_ROWS, about.num_rows * BATCH_SIZE // max(1, about.total_byte_size)))
            yield from held.iter_batches(rows, [group], columns, use_threads=False)


def values_in(path: Path) -> dict[str, str]:
    """What the folders of a file in its table say of all its rows."""
    return dict(part.split("=", 1) for part in path.parts if "=" in part)


def about(home: str | Path, file: Path, meta: pq.FileMetaData) -> Added:
    """A file that is written, with what its footer says."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for group in range(meta.num_row_groups):
        for at in range(meta.num_columns):
            column = meta.row_group(group).column(at)
            stats, name = column.statistics, column.path_in_schema
            is_plain = column.physical_type in _STATS and "." not in name  # and no part of another
            if is_plain and stats is not None and stats.has_min_max:
                low[name] = min(stats.min, low.get(name, stats.min))
                high[name] = max(stats.max, high.get(name, stats.max))
    stats_text = json.dumps({"numRecords": meta.num_rows, "minValues": low, "maxValues": high, "nullCount": {}})
    path = file.relative_to(home)
    found = file.stat()
    return Added(path.as_posix(), found.st_size, values_in(path), int(found.st_mtime * 1000), stats_text)
