"""Snapshots of a text: columns of each writer's elements in the order of their clocks.

The division into runs in memory leaves no trace, so the bytes depend on the messages alone. A restored text is encoded
again and compared, so that a state has exactly one snapshot. Columns are encoded while they are made, so that the
numbers of a long text are never all in memory. What a block of runs adds to them is kept in a cell: the next snapshot
costs as much as the blocks that have changed since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import accumulate, pairwise, zip_longest

from antiphon.core.v1 import text_pb2
from antiphon.model.text import snapshot_marks
from antiphon.model.text.absent_feeds import numbers_of
from antiphon.model.text.clock_order import compact
from antiphon.model.text.marks import TextState
from antiphon.model.text.runs import HOLE, LAMPORT, OFFSET_BITS, OFFSET_MAX, Run, Writer
from antiphon.model.text.snapshot_cell import Cell, Open, Step, Turns
from antiphon.model.wire import field, number_at, number_field, tags, varint

TYPED, CHUNK, CHUNK_AT = 0, 1, 2  # kinds of a step in the column of clocks
_SNAPSHOT, _WRITER = tags("TextSnapshot", "TextWriter")
_PARTS = re.compile(f"{HOLE}+|[^{HOLE}]+").findall


def encode(state: TextState, *, waiting: bool = True) -> bytes:
    """Encode the canonical snapshot, perhaps without the insertions that wait."""
    feeds = _listed(state)
    at: dict[bytes, int] = {}
    others = 0
    for feed, (_, before, is_absent) in zip(feeds, state.absent.between(feeds), strict=False):
        at[feed] = before + others
        others += not is_absent
    writers = [state.writers[feed] for feed in feeds if feed in state.writers]
    places, shifts = {at[writer.feed]: writer.feed for writer in writers}, sum(writer.runs.shifts for writer in writers)
    if state.listed != (places, shifts):  # cells and rows that name other writers refer to these very objects
        state.listed = (state.listed[0] if state.listed[0] == places else places), shifts
    out = BytesIO()  # whose bytes are not copied in the end
    out.writelines(_rows(state, feeds, at))
    for writer in writers if waiting else ():
        if writer.units:
            out.writelines(writer.units.rows(state.listed[0], at))
    if state.marks:
        out.writelines(snapshot_marks.encoded(state.marks, at))
    return out.getvalue()


def _rows(state: TextState, feeds: list[bytes], at: dict[bytes, int]) -> Iterator[bytes]:
    """Yield the rows of writers, of feeds that only marks name, and of absent ones, by feed."""
    ordinals = _OrdinalsOfAll()
    for feed, (absent, _, is_absent) in zip_longest(feeds, state.absent.between(feeds)):
        yield from absent
        if feed is not None and not is_absent:
            writer = state.writers.get(feed)
            named = field(_WRITER.feed, feed)
            columns = named if writer is None else _Columns(writer, at, ordinals, state.listed).encoded()
            yield field(_SNAPSHOT.writers, columns)


def _listed(state: TextState) -> list[bytes]:
    """Return the feeds that a snapshot names, beside absent ones: of writers with messages, or that parts refer to."""
    feeds = {feed for feed, writer in state.writers.items() if writer.floor or writer.doomed or writer.waiting}
    if state.marks:
        feeds |= state.marks.feeds()
    return sorted(feeds)


class _Ordinals:
    """The ordinals of one writer's elements: how many come before each."""

    def __init__(self, writer: Writer) -> None:
        self._runs = writer.runs
        self._firsts: list[int] = []  # for each block, the number of elements before it
        self._counts: dict[int, Sequence[int]] = {}  # for each block, and each of its runs and their end

    def of(self, clock: int) -> int:
        """Return the ordinal of the first or last element of a run, which has this clock."""
        runs = self._runs
        if not self._firsts:
            self._firsts = [0, *accumulate(map(runs.count, range(len(runs.cells))))]
        block, at, first = runs.place(clock)
        counts = self._counts.get(block)
        if counts is None:
            counts = self._counts[block] = compact([*accumulate(runs.counts(block), initial=self._firsts[block])])
        return counts[at] if first else counts[at + 1] - 1


class _OrdinalsOfAll(dict[Writer, _Ordinals]):
    """The ordinals of the writers whose elements are parents; most writers of a hostile text have no elements."""

    def __missing__(self, writer: Writer) -> _Ordinals:
        found = self[writer] = _Ordinals(writer)
        return found


