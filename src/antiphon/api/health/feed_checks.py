"""Findings in the feed store and in the blobs of a home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from antiphon.api.health.finding import Finding, FindingCode
from antiphon.api.health.home_files import BLOBS, DATA, FEEDS
from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, InvalidInput
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.store.damage import Damage, DamagedPart
from antiphon.feed.store.feed_store import FeedStore
from antiphon.snapshot.blob_store import BlobStore

Tick = Callable[[str, int, int], None]  # the step, how much of it is done, and how much it is

_FEEDS_FILE, _BLOBS_FILE = f"{FEEDS}/{DATA}", f"{BLOBS}/{DATA}"
_FEEDS_LOST = (
    "Put a copy of the folder back: this device then opens new feeds. Without one, begin a new home with the recovery "
    "phrase of the identity, join your parties, and sync: members have the feeds"
)
_BLOBS_LOST = "Put a copy of the folder back, or begin an empty one (antiphon.snapshot.BlobStore.open), and sync"
_CODES = {
    DamagedPart.RECORD: FindingCode.FEED_RECORD,
    DamagedPart.BLOCKS: FindingCode.FEED_BLOCKS,
    DamagedPart.TIMEFRAME: FindingCode.FEED_TIMEFRAME,
    DamagedPart.EVIDENCE: FindingCode.FEED_EVIDENCE,
    DamagedPart.BRANCH: FindingCode.FEED_BRANCH,
    DamagedPart.REFUSAL: FindingCode.FEED_REFUSAL,
}


def check_feeds(home: Path, tick: Tick, records: list[FeedRecord]) -> Iterator[Finding]:
    """Check the structure of the file, then every feed with its blocks. Sound records are added to `records`."""
    if not (home / FEEDS / DATA).exists():
        yield Finding(FindingCode.FILE_MISSING, _FEEDS_FILE, "the feeds are missing", advice=_FEEDS_LOST)
        return
    try:
        with FeedStore.open(home / FEEDS, readonly=True) as store:
            store.check_structure()
            yield from _check_each_feed(store, tick, records)
    except AntiphonError as error:
        yield Finding(FindingCode.FILE_DAMAGED, _FEEDS_FILE, str(error), advice=_FEEDS_LOST)


def _check_each_feed(store: FeedStore, tick: Tick, records: list[FeedRecord]) -> Iterator[Finding]:
    keys = store.feed_keys()
    for number, feed in enumerate(keys):
        tick("feeds", number, len(keys))
        for damage in store.damages(feed):
            yield _finding(damage)
    for damage in store.damaged_refusals():
        yield _finding(damage)
    tick("feeds", len(keys), len(keys))
    records += store.feeds()


def _finding(damage: Damage) -> Finding:
    blocks = damage.part is DamagedPart.BLOCKS
    what = damage.why if damage.feed.hex()[:8] in damage.why else f"feed {damage.feed.hex()[:8]}: {damage.why}"
    return Finding(
        _CODES[damage.part],
        _FEEDS_FILE,
        what,
        feed=damage.feed.hex(),
        seq=damage.seq if blocks else None,
        count=damage.count,
    )


def check_blobs(home: Path, tick: Tick) -> Iterator[Finding]:
    """Check the structure of the file, then every blob."""
    if not (home / BLOBS / DATA).exists():
        yield Finding(FindingCode.FILE_MISSING, _BLOBS_FILE, "the blobs are missing", advice=_BLOBS_LOST)
        return
    try:
        with BlobStore.open(home / BLOBS, readonly=True) as store:
            store.check_structure()
            tick("blobs", 0, store.count)
            for key, what in store.damages():
                yield Finding(FindingCode.BLOB, _BLOBS_FILE, what, cid=_cid_text(key))
            tick("blobs", store.count, store.count)
    except AntiphonError as error:
        yield Finding(FindingCode.FILE_DAMAGED, _BLOBS_FILE, str(error), advice=_BLOBS_LOST)


def _cid_text(key: bytes) -> str:
    try:
        return str(Cid(key))
    except InvalidInput:
        return key.hex()
