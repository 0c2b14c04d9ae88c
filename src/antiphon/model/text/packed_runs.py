"""Runs as bytes: the form of a leaf that has not been used for some time.

A run in memory takes some 280 bytes, and a hostile writer makes one with 7. Its form here takes 3 to 30: the fields of
all runs of a leaf are columns, each of numbers above its least one. Edges, and siblings that are many, stay objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.model.text.runs import HOLE, Edge, Run, Writer
from antiphon.model.text.siblings import ManySiblings

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}  # of arrays, by the bytes of a number
_WIDE = 16  # bytes of a number that is too large for an array
_LEFT, _TEXT, _ITEM = 1, 2, 4
_HEAD_SIZE = 4  # bytes of the number of bytes before the text
_HOLE = HOLE.encode("utf-8", "surrogatepass")


class PackedRuns(NamedTuple):
    """The runs of a leaf as bytes, and the objects that belong to them, by the index of the run and a field."""

    data: bytes
    objects: dict[tuple[int, str], Edge | ManySiblings] | None

    @property
    def text(self) -> str:
        """The text that is shown."""
        return self.data[int.from_bytes(self.data[:_HEAD_SIZE], "little") :].replace(_HOLE, b"").decode()

    @property
    def has_items(self) -> bool:
        """True if items are embedded."""
        return bool(self.data[_HEAD_SIZE])


class RunColumns:
    """The fields of some adjacent runs, one list for each. Writers are numbers; an `above` of 0 is the root."""

    __slots__ = (
        "aboves",
        "child_distances",
        "child_writers",
        "counts",
        "distances",
        "flags",
        "items",
        "lengths",
        "objects",
        "starts",
        "strides",
        "texts",
        "writers",
    )

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.writers: list[int] = []
        self.lengths: list[int] = []
        self.strides: list[int] = []
        self.aboves: list[int] = []
        self.distances: list[int] = []  # from the parent's clock to the first clock
        self.flags: list[int] = []
        self.counts: list[int] = []  # of left and right children, for each run two
        self.child_writers: list[int] = []
        self.child_distances: list[int] = []  # from the first clock of the run to that of its child
        self.items: list[bytes] = []
        self.texts: list[str] = []
        self.objects: dict[tuple[int, str], Edge | ManySiblings] = {}

    def add_content(self, text: str | None, item: bytes | None, left: bool) -> None:
        """Add the text and the item of a run, and on which side of its parent the run is."""
        flags = _LEFT if left else 0
        if text is not None:
            self.texts.append(text)
            flags |= _TEXT
        if item is not None:
            self.items.append(item)
            flags |= _ITEM
        self.flags.append(flags)

    def runs(self, writers: Sequence[Writer], *, in_tree: bool = True) -> list[Run]:
        """Return the runs, with or without their children and edges. Writers have these numbers."""
        texts, items, runs = iter(self.texts), iter(self.items), []
        names = [writers[number].feed for number in self.child_writers] if in_tree else []
        fields = zip(self.starts, self.writers, self.lengths, self.strides, self.aboves, self.distances, strict=True)
        for (start, writer, length, stride, above, distance), flag in zip(fields, self.flags, strict=True):
            run = Run(
                writers[writer],
                start,
                length,
                next(texts) if flag & _TEXT else None,
                next(items) if flag & _ITEM else None,
                writers[above] if above else None,
                start - distance,
                bool(flag & _LEFT),
            )
            run.stride = stride
            runs.append(run)
        if names:
            children = iter(zip(names, self.child_distances, strict=True))
            for run, lefts, rights in zip(runs, self.counts[::2], self.counts[1::2], strict=True):
                if lefts:
                    run.lefts = tuple([(feed, run.start + step) for feed, step in islice(children, lefts)])
                if rights:
                    run.rights = tuple([(feed, run.start + step) for feed, step in islice(children, rights)])
        if in_tree:
            for (at, field), found in self.objects.items():
                setattr(runs[at], field, found)
        return runs

    def packed(self) -> PackedRuns:
        """Return the packed form."""
        out = bytearray(_HEAD_SIZE)
        out.append(bool(self.items))
        _put(out, [len(self.starts)])
        for column in (self.starts, self.writers, self.lengths, self.strides, self.aboves, self.distances, self.flags):
            _put(out, column)
        _put(out, self.counts)
        if self.child_writers:
            _put(out, self.child_writers)
            _put(out, self.child_distances)
        out += b"".join(self.items)
        out[:_HEAD_SIZE] = len(out).to_bytes(_HEAD_SIZE, "little")
        out += "".join(self.texts).encode("utf-8", "surrogatepass")
        return PackedRuns(bytes(out), self.objects or None)


def pack(runs: Sequence[Run], writers: Mapping[bytes, Writer]) -> PackedRuns:
    """Return the packed form of runs. These are the writers of feeds."""
    columns = RunColumns()
    columns.starts = [run.start for run in runs]
    columns.writers = [run.writer.number for run in runs]
    columns.lengths = [run.length for run in runs]
    columns.strides = [run.stride for run in runs]
    columns.aboves = [0 if run.above is None else run.above.number for run in runs]
    columns.distances = [run.start - run.above_clock for run in runs]
    counts = columns.counts
    for at, run in enumerate(runs):
        columns.add_content(run.text, run.item, run.left)
        if run.lefts is None and run.rights is None:
            counts += (0, 0)
        else:
            for side, siblings in (("lefts", run.lefts), ("rights", run.rights)):
                if isinstance(siblings, ManySiblings):
                    columns.objects[at, side] = siblings
                    counts.append(0)
                    continue
                counts.append(len(siblings or ()))
                for feed, clock in siblings or ():
                    columns.child_writers.append(writers[feed].number)
                    columns.child_distances.append(clock - run.start)
        if run.left_edge is not None:
            columns.objects[at, "left_edge"] = run.left_edge
        if run.right_edge is not None:
            columns.objects[at, "right_edge"] = run.right_edge
    return columns.packed()


def _put(out: bytearray, numbers: list[int]) -> None:
    """Write a column: the bytes of a number, the least number, and how far each one lies above it."""
    least, greatest = min(numbers), max(numbers)
    span = greatest - least
    width = 0 if not span else 1 if span < 1 << 8 else 2 if span < 1 << 16 else 4 if span < 1 << 32 else 8
    if span >= 1 << 64:
        width = _WIDE
    size = (least.bit_length() + 7) // 8
    out.append(width << 3 if width == _WIDE else width)
    out.append(size)
    out += least.to_bytes(size, "little")
    if width == _WIDE:
        out += b"".join([(number - least).to_bytes(_WIDE, "little") for number in numbers])
    elif width:
        out += array(_CODES[width], [number - least for number in numbers] if least else numbers).tobytes()


class _Reader:
    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = _HEAD_SIZE + 1

    def column(self, count: int) -> list[int]:
        data, at = self.data, self.at
        width, size = data[at], data[at + 1]
        at += 2 + size
        least = int.from_bytes(data[at - size : at], "little") if size else 0
        if not width:
            self.at = at
            return [least] * count
        wide = width == _WIDE << 3
        self.at = end = at + count * (_WIDE if wide else width)
        if wide:
            return [least + int.from_bytes(data[one : one + _WIDE], "little") for one in range(at, end, _WIDE)]
        numbers = array(_CODES[width], data[at:end]).tolist()
        return [number + least for number in numbers] if least else numbers


def unpack(packed: PackedRuns, writers: Sequence[Writer], *, in_tree: bool = True) -> list[Run]:
    """Return the runs of a packed leaf, whose writers have these numbers. They refer to no leaf yet.

    Unless they belong `in_tree`, they have no children and edges.
    """
    columns, reader, data = RunColumns(), _Reader(packed.data), packed.data
    (count,) = reader.column(1)
    columns.starts, columns.writers, columns.lengths = [reader.column(count) for _ in range(3)]
    columns.strides, columns.aboves, columns.distances = [reader.column(count) for _ in range(3)]
    columns.flags, columns.counts = reader.column(count), reader.column(2 * count)
    total = sum(columns.counts)
    if total:
        columns.child_writers, columns.child_distances = reader.column(total), reader.column(total)
    at = reader.at
    end = at + ITEM_ID_SIZE * sum([flag >= _ITEM for flag in columns.flags])
    columns.items = [data[item : item + ITEM_ID_SIZE] for item in range(at, end, ITEM_ID_SIZE)]
    text = data[end:].decode("utf-8", "surrogatepass")
    position = 0
    for flag, length in zip(columns.flags, columns.lengths, strict=True):
        if flag & _TEXT:
            columns.texts.append(text[position : position + length])
            position += length
    columns.objects = packed.objects or {}
    return columns.runs(writers, in_tree=in_tree)
