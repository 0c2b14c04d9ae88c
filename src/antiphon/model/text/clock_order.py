"""`ClockOrder`: the runs of one writer by clock, in blocks, so that it is cheap to add one in the middle of many.

In the place of a run whose leaf is packed there is the leaf, and the clocks of such a block are an array. A block also
has the part of a snapshot that was last made of it (a cell), until its elements change. A split changes none of them.
The last block, in which people type, has no cell.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from antiphon.model.text.leaves import AnyRun, Leaf
    from antiphon.model.text.runs import Run, Writer
    from antiphon.model.text.snapshot_cell import Cell

BLOCK_MAX = 512  # runs in a block
COPIES_MIN = 5  # runs of a block in one packed leaf; fewer are read one by one
Clocks: TypeAlias = "list[int] | array[int]"


SMALL = "BHIQ"  # codes of arrays for numbers that are mostly small


def compact(numbers: Sequence[int], codes: str = "Q") -> Clocks:
    """Return numbers as an array, of the first code that they fit into; as a list if any is too large for all."""
    for code in codes:
        try:
            return array(code, numbers)
        except OverflowError:
            pass
    return [*numbers]


def moved(numbers: Sequence[int], step: int) -> Clocks:
    """Return numbers that are less by a step, as the narrowest array."""
    return compact([number - step for number in numbers], SMALL)


def with_number(numbers: Clocks, at: int, number: int) -> Clocks:
    """Insert a number at an index; return the numbers, which are others if it is too large for the array."""
    try:
        numbers.insert(at, number)
    except OverflowError:
        return compact([*numbers[:at], number, *numbers[at:]], SMALL)
    return numbers


class ClockOrder:
    """Runs with ascending clocks that do not overlap."""

    __slots__ = ("_blocks", "_firsts", "_lengths", "_starts", "cells", "last", "shifts")

    def __init__(self) -> None:
        self._blocks: list[list[Run | Leaf]] = [[]]
        self._starts: list[Clocks] = [[]]  # for each block: how far the first clocks of its runs lie above `_firsts`
        self._lengths: list[Clocks | None] = [None]  # for each block: the lengths of its packed runs, if it has any
        self._firsts: list[int] = [-1]  # for each block: a clock up to its first run, and after the block before
        self.cells: list[Cell | None] = [None]  # for each block: its part of a snapshot, if that is known
        self.shifts = 0  # times that elements came in before others
        self.last: Run | None = None  # None also if it is packed

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def count(self, block: int) -> int:
        """Return the number of elements in a block."""
        cell = self.cells[block]
        return sum(self.counts(block)) if cell is None else cell.elements

    def counts(self, block: int) -> Iterator[int]:
        """Yield for each run of a block the number of its elements."""
        return (self._length(block, at) for at in range(len(self._blocks[block])))

    def place(self, clock: int) -> tuple[int, int, bool]:
        """Return the block and the index of the run that begins or ends with a clock, and True if it begins with it."""
        block, at = self._locate(clock)
        return block, at, clock == self._start(block, at)

    def _start(self, block: int, at: int) -> int:
        return self._firsts[block] + self._starts[block][at]

    def _length(self, block: int, at: int) -> int:
        lengths = self._lengths[block]
        return self._blocks[block][at].length or (lengths[at] if lengths else 0)

    def _locate(self, clock: int) -> tuple[int, int]:
        """Return the block and the index of the last run that begins at a clock or before; index -1 if none does."""
        block = bisect_right(self._firsts, clock) - 1 if len(self._firsts) > 1 else 0
        return block, bisect_right(self._starts[block], clock - self._firsts[block]) - 1

    def at(self, clock: int) -> Run | None:
        """Return the last run that begins at a clock or before. Its leaf is opened."""
        block, at = self._locate(clock)
        return self._run(block, at) if at >= 0 else None

    def peek(self, clock: int, writer: Writer) -> AnyRun | None:
        """Return the last run of the writer that begins at a clock or before. Its leaf remains packed."""
        block, at = self._locate(clock)
        if at < 0:
            return None
        found = self._blocks[block][at]
        if found.length:
            return found  # type: ignore[return-value]
        return found.peek(writer, self._start(block, at))  # type: ignore[union-attr]

    def _run(self, block: int, at: int) -> Run:
        found = self._blocks[block][at]
        if not found.length:  # a leaf
            found.open()
            found = self._blocks[block][at]
        return found  # type: ignore[return-value]

    def since(self, clock: int) -> Iterator[Run]:
        """Yield the last run that begins at a clock or before, and all later ones. Their leaves are opened.

        Meanwhile, runs may be changed and packed, but none added.
        """
        block, at = self._locate(clock)
        at = max(at, 0)
        while block < len(self._blocks):
            for place in range(at, len(self._blocks[block])):
                yield self._run(block, place)
            block, at = block + 1, 0

    def runs_of(self, block: int, writer: Writer) -> list[Run]:
        """Return the runs of a block. Those that are packed are copies, and remain packed."""
        runs, first = self._blocks[block], self._firsts[block]
        many: list[Any] = [leaf for leaf, count in Counter(runs).items() if count >= COPIES_MIN and not leaf.length]
        copies = {run.start: run for leaf in many for run in leaf.copies() if run.writer is writer}
        return [
            one if one.length else copies.get(first + start) or one.copy(writer, first + start)  # type: ignore[misc, union-attr]
            for one, start in zip(runs, self._starts[block], strict=True)
        ]

    def touch(self, clock: int) -> None:
        """Forget the part of a snapshot that has the element of a clock, since that changes."""
        self.cells[bisect_right(self._firsts, clock) - 1] = None

    def load(self, starts: list[int], lengths: list[int], leaves: list[Leaf]) -> None:
        """Add a block of packed runs after all others."""
        if not self._blocks[0]:
            self._blocks, self._starts, self._lengths, self._firsts, self.cells = [], [], [], [], []
        self._firsts.append(starts[0] if self._blocks else -1)
        self._blocks.append([*leaves])
        self._starts.append(moved(starts, self._firsts[-1]))
        self._lengths.append(compact(lengths, SMALL))
        self.cells.append(None)

    def append(self, run: Run) -> None:
        """Add a run after all others."""
        block = self._blocks[-1]
        if len(block) >= BLOCK_MAX:
            block = []
            self._blocks.append(block)
            self._starts.append([])
            self._lengths.append(None)
            self._firsts.append(run.start)
            self.cells.append(None)
        self._add(len(self._blocks) - 1, len(block), run)
        self.last = run

    def insert(self, run: Run) -> None:
        """Add a run at its place."""
        starts = self._starts[-1]
        if not starts or run.start > self._firsts[-1] + starts[-1]:
            self.append(run)
            return
        block, at = self._locate(run.start)
        self._add(block, at + 1, run)
        if len(self._blocks[block]) > BLOCK_MAX:
            self._halve(block)

    def _add(self, block: int, at: int, run: Run) -> None:
        self._blocks[block].insert(at, run)
        self._starts[block] = with_number(self._starts[block], at, run.start - self._firsts[block])
        lengths = self._lengths[block]
        if lengths is not None:
            lengths.insert(at, 0)

    def _halve(self, block: int) -> None:
        runs, starts, lengths = self._blocks[block], self._starts[block], self._lengths[block]
        half = len(runs) // 2
        first = starts[half]
        self._blocks.insert(block + 1, runs[half:])
        self._starts.insert(block + 1, moved(starts[half:], first))
        self._lengths.insert(block + 1, None if lengths is None else lengths[half:])
        self._firsts.insert(block + 1, self._firsts[block] + first)
        self.cells[block : block + 1] = [None, None]
        del runs[half:], starts[half:]
        if lengths is not None:
            del lengths[half:]

    def pack(self, run: Run, leaf: Leaf) -> None:
        """Put a leaf into the place of a run."""
        block, at = self._locate(run.start)
        lengths = self._lengths[block]
        if lengths is None:
            lengths = self._lengths[block] = array("B", [0]) * len(self._blocks[block])
            self._starts[block] = compact(self._starts[block], SMALL)
        try:
            lengths[at] = run.length
        except OverflowError:
            self._lengths[block] = compact([*lengths[:at], run.length, *lengths[at + 1 :]], SMALL)
        self._blocks[block][at] = leaf
        if run is self.last:
            self.last = None

    def open(self, run: Run) -> None:
        """Put a run back into its place."""
        block, at = self._locate(run.start)
        self._blocks[block][at] = run
        if block == len(self._blocks) - 1 and at == len(self._blocks[block]) - 1:
            self.last = run
