"""Open a home read-only. A home is the folder in which a device keeps its feeds and blobs.

A peer may write to the home at the same time. The pipeline opens stores in Spark's Python workers, never in the
driver: the driver may be the process in which the peer runs, and a process can open a store only once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from antiphon.core.errors import InvalidInput
from antiphon.core.home_version import need_version
from antiphon.core.keys import PublicKey
from antiphon.core.local_path import local_path
from antiphon.core.timeframe import Timeframe
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.reader import FeedReader
from antiphon.pipeline.archive_format.manifest import is_archive
from antiphon.pipeline.archive_format.reader import ArchiveBlobs, archived_feeds
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import Blobs, MemoryBlobs


def feeds_folder(home: str | Path) -> Path:
    """The folder of the feed store in a home. The folder of a feed store itself is accepted as well."""
    folder = local_path(home)
    for found in (folder / "feeds", folder):
        if (found / "data.mdb").is_file():
            if found != folder:
                need_version(folder)
            return found
    raise InvalidInput(
        f"{folder} is no home: it has no feeds; name the folder that `antiphon.open` was given, or an archive"
    )


def check_home(home: str | Path) -> None:
    """Raise `InvalidInput` if a folder is neither a home nor an archive."""
    if not is_archive(home):
        feeds_folder(home)


@contextmanager
def open_feeds(home: str | Path) -> Iterator[FeedReader]:
    """Open the feeds of a home or of an archive for reading."""
    store = archived_feeds(home) if is_archive(home) else FeedStore.open(feeds_folder(home), readonly=True)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_blobs(home: str | Path) -> Iterator[Blobs]:
    """Open the blobs of a home or of an archive for reading. A home without a blob store has no blobs."""
    if is_archive(home):
        with closing(ArchiveBlobs(home)) as archived:
            yield archived
        return
    folder = feeds_folder(home).with_name("blobs")
    if not (folder / "data.mdb").is_file():
        yield MemoryBlobs()
        return
    with BlobStore.open(folder, readonly=True) as blobs:
        yield blobs


def read_parties(text: str) -> tuple[bytes, ...]:
    """Parse party keys: hex, separated by commas."""
    try:
        return tuple(bytes(PublicKey(bytes.fromhex(part.strip()))) for part in text.split(",") if part.strip())
    except ValueError:
        raise InvalidInput(f"{text[:140]!r} does not name parties; give their keys in hex, with commas") from None


def write_anchor(frame: Timeframe) -> str:
    """An anchor as hex, for Spark's options and offsets."""
    return frame.encode().hex()


def read_anchor(text: str) -> Timeframe:
    """Parse an anchor that `write_anchor` wrote."""
    try:
        return Timeframe.decode(bytes.fromhex(text))
    except ValueError:
        raise InvalidInput(f"{text[:80]!r} is no anchor; take one that a reader gave") from None
