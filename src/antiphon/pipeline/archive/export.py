"""Export the feeds and blobs of a home to an archive, from which the home can be rebuilt. A later export adds new data.

    export_archive(spark, "laptop", "archive")
    spark.read.format("antiphon").load("archive")

Executors write files in parallel. The driver writes `archive.json` last. Files that it does not name are not part of
the archive, and are deleted.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, DamagedBlob, InvalidInput, MissingBlob, StoreLocked
from antiphon.core.local_path import local_path
from antiphon.core.reasons import Reason, coded
from antiphon.feed.block import BodyState
from antiphon.feed.feed_record import End
from antiphon.feed.header import NO_END
from antiphon.feed.span import Span
from antiphon.feed.store.private_files import make_folder
from antiphon.feed.store.reader import FeedReader
from antiphon.party.bundle.export import joined
from antiphon.pipeline.archive.plan import ExportPlan, NewBlocks, branches_of, plan_export
from antiphon.pipeline.archive_format.manifest import (
    BLOBS,
    MANIFEST,
    RECORDS,
    SPANS,
    ArchiveFile,
    FileWriter,
    Manifest,
    RollingFileWriter,
    is_archive,
    read_row_groups,
)
from antiphon.pipeline.archive_format.reader import ArchiveBlobs, ArchiveTables, ParquetFiles, RowPosition
from antiphon.pipeline.archive_format.rows import FeedRow, span_of, span_row, without
from antiphon.pipeline.session.full_disk import full_disk_named
from antiphon.pipeline.session.tasks import Given, Result, in_workers
from antiphon.pipeline.session.worker_errors import raise_worker_errors
from antiphon.pipeline.source.home import feeds_folder, open_blobs, open_feeds
from antiphon.pipeline.source.ranges import Fault
from antiphon.snapshot.blob_store import BlobStore

TASK_BLOCKS = 200_000
BLOBS_AT_ONCE = 20_000  # blobs of one task
LOCK = "archive.lock"

Tell = Callable[[str], None]


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The data that an export has added, and what it could not read."""

    number: int
    feeds: int
    blocks: int
    blobs: int
    size: int  # bytes of files
    erased: int = 0  # bodies that were removed from earlier files
    faults: tuple[Fault, ...] = ()
    damaged: tuple[str, ...] = ()  # CIDs of damaged blobs


@dataclass(slots=True)
class _Written:
    """The result of one task."""

    files: list[ArchiveFile] = field(default_factory=list)
    rows: list[FeedRow] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    blocks: int = 0
    damaged: list[str] = field(default_factory=list)


def export_archive(
    spark: SparkSession | None, home: str | Path, folder: str | Path, *, tell: Tell = _silent, blocks: int = TASK_BLOCKS
) -> ExportReport:
    """Write all feeds and blobs of a home into an archive. An archive that exists gets the new ones.

    The export becomes visible when it is complete. A damaged feed is exported up to the damage, and reported. Without a
    session all work is done in this process, which must not have the home open.
    """
    if is_archive(home):
        raise InvalidInput(f"{home} is an archive already; copy it as it is")
    place, source = local_path(folder).absolute(), str(local_path(home).absolute())
    feeds_folder(source)
    kept = "the archive is as the last complete export left it"
    with full_disk_named(place, kept, spark), _locked(make_folder(place)):
        before = Manifest.read(place) if is_archive(place) else Manifest()
        if not before.number and any(path.name != LOCK for path in place.iterdir()):
            raise InvalidInput(f"{place} is neither empty nor an archive; name a folder of its own for the archive")
        _sweep(place, before.files())
        try:
            with raise_worker_errors():
                made, exported = _export(spark, source, place, before, tell, blocks)
            if made != before:
                made.write(place)
        except BaseException:
            _sweep(place, Manifest.read(place).files() if is_archive(place) else ())
            raise
        # Replaced files go at once, because they hold erased bodies. The old records stay for one more export: a reader
        # that has just opened the archive may be about to read them.
        _sweep(place, [*made.files(), *([before.records] if before.records else [])])
    return exported


def _each(spark: SparkSession | None, act: Callable[[Given], Result], given: Sequence[Given]) -> list[Result]:
    return list(map(act, given)) if spark is None else in_workers(spark, act, given)


