"""Archives: a home's feeds and blobs as Parquet, from which it can be rebuilt. Exporting again adds what is new.

    export_archive(spark, "laptop", "archive")
    spark.read.format("antiphon").load("archive")

Executors write files beside each other; the program that asks writes `archive.json` last. What that does not name does
not count, and goes with the next export. The format is in `archiveformat`, reading in `archivereader`, the way back in
`archiveimport`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, DamagedBlob, InvalidInput, MissingBlob, StoreLocked
from antiphon.feed.block import BodyState
from antiphon.feed.reader import FeedReader
from antiphon.feed.record import OPEN_END, End, Record
from antiphon.feed.span import Span
from antiphon.halo.machine import PartyMachine
from antiphon.party.authority import PartyAuthority
from antiphon.party.bundle import joined
from antiphon.party.manager import find_genesis
from antiphon.party.meta import MetaStore, SubscriptionState
from antiphon.pipeline.archiveformat import BLOBS, MANIFEST, RECORDS, SPANS, File, Manifest, Writing, groups, is_archive
from antiphon.pipeline.archivereader import ArchiveBlobs, ArchiveTables
from antiphon.pipeline.archiverows import FeedRow, span_of, span_row, without
from antiphon.pipeline.failures import workers_told
from antiphon.pipeline.home import feeds_folder, open_blobs, open_feeds
from antiphon.pipeline.ranges import Fault
from antiphon.pipeline.survey import Given, Result, in_workers
from antiphon.snapshot.blobstore import BlobStore

TASK_BLOCKS = 200_000
BLOBS_AT_ONCE = 20_000  # in one file
LOCK = "archive.lock"

Tell = Callable[[str], None]


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export has added, and what it could not read."""

    number: int
    feeds: int
    blocks: int
    blobs: int
    size: int  # bytes of files
    erased: int = 0  # bodies that were taken out of earlier files
    faults: tuple[Fault, ...] = ()
    damaged: tuple[str, ...] = ()  # blobs


class Piece(NamedTuple):
    """Blocks of a feed that an archive does not have: from `start` to `stop`, which are those of one moment."""

    record: Record
    start: int
    stop: int
    known: FeedRow | None  # as the archive has it


@dataclass(slots=True)
class _Written:
    """What a task has written."""

    file: File | None = None
    rows: list[FeedRow] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    blocks: int = 0
    damaged: list[str] = field(default_factory=list)


def export_archive(
    spark: SparkSession | None, home: str | Path, folder: str | Path, *, tell: Tell = _silent, blocks: int = TASK_BLOCKS
) -> Exported:
    """Write all feeds and blobs of a home into an archive; into one that is there, what is new.

    Nobody sees it before it is whole. A feed that is damaged is taken as far as it can be read, and named. Without a
    session everything is done in this process, which must not have the home open.
    """
    if is_archive(home):
        raise InvalidInput(f"{home} is an archive already; copy it as it is")
    place = Path(folder).expanduser().absolute()
    source = str(Path(home).expanduser().absolute())
    feeds_folder(source)
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place):
        before = Manifest.read(place) if is_archive(place) else Manifest()
        if not before.number and any(path.name != LOCK for path in place.iterdir()):
            raise InvalidInput(f"{place} is neither empty nor an archive; name a folder of its own for the archive")
        _sweep(place, before)
        try:
            with workers_told():
                made, exported = _export(spark, source, place, before, tell, blocks)
            if made != before:
                made.write(place)
        except BaseException:
            _sweep(place, Manifest.read(place) if is_archive(place) else Manifest())
            raise
    return exported


def _each(spark: SparkSession | None, act: Callable[[Given], Result], given: Sequence[Given]) -> list[Result]:
    return list(map(act, given)) if spark is None else in_workers(spark, act, given)


