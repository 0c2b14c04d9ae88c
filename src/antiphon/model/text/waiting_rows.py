"""Insertions that wait for elements which are not here: as rows of a snapshot, and by the clocks of those elements.

A hostile writer makes one with 12 bytes, so none is an object while it waits. Rows are in blocks, by clock, and
compressed in full ones. Writers in a row are numbers: those of the text, or places among the feeds of its last
snapshot. So most blocks of the next snapshot are there as they are.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from antiphon.core.v1 import text_pb2
from antiphon.model.text.clock_order import SMALL, compact, moved, with_number
from antiphon.model.text.runs import EMBED, OFFSET_BITS, OFFSET_MAX, Unit, Writer
from antiphon.model.wire import field, number_at, tags

if TYPE_CHECKING:
    from antiphon.model.text.leaves import Leaves

ROWS_MAX = 64  # rows in a block
SIZE_MAX = 1 << 16  # bytes in a block, unless it has one row
NAMES_MAX = 512  # names in a block
(_SNAPSHOT,) = tags("TextSnapshot")


def read_row(row: text_pb2.TextWaiting, writer_at: Callable[[int], Writer]) -> Unit:
    """Return an insertion from its row."""
    start = row.lamport << OFFSET_BITS | row.offset
    shown = list(row.shown)
    unit = Unit(writer_at(row.writer), start, sum(shown), None, row.item or None)
    unit.above, unit.above_clock = writer_at(row.parent_writer), row.parent_lamport << OFFSET_BITS | row.parent_offset
    unit.left, unit.item = row.left, row.item or None
    text, at = EMBED if row.item else row.text, 0
    unit.pieces = []
    for nth, count in enumerate(shown):
        if count:
            unit.pieces.append((count, None if nth % 2 else text[at : at + count]))
            at += 0 if nth % 2 else count
    return unit


def _row(unit: Unit) -> bytes:
    """Return the row of an insertion, with the numbers that writers have in their text."""
    assert unit.above is not None
    shown = [0]
    for count, text in unit.pieces:
        if (text is None) is (len(shown) % 2 == 0):
            shown[-1] += count
        else:
            shown.append(count)
    row = text_pb2.TextWaiting(
        writer=unit.writer.number,
        lamport=unit.start >> OFFSET_BITS,
        offset=unit.start & OFFSET_MAX,
        parent_writer=unit.above.number,
        parent_lamport=unit.above_clock >> OFFSET_BITS,
        parent_offset=unit.above_clock & OFFSET_MAX,
        left=unit.left,
        shown=shown,
        text="" if unit.item else "".join([text for _, text in unit.pieces if text is not None]),
        item=unit.item or b"",
    )
    return field(_SNAPSHOT.waiting, row.SerializeToString())


class _Block:
    """Rows, and the clocks at which their insertions begin. If writers are places of feeds, `feeds` has those."""

    __slots__ = ("_data", "_is_sealed", "feeds", "first", "named", "steps")

    def __init__(self, rows: bytes, starts: Sequence[int], feeds: Mapping[int, bytes] | None) -> None:
        self.rows = rows
        self.first = starts[0]
        self.steps = moved(starts, self.first)  # from the first clock to those of all
        self.feeds = feeds

    @property
    def starts(self) -> list[int]:
        """The first clocks."""
        return [self.first + step for step in self.steps]

    def find(self, clock: int) -> int:
        """Return the index of the last insertion that begins at a clock or before."""
        return bisect_right(self.steps, clock - self.first) - 1

    def add(self, at: int, start: int) -> None:
        """Add a clock at an index."""
        if start < self.first:
            self.first, self.steps = start, moved(self.steps, start - self.first)
        self.steps = with_number(self.steps, at, start - self.first)

    @property
    def rows(self) -> bytes:
        """The rows."""
        return zlib.decompress(self._data) if self._is_sealed else self._data

    @rows.setter
    def rows(self, rows: bytes) -> None:
        self._data, self._is_sealed = rows, False
        self.named: tuple[int, ...] = ()  # the numbers of the writers, the one of all rows first; () if not known

    def seal(self) -> None:
        """Compress the rows: they will probably not change soon."""
        if not self._is_sealed:
            self._data, self._is_sealed = zlib.compress(self._data, 1), True

    def bounds(self, nth: int) -> tuple[int, int]:
        """Return where a row begins and ends."""
        rows, begin, end = self.rows, 0, 0
        for _ in range(nth + 1):
            begin = end
            size, end = number_at(rows, begin + 1, len(rows))
            end += size
        return begin, end

    def unit(self, nth: int, leaves: Leaves) -> Unit:
        """Return an insertion."""
        begin, end = self.bounds(nth)
        (row,) = text_pb2.TextSnapshot.FromString(self.rows[begin:end]).waiting
        return read_row(row, self._writers(leaves))

    def units(self, leaves: Leaves) -> list[Unit]:
        """Return all insertions."""
        writer_at = self._writers(leaves)
        return [read_row(row, writer_at) for row in text_pb2.TextSnapshot.FromString(self.rows).waiting]

    def _writers(self, leaves: Leaves) -> Callable[[int], Writer]:
        feeds = self.feeds
        return leaves.writers.__getitem__ if feeds is None else lambda place: leaves.by_feed[feeds[place]]

    def renumber(self, number_of: Callable[[Writer], int], leaves: Leaves, feeds: Mapping[int, bytes] | None) -> None:
        """Give the writers other numbers: places of feeds, or those of the text."""
        writer_at, proto = self._writers(leaves), None
        if not self.named:
            proto = text_pb2.TextSnapshot.FromString(self.rows)
            self.named = (proto.waiting[0].writer, *{row.parent_writer for row in proto.waiting})
        numbers = {number: number_of(writer_at(number)) for number in self.named}
        if any(number != other for number, other in numbers.items()):
            proto, named = proto or text_pb2.TextSnapshot.FromString(self.rows), self.named
            writer = numbers[named[0]]
            for row in proto.waiting:
                row.writer, row.parent_writer = writer, numbers[row.parent_writer]
            self.rows = proto.SerializeToString(deterministic=True)
            self.named = tuple([numbers[number] for number in named])
        self.feeds = feeds


class Waiting:
    """The insertions of one writer that wait, by clock."""

    __slots__ = ("_blocks", "_leaves")

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._blocks: list[_Block] = []

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __iter__(self) -> Iterator[Unit]:
        for block in self._blocks:
            yield from block.units(self._leaves)

    def starts(self) -> Iterator[int]:
        """Yield the first clocks."""
        for block in self._blocks:
            yield from block.starts

    def _locate(self, clock: int) -> tuple[int, int]:
        block = max(bisect_right(self._blocks, clock, key=_first_start) - 1, 0)
        return block, self._blocks[block].find(clock) if self._blocks else -1

    def add(self, unit: Unit) -> None:
        """Add an insertion."""
        row = _row(unit)
        if not self._blocks:
            self._blocks.append(_Block(row, [unit.start], None))
            return
        nth, at = self._locate(unit.start)
        block = self._own(nth)
        size, count = len(block.rows) + len(row), len(block.steps)
        is_last = nth == len(self._blocks) - 1 and at == count - 1
        if is_last and (count == ROWS_MAX or size > SIZE_MAX):
            block.seal()
            self._blocks.append(_Block(row, [unit.start], None))
            return
        begin = len(block.rows) if at == count - 1 else block.bounds(at + 1)[0]
        block.rows = block.rows[:begin] + row + block.rows[begin:]
        block.add(at + 1, unit.start)
        if count == ROWS_MAX or size > SIZE_MAX:
            half = (count + 1) // 2
            begin, starts = block.bounds(half)[0], block.starts
            self._blocks[nth : nth + 1] = [
                _Block(block.rows[:begin], starts[:half], None),
                _Block(block.rows[begin:], starts[half:], None),
            ]

    def pop(self, start: int) -> Unit:
        """Remove and return the insertion that begins at a clock."""
        nth, at = self._locate(start)
        block = self._own(nth)
        unit = block.unit(at, self._leaves)
        self._cut(nth, at)
        return unit

    def _cut(self, nth: int, at: int, row: bytes = b"") -> None:
        """Put a row in the place of another one; without one, remove that."""
        block = self._blocks[nth]
        begin, end = block.bounds(at)
        block.rows = block.rows[:begin] + row + block.rows[end:]
        if not row:
            del block.steps[at]
        if not block.rows:
            del self._blocks[nth]

    def _own(self, nth: int) -> _Block:
        """Return a block to be changed: its writers have the numbers of the text."""
        block = self._blocks[nth]
        if block.feeds is not None:
            block.renumber(_number, self._leaves, None)
        return block

    def hide(self, ranges: Sequence[tuple[int, int]]) -> int:
        """Delete the elements in ascending ranges of clocks; return the number of insertions between them."""
        first, visited = ranges[0][0], 0
        for nth in range(self._locate(first)[0], len(self._blocks)):
            block = self._blocks[nth]
            starts = block.starts
            if starts[0] > ranges[-1][1]:
                break
            low = max(bisect_right(starts, first) - 1, 0)
            high = bisect_right(starts, ranges[-1][1])
            visited += high - low
            for at in range(low, high):
                start = starts[at]
                begin = bisect_left(ranges, start, key=_end)
                if begin == len(ranges) or (at + 1 < len(starts) and ranges[begin][0] >= starts[at + 1]):
                    continue
                unit = block.unit(at, self._leaves)
                end = bisect_right(ranges, start + unit.length - 1, key=_begin)
                if begin < end:
                    unit.hide(ranges[begin:end])
                    self._own(nth)
                    self._cut(nth, at, _row(unit))
        return visited

    def rows(self, feeds: Mapping[int, bytes], at: dict[bytes, int]) -> Iterator[bytes]:
        """Yield the rows of a snapshot, block by block, with the places of feeds."""

        def place(writer: Writer) -> int:
            return at[writer.feed]

        named: tuple[int, ...] = ()
        for nth, block in enumerate(self._blocks):
            found = block
            if block.feeds is not feeds:
                if nth == len(self._blocks) - 1:  # it may soon have more
                    found = _Block(block.rows, block.starts, block.feeds)
                found.renumber(place, self._leaves, feeds)
                if found.named == named:
                    found.named = named  # most blocks name the same writers: one tuple for all
                named = found.named
            rows = found.rows
            if nth < len(self._blocks) - 1:
                found.seal()
            yield rows


class Waiters:
    """The names of the insertions that wait for elements of one writer: by the clocks of those."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: list[_Names] = []

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def add(self, unit: Unit) -> None:
        """Add an insertion."""
        clock = unit.above_clock
        nth = max(bisect_right(self._blocks, clock, key=_first) - 1, 0)
        if not self._blocks or (nth == len(self._blocks) - 1 and self._blocks[nth].is_full_before(clock)):
            self._blocks.append(_Names(clock, unit.start - clock))
            nth = len(self._blocks) - 1
        block = self._blocks[nth]
        block.add(clock, unit.writer.number, unit.start)
        if len(block.clocks) > NAMES_MAX:
            self._blocks[nth : nth + 1] = block.halves()

    def pop(self, first: int, last: int) -> list[tuple[int, int]]:
        """Remove the insertions that wait for clocks from one to another; return their writers' numbers and clocks."""
        found: list[tuple[int, int]] = []
        nth = max(bisect_left(self._blocks, first, key=_first) - 1, 0)
        while nth < len(self._blocks) and self._blocks[nth].first <= last:
            found += self._blocks[nth].pop(first, last)
            if self._blocks[nth].clocks:
                nth += 1
            else:
                del self._blocks[nth]
        return found


