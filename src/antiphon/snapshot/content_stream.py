"""Content as a binary stream that can be read and seeked like a file. One chunk at a time is in memory.

>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> from antiphon.snapshot.content import write
>>> blobs = MemoryBlobs()
>>> stream = open_content(write(b"hello world", blobs), blobs)
>>> stream.seek(6), stream.read()
(6, b'world')
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from antiphon.core.cid import Cid
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.content import pieces, size_of


def open_content(cid: Cid, blobs: Blobs) -> BinaryIO:
    """Return a stream that reads only the chunks it needs."""
    return io.BufferedReader(_Content(cid, blobs))


class _Content(io.RawIOBase):
    def __init__(self, cid: Cid, blobs: Blobs) -> None:
        self._cid = cid
        self._blobs = blobs
        self._size = size_of(cid, blobs)
        self._at = 0
        self._rest = b""
        self._pieces: Iterator[bytes] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        to = max(0, start + offset)
        if to != self._at:
            self._at, self._rest, self._pieces = to, b"", None
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._pieces is None:
            self._pieces = pieces(self._cid, self._blobs, start=min(self._at, self._size))
        self._rest = self._rest or next(self._pieces, b"")
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._at += count
        return count