class _Turns:
    """Alternating counts of elements that are shown and deleted, while they are made."""

    __slots__ = ("counts", "first", "shown")

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.first = self.shown = True  # the kinds of the first count and of the last one

    def add(self, counts: list[int], shown: bool) -> None:
        """Add alternating counts, of which the first one is of this kind."""
        if not self.counts:
            self.first = shown
            self.counts += counts
        elif self.shown is shown:
            self.counts[-1] += counts[0]
            if len(counts) > 1:
                self.counts += counts[1:]
        else:
            self.counts += counts
        self.shown = shown is (len(counts) % 2 == 1)

    def encoded(self) -> Turns | None:
        """Return the counts of a cell; None if there are none."""
        counts = self.counts
        if not counts:
            return None
        return Turns(self.first, counts[0], _packed(counts[1:-1]), counts[-1], len(counts))


class _Columns:
    """The columns of one writer, encoded block by block. Of each, the last entry is open."""

    def __init__(self, writer: Writer, at: dict[bytes, int], ordinals: dict[Writer, _Ordinals], listed: object) -> None:
        self.writer = writer
        self._at = at
        self._ordinals = ordinals
        self._listed = listed
        self._clocks, self._chains, self._others = bytearray(), bytearray(), False  # of the block that is encoded
        self._begin = self._end = 0  # clocks of a chunk within one lamport that goes on
        self._step: Step | None = None
        self._lamport = 0  # after the steps that are encoded
        self._chain: list[int] = []
        self._count = 0  # elements
        self._last = -1  # clock

    def encoded(self) -> bytes:
        """Encode all runs, and return the message."""
        writer = self.writer
        cells = list(self._cells())
        if self._begin < self._end:
            self._add_clocks([self._chunk()])
        self._put_steps([self._step] if self._step else [])
        parts = [field(_WRITER.feed, writer.feed), number_field(_WRITER.floor_lamport, writer.floor >> OFFSET_BITS)]
        parts.append(number_field(_WRITER.floor_offset, writer.floor & OFFSET_MAX))
        columns = (
            (_WRITER.clocks, b"".join([*(cell.clocks for cell in cells), self._clocks])),
            (_WRITER.shown, _joined(cell.turns for cell in cells if cell.turns is not None)),
            (_WRITER.chains, b"".join([*(cell.chains for cell in cells), _packed(self._chain)])),
            (_WRITER.text, b"".join([cell.text for cell in cells])),
            (_WRITER.embeds, _packed(_distances(cells))),
            (_WRITER.items, b"".join([cell.items for cell in cells])),
            (_WRITER.doomed, _packed(numbers_of(writer.doomed))),
        )
        parts += [field(tag, column) for tag, column in columns if column]
        return b"".join(parts)

    def _cells(self) -> Iterator[Cell]:
        """Yield the cells of all blocks; make those that have changed, or follow others than when they were made."""
        cells = self.writer.runs.cells
        before = self._open()
        for block, known in enumerate(cells):
            cell = known
            if cell is None or cell.before != before or not (cell.listed is None or cell.listed is self._listed):
                self._resume(before)
                cell = self._made(before, self.writer.runs.runs_of(block, self.writer))
                if block + 1 < len(cells):
                    cells[block] = cell
            before = cell.after
            yield cell
        self._resume(before)

    def _open(self) -> Open:
        chain = tuple(self._chain)
        return Open(self._begin, self._end, self._step, self._lamport, chain, self._count, self._last)

    def _resume(self, before: Open) -> None:
        self._begin, self._end, self._step, self._lamport, chain, self._count, self._last = before
        self._clocks, self._chains, self._others, self._chain = bytearray(), bytearray(), False, list(chain)

    def _made(self, before: Open, runs: list[Run]) -> Cell:
        """Encode the runs of a block."""
        self._add_clocks(list(self._pieces(runs)))
        turns = _Turns()
        for run in runs:
            if run.text is None or HOLE not in run.text:
                turns.add([run.length], run.text is not None)
            else:
                turns.add(list(map(len, _PARTS(run.text))), run.text[0] != HOLE)
        text = "".join([run.text for run in runs if run.text is not None]).replace(HOLE, "")
        self._add_chains(runs)
        embeds, items = _embeds(runs)
        listed = self._listed if self._others else None
        clocks, chains = bytes(self._clocks), bytes(self._chains)
        return Cell(
            before, self._open(), listed, clocks, chains, text.encode(), items, embeds, turns.encoded(), len(text)
        )

    def _add_chains(self, runs: Iterable[Run]) -> None:
        """Add the parents of runs."""
        writer, ordinals, last, count = self.writer, self._ordinals, self._last, self._count
        chains = self._chain
        for run in runs:
            above = run.above
            if above is writer and run.above_clock == last and last >= 0:
                if run.left:
                    chains += (0, 3, 1)  # left of the element before
            elif above is None:
                chains += (0, int(run.left), 0)
            else:
                ordinal = ordinals[above].of(run.above_clock)
                if above is writer:
                    chains += (0, 2 | run.left, count - ordinal)
                else:
                    chains += (0, self._at[above.feed] + 2 << 1 | run.left, ordinal)
                    self._others = True
            chains[-3] += run.length
            count += run.length
            last = run.start + (run.length - 1) * run.stride
        self._last, self._count, self._chain = last, count, chains[-3:]
        self._chains += _packed(chains[:-3])

    def _add_clocks(self, pieces: Iterable[Step]) -> None:
        """Add the clocks in steps: elements with one lamport each, or a chunk of one lamport."""
        steps: list[Step] = [self._step] if self._step else []
        for lamport, offset, count, typed in pieces:
            if steps:
                before = steps[-1]
                if typed and before[3] and before[0] + before[2] == lamport:
                    steps[-1] = (before[0], 0, before[2] + count, True)
                    continue
                if not typed and not before[3] and before[0] == lamport and before[1] + before[2] == offset:
                    steps[-1] = (lamport, before[1], before[2] + count, False)
                    continue
                if not typed and before[3] and before[0] + before[2] - 1 == lamport and offset == 1:
                    steps[-1:] = [(before[0], 0, before[2] - 1, True)] if before[2] > 1 else []
                    steps.append((lamport, 0, count + 1, False))
                    continue
            steps.append((lamport, offset, count, typed))
        self._step = steps.pop() if steps else None
        self._put_steps(steps)

    def _put_steps(self, steps: Iterable[Step]) -> None:
        column: list[int] = []
        for lamport, offset, count, typed in steps:
            kind = TYPED if typed else CHUNK_AT if offset else CHUNK
            column += (lamport - self._lamport, count << 2 | kind)
            if kind == CHUNK_AT:
                column.append(offset)
            self._lamport = lamport + count - 1 if typed else lamport
        self._clocks += _packed(column)

    def _chunk(self) -> Step:
        return self._begin >> OFFSET_BITS, self._begin & OFFSET_MAX, self._end - self._begin, False

    def _pieces(self, runs: Iterable[Run]) -> Iterator[Step]:
        """Yield the parts of runs. A chunk that may go on in the next run is yielded after that."""
        for run in runs:
            start, length = run.start, run.length
            chunk = (length == 1 or run.stride == 1) and start & OFFSET_MAX > 0
            if chunk and start == self._end:
                self._end += length
                continue
            if self._begin < self._end:
                yield self._chunk()
                self._begin = self._end = 0
            if chunk:
                self._begin, self._end = start, start + length
                continue
            lamport, offset = start >> OFFSET_BITS, start & OFFSET_MAX
            if run.length == 1 or run.stride == 1:
                yield lamport, offset, run.length, run.length == 1 and offset == 0
            elif run.stride == LAMPORT and offset == 0:
                yield lamport, 0, run.length, True
            else:
                for at in range(run.length):
                    clock = run.clock(at)
                    yield clock >> OFFSET_BITS, clock & OFFSET_MAX, 1, clock & OFFSET_MAX == 0


