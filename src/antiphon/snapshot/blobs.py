"""Blobs: bytes with a CID. `Blobs` is the port of a store, `MemoryBlobs` the smallest one.

>>> blobs = MemoryBlobs()
>>> cid = blobs.put(b"hello")
>>> blobs.get(cid), blobs.missing([cid, Cid.of(b"hullo")]) == [Cid.of(b"hullo")]
(b'hello', True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from antiphon.core.cid import BLOB_SIZE_MAX, RAW, Cid
from antiphon.core.errors import BadEncoding, MissingBlob, TooLarge
from antiphon.snapshot.blob_collection import BlobCollection, BlobCollector
from antiphon.snapshot.limits import BATCH_COUNT_MAX, BATCH_SIZE_MAX


class Blobs(Protocol):
    """A store of blobs. What `put` and `put_all` have returned from is kept; putting twice is the same as once.

    A class that inherits from it has `put` and `has` by what they mean.
    """

    def get(self, cid: Cid) -> bytes:
        """The bytes that the CID names, never others; else `MissingBlob`, or `DamagedBlob`."""

    def put(self, data: bytes, codec: int = RAW) -> Cid:
        cid = Cid.of(data, codec)
        self.put_all([(cid, data)])
        return cid

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        """Put blobs with the CIDs that they have: all of them, or none if one is not what its CID says."""

    def has(self, cid: Cid) -> bool:
        return not self.missing([cid])

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        """Those that are not here, in their order."""

    def putting(self) -> AbstractContextManager[None]:
        """While blobs are put that nothing refers to yet: none is collected meanwhile."""


def check_blob(cid: Cid, data: bytes) -> None:
    """Refuse what is too large, or not what its CID says."""
    if len(data) > BLOB_SIZE_MAX:
        raise TooLarge(f"blob {cid} has {len(data)} bytes, at most {BLOB_SIZE_MAX} are allowed; cut it into chunks")
    if not cid.matches(data):
        raise BadEncoding(f"{len(data)} bytes that came as blob {cid} are not what that CID names; ask somebody else")


def checked(pairs: Iterable[tuple[Cid, bytes]]) -> dict[Cid, bytes]:
    """Blobs by their CIDs, all of them what those say."""
    blobs = {}
    for cid, data in pairs:
        check_blob(cid, data)
        blobs[cid] = bytes(data)
    return blobs


def missing_blob(cid: Cid) -> MissingBlob:
    return MissingBlob(f"blob {cid} is not here; fetch it from a peer or a CAR file", cid=cid)


class MemoryBlobs(Blobs):
    """Blobs in a dict: for tests, and for what is thrown away."""

    def __init__(self) -> None:
        self._held: dict[Cid, bytes] = {}
        self._collecting = BlobCollector()

    def get(self, cid: Cid) -> bytes:
        try:
            return self._held[cid]
        except KeyError:
            raise missing_blob(cid) from None

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        blobs = checked(pairs)
        with self._collecting.adding(blobs):
            self._held.update(blobs)

    def has(self, cid: Cid) -> bool:
        return cid in self._held

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        return [cid for cid in cids if cid not in self._held]

    def putting(self) -> AbstractContextManager[None]:
        return self._collecting.putting()

    def collecting(self) -> AbstractContextManager[BlobCollection]:
        return self._collecting.begin()

    def delete(self, cids: Iterable[Cid]) -> tuple[int, int]:
        """Let blobs go; returns how many there were, and their bytes."""
        sizes = [len(held) for cid in set(cids) if (held := self._held.pop(cid, None)) is not None]
        return len(sizes), sum(sizes)

    def pages(self) -> Iterator[list[Cid]]:
        """All CIDs, some at a time."""
        yield list(self)

    def __iter__(self) -> Iterator[Cid]:
        return iter(sorted(self._held))

    def __len__(self) -> int:
        return len(self._held)


class BlobBatch:
    """Gathers blobs, so that a store gets a few hundred at a time. What was added is there after `flush`."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._pairs: list[tuple[Cid, bytes]] = []
        self._size = 0

    def add(self, data: bytes, codec: int) -> Cid:
        cid = Cid.of(data, codec)
        self._pairs.append((cid, data))
        self._size += len(data)
        if len(self._pairs) >= BATCH_COUNT_MAX or self._size >= BATCH_SIZE_MAX:
            self.flush()
        return cid

    def flush(self) -> None:
        if self._pairs:
            self._blobs.put_all(self._pairs)
            self._pairs, self._size = [], 0
