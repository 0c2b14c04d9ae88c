"""Export a party into one CAR file: its feeds, the snapshot of its last epoch, and the contents of its files.

The file is written in one pass while the party runs, so its root is the last blob; the header names it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import BadEncoding, DamagedBlob, MissingBlob, MissingBlocks, MovedOn
from antiphon.core.output_file import output_file
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import Kind, decode_entries
from antiphon.feed.limits import SPAN_BLOCKS_MAX, SPAN_HEADERS_SIZE_MAX
from antiphon.feed.span import Span
from antiphon.feed.store.ingest import branch_part
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.party.bundle.nodes import BundleFeed, BundleRoot, encode_page, lists, pages
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.maintenance.referenced_blobs import contents
from antiphon.snapshot import content, tree
from antiphon.snapshot.blobs import BlobBatch, Blobs, MemoryBlobs
from antiphon.snapshot.car import encode_header, encode_section
from antiphon.snapshot.chunks import FILE_CHUNKS, cut

SPAN_BLOB_SIZE_MAX = 1 << 20  # a larger span is content
ATTEMPTS_MAX = 5
Tick = Callable[[str, int], None]  # called repeatedly with the name of the work, and how many bytes are done so far
_NOTHING = Cid.of(b"", DAG_CBOR)  # in the header, until the root is known


def no_tick(what: str, done: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """Counts of what `export_party` wrote."""

    root: Cid
    number: int  # of the epoch whose snapshot is in it; 0: none
    feeds: int
    blocks: int
    blobs: int
    size: int
    files: int
    left_out: int  # files whose contents are not whole here


def export_party(
    party: PartyProcessor,
    machine: PartyMachine,
    path: str | Path,
    *,
    whole: bool = False,
    files: bool = True,
    tick: Tick = no_tick,
) -> ExportReport:
    """Write a party into a file: control feeds, the last epoch's snapshot, and the messages since.

    With `whole`, also the messages before that epoch, of feeds that are held from their beginning. With `files`, also
    the contents of files that are whole here.
    """
    for _ in range(ATTEMPTS_MAX):
        with suppress(MovedOn), output_file(Path(path), replace=True) as stream:
            return _Export(party, machine, stream, tick).run(whole=whole, files=files)
    raise MovedOn(f"party {party.key.short}: it was cut or pruned again and again meanwhile; try again")


class _FeedExport:
    """A feed that is being exported: the range written so far, and the links to its spans."""

    def __init__(self, feed: bytes, control: bool, first: int, ignored: bool = False) -> None:
        self.feed = feed
        self.control = control
        self.ignored = ignored  # its bodies are not here: it is given as a branch, and others fetch its history
        self.first = self.end = first
        self.links: list[Cid] = []


class _Export:
    def __init__(self, party: PartyProcessor, machine: PartyMachine, stream: BinaryIO, tick: Tick) -> None:
        self._party = party
        self._machine = machine
        self._stream = stream
        self._tick = tick
        self._written: set[Cid] = set()
        self._size = 0
        self._blocks = 0
        self._left_out = 0
        self._files: list[Cid] = []
        self._seen: dict[bytes, int] = {}  # feed → the last block that a message in the file refers to

    def run(self, *, whole: bool, files: bool) -> ExportReport:
        epoch, control, data = self._now()
        self._write(encode_header([_NOTHING]))
        base = None if epoch is None else self._snapshot(epoch)
        read = [self._data(record, base, whole) for record in data]
        while sum(map(self._extend, read)):
            pass
        if files:
            self._take_files()
        # Control feeds are read last, so that they have every block that the data refers to.
        read += [self._read(_FeedExport(bytes(record.feed), True, 0)) for record in control]
        feeds = [self._feed(one) for one in read]
        if self._now()[0] != epoch:
            raise MovedOn("an epoch became final")
        genesis = bytes(self._machine.genesis_feed)
        named = tuple(self._add(found, DAG_CBOR) for found in lists(self._files))
        first, *rest = pages(sorted(feeds, key=lambda feed: feed.order))
        more = tuple(self._add(encode_page(page), DAG_CBOR) for page in rest)
        root = BundleRoot(bytes(self._party.key), genesis, None if base is None else base.cid, first, named, more)
        cid = self._add(root.encode(), DAG_CBOR)
        self._stream.seek(0)
        self._stream.write(encode_header([cid]))
        number = 0 if base is None else base.number
        count = len(self._written)
        return ExportReport(cid, number, len(feeds), self._blocks, count, self._size, len(self._files), self._left_out)

    def _now(self) -> tuple[FinalEpoch | None, list[FeedRecord], list[FeedRecord]]:
        """Return the last final epoch, and the records of the party's control and data feeds."""
        with self._party.locked() as engine:
            engine.authority.look()
            records = self._party.store.feeds(self._party.key)
            admitted = set(self._machine.data_feeds())
            control = [record for record in records if self._is_control(record, admitted)]
            known = {record.feed for record in control}
            data = [record for record in records if record.feed in admitted and record.feed not in known]
            return self._machine.epochs().last, control, data

    def _is_control(self, record: FeedRecord, admitted: Container[bytes]) -> bool:
        """True for a feed whose blocks are of control. If only branches are here, it is one unless it was admitted."""
        if not self._machine.is_control(record.feed):
            return False
        if not record.length:
            return record.feed not in admitted
        return self._party.store.first_kind(record.feed) is Kind.CREDENTIAL

    def _snapshot(self, epoch: FinalEpoch) -> EpochBase:
        cid, blobs = Cid(epoch.snapshot), self._party.blobs
        lacking = list(tree.missing(cid, blobs))
        if lacking:
            raise MissingBlob(
                f"party {self._party.key.short}: {len(lacking)} blobs of the snapshot of epoch {epoch.number}, "
                f"{lacking[0]} among them, are not here; fetch them first",
                cid=lacking[0],
            )
        self._take(tree.walk(cid, blobs), blobs)
        return EpochBase.load(cid, blobs, party=self._party.key, number=epoch.number)

    # -- feeds

    def _data(self, record: FeedRecord, base: EpochBase | None, whole: bool) -> _FeedExport:
        """Read a data feed from the cut on, or all of it with `whole`, if it is held from its beginning."""
        first = 0 if base is None or (whole and not record.start) else base.length(record.feed)
        found = _FeedExport(bytes(record.feed), False, first, record.ignored)
        if record.ignored:
            return found
        # If a feed was forked before the cut, the blocks here may be of another branch than the snapshot's.
        return found if first and record.valid_length <= first else self._read(found)

    def _extend(self, one: _FeedExport) -> bool:
        """Read more of a feed if a feed that was read later refers to more of it. True if there was more.

        Writers run meanwhile. So no message in the file refers to a block that was here and is not in the file.
        """
        here = one.end if one.ignored else self._party.store.bounds(one.feed).length
        if self._seen.get(one.feed, -1) < one.end or here <= one.end:
            return False
        self._read(one, self._seen[one.feed])
        return True

    def _read(self, one: _FeedExport, upto: int | None = None) -> _FeedExport:
        """Write the next blocks of a feed, to its end, or up to block `upto`."""
        store = self._party.store
        try:
            if store.bounds(one.feed).length > one.end:
                for span in joined(store.spans(one.feed, one.end)):
                    one.links.append(self._span(span))
                    one.end = span.end
                    self._blocks += span.count
                    self._note(span)
                    if upto is not None and one.end > upto:
                        break
        except MissingBlocks:
            raise MovedOn(f"feed {one.feed.hex()[:8]} was pruned") from None
        return one

    def _note(self, span: Span) -> None:
        offsets = span.advance_offsets
        for index in np.flatnonzero(span.columns["advance"]).tolist():
            for entry in decode_entries(span.advance[offsets[index] : offsets[index + 1]]):
                self._seen[entry.feed] = max(entry.seq, self._seen.get(entry.feed, 0))

    def _feed(self, one: _FeedExport) -> BundleFeed:
        named = tuple(self._add(found, DAG_CBOR) for found in lists(one.links))
        others = tuple(self._add(found, DAG_CBOR) for found in lists([self._span(span) for span in self._other(one)]))
        return BundleFeed(one.feed, one.control, one.first, one.end, named, others)

    def _other(self, one: _FeedExport) -> Iterator[Span]:
        """Yield the spans of other branches, and the blocks that others may need and are not in the file as history."""
        store = self._party.store
        yield from store.branches(one.feed)
        record = store.record(one.feed)
        start = max(record.start, one.end, 0 if one.ignored else record.valid_length)
        if (one.first or one.ignored) and start < record.length:
            yield from (branch_part(span) for span in store.spans(one.feed, start))

    def _span(self, span: Span) -> Cid:
        """Write a span as one blob in wire format. A span above 1 MiB is cut into chunks, like content."""
        data = span.encode()
        if len(data) <= SPAN_BLOB_SIZE_MAX:
            return self._add(data, RAW)
        parts = MemoryBlobs()
        batch = BlobBatch(parts)
        cid = content.add(cut(data, FILE_CHUNKS), batch)
        batch.flush()
        self._take(parts, parts)
        return cid

    # -- files

    def _take_files(self) -> None:
        blobs = self._party.blobs
        found = dict.fromkeys(contents(self._party))
        for cid in found:
            try:
                if next(tree.missing(cid, blobs), None) is None:
                    content.size_of(cid, blobs)
                    self._take(tree.walk(cid, blobs), blobs)
                    self._files.append(cid)
                    continue
            except (BadEncoding, DamagedBlob):  # a peer named a blob that is no content
                pass
            self._left_out += 1

    # -- writing

    def _take(self, cids: Iterator[Cid] | MemoryBlobs, blobs: Blobs) -> None:
        for cid in cids:
            if cid not in self._written:
                self._section(cid, blobs.get(cid))

    def _add(self, data: bytes, codec: int) -> Cid:
        cid = Cid.of(data, codec)
        if cid not in self._written:
            self._section(cid, data)
        return cid

    def _section(self, cid: Cid, data: bytes) -> None:
        self._written.add(cid)
        self._write(encode_section(cid, data))
        self._tick("written", self._size)

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._size += len(data)


def joined(spans: Iterator[Span]) -> Iterator[Span]:
    """Join neighbouring spans while the result stays within the limits of one blob."""
    last: Span | None = None
    for span in spans:
        if last is not None and _fit(last, span):
            last = last.joined(span)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def _fit(one: Span, other: Span) -> bool:
    headers = len(one.headers) + len(one.advance) + len(other.headers) + len(other.advance)
    return (
        one.count + other.count <= SPAN_BLOCKS_MAX
        and headers <= SPAN_HEADERS_SIZE_MAX
        and one.whole_size + other.whole_size <= SPAN_BLOB_SIZE_MAX - 4096
    )


__all__ = ["ExportReport", "export_party"]
