"""`CarFile`: the blobs of a CAR file, read in place. It is verified when it is opened, and again when it is read.

>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> from antiphon.snapshot.car import export
>>> blobs = MemoryBlobs()
>>> cid = blobs.put(b"hello")
>>> with open("hello.car", "wb") as stream:
...     count = export([cid], blobs, stream)
>>> with CarFile.open("hello.car") as file:
...     file.roots == [cid], file.get(cid)
(True, b'hello')
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from antiphon.core.cid import RAW, Cid
from antiphon.core.errors import BadEncoding, DamagedBlob, InvalidInput, StoreError, TooLarge
from antiphon.snapshot.blobs import missing_blob
from antiphon.snapshot.car import read_header, sections


class CarFile:
    """A read-only blob store. Only the offset and size of each blob are in memory."""

    def __init__(self, path: Path, stream: BinaryIO, tick: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self._stream = stream
        self._lock = threading.Lock()
        self._places: dict[Cid, tuple[int, int]] = {}
        at = 0
        try:
            self.roots = read_header(stream)
            at = stream.tell()
            for cid, data in sections(stream):
                at = stream.tell()
                self._places.setdefault(cid, (at - len(data), len(data)))
                tick(at)
        except (BadEncoding, TooLarge) as error:
            raise BadEncoding(
                f"{path} is damaged, or no CAR file: behind byte {at}: {error}. Get another copy"
            ) from None

    @classmethod
    def open(cls, path: str | Path, tick: Callable[[int], None] = lambda _: None) -> CarFile:
        """Open a file and verify each blob; `tick` is called with the number of bytes done."""
        try:
            stream = Path(path).open("rb")  # noqa: SIM115 - closed with this
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from None
        try:
            return cls(Path(path), stream, tick)
        except BaseException:
            stream.close()
            raise

    def get(self, cid: Cid) -> bytes:
        """Read a blob and verify it; raise `MissingBlob` or `DamagedBlob` if the file does not hold it."""
        if cid not in self._places:
            raise missing_blob(cid)
        start, size = self._places[cid]
        with self._lock:
            self._stream.seek(start)
            data = self._stream.read(size)
        if not cid.matches(data):
            raise DamagedBlob(f"blob {cid} has changed in {self.path} since that was opened", cid=cid)
        return data

    def has(self, cid: Cid) -> bool:
        """True if the file holds the blob."""
        return cid in self._places

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        """Return the CIDs whose blobs the file does not hold, in order."""
        return [cid for cid in cids if cid not in self._places]

    def put(self, data: bytes, codec: int = RAW) -> Cid:
        """Raise `InvalidInput`: the file is read-only."""
        raise InvalidInput(f"{self.path} is only read")

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        """Raise `InvalidInput`: the file is read-only."""
        raise InvalidInput(f"{self.path} is only read")

    def putting(self) -> AbstractContextManager[None]:
        """Do nothing: a read-only file has no garbage collection."""
        return nullcontext()

    def __iter__(self) -> Iterator[Cid]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> CarFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
