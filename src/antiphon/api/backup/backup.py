"""`backup`: copy a home into a new folder while it is in use.

>>> import antiphon
>>> with antiphon.open("laptop", name="Ada", unprotected=True) as store:
...     _ = store.create_party("Household")
>>> report = backup("laptop", "laptop-backup")
>>> report.parties, report.feeds, report.protection, report.wrong
(1, 2, 'UNPROTECTED', ())

The copy is of one moment: the feeds and the blobs are frozen while no blob changes, so that every blob to which a block
refers is there. Keys and metadata are copied after the feeds: a key is stored before its feed begins, and a party is
followed before its blocks arrive. Item stores are derived, and left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from antiphon.api.backup.manifest import (
    BLOBS_FILE,
    FEEDS_FILE,
    FILES,
    BackupFile,
    Counts,
    Manifest,
    encode_manifest,
)
from antiphon.api.health.check import check_home
from antiphon.api.health.feed_checks import Tick
from antiphon.api.health.finding import Finding
from antiphon.api.health.home_files import BACKUP, BLOBS, FEEDS, KEYS, METADATA, NAMES, VIEWS
from antiphon.api.health.presence import need_files, refuse_backup
from antiphon.api.json_file import FILE_SIZE_MAX as JSON_SIZE_MAX
from antiphon.core.errors import CorruptBlock, DamagedStore, InvalidInput, StoreError
from antiphon.core.home_version import VERSION_FILE, need_version
from antiphon.core.local_path import HOME_PARTS, local_path
from antiphon.core.output_folder import output_folder, refuse_existing
from antiphon.core.ports import Clock, SystemClock
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.map_file import FrozenMap
from antiphon.feed.store.private_files import make_file
from antiphon.halo.keys.key_file import FILE_SIZE_MAX as KEYS_SIZE_MAX, decode_file
from antiphon.party.store.meta_store import MetaStore
from antiphon.snapshot.blob_store import BlobStore

_ATTEMPTS_MAX = 1000  # to find a moment in which no blob changes; a write takes far longer than an attempt
_CHUNK_SIZE = 1 << 20
_TEMPORARY = ("-wal", "-shm", ".lock", ".partial")  # ends of names of files that a program has while it runs


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was made.

    `protection` says how the private keys in it are kept ("" if the home has none), `left_out` which files and folders
    of the home are not in it. `wrong` are the findings of a check of the copy: the home has the same faults.
    """

    path: Path
    parties: int
    feeds: int
    blocks: int
    blobs: int
    size: int
    protection: str
    left_out: tuple[str, ...]
    wrong: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class OpenHome:
    """A home whose stores are open, in this process, to read or to write."""

    path: Path
    feeds: FeedStore
    blobs: BlobStore
    meta: MetaStore


def backup(
    home: str | Path, to: str | Path, *, tick: Tick = lambda *_: None, clock: Clock | None = None
) -> BackupReport:
    """Copy a home into a new folder. Another process may write it meanwhile; in this process, use `Store.backup`.

    The folder appears whole or not at all. The private keys are in it, protected as they are in the home. `tick` is
    called with the current step, how much of it is done, and how much it is.
    """
    folder, to = local_path(home), local_path(to)
    if not any((folder / name).exists() for name in HOME_PARTS):
        raise InvalidInput(f"there is no home in {folder}; name the peer's folder")
    refuse_backup(folder)
    need_version(folder)
    need_files(folder)
    with (
        FeedStore.open(folder / FEEDS, readonly=True) as feeds,
        BlobStore.open(folder / BLOBS, readonly=True) as blobs,
        MetaStore.open(folder / METADATA) as meta,
    ):
        return copy_home(OpenHome(folder, feeds, blobs, meta), to, tick=tick, clock=clock)


def copy_home(
    home: OpenHome, to: str | Path, *, tick: Tick = lambda *_: None, clock: Clock | None = None
) -> BackupReport:
    """Copy a home whose stores are open; see `backup`."""
    target = local_path(to)
    refuse_existing(target)
    _refuse_inside(home.path, target)
    home.feeds.check_structure()  # LMDB would end the process while it copies a damaged tree
    home.blobs.check_structure()
    with output_folder(target) as partial:
        protection = _copy_files(home, partial, tick)
        parties, blobs = _settle(home, partial)
        report = check_home(partial, tick=tick)
        wrong = report.wrong
        _drop_others(partial)
        files = tuple(_listed(partial, name, tick) for name in FILES if (partial / name).exists())
        counts = Counts(parties, report.feeds, report.blocks, blobs, len(wrong))
        manifest = Manifest((clock or SystemClock()).now_ms(), protection, counts, files)
        make_file(partial / BACKUP).write_bytes(encode_manifest(manifest))
    return BackupReport(
        target, parties, report.feeds, report.blocks, blobs, manifest.size, protection, _left_out(home.path), wrong
    )


