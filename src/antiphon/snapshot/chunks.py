"""Content-defined chunks: the end of a chunk depends on the 32 bytes before it, so an edit changes only chunks near it.

The hash is the gear hash: the sum of table[byte] << age over the last 32 bytes, modulo 2^32. A chunk ends after a byte
where the hash is below a threshold, which needs zeros in its high bits: only the high bits depend on all 32 bytes. The
table and the rules are part of the format: they decide CIDs.

>>> pieces = cut(bytes(range(256)) * 200, ITEM_CHUNKS)
>>> b"".join(pieces) == bytes(range(256)) * 200, max(map(len, pieces)) <= ITEM_CHUNKS.size_max
(True, True)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from antiphon.core.errors import InvalidInput

WINDOW = 32
READ_SIZE = 1 << 20
_TAG = b"antiphon.gear.v1"
_BLOCK = 32 << 10  # so that the arrays stay in the processor's cache
_TABLE = np.array(
    [int.from_bytes(sha256(_TAG + bytes((byte,))).digest()[:4], "little") for byte in range(256)], dtype=np.uint32
)


class ChunkRule(NamedTuple):
    """Sizes in bytes. `size_cut` is the mean distance between offsets where a chunk may end."""

    size_min: int
    size_cut: int
    size_max: int

    @property
    def threshold(self) -> int:
        return (1 << 32) // self.size_cut


#: About 4 KiB: for the states of items.
ITEM_CHUNKS = ChunkRule(1 << 10, 3 << 10, 16 << 10)
#: About 64 KiB: for files.
FILE_CHUNKS = ChunkRule(16 << 10, 48 << 10, 256 << 10)


def gear(data: bytes | bytearray | memoryview) -> npt.NDArray[np.uint32]:
    """Return the hash after each byte. The first 31 are incomplete."""
    result = _TABLE[np.frombuffer(data, dtype=np.uint8)]
    for age in (1, 2, 4, 8, 16):  # of 2 bytes, of 4, … of 32
        if len(result) > age:
            result[age:] += result[:-age] << np.uint32(age)
    return result


def _places(data: bytes, threshold: int, start: int) -> list[int]:
    """Return the offsets after `start` at which a chunk may end: one more than the index of its last byte."""
    found: list[int] = []
    for at in range(start, len(data), _BLOCK):
        first = max(0, at - WINDOW + 1)
        hashes = gear(memoryview(data)[first : at + _BLOCK])[at - first :]
        found += (np.flatnonzero(hashes < threshold) + (at + 1)).tolist()
    return found


def _end(places: list[int], rule: ChunkRule, start: int, size: int) -> int | None:
    """Return the end of the chunk that begins at `start`, or None if finding it takes more than `size` bytes."""
    index = bisect_left(places, start + rule.size_min)
    if index < len(places) and places[index] <= start + rule.size_max:
        return places[index]
    return start + rule.size_max if size >= start + rule.size_max else None


def chunks(stream: BinaryIO, rule: ChunkRule, *, read_size: int = READ_SIZE) -> Iterator[bytes]:
    """Yield the chunks of a stream, with about one read and one chunk in memory. The size of reads does not matter."""
    data, start = b"", 0
    places: list[int] = []
    while (piece := stream.read(read_size)) != b"":
        if not isinstance(piece, bytes):
            raise InvalidInput(f"a binary stream that blocks is wanted, not one that gives {type(piece).__name__}")
        # Keep the bytes after `start`, and 31 before it for the hash.
        drop = max(0, start - WINDOW)
        places = [place - drop for place in places if place > start]
        held = len(data) - drop
        data, start = data[drop:] + piece, start - drop
        places += _places(data, rule.threshold, held)
        while (end := _end(places, rule, start, len(data))) is not None:
            yield data[start:end]
            start = end
    if start < len(data):
        yield data[start:]


def cut(data: bytes, rule: ChunkRule) -> list[bytes]:
    """Return the chunks of bytes in memory."""
    pieces: list[bytes] = []
    places, start = _places(data, rule.threshold, 0), 0
    while (end := _end(places, rule, start, len(data))) is not None:
        pieces.append(data[start:end])
        start = end
    if start < len(data):
        pieces.append(data[start:])
    return pieces
