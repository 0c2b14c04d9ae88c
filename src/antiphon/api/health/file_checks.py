"""Findings in the keys, the metadata, the item stores, the checkpoints and the settings of a home."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from antiphon.api.health.finding import Finding, FindingCode
from antiphon.api.health.home_files import ITEMS, KEYS, METADATA, NAMES, VIEWS, open_to_others
from antiphon.api.held_views import HeldViews
from antiphon.api.registry import LocalRegistry
from antiphon.core.errors import AntiphonError, BadEncoding, DamagedStore, StoreError
from antiphon.core.home_version import HOME_VERSION, VERSION_FILE, read_version
from antiphon.core.keys import KEY_SIZE
from antiphon.feed.feed_record import FeedRecord
from antiphon.halo.control.checkpoint_codec import decode_checkpoints
from antiphon.halo.keys.identity import devices
from antiphon.halo.keys.key_file import KeyKind, Protection, decode_file
from antiphon.halo.keys.key_store import KeyStore
from antiphon.party.store.item_check import item_store_fault
from antiphon.party.store.meta_store import MetaStore

_SQLITE = b"SQLite format 3\0"  # the first bytes of its files
_KEYS_LOST = (
    "Put a copy of it back; or begin a new home with the recovery phrase of the identity, join your parties, and sync"
)

_UNREADABLE = "Check it again as a user that may read and write it; if that does not help, check the disk"


def check_version(home: Path) -> Iterator[Finding]:
    """Check that the version of the home can be read, and that this program knows it."""
    try:
        version = read_version(home)
    except DamagedStore as error:
        yield Finding(FindingCode.VERSION_DAMAGED, VERSION_FILE, str(error))
    except StoreError as error:
        yield Finding(FindingCode.FILE_LOCKED, VERSION_FILE, str(error), advice=_UNREADABLE)
    else:
        if version > HOME_VERSION:
            what = f"the home has version {version}, and this program knows versions up to {HOME_VERSION}"
            yield Finding(FindingCode.VERSION_NEWER, VERSION_FILE, what)


def check_keys(home: Path, passphrase: str | None, records: Sequence[FeedRecord]) -> Iterator[Finding]:
    """Check the key store, and that it has the keys of the feeds that are written here."""
    path = home / KEYS
    if not path.exists():
        if not records or any(record.writable for record in records):  # else it is imported, and was not opened yet
            yield Finding(FindingCode.FILE_MISSING, KEYS, "the private keys are missing", advice=_KEYS_LOST)
        return
    try:
        protection = decode_file(path.read_bytes()).header.protection
        if protection is Protection.PASSPHRASE and passphrase is None:
            yield Finding(FindingCode.FILE_LOCKED, KEYS, "the keys are under a passphrase, and were not opened")
            return
        keys = KeyStore.open(path, passphrase if protection is Protection.PASSPHRASE else None)
        held = keys.keys()
        for key in held:
            keys.pair(key.key)
        if not devices(keys):
            yield Finding(FindingCode.KEYS_DAMAGED, KEYS, "no key of a device is there")
    except (AntiphonError, OSError) as error:
        yield Finding(FindingCode.KEYS_DAMAGED, KEYS, str(error))
        return
    feeds = {bytes(key.key) for key in held if key.kind is KeyKind.FEED}
    written = {record.feed for record in records if record.writable}
    if written and written.isdisjoint(feeds):
        what = "these keys and the feeds are of different homes: no feed that is written here has its key among them"
        yield Finding(FindingCode.KEYS_DAMAGED, KEYS, what)
        return
    for record in records:
        if record.writable and not record.retired and record.feed not in feeds:
            what = f"the key of feed {record.feed.hex()[:8]}, which is written here, is not there"
            yield Finding(FindingCode.KEYS_LACKING, KEYS, what, record.party.hex(), record.feed.hex())


def check_metadata(home: Path, records: Sequence[FeedRecord]) -> Iterator[Finding]:
    """Check the metadata, and that it has the parties that this device writes in."""
    path = home / METADATA
    if not path.exists():
        yield Finding(FindingCode.METADATA_DAMAGED, METADATA, "the list of parties is missing")
        return
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:  # SQLite would delete its log
                yield Finding(FindingCode.METADATA_DAMAGED, METADATA, "it does not begin like a file of SQLite")
                return
        with MetaStore.open(path) as meta:
            known = {bytes(row.party) for row in meta.parties()}
    except (DamagedStore, ValueError) as error:
        yield Finding(FindingCode.METADATA_DAMAGED, METADATA, str(error))
        return
    except (AntiphonError, OSError) as error:  # of a newer program, in use, on a disk that is full or cannot be written
        yield Finding(FindingCode.METADATA_UNREAD, METADATA, str(error))
        return
    for party in sorted({record.party for record in records if record.writable} - known):
        what = f"party {party.hex()[:8]}, in which this device writes, is not in the list of parties"
        yield Finding(FindingCode.METADATA_PARTY, METADATA, what, party.hex())


def check_items(home: Path) -> Iterator[Finding]:
    """Check the item stores and the checkpoints of control feeds."""
    folder = home / ITEMS
    for path in sorted(folder.glob("*.db")) if folder.is_dir() else ():
        party = _party_of(path)
        name = path.relative_to(home).as_posix()
        try:
            fault = item_store_fault(path, party) if party is not None else "its name is no key of a party"
        except StoreError as error:
            yield Finding(FindingCode.FILE_LOCKED, name, str(error), advice=_UNREADABLE)
            continue
        if fault:
            yield Finding(FindingCode.ITEMS_DAMAGED, name, fault, "" if party is None else party.hex())
    for path in sorted(folder.glob("*.checkpoint")) if folder.is_dir() else ():
        party = _party_of(path)
        try:
            decode_checkpoints(party or b"", path.read_bytes())
        except (BadEncoding, OSError) as error:
            name = path.relative_to(home).as_posix()
            yield Finding(FindingCode.CHECKPOINT_DAMAGED, name, str(error), "" if party is None else party.hex())


def _party_of(path: Path) -> bytes | None:
    try:
        party = bytes.fromhex(path.stem)
    except ValueError:
        return None
    return party if len(party) == KEY_SIZE else None


def check_settings(home: Path) -> Iterator[Finding]:
    """Check that the names and the held views can be read."""
    checks = (NAMES, lambda path: LocalRegistry(path).records()), (VIEWS, lambda path: HeldViews(path, home / ITEMS))
    for name, read in checks:
        try:
            read(home / name)
        except AntiphonError as error:
            yield Finding(FindingCode.SETTINGS_DAMAGED, name, str(error))


def check_permissions(home: Path) -> Iterator[Finding]:
    """Find what others than the owner may read or write."""
    for path in open_to_others(home):
        mode = path.lstat().st_mode & 0o777
        name = path.relative_to(home).as_posix()
        yield Finding(FindingCode.FILE_PERMISSIONS, name, f"its permissions are {mode:03o}: others may read it")