def _export(
    spark: SparkSession | None, home: str, folder: Path, before: Manifest, tell: Tell, blocks: int
) -> tuple[Manifest, ExportReport]:
    number = before.number + 1
    tell("look for what is new")
    (plan,) = _each(spark, plan_export, [(home, str(folder), blocks)])
    tell("write blocks")
    done = _each(spark, _write_spans, [(home, str(folder), number, task) for task in plan.tasks])
    written, rows = _whole(plan, done)
    tell("write blobs")
    (news,) = _each(spark, _new_blobs, [(home, str(folder))])
    parts = [news[at : at + BLOBS_AT_ONCE] for at in range(0, len(news), BLOBS_AT_ONCE)]
    blobs = _each(spark, _write_blobs, [(home, str(folder), number, part) for part in parts])
    tell("take out what was erased")
    files = before.spans if plan.erased else ()
    rewritten = _each(spark, _rewrite, [(str(folder), number, file, plan.erased) for file in files])
    replaced = {one.file: one.files for one in rewritten if one.erased}
    for feed, seq in sorted(place for one in rewritten for place in one.erased):
        rows[feed] = replace(rows[feed], erased=tuple(sorted({*rows[feed].erased, seq})))
    records = before.records
    if before.records is None or rows != ArchiveTables(folder).rows:
        records = _write_records(folder, number, rows.values())
    spans = [new for file in before.spans for new in replaced.get(file, [file])]
    spans += [file for one in written for file in one.files]
    added = [file for one in blobs for file in one.files]
    made = replace(before, records=records, spans=tuple(spans), blobs=(*before.blobs, *added))
    made = replace(made, labels={**before.labels, **plan.labels})
    if made != before:
        made = replace(made, number=number)
    size = sum(file.bytes for file in set(made.files()) - set(before.files()))
    faults = dict.fromkeys([*plan.faults, *(fault for one in written for fault in one.faults)])
    damaged = tuple(cid for one in blobs for cid in one.damaged)
    counts = sum(one.blocks for one in written), sum(file.rows for file in added)
    erased = sum(len(one.erased) for one in rewritten)
    return made, ExportReport(made.number, len(rows), *counts, size, erased, tuple(faults), damaged)


def _whole(plan: ExportPlan, done: Sequence[_Written]) -> tuple[list[_Written], dict[bytes, FeedRow]]:
    """The results to keep, and the rows of all feeds. A part of a feed goes if the part before it is incomplete."""
    rows = dict(plan.kept)
    written = []
    for task, one in zip(plan.tasks, done, strict=True):
        feed = task[0].record.feed
        before = rows.get(feed)
        if task[0].follows and (before is None or before.record.length != task[0].start):
            continue
        written.append(one)
        for row in one.rows:
            known = () if not task[0].follows or before is None else before.erased
            rows[row.record.feed] = replace(row, erased=tuple(sorted({*known, *row.erased})))
    return written, rows


# -- in workers


def _write_spans(asked: tuple[str, str, int, tuple[NewBlocks, ...]]) -> _Written:
    home, folder, number, pieces = asked
    done = _Written()
    writing = RollingFileWriter(Path(folder), "spans", number, SPANS)
    with open_feeds(home) as store:
        for piece in pieces:
            last: Span | None = None
            erased: list[int] = []
            try:
                for span in joined(_upto(store, piece)):
                    writing.add(span_row(span), span.size)
                    done.blocks += span.count
                    erased += [span.first + at for at, state in enumerate(span.states) if state == BodyState.ERASED]
                    last = span
            except AntiphonError as error:
                at = piece.start if last is None else last.end
                seq = getattr(error, "seq", None)
                why = coded(Reason.DAMAGED, str(error))
                done.faults.append(Fault(piece.record.party, piece.record.feed, at if seq is None else seq, why))
            row = _row(store, piece, last)
            if row is not None:
                done.rows.append(replace(row, erased=(*row.erased, *erased)))
    done.files = writing.close()
    return done


def _upto(store: FeedReader, piece: NewBlocks) -> Iterator[Span]:
    """The spans of a piece. Blocks that a peer has written since are left to the next export."""
    for span in store.spans(piece.record.feed, piece.start):
        if span.first >= piece.stop:
            return
        # It may extend beyond the piece if the feed has grown: a span ends at its signed head.
        yield span.without_bodies() if piece.record.ignored else span


