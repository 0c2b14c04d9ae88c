"""Blobs: bytes named by a CID. `Blobs` is the interface of a blob store, `MemoryBlobs` one in memory.

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
    """Interface of a blob store. A blob is kept once `put` or `put_all` has returned; putting it again changes nothing.

    `put` and `has` have default implementations.
    """

    def get(self, cid: Cid) -> bytes:
        """Return the bytes that the CID names; raise `MissingBlob` or `DamagedBlob` if they are not held."""

    def put(self, data: bytes, codec: int = RAW) -> Cid:
        """Put one blob and return its CID."""
        cid = Cid.of(data, codec)
        self.put_all([(cid, data)])
        return cid

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        """Put blobs under their CIDs: all of them, or none if one does not match its CID."""

    def has(self, cid: Cid) -> bool:
        """True if the blob is held."""
        return not self.missing([cid])

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        """Return the CIDs whose blobs are not held, in order."""

    def putting(self) -> AbstractContextManager[None]:
        """Hold off garbage collection while blobs are put that nothing refers to yet."""


def check_blob(cid: Cid, data: bytes) -> None:
    """Refuse a blob that is too large, or does not match its CID."""
    if len(data) > BLOB_SIZE_MAX:
        raise TooLarge(f"blob {cid} has {len(data)} bytes, at most {BLOB_SIZE_MAX} are allowed; cut it into chunks")
    if not cid.matches(data):
        raise BadEncoding(f"{len(data)} bytes that came as blob {cid} are not what that CID names; ask somebody else")


def checked(pairs: Iterable[tuple[Cid, bytes]]) -> dict[Cid, bytes]:
    """Return blobs by CID; refuse them if one does not match."""
    blobs = {}
    for cid, data in pairs:
        check_blob(cid, data)
        blobs[cid] = bytes(data)
    return blobs


def missing_blob(cid: Cid) -> MissingBlob:
    """Return the error for a blob that is not held."""
    return MissingBlob(f"blob {cid} is not here; fetch it from a peer or a CAR file", cid=cid)


class MemoryBlobs(Blobs):
    """Blobs in a dict: for tests and temporary data."""

    def __init__(self) -> None:
        self._held: dict[Cid, bytes] = {}
        self._collector = BlobCollector()

    def get(self, cid: Cid) -> bytes:
        try:
            return self._held[cid]
        except KeyError:
            raise missing_blob(cid) from None

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        blobs = checked(pairs)
        with self._collector.adding(blobs):
            self._held.update(blobs)

    def has(self, cid: Cid) -> bool:
        return cid in self._held

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        return [cid for cid in cids if cid not in self._held]

    def putting(self) -> AbstractContextManager[None]:
        return self._collector.putting()

    def collecting(self) -> AbstractContextManager[BlobCollection]:
        """Begin a garbage collection; only one runs at a time."""
        return self._collector.begin()

    def delete(self, cids: Iterable[Cid]) -> tuple[int, int]:
        """Delete blobs. Return how many were held, and their bytes."""
        sizes = [len(held) for cid in set(cids) if (held := self._held.pop(cid, None)) is not None]
        return len(sizes), sum(sizes)

    def pages(self) -> Iterator[list[Cid]]:
        """Yield all CIDs, in pages as `BlobStore.pages`."""
        yield list(self)

    def __iter__(self) -> Iterator[Cid]:
        return iter(sorted(self._held))

    def __len__(self) -> int:
        return len(self._held)


class BlobBatch:
    """Collects blobs and puts a few hundred at a time. Added blobs are in the store after `flush`."""

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
