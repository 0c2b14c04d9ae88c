"""Vectorised reads of protobuf's wire format: sizes, numbers and texts at many positions of one buffer at once.

The buffer ends with `ROOM` bytes of padding, so that a read at any position stays inside it. The caller checks the end
positions that are returned against the bounds of its messages.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from antiphon.pipeline.order.shuffle_chunk import I64, U64, numbers

ROOM = 256  # bytes
VARINT_MAX = 5  # bytes of a number; longer ones take the slow path of the caller
LONG_VARINT_MAX = 8
SIZE_NONE = 1 << 30  # returned for a size of more than two bytes: it fits into no message
MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)  # of the lowest `size` bytes
HIGH = np.uint64(0x8080808080808080)

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]


class Wire:
    """Vectorised protobuf reads over one padded buffer. `at` and `end` are arrays of positions."""

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.bytes = np.frombuffer(buffer, dtype=np.uint8)
        self.words = np.ndarray((len(buffer) - 7,), dtype="<u8", buffer=buffer, strides=(1,))

    def sizes(self, at: I64) -> tuple[I64, I64]:
        """Read varints of one or two bytes; `SIZE_NONE` for longer ones. Return the values and their end positions."""
        low, high = self.bytes[at].astype(np.int64), self.bytes[at + 1].astype(np.int64)
        two = low >= 0x80
        size = np.where(two, low & 0x7F | high << 7, low)
        size[two & (high >= 0x80)] = SIZE_NONE
        return size, at + 1 + two

    def numbers(self, at: I64, most: int = VARINT_MAX) -> tuple[I64, I64]:
        """Read varints of at most `most` bytes; -1 for longer ones. Return the values and their end positions."""
        words = self.words[at]
        ends = ~words & HIGH & MASKS[most]
        lowest = ends & (~ends + np.uint64(1))  # the high bit of the varint's last byte
        value = words & (lowest - np.uint64(1) | lowest)
        found = value & np.uint64(0x7F)
        for place in range(1, most):
            found |= (value >> np.uint64(place)) & np.uint64(0x7F << (7 * place))
        size = np.frexp(lowest.astype(np.float64))[1] >> 3  # position of that bit, counted from 1, over 8
        return np.where(ends > 0, found.astype(np.int64), -1), at + np.maximum(size, 1)

    def are_numbers(self, at: I64, end: I64) -> Bools:
        """True where [at, end) is exactly one varint of up to eight bytes, in its shortest encoding."""
        size = end - at
        found = (size > 0) & (size <= LONG_VARINT_MAX)
        size = np.where(found, size, 1)
        marks = self.words[at] & MASKS[size] & HIGH
        found &= marks == HIGH & MASKS[size - 1]
        # A snapshot would re-encode a longer encoding to other bytes.
        found &= (size == 1) | (self.bytes[at + size - 1] != 0)
        return found

    def keys(self, at: I64, size: I64) -> tuple[U64, U64]:
        """Up to sixteen bytes as two integers, padded with zeros."""
        first, second = self.words[at], self.words[at + 8]
        return first & MASKS[np.minimum(size, 8)], second & MASKS[np.maximum(size, 8) - 8]

    def texts(self, at: I64, end: I64) -> pa.Array:
        """The bytes [at, end) as strings. Raise `pa.ArrowInvalid` if one is not UTF-8."""
        return self.pieces(at, end).cast(pa.large_string())

    def pieces(self, at: I64, end: I64) -> pa.Array:
        """The bytes [at, end) as an Arrow array without copying the buffer. Ranges must not overlap."""
        # Every second value of an array over the whole buffer; the other values are the gaps.
        order = np.argsort(at, kind="stable")
        bounds = np.empty(2 * len(at) + 1, dtype=np.int64)
        bounds[0:-1:2], bounds[1::2], bounds[-1] = at[order], end[order], len(self.buffer)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.buffer)]
        values = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
        places = np.empty(len(at), dtype=np.int64)
        places[order] = 2 * np.arange(len(at))
        return values.take(numbers(places, pa.int64()))
