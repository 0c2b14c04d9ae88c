"""Checks before a home is opened: a file that was lost must not look like one that was never made.

Without them, a home without `keys` becomes the home of a new person, one without `meta.db` has no parties, and one
without feeds writes a second history of its own feeds (rule 6).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from antiphon.api.health.home_files import BACKUP, BLOBS, DATA, FEEDS, KEYS, METADATA
from antiphon.core.errors import CorruptBlock, DamagedStore, InvalidInput
from antiphon.core.home_version import need_version
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.keys.key_file import KeyKind
from antiphon.halo.keys.key_store import KeyStore

_FEEDS_MISSING = (
    "the feeds of this home are missing. Put a copy of the folder back: this device then opens new feeds; or "
    "begin a new home with the recovery phrase of the identity, join your parties, and sync"
)
_METADATA_MISSING = (
    "the list of parties is missing. Put a copy of the file back, or make it anew from the feeds: "
    "`antiphon doctor --repair`; labels and preferences are lost then"
)
_BLOBS_MISSING = (
    "the blobs are missing: snapshots, and contents of files. Put a copy of the folder back, or begin an empty "
    "one (antiphon.snapshot.BlobStore.open), and sync: members send them again"
)


def need_keys(home: Path) -> None:
    """Raise `DamagedStore` if feeds are written in a home, or it has nothing but parties, and there are no keys.

    An imported home has no keys until it is opened, and no feed is written in it.
    """
    if (home / KEYS).exists():
        return
    if _is_written(home) if _has(home / FEEDS / DATA) else _has(home / METADATA):
        raise _missing(
            home / KEYS,
            "the private keys of this home are missing. Put a copy of the file back; or begin a new home with the "
            "recovery phrase of the identity, join your parties, and sync. No new identity is made here",
        )


def need_feeds(home: Path, keys: KeyStore) -> None:
    """Raise `DamagedStore` if the keys of feeds are here, and the feeds are not."""
    if not _has(home / FEEDS / DATA) and keys.keys(KeyKind.FEED):
        raise _missing(home / FEEDS / DATA, _FEEDS_MISSING)


def need_rest(home: Path, feeds: FeedStore, keys: KeyStore) -> None:
    """Raise `DamagedStore` if feeds are written here, and their keys, the list of parties or the blobs are missing."""
    need_version(home)  # again, now that nobody else writes: a newer program may have been first
    if not _has_own_feed(feeds, keys):
        if not any(record.writable for record in feeds.feeds()):
            return  # a new home
        raise _missing(
            home / KEYS,
            "these are the keys of another home: no feed that is written here has its key among them. Put a copy of "
            "the right file back; or begin a new home with the recovery phrase of the identity, join your parties, and "
            "sync",
        )
    if not _has(home / METADATA):
        raise _missing(home / METADATA, _METADATA_MISSING)
    if not _has(home / BLOBS / DATA):
        raise _missing(home / BLOBS / DATA, _BLOBS_MISSING)


def _has_own_feed(feeds: FeedStore, keys: KeyStore) -> bool:
    """True if a feed that is written here has its key here. Not all feeds are read: there may be thousands."""
    for key in keys.keys(KeyKind.FEED):
        with suppress(CorruptBlock):
            record = feeds.find(bytes(key.key))
            if record is not None and record.writable:
                return True
    return False


def need_files(home: Path) -> None:
    """Raise `DamagedStore` if a home lacks a file that every home has, once it was opened."""
    need_keys(home)
    if not _has(home / FEEDS / DATA):
        raise _missing(home / FEEDS / DATA, _FEEDS_MISSING)
    if not _has(home / METADATA):
        raise _missing(home / METADATA, _METADATA_MISSING)
    if not _has(home / BLOBS / DATA):
        raise _missing(home / BLOBS / DATA, _BLOBS_MISSING)


def refuse_backup(home: Path) -> None:
    """Raise `InvalidInput` if a folder is a backup: opening it would change it."""
    if (home / BACKUP).exists():
        raise InvalidInput(
            f"{home} is a backup, and opening it would spoil it: make a home of it with `antiphon restore --from "
            f"{home} --home …`, or `antiphon.restore`"
        )


def _is_written(home: Path) -> bool:
    """True if the feed store of a home has a feed that is written there."""
    with FeedStore.open(home / FEEDS, readonly=True) as feeds:
        return any(record.writable for record in feeds.feeds())


def _has(path: Path) -> bool:
    """True if a file is there and not empty."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _missing(path: Path, what: str) -> DamagedStore:
    return DamagedStore(f"{path}: {what} (docs/recovering.md)", file=str(path))
