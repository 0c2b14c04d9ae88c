"""`ClockOrder`: the runs of one writer by clock, in blocks, so that it is cheap to add one in the middle of many."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.model.text.runs import Run

BLOCK_MAX = 1024  # runs in a block


class ClockOrder:
    """Runs with ascending clocks that do not overlap."""

    __slots__ = ("_blocks", "_firsts", "_starts", "last")

    def __init__(self) -> None:
        self._blocks: list[list[Run]] = [[]]
        self._starts: list[list[int]] = [[]]  # for each block: the first clocks of its runs
        self._firsts: list[int] = [-1]  # for each block: a clock up to its first run, and after the block before
        self.last: Run | None = None

    def __iter__(self) -> Iterator[Run]:
        for block in self._blocks:
            yield from block

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def counts(self) -> list[array[int]]:
        """Return for each block, and each of its runs, the number of elements before the run."""
        found, count = [], 0
        for block in self._blocks:
            counts = array("Q")
            for run in block:
                counts.append(count)
                count += run.length
            found.append(counts)
        return found

    def ordinal(self, clock: int, counts: list[array[int]]) -> int:
        """Return the number of elements before the one with a clock, by `counts`."""
        block, at = self._locate(clock)
        run = self._blocks[block][at]
        return counts[block][at] + (clock - run.start) // run.stride

    def _locate(self, clock: int) -> tuple[int, int]:
        """Return the block and the index of the last run that begins at a clock or before; index -1 if none does."""
        block = bisect_right(self._firsts, clock) - 1 if len(self._firsts) > 1 else 0
        return block, bisect_right(self._starts[block], clock) - 1

    def at(self, clock: int) -> Run | None:
        """Return the last run that begins at a clock or before."""
        block, at = self._locate(clock)
        return self._blocks[block][at] if at >= 0 else None

    def since(self, clock: int) -> Iterator[Run]:
        """Yield the last run that begins at a clock or before, and all later ones. Collect them before changing any."""
        block, at = self._locate(clock)
        at = max(at, 0)
        while block < len(self._blocks):
            runs = self._blocks[block]
            for place in range(at, len(runs)):
                yield runs[place]
            block, at = block + 1, 0

    def begin_after(self, run: Run, following: Run, start: int) -> bool:
        """Let a run that follows another one begin at another clock; False, without effect, if it does not follow."""
        block, at = self._locate(run.start)
        at += 1
        if at == len(self._blocks[block]):
            block, at = block + 1, 0
        if block == len(self._blocks) or self._blocks[block][at] is not following:
            return False
        self._starts[block][at] = following.start = start
        if not at:
            self._firsts[block] = start
        return True

    def before(self, run: Run) -> Run | None:
        """Return the run before another one."""
        block, at = self._locate(run.start)
        if at > 0:
            return self._blocks[block][at - 1]
        return self._blocks[block - 1][-1] if block else None

    def append(self, run: Run) -> None:
        """Add a run after all others."""
        block = self._blocks[-1]
        if len(block) >= BLOCK_MAX:
            block = []
            self._blocks.append(block)
            self._starts.append([])
            self._firsts.append(run.start)
        block.append(run)
        self._starts[-1].append(run.start)
        self.last = run

    def insert(self, run: Run) -> None:
        """Add a run at its place."""
        if self.last is None or run.start > self.last.start:
            self.append(run)
            return
        block, at = self._locate(run.start)
        runs, starts = self._blocks[block], self._starts[block]
        runs.insert(at + 1, run)
        starts.insert(at + 1, run.start)
        if len(runs) > BLOCK_MAX:
            half = len(runs) // 2
            self._blocks.insert(block + 1, runs[half:])
            self._starts.insert(block + 1, starts[half:])
            self._firsts.insert(block + 1, starts[half])
            del runs[half:], starts[half:]

    def begin(self, run: Run, start: int) -> None:
        """Let a run begin at another clock, between the same neighbours."""
        block, at = self._locate(run.start)
        self._starts[block][at] = run.start = start
        if not at and block:
            self._firsts[block] = start
