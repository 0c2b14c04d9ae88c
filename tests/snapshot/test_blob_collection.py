"""When blobs may be let go: never those that somebody counts on and has not named yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.feed.store.map_file import MapFile
from antiphon.snapshot import blob_collection
from antiphon.snapshot.blob_collection import BUSY, BlobCollection
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import MemoryBlobs


@pytest.fixture(params=["memory", "disk"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBlobs | BlobStore]:
    if request.param == "memory":
        yield MemoryBlobs()
    else:
        with BlobStore.open(tmp_path) as store:
            yield store


def let_go(blobs: MemoryBlobs | BlobStore, collection: BlobCollection) -> int:
    return sum(collection.sweep(page, lambda _: False, blobs.delete)[0] for page in blobs.pages())


def test_what_is_not_kept_goes(blobs: MemoryBlobs | BlobStore) -> None:
    one, two = blobs.put(b"one"), blobs.put(b"two")
    with blobs.collecting() as collection:
        gone = [collection.sweep(page, {one}.__contains__, blobs.delete) for page in blobs.pages()]
    assert (gone, list(blobs), blobs.has(two)) == ([(1, 3)], [one], False)


def test_what_is_put_since_it_began_stays_also_if_it_was_here(blobs: MemoryBlobs | BlobStore) -> None:
    old = blobs.put(b"old")
    blobs.put(b"older")
    with blobs.collecting() as collection:
        new = blobs.put(b"new")
        assert blobs.put(b"old") == old
        assert let_go(blobs, collection) == 1
    assert set(blobs) == {old, new}


def test_what_is_on_its_way_into_the_store_when_it_begins_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put waits for the disk; a collection that began meanwhile found the blob there, and nobody who wants it."""
    with BlobStore.open(tmp_path) as store, ExitStack() as later:
        old = store.put(b"old")
        collections: list[BlobCollection] = []
        transact = MapFile.transact

        def begin_first(file: Any, act: Any) -> Any:
            if not collections:
                collections.append(later.enter_context(store.collecting()))
            return transact(file, act)

        monkeypatch.setattr(MapFile, "transact", begin_first)
        store.put(b"old")
        assert let_go(store, collections[0]) == 0
        assert store.get(old) == b"old"


def test_it_ends_where_a_file_or_an_epoch_begins(blobs: MemoryBlobs | BlobStore) -> None:
    blobs.put(b"old")
    with blobs.collecting() as collection:
        with blobs.putting():
            pass
        assert collection.stopped == BUSY
        assert let_go(blobs, collection) == 0
    with blobs.putting(), blobs.collecting() as collection:
        assert (collection.stopped, let_go(blobs, collection)) == (BUSY, 0)
    with blobs.collecting() as collection:
        assert (collection.stopped, let_go(blobs, collection)) == ("", 1)


def test_there_is_one_at_a_time(blobs: MemoryBlobs | BlobStore) -> None:
    with blobs.collecting(), pytest.raises(InvalidInput, match="being collected already"), blobs.collecting():
        pass


def test_where_too_many_come_it_ends(blobs: MemoryBlobs | BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_collection, "FRESH_MAX", 2)
    old = blobs.put(b"old")
    with blobs.collecting() as collection:
        for number in range(3):
            blobs.put(b"%d" % number)
        assert "blobs came meanwhile" in collection.stopped
        assert let_go(blobs, collection) == 0
    assert blobs.has(old)