def _export(
    spark: SparkSession | None, home: str, folder: Path, before: Manifest, tell: Tell, blocks: int
) -> tuple[Manifest, Exported]:
    number = before.number + 1
    tell("look for what is new")
    ((pieces, kept, labels, erased),) = _each(spark, _plan, [(home, str(folder))])
    tell("write blocks")
    tasks = [(home, str(folder), number, task) for task in _divided(pieces, blocks)]
    written = _each(spark, _write_spans, tasks)
    tell("write blobs")
    (news,) = _each(spark, _new_blobs, [(home, str(folder))])
    parts = [news[at : at + BLOBS_AT_ONCE] for at in range(0, len(news), BLOBS_AT_ONCE)]
    blobs = _each(spark, _write_blobs, [(home, str(folder), number, part) for part in parts])
    tell("take out what was erased")
    rewritten = _each(spark, _rewrite, _to_erase(folder, before, number, erased))
    replaced = {old: new for pairs in rewritten for old, new in pairs}
    rows = {row.record.feed: row for one in written for row in one.rows}
    rows = {row.record.feed: row for row in kept} | rows
    for feed, seqs in erased.items():
        rows[feed] = replace(rows[feed], erased=tuple(sorted({*rows[feed].erased, *seqs})))
    records = before.records
    if before.records is None or rows != ArchiveTables(folder).rows:
        records = _write_records(folder, number, rows.values())
    spans = [replaced.get(file, file) for file in before.spans] + [one.file for one in written if one.file]
    added = [one.file for one in blobs if one.file]
    made = replace(before, records=records, spans=tuple(spans), blobs=(*before.blobs, *added))
    made = replace(made, labels={**before.labels, **labels})
    if made != before:
        made = replace(made, number=number)
    size = sum(file.bytes for file in set(made.files()) - set(before.files()))
    faults = tuple(fault for one in written for fault in one.faults)
    damaged = tuple(cid for one in blobs for cid in one.damaged)
    counts = sum(one.blocks for one in written), sum(file.rows for file in added)
    return made, Exported(made.number, len(rows), *counts, size, sum(map(len, erased.values())), faults, damaged)


# -- what is new


def _plan(
    asked: tuple[str, str],
) -> tuple[list[Piece], list[FeedRow], dict[str, str], dict[bytes, list[int]]]:
    """What to write, the feeds that stay as they are, the labels of parties, and what was erased since."""
    home, folder = asked
    known = ArchiveTables(Path(folder)).rows if is_archive(folder) else {}
    pieces, kept = [], dict(known)
    with open_feeds(home) as store:
        for record in store.feeds():
            piece = _piece(store, record, known.get(record.feed))
            if piece is not None:
                pieces.append(piece)
            elif record.feed in known:
                kept[record.feed] = _newer(known[record.feed], record, store.fork(record.feed))
            elif record.length:  # all of it is pruned
                kept[record.feed] = FeedRow(replace(record, writable=False, retired=False), store.fork(record.feed))
        erased = _erased(store, known)
    return pieces, list(kept.values()), _labels(home), erased


def _piece(store: FeedReader, record: Record, known: FeedRow | None) -> Piece | None:
    held = Record(record.feed, record.party) if known is None else known.record
    where = f"feed {record.feed.hex()[:8]}"
    if held.party != record.party:
        raise InvalidInput(f"{where}: the archive has it in another party; export into a new folder")
    if record.length < held.length:
        raise InvalidInput(
            f"{where}: the archive has {held.length} blocks of it and the home {record.length}: an older home was "
            "restored; export into a new folder"
        )
    if not held.length or held.length < record.start:  # what was pruned meanwhile is in a snapshot
        return Piece(record, record.start, record.length, None) if record.length > record.start else None
    if held.length > record.start:
        (last,) = store.held(record.feed, held.length - 1, held.length)
        theirs = last.hash_at(held.length - 1)
    else:
        theirs = record.start_hash
    if theirs != held.hash:
        raise InvalidInput(f"{where}: the archive has another history of it; export into a new folder")
    return Piece(record, held.length, record.length, known) if record.length > held.length else None


def _newer(known: FeedRow, record: Record, fork: bytes | None) -> FeedRow:
    """The same blocks, with what came to light about the feed."""
    return replace(known, record=replace(known.record, end=record.end, why=record.why), fork=fork)


def _erased(store: FeedReader, known: dict[bytes, FeedRow]) -> dict[bytes, list[int]]:
    """Which bodies the home has erased, as its parties asked, and the archive has not."""
    found: dict[bytes, list[int]] = {}
    for party in {row.record.party for row in known.values()}:
        genesis = find_genesis(store, party)
        if genesis is None:
            continue
        authority = PartyAuthority(store, PartyMachine(party, genesis))
        authority.refresh()
        for record in store.feeds(party):
            row = known.get(record.feed)
            if row is None:
                continue
            stop = min(record.valid_length, row.record.length)
            seqs = [
                seq
                for seq in sorted(authority.erased(record.feed).difference(row.erased))
                if record.start <= seq < stop and store.block(record.feed, seq).state is not BodyState.PRESENT
            ]
            if seqs:
                found[record.feed] = seqs
    return found


def _labels(home: str) -> dict[str, str]:
    """The parties that the home follows, and what they are called there."""
    path = feeds_folder(home).with_name("meta.db")
    if not path.is_file():
        return {}
    with MetaStore.open(path) as meta:
        parties = [row for row in meta.parties() if row.state is not SubscriptionState.FORGOTTEN]
        return {row.party.hex(): row.label for row in parties}