class _Names:
    """Some names, in narrow columns. An insertion is later than what it waits for."""

    __slots__ = ("clocks", "first", "least", "numbers", "steps")

    def __init__(self, first: int, least: int) -> None:
        self.first = first  # a clock up to those that are waited for
        self.clocks = compact([], SMALL)  # from that clock to those
        self.numbers = compact([], SMALL)  # of the writers that wait
        self.least = least  # clocks between what is waited for and the insertion
        self.steps = compact([], SMALL)  # how many more those are

    def is_full_before(self, clock: int) -> bool:
        """True if no name should be added after the others, and one for this clock would be."""
        return len(self.clocks) == NAMES_MAX and self.first + self.clocks[-1] <= clock

    def add(self, clock: int, number: int, start: int) -> None:
        """Add a name."""
        if clock < self.first:
            self.first, self.clocks = clock, moved(self.clocks, clock - self.first)
        at = bisect_right(self.clocks, clock - self.first)
        self.clocks = with_number(self.clocks, at, clock - self.first)
        self.numbers = with_number(self.numbers, at, number)
        step = start - clock
        if step < self.least:
            self.least, self.steps = step, moved(self.steps, step - self.least)
        self.steps = with_number(self.steps, at, step - self.least)

    def halves(self) -> list[_Names]:
        """Return the two halves of the names."""
        found = []
        for half in (slice(NAMES_MAX // 2), slice(NAMES_MAX // 2, None)):
            clocks = self.clocks[half]
            names = _Names(self.first + clocks[0], self.least)
            names.clocks = moved(clocks, clocks[0])
            names.numbers, names.steps = self.numbers[half], self.steps[half]
            found.append(names)
        return found

    def pop(self, first: int, last: int) -> list[tuple[int, int]]:
        """Remove those that wait for clocks from one to another; return their writers' numbers and clocks."""
        low, high = bisect_left(self.clocks, first - self.first), bisect_right(self.clocks, last - self.first)
        chosen = zip(self.clocks[low:high], self.numbers[low:high], self.steps[low:high], strict=True)
        found = [(number, self.first + clock + self.least + step) for clock, number, step in chosen]
        del self.clocks[low:high], self.numbers[low:high], self.steps[low:high]
        return found


def _first_start(block: _Block) -> int:
    return block.first + block.steps[0]


def _first(names: _Names) -> int:
    return names.first


def _number(writer: Writer) -> int:
    return writer.number


def _begin(bounds: tuple[int, int]) -> int:
    return bounds[0]


def _end(bounds: tuple[int, int]) -> int:
    return bounds[1]