def _packed(numbers: list[int]) -> bytes:
    """Encode numbers without a tag and a length, so that a field can be put together of several parts."""
    if not numbers:
        return b""
    data = text_pb2.TextWriter(chains=numbers).SerializeToString()
    return data[number_at(data, 1, len(data))[1] :]


def _embeds(runs: Iterable[Run]) -> tuple[tuple[int, ...], bytes]:
    """Return the positions of embedded items in the text of runs, and the items."""
    places, items, position = [], [], 0
    for run in runs:
        if run.text is not None:
            if run.item is not None:
                places.append(position)
                items.append(run.item)
            position += run.shown
    return tuple(places), b"".join(items)


def _distances(cells: Iterable[Cell]) -> list[int]:
    """Return the distance of each embedded item from the one before, in the text of cells."""
    places, position = [0], 0
    for cell in cells:
        places += [position + place for place in cell.embeds]
        position += cell.shown
    return [place - before for before, place in pairwise(places)]


def _joined(turns: Iterable[Turns]) -> bytes:
    """Return the column of turns: the first count is of shown elements, perhaps 0."""
    column, shown, count = bytearray(), True, 0
    for turn in turns:
        first = turn.first
        if turn.shown is shown:
            first += count
        else:
            column += varint(count)
        shown, count = turn.shown, first
        if turn.number > 1:
            column += varint(first) + turn.middle
            shown, count = turn.shown is (turn.number % 2 == 1), turn.last
    if count:
        column += varint(count)
    return bytes(column)
