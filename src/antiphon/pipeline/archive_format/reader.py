"""Read the feeds and blobs of an archive through the same interfaces as the stores of a home.

`FeedReader` reads tables of an environment, usually LMDB's. `ArchiveEnv` is an environment over Parquet files: it reads
all records at once, and spans of blocks on demand, one row group at a time. An archive holds no block hashes: they are
computed from the headers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.core.cid import Cid
from antiphon.core.errors import (
    AntiphonError,
    BadEncoding,
    CorruptBlock,
    DamagedBlob,
    InvalidInput,
    RefusedBlocks,
    TooLarge,
    UnknownFeed,
)
from antiphon.feed.block import Block
from antiphon.feed.chain import verify_span
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import NO_END, Entry, decode_entries
from antiphon.feed.span import Span
from antiphon.feed.store.env import Env
from antiphon.feed.store.reader import FeedReader
from antiphon.pipeline.archive_format.manifest import (
    BLOBS,
    MANIFEST,
    RECORDS,
    SPANS,
    ArchiveFile,
    Manifest,
    open_file,
    read_group,
    read_row_groups,
    reading,
)
from antiphon.pipeline.archive_format.rows import FeedRow, span_of, with_hashes
from antiphon.snapshot.blobs import Blobs, missing_blob

GROUPS_KEPT = 2
SPANS_KEPT = 8


class RowPosition(NamedTuple):
    """The position of a row: number of the file, of the row group in it, of the row in that."""

    file: int
    group: int
    row: int


class ParquetFiles:
    """The files of one kind, with a cache of the last row groups that were read."""

    def __init__(self, folder: Path, files: tuple[ArchiveFile, ...], schema: pa.Schema) -> None:
        self._folder = folder
        self._files = files
        self._schema = schema
        self._open: dict[int, pq.ParquetFile] = {}
        self._groups: OrderedDict[tuple[int, int], list[dict[str, Any]]] = OrderedDict()

    def keys(self, columns: list[str]) -> Iterator[tuple[RowPosition, tuple[Any, ...]]]:
        """Yield the position and some small columns of every row. Raise when a file is reached that cannot be read."""
        for number in range(len(self._files)):
            yield from self.keys_of(number, columns)

    def keys_of(self, number: int, columns: list[str]) -> list[tuple[RowPosition, tuple[Any, ...]]]:
        """The position and some small columns of every row of one file."""
        opened, found = self._opened(number), []
        path = self._folder / self._files[number].name
        for group in range(opened.num_row_groups):
            table = read_group(path, opened, group, columns)
            with reading(path):
                values = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
                found += [(RowPosition(number, group, row), each) for row, each in enumerate(values)]
        return found

    def row(self, place: RowPosition) -> dict[str, Any]:
        """Read one row, with its row group if that is not in the cache."""
        key = place.file, place.group
        rows = self._groups.get(key)
        if rows is None:
            opened = self._opened(place.file)
            path = self._folder / self._files[place.file].name
            table = read_group(path, opened, place.group)
            with reading(path):
                rows = table.to_pylist()
            self._groups[key] = rows
            if len(self._groups) > GROUPS_KEPT:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return rows[place.row]

    def _opened(self, number: int) -> pq.ParquetFile:
        if number not in self._open:
            self._open[number] = open_file(self._folder, self._files[number], self._schema)
        return self._open[number]

    def close(self) -> None:
        for opened in self._open.values():
            opened.close()
        self._open.clear()


class SpanIndex(NamedTuple):
    """The spans of each feed: their first seqs, ascending, and their positions; and the errors of unreadable files."""

    found: dict[bytes, tuple[list[int], list[RowPosition]]]
    broken: tuple[str, ...]


@lru_cache(maxsize=4)
def _index(folder: Path, manifest: tuple[ArchiveFile, ...]) -> SpanIndex:
    """Index the spans. Cached between tasks, because a worker reads the same archive many times."""
    firsts: dict[bytes, list[tuple[int, RowPosition]]] = defaultdict(list)
    broken = []
    with closing(ParquetFiles(folder, manifest, SPANS)) as files:
        for number in range(len(manifest)):
            try:
                for place, (feed, first) in files.keys_of(number, ["feed", "first"]):
                    firsts[feed].append((first, place))
            except (BadEncoding, TooLarge) as error:
                broken.append(str(error))
    sorted_ = {feed: sorted(some) for feed, some in firsts.items()}
    found = {feed: ([first for first, _ in some], [place for _, place in some]) for feed, some in sorted_.items()}
    return SpanIndex(found, tuple(broken))


@lru_cache(maxsize=4)
def _records(folder: Path, file: ArchiveFile | None) -> dict[bytes, FeedRow]:
    rows = [row for group in ([] if file is None else read_row_groups(folder, file, RECORDS)) for row in group]
    found = {}
    for row in rows:
        one = FeedRow.of(row)
        found[one.record.feed] = one
    if len(found) != len(rows):
        raise BadEncoding(f"{folder}: a feed has two records. Get another copy of the archive")
    return found


class ArchiveTables:
    """The tables that `FeedReader` reads in a transaction. An archive does not change, so it needs no transaction."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = Manifest.read(folder)
        self.rows = _records(folder, self.manifest.records)
        self._files = ParquetFiles(folder, self.manifest.spans, SPANS)
        self._spans: OrderedDict[RowPosition, Span] = OrderedDict()
        self._verified: set[RowPosition] = set()
        self._branches: dict[bytes, dict[bytes, Span]] = {}  # by feed and hash of a block, once they are asked for

    # -- records

    def feeds(self, party: bytes | None = None) -> Iterator[FeedRecord]:
        for feed in sorted(self.rows):
            record = self.rows[feed].record
            if party is None or record.party == party:
                yield record

    def find(self, feed: bytes) -> FeedRecord | None:
        row = self.rows.get(feed)
        return None if row is None else row.record

    def record(self, feed: bytes) -> FeedRecord:
        found = self.find(feed)
        if found is None:
            raise UnknownFeed(f"no feed {feed.hex()} is in the archive {self.folder}")
        return found

    def fork(self, feed: bytes) -> bytes | None:
        row = self.rows.get(feed)
        return None if row is None else row.fork

    def forks(self) -> list[bytes]:
        return [row.fork for _, row in sorted(self.rows.items()) if row.fork is not None]

    def branches(self, feed: bytes, known: Mapping[bytes, int] | None = None) -> Iterator[Span]:
        row = self.rows.get(feed)
        found, begun = () if row is None else row.branch_spans(), known or {}
        return (span for span in found if span.first < begun.get(span.hash_at(span.end - 1), NO_END))

    def branch_start(self, feed: bytes) -> Span | None:
        return next((span for span in self.branches(feed) if span.first == 0), None)

    def branch_with(self, feed: bytes, seq: int, hash_: bytes) -> Span | None:
        if feed not in self._branches:
            found = list(self.branches(feed))
            self._branches[feed] = {span.hash_at(at): span for span in found for at in range(span.first, span.end)}
        span = self._branches[feed].get(hash_)
        return span if span is not None and span.first <= seq < span.end and span.hash_at(seq) == hash_ else None

    def frontiers(self, feed: bytes) -> Iterator[Entry]:
        """The last timeframe entry for each feed that the archived blocks of this feed have seen."""
        record = self.record(feed)
        last: dict[bytes, Entry] = {}
        at = record.start
        while at < record.valid_length:
            span = self.span_at(record, at)
            last |= {entry.feed: entry for entry in decode_entries(span.advance)}
            at = span.end
        return iter(last.values())

    def raw(self, table: str) -> tuple[Any, Any]:
        raise InvalidInput(f"{self.folder}: an archive has no table {table}")

    # -- spans

    def spans_from(self, record: FeedRecord, seq: int, stop: int, size: int) -> list[Span]:
        """Spans from `seq` on, of about `size` bytes. Damage ends the list; damage at `seq` itself is raised."""
        found: list[Span] = []
        while seq < stop and size > 0:
            try:
                span = self.span_at(record, seq)
            except CorruptBlock:
                if found:
                    break
                raise
            found.append(span)
            seq, size = span.end, size - span.size
        return found

    def span_at(self, record: FeedRecord, seq: int) -> Span:
        return self._at(record, seq)[1]

    def block_at(self, record: FeedRecord, seq: int) -> Block:
        """Read one block. Its span is verified the first time."""
        place, span = self._at(record, seq)
        if place not in self._verified:
            try:
                verify_span(span)
            except RefusedBlocks as error:
                raise self._corrupt(record, seq, str(error)) from None
            self._verified.add(place)
        return span.block(seq - span.first)

    def hash_before(self, record: FeedRecord, seq: int) -> bytes:
        return record.start_hash if seq == record.start else self.span_at(record, seq - 1).hash_at(seq - 1)

    def _at(self, record: FeedRecord, seq: int) -> tuple[RowPosition, Span]:
        index = _index(self.folder, self.manifest.spans)
        firsts, places = index.found.get(record.feed, ([], []))
        at = bisect_right(firsts, seq) - 1
        if at < 0:
            raise self._missing(record, seq, index)
        place = places[at]
        span = self._spans.get(place)
        if span is None:
            try:
                span = with_hashes(span_of(self._files.row(place)))
            except (BadEncoding, TooLarge) as error:
                raise self._corrupt(record, seq, str(error)) from None
            self._spans[place] = span
            if len(self._spans) > SPANS_KEPT:
                self._spans.popitem(last=False)
        if (span.feed, span.party) != (record.feed, record.party) or not span.first <= seq < span.end:
            raise self._missing(record, seq, index)
        return place, span

    def _missing(self, record: FeedRecord, seq: int, index: SpanIndex) -> CorruptBlock:
        why = f"it is missing from the archive{'; ' if index.broken else ''}{'; '.join(index.broken[:3])}"
        return self._corrupt(record, seq, why)

    def _corrupt(self, record: FeedRecord, seq: int, why: str) -> CorruptBlock:
        text = f"feed {record.feed.hex()[:8]}, block {seq}: {why}. Get another copy of the archive {self.folder}"
        return CorruptBlock(text, feed=record.feed, seq=seq)

    def close(self) -> None:
        self._files.close()


