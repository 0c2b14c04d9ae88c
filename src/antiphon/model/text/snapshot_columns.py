"""Columns of a snapshot of a text: the elements of one writer, divided into runs. All numbers are arrays."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from antiphon.core.errors import BadEncoding
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.core.v1 import text_pb2
from antiphon.model.text.runs import EMBED, HOLE, HOLES_MAX, LAMPORT, OFFSET_BITS, RUN_MAX, Writer
from antiphon.model.text.snapshot_writer import CHUNK_AT, TYPED

LAMPORT_MAX = (1 << 63) - 1
_COUNT_MAX = 1 << 60  # elements of a writer; deleted ones, of which a stranger may claim very many, cost nothing
Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


def check(condition: object, reason: str) -> None:
    """Refuse a snapshot unless a condition holds."""
    if not condition:
        raise BadEncoding(f"text snapshot: {reason}")


class WriterColumns:
    """The columns of one writer, and the ordinals at which its runs begin."""

    def __init__(self, row: text_pb2.TextWriter, writer: Writer) -> None:
        self.writer = writer
        self.text = text = row.text
        items = row.items  # read once: each access to a field copies it
        self.steps = self._steps(row.clocks)  # first ordinal, first clock, stride
        shown = _numbers(row.shown)
        self.turns = np.cumsum(shown)  # the ordinals at which turns end; odd ones are deleted
        shown[1::2] = 0
        self.before = np.cumsum(shown) - shown  # elements shown before each turn
        self._read_chains(_numbers(row.chains))
        check((self.turns[-1] if len(shown) else 0) == self.count, "counts that differ between its columns")
        check(len(text) == shown.sum(), "text that is not as long as what is shown")
        check(len(items) == ITEM_ID_SIZE * len(row.embeds), "items that are not as many as their places")
        self.embeds = list(accumulate(row.embeds))
        self.items = items
        ascend = all(row.embeds[1:]) and (not self.embeds or self.embeds[-1] < len(text))
        check(ascend and all(text[at] == EMBED for at in self.embeds), "items that stand nowhere")
        self.cuts: list[Ints] = [np.array([0, self.count, *(step[0] for step in self.steps)]), self.heads]
        self.first = 0  # the number of its first run among those of all writers

    def _steps(self, column: Sequence[int]) -> list[tuple[int, int, int]]:
        steps = []
        self.messages = 0  # that inserted the elements, or fewer
        count = lamport = floor = 0
        values = iter(column)
        for step in values:
            size, kind = divmod(next(values, 0), 4)
            offset = next(values, 0) if kind == CHUNK_AT else 0
            lamport += step
            clock = lamport << OFFSET_BITS | offset
            last = lamport if kind else lamport + size - 1
            fits = kind <= CHUNK_AT and size and last <= LAMPORT_MAX and offset + (size if kind else 1) <= LAMPORT
            check(fits and clock >= floor, "clocks that do not ascend")
            steps.append((count, clock, LAMPORT if kind == TYPED else 1))
            self.messages += 1 if kind else size
            count += size
            floor = (last << OFFSET_BITS) + 1 if kind == TYPED else clock + size
            lamport = last
        check(floor <= self.writer.floor, "elements above their writer's floor")
        check(count < _COUNT_MAX, "more elements than a text can have")
        self.count = count
        return steps

    def _read_chains(self, column: Ints) -> None:
        """Read where chains begin, and their parents: `wheres` (0: the root, 1: this writer), `lefts`, `parents`."""
        sizes, places = column[::3], column[1::3]
        check(len(column) % 3 == 0 and sizes.all(), "chains that are cut off or empty")
        ends = np.cumsum(sizes)
        check((ends[-1] if len(ends) else 0) == self.count, "chains that are not as long as its clocks")
        self.heads = ends - sizes
        self.wheres, self.lefts = places >> 1, (places & 1).astype(bool)
        self.parents = np.where(self.wheres == 1, self.heads - column[2::3], column[2::3])

    def cut_for_children(self, columns: Sequence[WriterColumns | None]) -> None:
        """Divide the runs of parents: children belong to the first or the last element of a run."""
        root = self.wheres == 0
        check(not (root & (self.lefts | (self.parents != 0))).any(), "something left of the root")
        for where, parent in self.parents_in(columns):
            chosen = self.wheres == where
            ordinals = self.parents[chosen]
            check(((ordinals >= 0) & (ordinals < parent.count)).all(), "a parent that is not there")
            parent.cuts.append(np.unique(ordinals + ~self.lefts[chosen]))

    def parents_in(self, columns: Sequence[WriterColumns | None]) -> Iterator[tuple[int, WriterColumns]]:
        """Yield the writers of parents, each with its number in `wheres`."""
        for where in np.unique(self.wheres).tolist():
            if where:
                check(where == 1 or where - 2 < len(columns), "a parent of no writer")
                found = self if where == 1 else columns[where - 2]
                if found is None:
                    raise BadEncoding("text snapshot: a parent of a writer without elements")
                yield where, found

    def cut_for_unit(self, clock: int) -> None:
        """Divide the runs at a waiting insertion: no run may extend across its clocks."""
        at = bisect_right(self.steps, clock, key=lambda step: step[1]) - 1
        if at >= 0:
            first, start, stride = self.steps[at]
            ordinal = first - (start - clock) // stride
            if ordinal < (self.steps[at + 1][0] if at + 1 < len(self.steps) else self.count):
                self.cuts.append(np.array([ordinal]))

    def divide(self) -> None:
        """Divide the elements into runs: `begins`, `sizes`, `starts`, `typed`, and `shown`, those shown before each.

        Short deleted parts are holes of a run. Long ones are runs, and so are embedded items.
        """
        sizes = np.diff(self.turns, prepend=0)
        long = np.flatnonzero(sizes > HOLES_MAX)
        long = long[long % 2 == 1]
        self.cuts += [self.turns[long], self.turns[long] - sizes[long]]
        if self.embeds:
            # The last turn that begins at a shown element or before it is the one that shows it.
            embeds = np.array(self.embeds)
            turns = np.searchsorted(self.before[::2], embeds, "right") * 2 - 2
            ordinals = embeds - self.before[turns] + self.turns[turns] - sizes[turns]
            self.cuts += [ordinals, ordinals + 1]
        cuts = np.unique(np.concatenate(self.cuts))
        self.cuts.clear()
        lengths = np.diff(cuts)
        parts = [cuts[:-1]]
        for at in np.flatnonzero(lengths > RUN_MAX).tolist():
            begin, end = int(cuts[at]), int(cuts[at + 1])
            low, high = self._shown_before(np.array([begin, end])).tolist()
            if low < high:
                parts.append(np.arange(begin + RUN_MAX, end, RUN_MAX))
        self.begins = np.sort(np.concatenate(parts)) if len(parts) > 1 else parts[0]
        ends = np.append(self.begins[1:], self.count) if self.count else self.begins
        self.sizes = ends - self.begins
        self.shown = self._shown_before(self.begins)
        firsts = np.array([step[0] for step in self.steps], np.int64)
        steps = np.searchsorted(firsts, self.begins, "right") - 1
        wide = bool(self.steps) and self.steps[-1][1] + (self.count << OFFSET_BITS) >= 1 << 63
        clocks = np.array([step[1] for step in self.steps], object if wide else np.int64)
        strides = np.array([step[2] for step in self.steps], np.int64)[steps]
        self.typed = strides > 1
        self.starts = clocks[steps] + (self.begins - firsts[steps]) * (strides.astype(object) if wide else strides)

    def _shown_before(self, ordinals: Ints) -> Ints:
        """Return the number of elements shown before each of some ordinals."""
        turns = np.searchsorted(self.turns, ordinals, "right")
        inside = np.minimum(turns, len(self.turns) - 1)
        begins = np.where(inside > 0, self.turns[inside - 1], 0)
        found: Ints = self.before[inside] + np.where(inside % 2 == 0, ordinals - begins, 0)
        return np.where(turns < len(self.turns), found, len(self.text))

    def content(self, run: int, shown: int) -> tuple[str | None, bytes | None]:
        """Return the text and the item of a run, of which so many elements are shown."""
        if not shown:
            return None, None
        begin, size, position = int(self.begins[run]), int(self.sizes[run]), int(self.shown[run])
        if shown == size:
            text = self.text[position : position + size]
            if size == 1 and text == EMBED and self.embeds:
                at = bisect_left(self.embeds, position)
                if at < len(self.embeds) and self.embeds[at] == position:
                    return text, self.items[at * ITEM_ID_SIZE : (at + 1) * ITEM_ID_SIZE]
            return text, None
        parts = []
        turn, end = int(np.searchsorted(self.turns, begin, "right")), begin + size
        while begin < end:
            count = min(int(self.turns[turn]), end) - begin
            parts.append(HOLE * count if turn % 2 else self.text[position : position + count])
            position += 0 if turn % 2 else count
            begin += count
            turn += 1
        return "".join(parts), None


def _numbers(column: Sequence[int]) -> Ints:
    """Return a column as an array. Its sums fit into 64 bits."""
    try:
        found = np.fromiter(column, np.int64, len(column))
    except OverflowError:
        raise BadEncoding("text snapshot: a number that is too large") from None
    check(found.sum(dtype=float) < _COUNT_MAX, "a number that is too large")
    return found
