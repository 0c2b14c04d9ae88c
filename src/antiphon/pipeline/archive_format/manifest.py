"""The layout of an archive: a folder of Parquet files, and `archive.json`, which lists the files that belong to it.

    archive.json                       format, number of exports, files with sizes and digests, labels of parties
    records-<number>-<id>.parquet      a row for each feed: its range of blocks, head, end, and evidence of a fork
    spans-<number>-<id>.parquet        a row for each range of blocks under one signed head
    blobs-<number>-<id>.parquet        a row for each blob

`archive.json` is replaced atomically, and no file that it names ever changes: a concurrent reader sees the export
before or the export after. An archive is trusted no more than data from a peer, and holds no private key.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.local_path import local_path
from antiphon.feed.store.private_files import make_file, replace_file
from antiphon.pipeline.archive_format.page_guard import check_pages

FORMAT = "antiphon.archive.1"
MANIFEST = "archive.json"
MANIFEST_SIZE_MAX = 64 << 20
FILE_SIZE = 512 << 20  # approximate bytes of a file, before compression
GROUP_SIZE = 4 << 20  # approximate bytes of a row group: reading one block reads one row group
GROUP_SIZE_MAX = 64 << 20
GROUP_ROWS_MAX = 1 << 16
#: Without dictionaries, which let a few bytes expand to gigabytes. Repeated keys compress well without them.
PARQUET: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True, "use_dictionary": False}
_NAME = re.compile(r"(records|spans|blobs)-[0-9]{1,9}-[0-9a-f]{32}\.parquet")
_CHUNK = 1 << 20

_KEY = ("party", "feed")
RECORDS = pa.schema(
    [
        *(pa.field(name, pa.binary(), nullable=False) for name in _KEY),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("start_hash", pa.binary(), nullable=False),
        pa.field("start_lamport", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("hash", pa.binary(), nullable=False),
        pa.field("lamport", pa.int64(), nullable=False),
        pa.field("signature", pa.binary(), nullable=False),
        pa.field("end", pa.int64()),
        pa.field("why", pa.int32(), nullable=False),
        pa.field("fork", pa.binary()),
        pa.field("erased", pa.list_(pa.int64()), nullable=False),
        pa.field("branches", pa.list_(pa.binary()), nullable=False),
    ]
)
SPANS = pa.schema(
    [
        *(pa.field(name, pa.binary(), nullable=False) for name in _KEY),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("count", pa.int32(), nullable=False),
        pa.field("previous", pa.binary(), nullable=False),
        pa.field("signature", pa.binary(), nullable=False),
        pa.field("headers", pa.binary(), nullable=False),
        pa.field("advance", pa.binary(), nullable=False),
        pa.field("states", pa.binary(), nullable=False),
        pa.field("bodies", pa.binary(), nullable=False),
    ]
)
BLOBS = pa.schema([pa.field("cid", pa.binary(), nullable=False), pa.field("data", pa.binary(), nullable=False)])


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file of an archive, with its size and digest at the time of writing."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of `archive.json`."""

    number: int = 0  # of exports
    records: ArchiveFile | None = None
    spans: tuple[ArchiveFile, ...] = ()
    blobs: tuple[ArchiveFile, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # of the parties that the home followed, by key in hex

    def files(self) -> Iterator[ArchiveFile]:
        """All files of the archive."""
        if self.records is not None:
            yield self.records
        yield from self.spans
        yield from self.blobs

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of an archive. Refuse another format, and file names that no export writes."""
        path = folder / MANIFEST
        try:
            with path.open("rb") as file:
                data = file.read(MANIFEST_SIZE_MAX + 1)
        except FileNotFoundError:
            raise InvalidInput(f"{folder} is no archive: there is no {MANIFEST} in it") from None
        if len(data) > MANIFEST_SIZE_MAX:
            raise TooLarge(f"{path}: more than {MANIFEST_SIZE_MAX} bytes")
        try:
            return cls._of(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadEncoding(f"{path} does not describe an archive: {error!s:.200}. Get another copy") from None

    @classmethod
    def _of(cls, told: dict[str, Any]) -> Manifest:
        if told["format"] != FORMAT:
            raise ValueError(f"its format is {told['format']!r:.40}, this program knows {FORMAT!r}")
        kinds = {kind: tuple(_file(kind, row) for row in told[kind]) for kind in ("records", "spans", "blobs")}
        if len(kinds["records"]) > 1:
            raise ValueError("it has one file of records")
        labels = {bytes.fromhex(key).hex(): _text(label) for key, label in told["labels"].items()}
        number = _count(told["number"])
        return cls(number, next(iter(kinds["records"]), None), kinds["spans"], kinds["blobs"], labels)

    def write(self, folder: Path) -> None:
        """Replace `archive.json` atomically and durably. Readers that open the archive from now on see this export."""
        told: dict[str, Any] = {"format": FORMAT, "number": self.number, "labels": dict(self.labels)}
        for kind, files in (("records", [self.records]), ("spans", self.spans), ("blobs", self.blobs)):
            told[kind] = [asdict(file) for file in files if file is not None]
        replace_file(folder / MANIFEST, json.dumps(told, indent=1, sort_keys=True).encode())


def _file(kind: str, row: dict[str, Any]) -> ArchiveFile:
    found = ArchiveFile(_text(row["name"]), _count(row["rows"]), _count(row["bytes"]), _text(row["sha256"]))
    if not _NAME.fullmatch(found.name) or not found.name.startswith(kind):
        raise ValueError(f"{found.name!r:.80} is no file of {kind}")
    return found


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r:.40} is no count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def is_archive(folder: str | Path) -> bool:
    """True if the folder holds an `archive.json`."""
    return (local_path(folder) / MANIFEST).is_file()


# -- Parquet


class FileWriter:
    """Writes one new file of an archive. The file belongs to the archive once a manifest names it."""

    def __init__(self, folder: Path, kind: str, number: int, schema: pa.Schema) -> None:
        self.path = make_file(folder / f"{kind}-{number}-{uuid.uuid4().hex}.parquet")
        self._schema = schema
        self._rows: list[dict[str, Any]] = []
        self._size = self._count = 0
        self._writer = pq.ParquetWriter(self.path, schema, **PARQUET)

    def add(self, row: dict[str, Any], size: int) -> None:
        """Add a row of about `size` bytes."""
        self._rows.append(row)
        self._size += size
        if self._size >= GROUP_SIZE or len(self._rows) >= GROUP_ROWS_MAX:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
            self._count += len(self._rows)
            self._rows, self._size = [], 0

    def close(self) -> ArchiveFile:
        """Sync the file to disk, and return its entry for the manifest."""
        self._flush()
        self._writer.close()
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        return ArchiveFile(self.path.name, self._count, self.path.stat().st_size, digest_of(self.path))


class RollingFileWriter:
    """Writes as many new files as the rows need, none much larger than `FILE_SIZE`. Without rows it writes no file."""

    def __init__(self, folder: Path, kind: str, number: int, schema: pa.Schema) -> None:
        self._given = folder, kind, number, schema
        self._files: list[ArchiveFile] = []
        self._now: FileWriter | None = None
        self._size = 0

    def add(self, row: dict[str, Any], size: int) -> None:
        """Add a row of about `size` bytes."""
        if self._now is None:
            self._now = FileWriter(*self._given)
        self._now.add(row, size)
        self._size += size
        if self._size >= FILE_SIZE:
            self._end()

    def _end(self) -> None:
        if self._now is not None:
            self._files.append(self._now.close())
        self._now, self._size = None, 0

    def close(self) -> list[ArchiveFile]:
        """Sync the last file to disk, and return the manifest entries of all files."""
        self._end()
        return self._files


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_file(folder: Path, file: ArchiveFile) -> None:
    """Raise `BadEncoding` if the size or the digest of a file differs from its manifest entry."""
    path = folder / file.name
    try:
        if path.stat().st_size != file.bytes or digest_of(path) != file.sha256:
            raise BadEncoding(f"{path} has changed since it was written. Get another copy of it")
    except OSError as error:
        raise BadEncoding(f"{path} cannot be read: {error.strerror}. Get another copy of it") from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error of Arrow or of the file system into `BadEncoding` that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, ValueError, KeyError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise BadEncoding(f"{path} cannot be read: {error!s:.200}. Get another copy of it") from None


def open_file(folder: Path, file: ArchiveFile, schema: pa.Schema) -> pq.ParquetFile:
    """Open a Parquet file. Refuse it if its schema differs."""
    path = folder / file.name
    with reading(path):
        opened = pq.ParquetFile(path, page_checksum_verification=True)
        if not opened.schema_arrow.equals(schema):
            opened.close()
            raise BadEncoding(f"{path} has other columns than a file of this kind. Get another copy of it")
        return opened


def read_group(path: Path, opened: pq.ParquetFile, group: int, columns: list[str] | None = None) -> pa.Table:
    """Read some columns of a row group, or all. Refuse a row group that would decode to more than the limits."""
    with reading(path):
        about = opened.metadata.row_group(group)
        if about.total_byte_size > GROUP_SIZE_MAX or about.num_rows > GROUP_ROWS_MAX:
            raise TooLarge(f"{path}: row group {group} is larger than {GROUP_SIZE_MAX} bytes")
        check_pages(path, about, GROUP_SIZE_MAX, GROUP_SIZE_MAX // 8)
        return opened.read_row_group(group, columns=columns)


def read_row_groups(folder: Path, file: ArchiveFile, schema: pa.Schema) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a file, one row group at a time."""
    path = folder / file.name
    with open_file(folder, file, schema) as opened:
        for group in range(opened.num_row_groups):
            table = read_group(path, opened, group)
            with reading(path):
                rows: list[dict[str, Any]] = table.to_pylist()
            yield rows
