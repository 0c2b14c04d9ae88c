"""`repair_home`: rebuild what is derived in a home, and drop what is rotten, so that peers send it again.

Nothing sound is dropped, and nothing that only a copy brings back is touched: keys, settings, and whole files that are
missing or cut short.

>>> import antiphon
>>> from pathlib import Path
>>> with antiphon.open("laptop", unprotected=True) as store:
...     party = store.create_party("Household")
>>> _ = Path("laptop", "items", f"{party.key}.checkpoint").write_bytes(b"rotten")
>>> done = repair_home(Path("laptop"))
>>> "checkpoint.damaged" in {finding.code for finding in done.repaired}, done.left
(True, ())
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from antiphon.api.health.check import check_home
from antiphon.api.health.feed_checks import Tick
from antiphon.api.health.finding import Finding, FindingCode
from antiphon.api.health.home_files import BLOBS, FEEDS, METADATA, tighten
from antiphon.core.home_version import VERSION_FILE
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.lock import lock
from antiphon.party.live.manager import find_genesis
from antiphon.party.store.meta_store import MetaStore
from antiphon.snapshot.blob_store import BlobStore

_ATTEMPTS_MAX = 3  # a repair can uncover more: a record that is made again has blocks that can be checked
_SQLITE_SUFFIXES = ("", "-wal", "-shm")

Repair = Callable[[Path, list[Finding]], None]


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The outcome of a repair: findings that are gone, and findings that are left, each with its next step."""

    repaired: tuple[Finding, ...]
    left: tuple[Finding, ...]

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that are left and are no mere notes."""
        return tuple(finding for finding in self.left if not finding.harmless)


def repair_home(home: Path, passphrase: str | None = None, tick: Tick = lambda *_: None) -> RepairReport:
    """Repair all findings that can be. No other process may use the home; `StoreLocked` names one that does."""
    found = check_home(home, passphrase, tick).findings
    first = found
    for _ in range(_ATTEMPTS_MAX):
        wanted = [finding for finding in found if finding.code in _REPAIRS]
        if not wanted:
            break
        for repair in dict.fromkeys(_REPAIRS[finding.code] for finding in wanted):
            repair(home, [finding for finding in wanted if _REPAIRS[finding.code] is repair])
        found = check_home(home, passphrase, tick).findings
    return RepairReport(tuple(finding for finding in first if finding not in found), found)


def _drop_in_feeds(home: Path, findings: list[Finding]) -> None:
    with FeedStore.open(home / FEEDS) as store:
        for feed in sorted({finding.feed for finding in findings if finding.feed}):
            store.drop_damage(bytes.fromhex(feed))
        if any(finding.code is FindingCode.FEED_REFUSAL for finding in findings):
            store.drop_damaged_refusals()


def _drop_blobs(home: Path, findings: list[Finding]) -> None:
    with BlobStore.open(home / BLOBS) as store:
        store.drop_damage()


def _delete_derived(home: Path, findings: list[Finding]) -> None:
    """Delete item stores and checkpoints. The writer's lock says that nobody has them open."""
    handle = lock(home / FEEDS)
    try:
        for name in sorted({finding.file for finding in findings}):
            for suffix in _SQLITE_SUFFIXES:
                (home / f"{name}{suffix}").unlink(missing_ok=True)
    finally:
        os.close(handle)


def _rebuild_metadata(home: Path, findings: list[Finding]) -> None:
    """Follow all parties in which this device writes. A damaged file is set aside, with its labels and preferences."""
    path = home / METADATA
    anew = any(finding.code is FindingCode.METADATA_DAMAGED for finding in findings)
    with FeedStore.open(home / FEEDS) as feeds:  # its lock says that nobody has the metadata open
        if anew:
            _set_aside(path)
        with MetaStore.open(path) as meta:
            for party in sorted({record.party for record in feeds.feeds() if record.writable}):
                meta.subscribe(party, genesis_feed=find_genesis(feeds, party), again=anew)


def _set_aside(path: Path) -> None:
    """Rename a SQLite file, with its log, to a name that no file has: `meta.db.damaged`, `meta.db.damaged.2`, …"""
    names = (f"{path}.damaged{f'.{number}' if number > 1 else ''}" for number in count(1))
    aside = next(name for name in names if not any(Path(name + suffix).exists() for suffix in _SQLITE_SUFFIXES))
    for suffix in _SQLITE_SUFFIXES:
        with suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")


def _drop_version(home: Path, findings: list[Finding]) -> None:
    """Delete the file: the home counts as one of version 1 then, and all steps of the upgrade can be taken again."""
    handle = lock(home / FEEDS)
    try:
        (home / VERSION_FILE).unlink(missing_ok=True)
    finally:
        os.close(handle)


def _tighten(home: Path, findings: list[Finding]) -> None:
    tighten(home)


_REPAIRS: dict[FindingCode, Repair] = {
    FindingCode.FEED_BLOCKS: _drop_in_feeds,
    FindingCode.FEED_RECORD: _drop_in_feeds,
    FindingCode.FEED_TIMEFRAME: _drop_in_feeds,
    FindingCode.FEED_EVIDENCE: _drop_in_feeds,
    FindingCode.FEED_BRANCH: _drop_in_feeds,
    FindingCode.FEED_REFUSAL: _drop_in_feeds,
    FindingCode.BLOB: _drop_blobs,
    FindingCode.ITEMS_DAMAGED: _delete_derived,
    FindingCode.CHECKPOINT_DAMAGED: _delete_derived,
    FindingCode.METADATA_DAMAGED: _rebuild_metadata,
    FindingCode.METADATA_PARTY: _rebuild_metadata,
    FindingCode.FILE_PERMISSIONS: _tighten,
    FindingCode.VERSION_DAMAGED: _drop_version,
}
