"""Marks in a snapshot of a text, encoded from their columns: one field of many marks at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from antiphon.core.v1 import text_pb2
from antiphon.model.text.mark_columns import KeptMark, MarkColumns, Row
from antiphon.model.text.runs import OFFSET_BITS, OFFSET_MAX
from antiphon.model.wire import tag_numbers
from antiphon.model.word_table import Numbers

_AT_ONCE = 4096  # marks
_FEW = 64  # marks that the library encodes as fast
_WIDTH_MAX = 64  # bytes of a name or a value; the library encodes marks near longer ones
_SNAPSHOT, _MARK, _ANCHOR = tag_numbers("TextSnapshot", "TextKeptMark", "TextAnchor")


def encoded(marks: MarkColumns, at: Mapping[bytes, int]) -> Iterator[bytes]:
    """Yield the marks by name and stamp, some at once; `at` has the places of feeds among the writers."""
    columns, names, feeds, values = marks.settled()
    places = np.fromiter((at.get(feed, 0) for feed in feeds), np.uint64, len(feeds))
    for first in range(0, len(columns.name), _AT_ONCE):
        some = Row(*(column[first : first + _AT_ONCE] for column in columns))
        count = len(some.name)
        chosen, local = np.unique(some.name, return_inverse=True)
        used = [names[name] for name in chosen.tolist()]
        if count < _FEW or max(int(some.size.max()), *map(len, used)) > _WIDTH_MAX:
            yield of_library(marks.some(first, first + count), at)
        else:
            yield _encoded(some, used, local, places, values)


def of_library(marks: Iterable[KeptMark], at: Mapping[bytes, int]) -> bytes:
    """Encode marks one by one."""
    proto = text_pb2.TextSnapshot()
    for kept in marks:
        lamport, feed, seq, nth = kept.key
        mark = proto.marks.add(name=kept.mark.name, lamport=lamport, writer=at[feed], seq=seq, nth=nth)
        if kept.mark.value is not None:
            mark.value.ParseFromString(kept.mark.value)
        for target, anchor in ((mark.start, kept.mark.start), (mark.end, kept.mark.end)):
            target.after = anchor.after
            if anchor.feed:
                target.feed = at[anchor.feed]
                target.lamport, target.offset = anchor.clock >> OFFSET_BITS, anchor.clock & OFFSET_MAX
            else:
                target.edge = True
    return proto.SerializeToString(deterministic=True)


def _encoded(rows: Row, names: list[bytes], local: Numbers, places: Numbers, values: Numbers) -> bytes:
    count = len(rows.name)
    mark = _Parts(count)
    width = max(map(len, names))
    table = np.frombuffer(b"".join(name.ljust(width, b"\0") for name in names), np.uint8).reshape(-1, width)
    mark.sized(_MARK.name, table[local], np.array([*map(len, names)])[local])
    mark.number(_MARK.lamport, rows.lamport)
    mark.number(_MARK.writer, places[rows.writer])
    mark.number(_MARK.seq, rows.seq)
    mark.number(_MARK.nth, rows.nth)
    width = int(rows.size.max())
    if width:
        where = rows.value[:, None].astype(np.int64) + np.arange(width)
        mark.sized(_MARK.value, values[np.minimum(where, len(values) - 1)], rows.size, where=rows.size > 0)
    for tag, feed, lamport, offset in ((_MARK.start, *rows[7:10]), (_MARK.end, *rows[10:13])):
        anchor = _Parts(count)
        anchor.number(_ANCHOR.feed, places[feed])
        anchor.number(_ANCHOR.lamport, lamport)
        anchor.number(_ANCHOR.offset, offset >> 1)
        anchor.number(_ANCHOR.after, offset & 1)
        anchor.number(_ANCHOR.edge, feed == 0)
        mark.message(tag, anchor)
    snapshot = _Parts(count)
    snapshot.message(_SNAPSHOT.marks, mark)
    matrix, counts = snapshot.joined()
    return matrix[counts].tobytes()


class _Parts:
    """The bytes of many messages, field by field: columns of bytes, and which of them count."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._bytes: list[Numbers] = []
        self._counts: list[Numbers] = []

    def number(self, tag: int, numbers: Numbers) -> None:
        """Add a number. A 0 is not written."""
        some = numbers != 0
        if some.any():
            self._tag(tag, some)
            self._varint(numbers, some)

    def sized(self, tag: int, content: Numbers, sizes: Numbers, where: Numbers | None = None) -> None:
        """Add content of several sizes."""
        some = np.ones(self._count, bool) if where is None else where
        self._tag(tag, some)
        self._varint(sizes, some)
        self._bytes.append(content)
        self._counts.append(np.arange(content.shape[1]) < sizes[:, None])

    def message(self, tag: int, parts: _Parts) -> None:
        """Add messages."""
        content, counts = parts.joined()
        some = np.ones(self._count, bool)
        self._tag(tag, some)
        self._varint(np.count_nonzero(counts, axis=1), some)
        self._bytes.append(content)
        self._counts.append(counts)

    def joined(self) -> tuple[Numbers, Numbers]:
        """Return all columns of bytes, and which of them count."""
        if not self._bytes:
            return np.empty((self._count, 0), np.uint8), np.empty((self._count, 0), bool)
        return np.concatenate(self._bytes, axis=1), np.concatenate(self._counts, axis=1)

    def _tag(self, tag: int, some: Numbers) -> None:
        self._bytes.append(np.full((self._count, 1), tag, np.uint8))
        self._counts.append(some[:, None])

    def _varint(self, numbers: Numbers, some: Numbers) -> None:
        width = max(-(-int(numbers.max()).bit_length() // 7), 1)
        shifted = numbers[:, None].astype(np.uint64) >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
        self._bytes.append((shifted & np.uint64(127) | (shifted > 127) * np.uint64(128)).astype(np.uint8))
        present = shifted > 0
        present[:, 0] = True
        self._counts.append(present & some[:, None])