def _row(store: FeedReader, piece: NewBlocks, last: Span | None) -> FeedRow | None:
    """The row of a feed in the archive, up to the last span that was written."""
    if last is None:
        return None
    begins = piece.begins
    record = store.record(piece.record.feed)  # a fork may have been found meanwhile
    end = record.end if record.end <= last.end else NO_END
    made = replace(
        piece.record,
        writable=False,
        retired=False,
        ignored=False,
        start=begins.start,
        start_hash=begins.start_hash,
        start_lamport=begins.start_lamport,
        length=last.end,
        hash=last.hash_at(last.end - 1),
        lamport=int(last.columns["lamport"][-1]),
        signature=last.signature,
        end=end,
        why=record.why if end != NO_END else End.NONE,
    )
    known = () if piece.known is None else piece.known.erased
    fork = store.fork(made.feed) if made.why is not End.NONE else None
    branches = branches_of(store, record)
    return FeedRow(replace(made, branches=len(branches)), fork, known, branches)


def _new_blobs(asked: tuple[str, str]) -> list[bytes]:
    home, folder = asked
    with open_blobs(home) as blobs:
        found = list(blobs) if isinstance(blobs, BlobStore) else []
    known = ArchiveBlobs(folder) if is_archive(folder) and found else None
    return [bytes(cid) for cid in (found if known is None else known.missing(found))]


def _write_blobs(asked: tuple[str, str, int, list[bytes]]) -> _Written:
    home, folder, number, cids = asked
    done = _Written()
    writing = RollingFileWriter(Path(folder), "blobs", number, BLOBS)
    with open_blobs(home) as blobs:
        for cid in map(Cid, cids):
            try:
                data = blobs.get(cid)
            except DamagedBlob:
                done.damaged.append(str(cid))
                continue
            except MissingBlob:  # collected meanwhile
                continue
            writing.add({"cid": bytes(cid), "data": data}, len(data))
            done.blocks += 1
    done.files = writing.close()
    return done


@dataclass(slots=True)
class _Rewritten:
    """A file of spans, the files that replace it, and the bodies that were removed; none if the file stays."""

    file: ArchiveFile
    files: list[ArchiveFile] = field(default_factory=list)
    erased: list[tuple[bytes, int]] = field(default_factory=list)  # feed and seq


def _rewrite(asked: tuple[str, int, ArchiveFile, dict[bytes, list[int]]]) -> _Rewritten:
    """Write a file of spans again without erased bodies, if it holds any, also in spans that no record refers to."""
    folder, number, file, erased = asked
    done = _Rewritten(file)
    with closing(ParquetFiles(Path(folder), (file,), SPANS)) as files:
        columns = ["feed", "first", "count", "states"]
        hit = {place for place, row in files.keys(columns) if _bodies(dict(zip(columns, row, strict=True)), erased)}
    if not hit:
        return done
    writing = RollingFileWriter(Path(folder), "spans", number, SPANS)
    for group, rows in enumerate(read_row_groups(Path(folder), file, SPANS)):
        for at, row in enumerate(rows):
            kept = row
            if RowPosition(0, group, at) in hit:
                seqs = _bodies(row, erased)
                done.erased += [(row["feed"], seq) for seq in seqs]
                kept = span_row(without(span_of(row), seqs))
            writing.add(kept, len(kept["headers"]) + len(kept["advance"]) + len(kept["bodies"]))
    done.files = writing.close()
    return done


def _bodies(row: dict[str, Any], erased: dict[bytes, list[int]]) -> list[int]:
    """The seqs of erased blocks that a span does not yet mark as erased."""
    first, states = row["first"], row["states"]
    inside = (seq for seq in erased.get(row["feed"], ()) if first <= seq < first + row["count"])
    return [seq for seq in inside if states[seq - first : seq - first + 1] != bytes([BodyState.ERASED])]


def _write_records(folder: Path, number: int, rows: Iterable[FeedRow]) -> ArchiveFile:
    writing = FileWriter(folder, "records", number, RECORDS)
    for row in sorted(rows, key=lambda row: (row.record.party, row.record.feed)):
        writing.add(row.row(), 400 + len(row.fork or b"") + sum(map(len, row.branches)))
    return writing.close()


# -- the folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the archive against other exports. The kernel drops the lock when the process ends."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    except BlockingIOError:
        holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise StoreLocked(f"the archive {folder} is being written by process {holder}; wait for that one") from None
    finally:
        os.close(handle)


def _sweep(folder: Path, files: Iterable[ArchiveFile]) -> None:
    """Delete all files but these: leftovers of an unfinished export, and files that were replaced."""
    named = {file.name for file in files}
    leftovers = [*folder.glob("*-*-*.parquet"), *folder.glob(f"{MANIFEST}.*")]
    for path in leftovers:
        if path.name not in named:
            with suppress(FileNotFoundError):
                path.unlink()
