"""`BlobOverlay`: new blobs are kept beside a store, not in it. Blobs of the store are not copied.

>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> below = MemoryBlobs()
>>> known = below.put(b"known")
>>> with BlobOverlay(below) as blobs:
...     new = blobs.put(b"new")
...     blobs.get(known), blobs.get(new), below.has(new)
(b'known', b'new', False)
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import Blobs, MemoryBlobs, checked
from antiphon.snapshot.limits import BATCH_SIZE_MAX

MEMORY_SIZE_MAX = 64 << 20


class BlobOverlay(Blobs):
    """A blob store for one computation. Blobs that do not fit into memory go into a temporary folder."""

    def __init__(self, below: Blobs, *, memory_size_max: int = MEMORY_SIZE_MAX) -> None:
        self._below = below
        self._room = memory_size_max
        self._memory = MemoryBlobs()
        self._disk: BlobStore | None = None
        self._opened = ExitStack()

    def get(self, cid: Cid) -> bytes:
        if self._memory.has(cid):
            return self._memory.get(cid)
        if self._disk is not None and self._disk.has(cid):
            return self._disk.get(cid)
        return self._below.get(cid)

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        blobs = checked(pairs)
        new = {cid: blobs[cid] for cid in self.missing(blobs)}
        size = sum(map(len, new.values()))
        if size <= self._room:
            self._room -= size
            self._memory.put_all(new.items())
        else:
            self._spill().put_all(new.items())

    def _spill(self) -> BlobStore:
        if self._disk is None:
            folder = self._opened.enter_context(tempfile.TemporaryDirectory(prefix="antiphon-"))
            self._disk = self._opened.enter_context(BlobStore.open(folder, map_size=8 * BATCH_SIZE_MAX))
        return self._disk

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        rest = self._memory.missing(cids)
        if self._disk is not None:
            rest = self._disk.missing(rest)
        return self._below.missing(rest)

    def putting(self) -> AbstractContextManager[None]:
        return nullcontext()

    @property
    def size(self) -> int:
        """The bytes of its own blobs."""
        kept = sum(len(self._memory.get(cid)) for cid in self._memory)
        return kept + (0 if self._disk is None else self._disk.size)

    def close(self) -> None:
        self._opened.close()
        self._disk = None

    def __enter__(self) -> BlobOverlay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_intact(cid: Cid, blobs: Blobs) -> bool:
    """True if a blob is held and matches its CID; the blob is read for that."""
    if not blobs.has(cid):
        return False
    try:
        blobs.get(cid)
    except DamagedBlob:
        return False
    return True