def _copy_files(home: OpenHome, partial: Path, tick: Tick) -> str:
    """Copy all files of a home. Return how its keys are protected."""
    for folder in (FEEDS, BLOBS):
        (partial / folder).mkdir(mode=0o700)
    with _one_moment(home) as (feeds, blobs, small):
        feeds.copy(partial / FEEDS_FILE, _told(tick, "copy feeds"))
        blobs.copy(partial / BLOBS_FILE, _told(tick, "copy blobs"))
    keys = _read(home.path / KEYS, KEYS_SIZE_MAX)
    home.meta.copy(partial / METADATA)
    small |= {KEYS: keys, NAMES: _read(home.path / NAMES, JSON_SIZE_MAX)}
    if small[VERSION_FILE] != _version(home):
        raise StoreError(f"the home {home.path} was upgraded while it was copied. No backup was made; try again")
    for name, data in small.items():
        if data is not None:
            make_file(partial / name).write_bytes(data)
    return "" if keys is None else decode_file(keys, str(home.path / KEYS)).header.protection.value


@contextmanager
def _one_moment(home: OpenHome) -> Iterator[tuple[FrozenMap, FrozenMap, dict[str, bytes | None]]]:
    """Freeze feeds and blobs, and read the held views and the version, such that none changes in between.

    A collection of garbage in between would delete blobs to which the frozen feeds refer.
    """
    for _ in range(_ATTEMPTS_MAX):
        with ExitStack() as held:
            number, before = home.blobs.transaction, (_views(home), _version(home))
            feeds = held.enter_context(home.feeds.frozen())
            blobs = held.enter_context(home.blobs.frozen())
            if (blobs.number, (_views(home), _version(home))) == (number, before):
                yield feeds, blobs, {VIEWS: before[0], VERSION_FILE: before[1]}
                return
    raise StoreError(
        f"the home {home.path} changes so quickly that no moment was found to copy it. No backup was made; try again"
    )


def _views(home: OpenHome) -> bytes | None:
    return _read(home.path / VIEWS, JSON_SIZE_MAX)


def _version(home: OpenHome) -> bytes | None:
    return _read(home.path / VERSION_FILE, JSON_SIZE_MAX)


def _read(path: Path, size_max: int) -> bytes | None:
    """Return the content of a small file, which its writers replace as a whole; None if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(size_max + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. No backup was made") from error
    if len(data) > size_max:
        raise DamagedStore(f"{path}: larger than {size_max} bytes. No backup was made; repair it", file=str(path))
    return data


def _settle(home: OpenHome, partial: Path) -> tuple[int, int]:
    """Retire the device's own feeds in the copy (rule 6). Return how many parties and blobs the copy has.

    So it does not matter how the copy becomes a home: a program that opens it writes into new feeds.
    """
    with FeedStore.open(partial / FEEDS, durable=False) as feeds:
        try:
            records = feeds.feeds()
        except CorruptBlock as error:
            raise DamagedStore(
                f"{home.path / FEEDS_FILE}: {error}. No backup was made; `antiphon doctor --repair` drops what is "
                "rotten",
                file=str(home.path / FEEDS_FILE),
            ) from error
        for record in records:
            if record.writable and not record.retired:
                feeds.retire(record.feed)
    with MetaStore.open(partial / METADATA) as meta, BlobStore.open(partial / BLOBS, readonly=True) as blobs:
        return len(meta.parties()), blobs.count


def _listed(partial: Path, name: str, tick: Tick) -> BackupFile:
    """Return the size and the checksum of a file."""
    digest, size, told = sha256(), (partial / name).stat().st_size, _told(tick, "checksums")
    done = 0
    with (partial / name).open("rb") as file:
        while data := file.read(_CHUNK_SIZE):
            digest.update(data)
            done += len(data)
            told(done, size)
    return BackupFile(name, done, digest.digest())


def _drop_others(partial: Path) -> None:
    """Delete the lock files that the check made."""
    for folder, _, names in os.walk(partial):
        for path in [Path(folder, name) for name in names]:
            if path.relative_to(partial).as_posix() not in FILES:
                path.unlink()


def _left_out(home: Path) -> tuple[str, ...]:
    """Return the names of the files and folders of a home that a backup does not have."""
    copied = {name.partition("/")[0] for name in FILES}
    return tuple(
        sorted(path.name for path in home.iterdir() if path.name not in copied and not path.name.endswith(_TEMPORARY))
    )


def _refuse_inside(home: Path, target: Path) -> None:
    if home.resolve() in (target.resolve(), *target.resolve().parents):
        raise InvalidInput(f"{target} is inside the home {home}; name a folder outside of it, best on another disk")


def _told(tick: Tick, step: str) -> Callable[[int, int], None]:
    return lambda done, total: tick(step, done, total)