class ArchiveEnv:
    """The environment of a `FeedReader` over an archive."""

    readonly = True
    durable = True

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.tables = ArchiveTables(folder)

    def read(self) -> AbstractContextManager[ArchiveTables]:
        return nullcontext(self.tables)

    def transaction(self) -> int:
        """The number of the export. It stays the same while the environment is open."""
        return self.tables.manifest.number

    def map_size(self) -> int:
        return sum(file.bytes for file in self.tables.manifest.files())

    def flush(self) -> None:
        """Nothing to do: the files were synced before `archive.json` named them."""

    def close(self) -> None:
        self.tables.close()


def archived_feeds(folder: str | Path) -> FeedReader:
    """A reader of the feeds of an archive."""
    return FeedReader(cast(Env, ArchiveEnv(_folder(folder))))


def _folder(folder: str | Path) -> Path:
    return Path(folder).expanduser().absolute()


@lru_cache(maxsize=4)
def _cids(folder: Path, files: tuple[ArchiveFile, ...]) -> dict[bytes, RowPosition]:
    found: dict[bytes, RowPosition] = {}
    with closing(ParquetFiles(folder, files, BLOBS)) as opened:
        for number, file in enumerate(files):
            try:
                found.update({cid: place for place, (cid,) in opened.keys_of(number, ["cid"])})
            except (BadEncoding, TooLarge) as error:
                raise BadEncoding(f"blobs of the archive: {file.name}: {error}") from None
    return found


class ArchiveBlobs(Blobs):
    """The blobs of an archive. Each blob is checked against its CID when it is read."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = _folder(folder)
        files = Manifest.read(self._folder).blobs
        self._places = _cids(self._folder, files)
        self._files = ParquetFiles(self._folder, files, BLOBS)

    def __iter__(self) -> Iterator[Cid]:
        """All CIDs, in the order of the files."""
        return map(Cid, self._places)

    def get(self, cid: Cid) -> bytes:
        place = self._places.get(bytes(cid))
        if place is None:
            raise missing_blob(cid)
        try:
            data: bytes = self._files.row(place)["data"]
        except AntiphonError as error:
            raise DamagedBlob(f"blob {cid}: {error}", cid=cid) from None
        if not cid.matches(data):
            raise DamagedBlob(f"blob {cid} in the archive {self._folder} has changed; get another copy", cid=cid)
        return data

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        return [cid for cid in cids if bytes(cid) not in self._places]

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        raise InvalidInput(f"{self._folder} is an archive: nothing is put into it but by an export")

    def putting(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        self._files.close()


__all__ = ["MANIFEST", "ArchiveBlobs", "ArchiveEnv", "ArchiveTables", "archived_feeds"]
