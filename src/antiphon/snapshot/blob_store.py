"""`BlobStore`: blobs on disk. One process writes, others may read at the same time.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder, BlobStore.open(folder) as store:
...     cid = store.put(b"hello")
...     store.get(cid), store.count, store.size
(b'hello', 1, 5)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, InvalidInput, StoreError
from antiphon.feed.store.disk import MACHINE, Disk
from antiphon.feed.store.map_file import MAP_SIZE_START, FrozenMap, MapFile
from antiphon.snapshot.blob_collection import BlobCollection, BlobCollector
from antiphon.snapshot.blobs import Blobs, checked, missing_blob

FORMAT = b"antiphon.blobs.v1"
_PAGE = 4096  # CIDs in one transaction of an iteration
_SIZE = b"size"


class _BlobFile(MapFile[Any]):
    """The LMDB file of a blob store."""

    what = "blob store"
    if_damaged = "Put a copy back, or begin an empty one, and sync (docs/recovering.md)"
    if_large = "collect its garbage"

    def _view(self, txn: Any) -> Any:
        return txn


class BlobStore(Blobs):
    """A folder with an LMDB file. Blobs are durable on return, and checked against their CIDs on every read."""

    def __init__(
        self, path: Path, *, readonly: bool = False, map_size: int = MAP_SIZE_START, disk: Disk = MACHINE
    ) -> None:
        self.path = path
        self.readonly = readonly
        self._damaged: set[Cid] = set()
        self._collector = BlobCollector()
        self._file = _BlobFile(path, ("blobs", "meta"), readonly=readonly, map_size=map_size, disk=disk)
        try:
            with self._file.read() as txn:
                known = self._check_format(txn)
            if not known and not readonly:
                self._file.transact(self._claim)
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def open(
        cls, path: str | Path, *, readonly: bool = False, map_size: int = MAP_SIZE_START, disk: Disk = MACHINE
    ) -> BlobStore:
        """Open the store in folder `path`; unless `readonly`, create it if it does not exist."""
        return cls(Path(path), readonly=readonly, map_size=map_size, disk=disk)

    @property
    def _blobs(self) -> Any:
        return self._file.tables["blobs"]  # `compact` changes the handle

    @property
    def _meta(self) -> Any:
        return self._file.tables["meta"]

    def _claim(self, txn: Any) -> None:
        if not self._check_format(txn):
            txn.put(b"format", FORMAT, db=self._meta)

    def _check_format(self, txn: Any) -> bool:
        """True if the file has a format entry; refuse a file of another format."""
        found = txn.get(b"format", db=self._meta)
        if found not in (None, FORMAT):
            raise StoreError(f"the blob store at {self.path} has the format {found!r}; a newer Antiphon wrote it")
        return found is not None

    # -- reading

    def get(self, cid: Cid) -> bytes:
        with self._file.read() as txn:
            found = txn.get(cid, db=self._blobs)
        if found is None:
            raise missing_blob(cid)
        data: bytes = found
        if cid.matches(data):
            self._damaged.discard(cid)  # the writing process may have put it again
        else:
            self._damaged.add(cid)
            raise DamagedBlob(
                f"blob {cid} in the store at {self.path} has changed on the disk; fetch it from a peer again", cid=cid
            )
        return data

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        """Return the CIDs whose blobs are not held, in order. A blob that was found damaged is not held."""
        asked = list(cids)
        with self._file.read() as txn, txn.cursor(self._blobs) as cursor:
            return [cid for cid in asked if cid in self._damaged or not cursor.set_key(cid)]

    def __iter__(self) -> Iterator[Cid]:
        """Yield all CIDs, ascending; blobs that are put or deleted meanwhile may be among them or not."""
        for page in self.pages():
            yield from page

    def pages(self) -> Iterator[list[Cid]]:
        """Yield all CIDs, ascending, some thousands at a time."""
        last = b""
        while page := self._page(last):
            yield list(map(Cid, page))
            last = page[-1]

    def _page(self, last: bytes) -> list[bytes]:
        """Return the next CIDs after `last`. No transaction is open while the caller's code runs."""
        with self._file.read() as txn, txn.cursor(self._blobs) as cursor:
            if not cursor.set_range(last + b"\0"):
                return []
            return [key for key, _ in zip(cursor.iternext(values=False), range(_PAGE), strict=False)]

    @property
    def count(self) -> int:
        """The number of blobs."""
        with self._file.read() as txn:
            entries: int = txn.stat(self._blobs)["entries"]
            return entries

    @property
    def size(self) -> int:
        """The bytes of all blobs together."""
        with self._file.read() as txn:
            return self._size(txn)

    def _size(self, txn: Any) -> int:
        return int.from_bytes(txn.get(_SIZE, db=self._meta) or b"", "little")

    def frozen(self) -> AbstractContextManager[FrozenMap]:
        """Hold the state of this moment, to copy it. Until it is left, the thread must not use this store otherwise."""
        return self._file.frozen()

    @property
    def transaction(self) -> int:
        """A number that rises with each change of the store, of any process."""
        return self._file.transaction()

    # -- damage

    def check_structure(self) -> None:
        """Follow the trees of the store's file by hand; raise `DamagedStore` if they have changed."""
        self._file.check_structure()

    def damages(self) -> Iterator[tuple[bytes, str]]:
        """Read all blobs. Yield the keys of those that have changed on the disk, and what to say of each."""
        last = b""
        while page := self._page(last):
            for key in page:
                with self._file.read() as txn:
                    data = txn.get(key, db=self._blobs)
                if data is None:
                    continue  # deleted meanwhile
                try:
                    cid = Cid(key)
                except InvalidInput:
                    yield key, f"a blob is under {key[:40].hex()}, which is no CID"
                    continue
                if not cid.matches(data):
                    self._damaged.add(cid)
                    yield key, f"blob {cid} has changed on the disk"
            last = page[-1]

    def drop_damage(self) -> int:
        """Delete the blobs that have changed on the disk, and nothing else. Return how many; a peer may send them."""
        rotten = [key for key, _ in self.damages()]
        self._file.transact(lambda txn: self._drop(txn, rotten))
        self._damaged.clear()
        return len(rotten)

    def _drop(self, txn: Any, keys: list[bytes]) -> None:
        """Delete blobs by their keys, and count the bytes of the others again."""
        for key in keys:
            txn.delete(key, db=self._blobs)
        with txn.cursor(self._blobs) as cursor:
            size = sum(len(value) for _, value in cursor)
        txn.put(_SIZE, size.to_bytes(8, "little"), db=self._meta)

    # -- writing

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        """Put blobs in one transaction: all of them, or none if one does not match its CID."""
        blobs = checked(pairs)
        with self._collector.adding(blobs):
            self._file.transact(lambda txn: self._put(txn, blobs))
        self._damaged.difference_update(blobs)

    def _put(self, txn: Any, blobs: dict[Cid, bytes]) -> None:
        added = 0
        for cid in sorted(blobs):
            data, held = blobs[cid], txn.get(cid, db=self._blobs)
            if held != data:  # a damaged blob is written again
                txn.put(cid, data, db=self._blobs)
                added += len(data) - len(held or b"")
        self._resize(txn, added)

    def _resize(self, txn: Any, added: int) -> None:
        if added:
            txn.put(_SIZE, max(0, self._size(txn) + added).to_bytes(8, "little"), db=self._meta)

    def delete(self, cids: Iterable[Cid]) -> tuple[int, int]:
        """Delete blobs. Return how many were held, and their bytes."""
        doomed = sorted(set(cids))
        gone = self._file.transact(lambda txn: self._delete(txn, doomed))
        self._damaged.difference_update(doomed)
        return gone

    def _delete(self, txn: Any, cids: list[Cid]) -> tuple[int, int]:
        sizes = [len(held) for cid in cids if (held := txn.pop(cid, db=self._blobs)) is not None]
        self._resize(txn, -sum(sizes))
        return len(sizes), sum(sizes)

    def putting(self) -> AbstractContextManager[None]:
        return self._collector.putting()

    def collecting(self) -> AbstractContextManager[BlobCollection]:
        """Begin a garbage collection; only one runs at a time."""
        return self._collector.begin()

    def compact(self) -> int:
        """Rewrite the file without deleted blobs. Return its new size. No other process may have it open."""
        return self._file.compact()

    def close(self) -> None:
        """Close the store."""
        self._file.close()

    def __enter__(self) -> BlobStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
