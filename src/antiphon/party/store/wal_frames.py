"""Read SQLite's write-ahead log: the pages of its committed transactions, each frame verified by SQLite's checksum.

SQLite verifies these checksums only when it opens a log that a killed process has left. While the log is in use it
copies frames into the database without a look, so rotten bytes would become valid pages.

The format is SQLite's (https://www.sqlite.org/fileformat2.html#walformat): a header of 32 bytes, then frames of a
24-byte header and a page. The checksum runs over all words of the log: `s0 += x[i] + s1; s1 += x[i + 1] + s0`, modulo
2³². It is linear, so numpy computes the part of each frame as a dot product, and only the sums are chained in Python.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PAGE_SIZE = 4096
_HEADER_SIZE = 32
_FRAME_SIZE = 24 + PAGE_SIZE
_FRAMES_AT_ONCE = 64
_MAGIC = {0x377F0682: "<u4", 0x377F0683: ">u4"}  # the byte order of the words in checksums
_MASK = 0xFFFFFFFF

Pair = tuple[int, int]
Words = npt.NDArray[np.uint32]


class Frames(NamedTuple):
    """The committed transactions of a log."""

    frames: int  # up to the last commit
    sums: dict[int, int]  # the CRC-32 of the last version of each page, by page number
    pages: int  # size of the database in pages after the last commit; 0 without one


def read_frames(log: Path) -> Frames:
    """Read a log up to its last commit before the first invalid frame. A missing or foreign log has no frames."""
    try:
        file = log.open("rb")
    except FileNotFoundError:
        return Frames(0, {}, 0)
    with file:
        order, salts, chain = _header(file.read(_HEADER_SIZE))
        sums: dict[int, int] = {}
        waiting: dict[int, int] = {}
        seen = count = pages = 0
        while order and (data := file.read(_FRAMES_AT_ONCE * _FRAME_SIZE)):
            before = seen
            for page, size, crc in _valid(data, order, salts, chain):
                seen += 1
                waiting[page] = crc
                if size:  # a commit
                    sums |= waiting
                    waiting.clear()
                    count, pages = seen, size
            if seen - before < _FRAMES_AT_ONCE:
                break  # an invalid frame, or the end
        return Frames(count, sums, pages)


def _header(data: bytes) -> tuple[str, bytes, list[int]]:
    """Return the byte order of the words, the salts of this generation of the log, and the sums after the header."""
    words = np.frombuffer(data, ">u4") if len(data) == _HEADER_SIZE else np.zeros(8, np.uint32)
    order = _MAGIC.get(int(words[0]), "")
    if not order or words[2] != PAGE_SIZE:
        return "", b"", []
    chain = [0, 0]
    for first, second in np.frombuffer(data[:24], order).reshape(-1, 2).tolist():
        chain[0] = (chain[0] + first + chain[1]) & _MASK
        chain[1] = (chain[1] + second + chain[0]) & _MASK
    return (order, data[16:24], chain) if chain == words[6:].tolist() else ("", b"", [])


def _valid(data: bytes, order: str, salts: bytes, chain: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (page, size of the database, CRC-32 of the page) for each frame, until an invalid one; `chain` goes on."""
    count = len(data) // _FRAME_SIZE
    view = memoryview(data)
    plain = np.frombuffer(data, ">u4", count * _FRAME_SIZE // 4).reshape(count, _FRAME_SIZE // 4)
    words = np.frombuffer(data, order, count * _FRAME_SIZE // 4).reshape(count, _FRAME_SIZE // 4).astype(np.uint32)
    firsts, seconds = ((words[:, :2] @ each[:2] + words[:, 6:] @ each[2:]).tolist() for each in _WEIGHTS)
    headers = plain[:, :6].tolist()
    wanted = np.frombuffer(salts, ">u4").tolist()
    (a, b), (c, d) = _STEP
    s0, s1 = chain
    for at, (page, size, salt1, salt2, sum0, sum1) in enumerate(headers):
        s0, s1 = (a * s0 + b * s1 + firsts[at]) & _MASK, (c * s0 + d * s1 + seconds[at]) & _MASK
        if [salt1, salt2] != wanted or (sum0, sum1) != (s0, s1) or not page:
            return
        start = at * _FRAME_SIZE + 24
        yield page, size, zlib.crc32(view[start : start + PAGE_SIZE])
    chain[:] = s0, s1


def _weights(words: int) -> tuple[tuple[Pair, Pair], list[Words]]:
    """Return how the sums before a frame, and how each of its words, count in the two sums after it."""
    power = ((1, 0), (0, 1))
    first, second = [0] * words, [0] * words
    for at in range(words - 2, -1, -2):
        (a, b), (c, d) = power
        first[at : at + 2] = (a + b) & _MASK, b
        second[at : at + 2] = (c + d) & _MASK, d
        power = (((a + b) & _MASK, (a + 2 * b) & _MASK), ((c + d) & _MASK, (c + 2 * d) & _MASK))
    return power, [np.array(first, np.uint32), np.array(second, np.uint32)]


_STEP, _WEIGHTS = _weights((_FRAME_SIZE - 16) // 4)