def _divided(pieces: Sequence[Piece], size: int) -> list[tuple[Piece, ...]]:
    """Tasks of about so many blocks, by party and feed, so that rows which are read together lie together."""
    tasks: list[tuple[Piece, ...]] = []
    some: list[Piece] = []
    held = 0
    for piece in sorted(pieces, key=lambda piece: (piece.record.party, piece.record.feed)):
        some.append(piece)
        held += piece.stop - piece.start
        if held >= size:
            tasks.append(tuple(some))
            some, held = [], 0
    return [*tasks, tuple(some)] if some else tasks


# -- in workers


def _write_spans(asked: tuple[str, str, int, tuple[Piece, ...]]) -> _Written:
    home, folder, number, pieces = asked
    done = _Written()
    writing = Writing(Path(folder), "spans", number, SPANS)
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
                done.faults.append(Fault(piece.record.party, piece.record.feed, at if seq is None else seq, str(error)))
            row = _row(store, piece, last)
            if row is not None:
                done.rows.append(replace(row, erased=(*row.erased, *erased)))
    if done.blocks:
        done.file = writing.close()
    else:
        writing.drop()
    return done


def _upto(store: FeedReader, piece: Piece) -> Iterator[Span]:
    """The ranges of a piece, each under a head; what a peer has written since stays for the next export."""
    for span in store.spans(piece.record.feed, piece.start):
        if span.first >= piece.stop:
            return
        yield span  # it may reach further, if it grew meanwhile: a range ends at its head


def _row(store: FeedReader, piece: Piece, last: Span | None) -> FeedRow | None:
    """The record of a feed in the archive, as far as it was written."""
    if last is None:
        return piece.known
    begins = piece.record if piece.known is None else piece.known.record
    record = store.record(piece.record.feed)  # a fork may have come to light
    end = record.end if record.end <= last.end else OPEN_END
    made = replace(
        piece.record,
        writable=False,
        retired=False,
        start=begins.start,
        start_hash=begins.start_hash,
        start_lamport=begins.start_lamport,
        length=last.end,
        hash=last.hash_at(last.end - 1),
        lamport=int(last.columns["lamport"][-1]),
        signature=last.signature,
        end=end,
        why=record.why if end != OPEN_END else End.NONE,
    )
    known = () if piece.known is None else piece.known.erased
    return FeedRow(made, store.fork(made.feed) if made.why is not End.NONE else None, known)


def _new_blobs(asked: tuple[str, str]) -> list[bytes]:
    home, folder = asked
    with open_blobs(home) as blobs:
        found = list(blobs) if isinstance(blobs, BlobStore) else []
    known = ArchiveBlobs(folder) if is_archive(folder) and found else None
    return [bytes(cid) for cid in (found if known is None else known.missing(found))]


def _write_blobs(asked: tuple[str, str, int, list[bytes]]) -> _Written:
    home, folder, number, cids = asked
    done = _Written()
    writing = Writing(Path(folder), "blobs", number, BLOBS)
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
    if done.blocks:
        done.file = writing.close()
    else:
        writing.drop()
    return done


def _to_erase(
    folder: Path, before: Manifest, number: int, erased: dict[bytes, list[int]]
) -> list[tuple[str, int, File, dict[bytes, list[int]]]]:
    return [(str(folder), number, file, erased) for file in before.spans] if erased else []


def _rewrite(asked: tuple[str, int, File, dict[bytes, list[int]]]) -> list[tuple[File, File]]:
    """A file of ranges without some bodies: itself and the new one, if it has any of them."""
    folder, number, file, erased = asked
    place = Path(folder)
    rows = [row for group in groups(place, file, SPANS) for row in group]
    hit: dict[int, Span] = {}
    for at, row in enumerate(rows):
        seqs = [seq for seq in erased.get(row["feed"], ()) if row["first"] <= seq < row["first"] + row["count"]]
        if seqs:
            hit[at] = without(span_of(row), seqs)
    if not hit:
        return []
    writing = Writing(place, "spans", number, SPANS)
    for at, row in enumerate(rows):
        kept = row if at not in hit else span_row(hit[at])
        writing.add(kept, len(kept["headers"]) + len(kept["bodies"]))
    return [(file, writing.close())]


def _write_records(folder: Path, number: int, rows: Iterable[FeedRow]) -> File:
    writing = Writing(folder, "records", number, RECORDS)
    for row in sorted(rows, key=lambda row: (row.record.party, row.record.feed)):
        writing.add(row.row(), 400 + len(row.fork or b""))
    return writing.close()


# -- the folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One export at a time; the kernel drops the lock with the process."""
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


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Let go of files that an export has left which was not finished, or that were replaced."""
    named = {file.name for file in manifest.files()}
    leftovers = [*folder.glob("*-*-*.parquet"), *folder.glob(f"{MANIFEST}.*")]
    for path in leftovers:
        if path.name not in named:
            with suppress(FileNotFoundError):
                path.unlink()
