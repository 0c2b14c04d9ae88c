"""Homes for tests of archives, their contents, and archives that were tampered with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.api.store import Store
from antiphon.feed.block import Block
from antiphon.feed.feed_record import End
from antiphon.pipeline.archive_format.manifest import BLOBS, PARQUET, RECORDS, SPANS, ArchiveFile, Manifest, digest_of
from antiphon.pipeline.fold.digest import states_digest
from antiphon.pipeline.source.home import open_feeds

Rows = list[dict[str, Any]]


def states(home: Path) -> dict[bytes, tuple[int, str, bytes]]:
    """Each party of a home, live: the epoch that it stands on, its snapshot, and a digest of all items."""
    found = {}
    with Store.open(home, unprotected=True) as store:
        for party in store:
            party.refresh()
            party.epochs.step()
            live = party.processor
            base = store.manager.epochs(party.key).base
            digest = states_digest((bytes(item), live.snapshot(item)) for item in live.items())
            found[bytes(party.key)] = (party.epochs.number, "" if base is None else str(base.cid), digest)
    return found


def blocks(home: Path) -> dict[bytes, list[Block]]:
    """Every block that a home or an archive holds, also those past the end of a feed."""
    with open_feeds(home) as store:
        return {
            record.feed: [block for span in store.spans(record.feed) for block in span.blocks(0, span.count)]
            for record in store.feeds()
            if record.length > record.start
        }


def ends(home: Path) -> dict[bytes, tuple[int, int, int, End, bool]]:
    """What is held of each feed, where it ends and why, and whether there is evidence of a fork."""
    with open_feeds(home) as store:
        return {
            record.feed: (record.start, record.length, record.end, record.why, store.fork(record.feed) is not None)
            for record in store.feeds()
            if record.length
        }


def branches(home: Path) -> dict[bytes, list[bytes]]:
    """The spans that are kept of other branches of each feed."""
    with open_feeds(home) as store:
        return {record.feed: sorted(span.encode() for span in store.branches(record.feed)) for record in store.feeds()}


def tamper(folder: Path, kind: str, change: Callable[[Rows], Rows | None]) -> None:
    """Change the rows of all files of a kind, as one would who also puts the digests right."""
    schema = {"records": RECORDS, "spans": SPANS, "blobs": BLOBS}[kind]
    manifest = Manifest.read(folder)
    files = [file for file in manifest.files() if file.name.startswith(kind)]
    for file in files:
        rows = pq.read_table(folder / file.name).to_pylist()
        changed = change(rows)
        table = pa.Table.from_pylist(rows if changed is None else changed, schema=schema)
        pq.write_table(table, folder / file.name, **PARQUET)
    redigest(folder)


def redigest(folder: Path) -> None:
    """Let the manifest name the files as they are now."""
    manifest = Manifest.read(folder)

    def now(file: ArchiveFile) -> ArchiveFile:
        path = folder / file.name
        return replace(file, bytes=path.stat().st_size, sha256=digest_of(path))

    records = None if manifest.records is None else now(manifest.records)
    spans, blobs = tuple(map(now, manifest.spans)), tuple(map(now, manifest.blobs))
    replace(manifest, records=records, spans=spans, blobs=blobs).write(folder)
