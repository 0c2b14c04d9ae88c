"""Runs as bytes: the form of a leaf that has not been used for some time.

A run in memory takes some 280 bytes, and a hostile writer makes one with 7. Its form here takes 3 to 30: the fields of
all runs of a leaf are columns, each of numbers above its least one. Edges, and siblings that are many, stay objects.
One run can be read, and another one put beside it, without making those between: insertions at random places of a
large text each need another leaf.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice
from struct import Struct
from typing import NamedTuple

from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.model.text.runs import HOLE, Edge, Run, Writer
from antiphon.model.text.siblings import ManySiblings

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}  # of arrays, by the bytes of a number
_WIDE = 16  # bytes of a number that is too large for an array; the least one counts as 0 then
_LEFT, _TEXT, _ITEM = 1, 2, 4
_OBJECTS = ("lefts", "rights", "left_edge", "right_edge")  # fields of a run that may hold objects
_HOLE = HOLE.encode("utf-8", "surrogatepass")

# Where the text begins; counts of runs, of children and of items. Of each column, the bytes of a number, and the least
# number: six with a number for each run (`Fields`), two with one for each child (its writer and its distance). After
# the six there are three of one byte for each run: flags, and the counts of its left and its right children.
_HEAD = Struct("<IIII8B8Q")
_WIDTHS, _LEASTS, _FIELDS, _CHILDREN = 4, 12, 6, 6


class Fields(NamedTuple):
    """The numbers of a packed run. Writers are numbers; an `above` of 0 is the root."""

    start: int
    writer: int
    length: int
    stride: int
    above: int
    distance: int  # from the parent's clock to the first clock


class PackedRuns(NamedTuple):
    """The runs of a leaf as bytes, and the objects that belong to them: where they are, ascending, and they themselves.

    Where: 4 × the index of a run + that of a field. It is a byte, since leaves have less than 64 runs.
    """

    data: bytes
    places: bytes
    objects: tuple[Edge | ManySiblings, ...]

    @property
    def text(self) -> str:
        """The text that is shown."""
        return self.data[int.from_bytes(self.data[:4], "little") :].replace(_HOLE, b"").decode()

    @property
    def has_items(self) -> bool:
        """True if items are embedded."""
        return bool(_HEAD.unpack_from(self.data)[3])

    @property
    def size(self) -> int:
        """The number of runs."""
        return int.from_bytes(self.data[4:8], "little")

    def object(self, at: int, field: str) -> Edge | ManySiblings | None:
        """Return the object in a field of a run, if there is one."""
        nth = self.places.find(at << 2 | _OBJECTS.index(field))
        return None if nth < 0 else self.objects[nth]

    def with_object(self, at: int, field: str, found: Edge | ManySiblings | None) -> PackedRuns:
        """Return the same runs with another object in a field of a run."""
        place = at << 2 | _OBJECTS.index(field)
        begin, end = bisect_left(self.places, place), bisect_right(self.places, place)
        places, objects = ((place,), (found,)) if found is not None else ((), ())
        return PackedRuns(
            self.data,
            self.places[:begin] + bytes(places) + self.places[end:],
            self.objects[:begin] + objects + self.objects[end:],
        )

    def find(self, writer: int, start: int) -> int:
        """Return the index of the run of a writer that begins with a clock."""
        data = self.data
        head = _HEAD.unpack_from(data)
        count, width, other = head[1], head[_WIDTHS], head[_WIDTHS + 1]
        mine = (writer - head[_LEASTS + 1]).to_bytes(other, "little")
        wanted = (start - head[_LEASTS]).to_bytes(width, "little")
        writers = _HEAD.size + count * width
        at: int
        if not width:
            at = next(at for at in range(count) if data.startswith(mine, writers + at * other))
            return at
        place = data.index(wanted, _HEAD.size, writers)
        while True:
            at, rest = divmod(place - _HEAD.size, width)
            if not rest and data.startswith(mine, writers + at * other):
                return at
            place = data.index(wanted, place + 1, writers)

    def fields(self, at: int) -> tuple[Fields, bool]:
        """Return the numbers of a run, and on which side of its parent it is."""
        data = self.data
        head = _HEAD.unpack_from(data)
        numbers, begin = [], _HEAD.size
        for width, least in zip(head[_WIDTHS : _WIDTHS + _FIELDS], head[_LEASTS : _LEASTS + _FIELDS], strict=True):
            place = begin + at * width
            numbers.append(int.from_bytes(data[place : place + width], "little") + least)
            begin += head[1] * width
        return Fields(*numbers), bool(data[begin + at] & _LEFT)

    def children(self, at: int, left: bool) -> list[tuple[int, int]]:
        """Return the children on one side of a run, unless they are many: their writers and distances."""
        data = self.data
        head = _HEAD.unpack_from(data)
        first, count, begin = _children(data, head, at, left)
        columns = []
        for width, least in zip(head[_WIDTHS + _CHILDREN : _LEASTS], head[_LEASTS + _CHILDREN :], strict=True):
            places = range(begin + first * width, begin + (first + count) * width, width or 1)
            found = [int.from_bytes(data[place : place + width], "little") + least for place in places]
            columns.append(found if width else [least] * count)
            begin += head[2] * width
        return list(zip(*columns, strict=True))

    def with_children(self, at: int, left: bool, children: list[tuple[int, int]]) -> PackedRuns | None:
        """Return the same runs with other children on one side of a run; None if those do not fit into the columns."""
        data = self.data
        head = _HEAD.unpack_from(data)
        first, count, begin = _children(data, head, at, left)
        place = _HEAD.size + head[1] * (sum(head[_WIDTHS : _WIDTHS + _FIELDS]) + (1 if left else 2)) + at
        parts = [data[_HEAD.size : place], bytes((len(children),))]
        done, size = place + 1, 0
        for nth, (width, least) in enumerate(
            zip(head[_WIDTHS + _CHILDREN : _LEASTS], head[_LEASTS + _CHILDREN :], strict=True)
        ):
            place = begin + first * width
            parts.append(data[done:place])
            for child in children:
                number = child[nth] - least
                if number < 0 or number >> 8 * width:
                    return None
                parts.append(number.to_bytes(width, "little"))
            done = place + count * width
            begin += head[2] * width
            size += width
        parts.append(data[done:])
        more = len(children) - count
        parts.insert(0, _HEAD.pack(head[0] + more * size, head[1], head[2] + more, *head[3:]))
        return PackedRuns(b"".join(parts), self.places, self.objects)

    def with_run(self, at: int, fields: Fields, text: str | None, left: bool) -> PackedRuns | None:
        """Return the same runs and a new one at an index, without children; None if it does not fit into the columns.

        `left` says on which side of its parent it is.
        """
        data = self.data
        head = _HEAD.unpack_from(data)
        total = head[1]
        parts: list[bytes] = []
        done = begin = _HEAD.size
        for number, width, least in zip(fields, head[_WIDTHS : _WIDTHS + _FIELDS], head[_LEASTS:], strict=False):
            number -= least
            if number < 0 or number >> 8 * width:
                return None
            place = begin + at * width
            parts += (data[done:place], number.to_bytes(width, "little"))
            done = place
            begin += total * width
        flags = data[begin : begin + total]
        for byte in ((_TEXT if text is not None else 0) | left, 0, 0):
            parts += (data[done : begin + at], bytes((byte,)))
            done = begin + at
            begin += total
        size = sum(map(len, parts)) - (done - _HEAD.size)
        if text is None:
            parts.append(data[done:])
        else:
            parts += (data[done : head[0]], *self._with_text(head, flags, at, text))
        parts.insert(0, _HEAD.pack(head[0] + size, total + 1, *head[2:]))
        places = self.places
        if places:
            first = bisect_left(places, at << 2)
            places = places[:first] + bytes([place + 4 for place in places[first:]])
        return PackedRuns(b"".join(parts), places, self.objects)

    def _with_text(self, head: tuple[int, ...], flags: bytes, at: int, text: str) -> tuple[bytes, bytes, bytes]:
        """Return the text before a new run, of it, and after it."""
        position, known = self._text_before(head, flags, at), self.data[head[0] :]
        if not known.isascii():
            position = len(known.decode("utf-8", "surrogatepass")[:position].encode("utf-8", "surrogatepass"))
        return known[:position], text.encode("utf-8", "surrogatepass"), known[position:]

    def _text_before(self, head: tuple[int, ...], flags: bytes, at: int) -> int:
        """Return the number of characters before a run, holes included."""
        begin = _HEAD.size + head[1] * sum(head[_WIDTHS : _WIDTHS + 2])
        lengths = _column(self.data, begin, head[_WIDTHS + 2], head[_LEASTS + 2], at)
        return sum([length for length, flag in zip(lengths, flags, strict=False) if flag & _TEXT])

    def content(self, at: int, length: int) -> tuple[str | None, bytes | None]:
        """Return the text and the item of a run of so many elements."""
        data = self.data
        head = _HEAD.unpack_from(data)
        begin = _HEAD.size + head[1] * sum(head[_WIDTHS : _WIDTHS + _FIELDS])
        flags = data[begin : begin + head[1]]
        if not flags[at] & _TEXT:
            return None, None
        position, known = self._text_before(head, flags, at), data[head[0] :]
        text = (known if known.isascii() else known.decode("utf-8", "surrogatepass"))[position : position + length]
        item = None
        if flags[at] & _ITEM:
            place = head[0] - ITEM_ID_SIZE * sum(flag >= _ITEM for flag in flags[at:])
            item = data[place : place + ITEM_ID_SIZE]
        return text if isinstance(text, str) else text.decode(), item


def _children(data: bytes, head: tuple[int, ...], at: int, left: bool) -> tuple[int, int, int]:
    """Return the index of the first child on one side of a run, how many there are, and where children begin."""
    count = head[1]
    lefts = _HEAD.size + count * (sum(head[_WIDTHS : _WIDTHS + _FIELDS]) + 1)
    rights = lefts + count
    first = sum(data[lefts : lefts + at]) + sum(data[rights : rights + at])
    if left:
        return first, data[lefts + at], rights + count
    return first + data[lefts + at], data[rights + at], rights + count


def _column(data: bytes, begin: int, width: int, least: int, count: int) -> list[int]:
    """Return the first numbers of a column."""
    if not width:
        return [least] * count
    end = begin + count * width
    if width == _WIDE:
        return [int.from_bytes(data[one : one + _WIDE], "little") for one in range(begin, end, _WIDE)]
    numbers = array(_CODES[width], data[begin:end]).tolist()
    return [number + least for number in numbers] if least else numbers


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
        self.objects: dict[int, Edge | ManySiblings] = {}

    def add_object(self, at: int, field: str, found: Edge | ManySiblings) -> None:
        """Add an object in a field of a run."""
        self.objects[at << 2 | _OBJECTS.index(field)] = found

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
            for key, found in self.objects.items():
                setattr(runs[key >> 2], _OBJECTS[key & 3], found)
        return runs

    def packed(self) -> PackedRuns:
        """Return the packed form."""
        widths, leasts, parts = [], [], []
        columns = (self.starts, self.writers, self.lengths, self.strides, self.aboves, self.distances)
        for column in (*columns, self.child_writers, self.child_distances):
            width, least, data = _packed(column)
            widths.append(width)
            leasts.append(least)
            parts.append(data)
        parts[_FIELDS:_FIELDS] = (bytes(self.flags), bytes(self.counts[::2]), bytes(self.counts[1::2]))
        parts += self.items
        text_at = _HEAD.size + sum(map(len, parts))
        parts.append("".join(self.texts).encode("utf-8", "surrogatepass"))
        counts = (len(self.starts), len(self.child_writers), len(self.items))
        data = b"".join((_HEAD.pack(text_at, *counts, *widths, *leasts), *parts))
        places = sorted(self.objects)
        return PackedRuns(data, bytes(places), tuple([self.objects[place] for place in places]))


def _packed(numbers: list[int]) -> tuple[int, int, bytes]:
    """Return a column: the bytes of a number, the least number, and how far each one lies above it."""
    if not numbers:
        return 0, 0, b""
    least, greatest = min(numbers), max(numbers)
    span = greatest - least
    width = 0 if not span else 1 if span < 1 << 8 else 2 if span < 1 << 16 else 4 if span < 1 << 32 else 8
    if greatest >= 1 << 64:
        return _WIDE, 0, b"".join([number.to_bytes(_WIDE, "little") for number in numbers])
    if width and greatest < 1 << 8 * width:
        least = 0  # so that there is room below
    if not width:
        return 0, least, b""
    return width, least, array(_CODES[width], [number - least for number in numbers] if least else numbers).tobytes()


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
                    columns.add_object(at, side, siblings)
                    counts.append(0)
                    continue
                counts.append(len(siblings or ()))
                for feed, clock in siblings or ():
                    columns.child_writers.append(writers[feed].number)
                    columns.child_distances.append(clock - run.start)
        if run.left_edge is not None:
            columns.add_object(at, "left_edge", run.left_edge)
        if run.right_edge is not None:
            columns.add_object(at, "right_edge", run.right_edge)
    return columns.packed()


def read_run(packed: PackedRuns, at: int, writers: Sequence[Writer]) -> Run:
    """Return a run of a packed leaf, whose writers have these numbers, without its children and edges."""
    fields, left = packed.fields(at)
    text, item = packed.content(at, fields.length)
    above = writers[fields.above] if fields.above else None
    clock = fields.start - fields.distance
    run = Run(writers[fields.writer], fields.start, fields.length, text, item, above, clock, left)
    run.stride = fields.stride
    return run


def unpack(packed: PackedRuns, writers: Sequence[Writer], *, in_tree: bool = True) -> list[Run]:
    """Return the runs of a packed leaf, whose writers have these numbers. They refer to no leaf yet.

    Unless they belong `in_tree`, they have no children and edges.
    """
    columns, data = RunColumns(), packed.data
    head = _HEAD.unpack_from(data)
    end, count, children, _ = head[:_WIDTHS]
    at, found = _HEAD.size, []
    for nth, width in enumerate(head[_WIDTHS:_LEASTS]):
        if nth == _FIELDS:
            columns.flags = list(data[at : at + count])
            columns.counts = [
                each
                for pair in zip(data[at + count : at + 2 * count], data[at + 2 * count : at + 3 * count], strict=True)
                for each in pair
            ]
            at, count = at + 3 * count, children
        found.append(_column(data, at, width, head[_LEASTS + nth], count))
        at += count * width
    columns.starts, columns.writers, columns.lengths, columns.strides, columns.aboves, columns.distances = found[
        :_FIELDS
    ]
    columns.child_writers, columns.child_distances = found[_FIELDS:]
    columns.items = [data[item : item + ITEM_ID_SIZE] for item in range(at, end, ITEM_ID_SIZE)]
    text = data[end:].decode("utf-8", "surrogatepass")
    position = 0
    for flag, length in zip(columns.flags, columns.lengths, strict=True):
        if flag & _TEXT:
            columns.texts.append(text[position : position + length])
            position += length
    columns.objects = dict(zip(packed.places, packed.objects, strict=True))
    return columns.runs(writers, in_tree=in_tree)
