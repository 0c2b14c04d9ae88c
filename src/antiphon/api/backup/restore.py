"""`restore`: make a home of a backup. Its device writes into new feeds (rule 6), so nobody takes it for a liar.

>>> import antiphon
>>> with antiphon.open("laptop", name="Ada", unprotected=True) as store:
...     _ = store.create_party("Household")
>>> _ = antiphon.backup("laptop", "laptop-backup")
>>> report = restore("laptop-backup", "new-laptop")
>>> with antiphon.open("new-laptop") as store:
...     [party.name for party in store], report.retired
(['Household'], 2)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from antiphon.api.backup.manifest import BackupFile, Manifest, damaged_backup, open_file, read_manifest
from antiphon.api.health.feed_checks import Tick
from antiphon.api.health.home_files import BLOBS, FEEDS, KEYS, METADATA
from antiphon.core.errors import AntiphonError, DamagedStore, DiskFull
from antiphon.core.home_version import need_version
from antiphon.core.local_path import local_path
from antiphon.core.output_folder import output_folder, refuse_existing
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.private_files import make_file
from antiphon.halo.keys.key_file import decode_file
from antiphon.party.store.meta_store import MetaStore
from antiphon.snapshot.blob_store import BlobStore

_CHUNK_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A home that was made of a backup.

    `retired` is the number of feeds that the device wrote before, and does not write again. `wrong` is the number of
    findings that the home had when the backup was made: `antiphon verify` lists them.
    """

    home: Path
    created_ms: int  # when the backup was made
    parties: int
    feeds: int
    blocks: int
    blobs: int
    protection: str
    retired: int
    wrong: int


def restore(source: str | Path, home: str | Path, *, tick: Tick = lambda *_: None) -> RestoreReport:
    """Make a new home of a backup. Every file is compared with its checksum; if one differs, no home is made.

    `DamagedStore` names the file that differs. The home appears whole or not at all. After it, use the old home no
    more, if it is still there: both are the same device, which could then vote twice.
    """
    backup, target = local_path(source), local_path(home)
    manifest = read_manifest(backup)
    refuse_existing(target)
    with output_folder(target) as partial:
        for file in manifest.files:
            _copy(backup, file, partial, tick)
        need_version(backup)
        retired = _settle(backup, partial, manifest)
    counts = manifest.counts
    return RestoreReport(
        target,
        manifest.created_ms,
        counts.parties,
        counts.feeds,
        counts.blocks,
        counts.blobs,
        manifest.protection,
        retired,
        counts.wrong,
    )


def check_backup(source: str | Path, *, tick: Tick = lambda *_: None) -> Manifest:
    """Compare every file of a backup with its checksum, and write nothing. `DamagedStore` names one that differs.

    A backup of a newer version than this program knows is refused, as `restore` refuses it.
    """
    backup = local_path(source)
    manifest = read_manifest(backup)
    for file in manifest.files:
        _copy(backup, file, None, tick)
    need_version(backup)
    return manifest


def _copy(backup: Path, file: BackupFile, partial: Path | None, tick: Tick) -> None:
    """Read a file of a backup, write it into a folder, and compare its size and checksum."""
    path, digest, done = backup / file.name, sha256(), 0
    with open_file(path) as source:
        size = os.fstat(source.fileno()).st_size
        if size != file.size:
            raise damaged_backup(path, f"it has {size} bytes instead of {file.size}")
        target = None if partial is None else partial / file.name
        if target is not None:
            target.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.devnull if target is None else make_file(target), "wb") as writing:
            while data := _next(source, path):
                digest.update(data)
                writing.write(data)
                done += len(data)
                tick(file.name, done, file.size)
    if (done, digest.digest()) != (file.size, file.sha256):
        raise damaged_backup(path, "it has changed: its checksum is another")


def _next(source: BinaryIO, path: Path) -> bytes:
    try:
        return source.read(_CHUNK_SIZE)
    except OSError as error:
        raise damaged_backup(path, f"it cannot be read: {error.strerror}") from None


def _settle(backup: Path, partial: Path, manifest: Manifest) -> int:
    """Open all files once, and make sure that the device's own feeds are retired. Return how many."""
    try:
        if manifest.protection:
            decode_file((partial / KEYS).read_bytes(), str(backup / KEYS))
        with MetaStore.open(partial / METADATA), BlobStore.open(partial / BLOBS) as blobs:
            blobs.check_structure()
        with FeedStore.open(partial / FEEDS) as feeds:
            feeds.check_structure()
            own = [record for record in feeds.feeds() if record.writable]
            for record in own:
                if not record.retired:
                    feeds.retire(record.feed)
            return len(own)
    except DiskFull:
        raise
    except AntiphonError as error:
        raise DamagedStore(str(damaged_backup(backup, str(error))), file=str(backup)) from error
