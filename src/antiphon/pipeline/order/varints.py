"""Protobuf's wire format on columns: sizes, numbers and texts at many places of one buffer, read at once.

Behind what is read the buffer has `ROOM`, so that a column may be read a little beyond its end; that it was, the caller
finds out by the bounds of what it reads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from antiphon.pipeline.order.shuffle_chunk import I64, U64, numbers

ROOM = 256  # bytes
VARINT_MAX = 5  # bytes of most numbers that are read; greater ones are left to others
LONG_VARINT_MAX = 8
SIZE_NONE = 1 << 30  # instead of a size that is written longer than any that fits
MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)  # of so many bytes
HIGH = np.uint64(0x8080808080808080)

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]


class Wire:
    """A buffer."""

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.bytes = np.frombuffer(buffer, dtype=np.uint8)
        self.words = np.ndarray((len(buffer) - 7,), dtype="<u8", buffer=buffer, strides=(1,))

    def sizes(self, at: I64) -> tuple[I64, I64]:
        """The sizes there, of one or two bytes, and where they end; one that is longer fits nothing."""
        low, high = self.bytes[at].astype(np.int64), self.bytes[at + 1].astype(np.int64)
        two = low >= 0x80
        size = np.where(two, low & 0x7F | high << 7, low)
        size[two & (high >= 0x80)] = SIZE_NONE
        return size, at + 1 + two

    def numbers(self, at: I64, most: int = VARINT_MAX) -> tuple[I64, I64]:
        """The numbers there, -1 for one of more bytes than that, and where they end."""
        words = self.words[at]
        ends = ~words & HIGH & MASKS[most]
        lowest = ends & (~ends + np.uint64(1))  # the highest bit of the last byte
        value = words & (lowest - np.uint64(1) | lowest)
        found = value & np.uint64(0x7F)
        for place in range(1, most):
            found |= (value >> np.uint64(place)) & np.uint64(0x7F << (7 * place))
        size = np.frexp(lowest.astype(np.float64))[1] >> 3  # its bit, counted from 1: 8 for each byte
        return np.where(ends > 0, found.astype(np.int64), -1), at + np.maximum(size, 1)

    def are_numbers(self, at: I64, end: I64) -> Bools:
        """Whether one number lies there, of up to eight bytes, and nothing else."""
        size = end - at
        found = (size > 0) & (size <= LONG_VARINT_MAX)
        size = np.where(found, size, 1)
        marks = self.words[at] & MASKS[size] & HIGH
        found &= marks == HIGH & MASKS[size - 1]
        # A number that is written longer than it need be is another in a snapshot.
        found &= (size == 1) | (self.bytes[at + size - 1] != 0)
        return found

    def keys(self, at: I64, size: I64) -> tuple[U64, U64]:
        """Up to sixteen bytes, as two numbers."""
        first, second = self.words[at], self.words[at + 8]
        return first & MASKS[np.minimum(size, 8)], second & MASKS[np.maximum(size, 8) - 8]

    def texts(self, at: I64, end: I64) -> pa.Array:
        """What lies there, as text; `pa.ArrowInvalid` if any of it is none."""
        return self.pieces(at, end).cast(pa.large_string())

    def pieces(self, at: I64, end: I64) -> pa.Array:
        """What lies there; no two places may overlap."""
        # Every second value of an array, whose others are what lies between.
        order = np.argsort(at, kind="stable")
        bounds = np.empty(2 * len(at) + 1, dtype=np.int64)
        bounds[0:-1:2], bounds[1::2], bounds[-1] = at[order], end[order], len(self.buffer)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.buffer)]
        values = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
        places = np.empty(len(at), dtype=np.int64)
        places[order] = 2 * np.arange(len(at))
        return values.take(numbers(places, pa.int64()))
