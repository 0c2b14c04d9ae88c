"""Runs of elements, in which a sequence is stored.

A run is a series of one writer's elements, each the right child of the one before. Its clocks ascend by one stride: 1
inside a message, a whole lamport or more between keystrokes. Its text has a character for each element, and the
character of a deleted one is a hole. So a deletion splits nothing, and costs about as much as what it deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from antiphon.model.text import clock_ranges
from antiphon.model.text.clock_order import ClockOrder
from antiphon.model.text.clock_ranges import ClockRanges, overlapping, with_range
from antiphon.model.text.siblings import Child, Siblings

if TYPE_CHECKING:
    from antiphon.model.text.leaves import AnyRun, Leaf
    from antiphon.model.text.waiting_rows import Waiters, Waiting

OFFSET_BITS = 20  # a body has at most 1 MiB, so a message inserts fewer elements
OFFSET_MAX = (1 << OFFSET_BITS) - 1
LAMPORT = 1 << OFFSET_BITS  # one lamport, in clocks
RUN_MAX = 1024  # elements shown in a run; the bound keeps appending and splitting cheap
EMBED = "\N{OBJECT REPLACEMENT CHARACTER}"
HOLES_MAX = 64  # deleted elements, on average, that are stored as holes of a run and not as a run
HOLE = "\udfff"  # stands for a deleted element; half a surrogate pair, which no text of a message can hold


def some_text(text: str) -> str | None:
    """Return the text of a run; None if all of it is deleted."""
    return None if text.count(HOLE) == len(text) else text


class Edge:
    """An edge of the tree that has been walked along, and the name of the run at its end; see `edges`."""

    __slots__ = ("end",)

    def __init__(self, end: Child) -> None:
        self.end = end


class Run:
    """Elements with the clocks start, start + stride, ... `text` is None if all are deleted: only the ids remain."""

    __slots__ = (
        "above",
        "above_clock",
        "item",
        "leaf",
        "left",
        "left_edge",
        "lefts",
        "length",
        "right_edge",
        "rights",
        "start",
        "stride",
        "text",
        "writer",
    )

    def __init__(
        self,
        writer: Writer,
        start: int,
        length: int,
        text: str | None,
        item: bytes | None,
        above: Writer | None,
        above_clock: int,
        left: bool,
    ) -> None:
        self.writer = writer
        self.start = start
        self.stride = 1
        self.length = length
        self.text = text
        self.item = item
        self.above = above  # the writer of the parent of the first element; None is the root
        self.above_clock = above_clock  # named by id, not by run, so that splitting the parent costs nothing
        self.left = left
        self.lefts: Siblings | None = None  # left children of the first element
        self.rights: Siblings | None = None  # right children of the last element
        self.left_edge: Edge | None = None
        self.right_edge: Edge | None = None
        self.leaf: Leaf

    @property
    def end(self) -> int:
        """The clock of the last element."""
        return self.start + (self.length - 1) * self.stride

    @property
    def name(self) -> Child:
        """The name of the run among its siblings."""
        return self.writer.feed, self.start

    @property
    def index(self) -> int:
        """The index of the run in its leaf, which is open."""
        return self.leaf.runs.index(self)

    def open(self) -> Run:
        """Return the run itself, as `PackedRun` does."""
        return self

    def clock(self, at: int) -> int:
        """Return the clock of the element at an index."""
        return self.start + at * self.stride

    @property
    def shown(self) -> int:
        """The number of elements that are shown."""
        return 0 if self.text is None else self.length - self.text.count(HOLE)

    def shown_until(self, at: int) -> int:
        """Return the number of elements before an index that are shown."""
        return 0 if self.text is None else at - self.text.count(HOLE, 0, at)

    def nth_shown(self, nth: int) -> int:
        """Return the index of the nth element that is shown, counted from 0."""
        text = self.text
        assert text is not None
        low, high = nth + text.count(HOLE, 0, nth + 1), nth + text.count(HOLE)
        while low < high:
            middle = (low + high) // 2
            if middle + 1 - text.count(HOLE, 0, middle + 1) <= nth:
                low = middle + 1
            else:
                high = middle
        return low

    def hide(self, low: int, high: int) -> int:
        """Delete the elements from an index to before another; return how many of them were shown."""
        text = self.text
        if text is None:
            return 0
        count = high - low - text.count(HOLE, low, high)
        if high - low == self.length:
            self.text = self.item = None
        elif count:
            text = text[:low] + HOLE * (high - low) + text[high:]
            self.text = text if text.count(HOLE) < self.length else None
        return count


class Writer:
    """The elements of one feed in a text.

    A hostile deletion makes one with the 32 bytes of a name. So all parts of a writer are shared until they are needed.
    """

    __slots__ = ("doomed", "feed", "floor", "gone", "last", "number", "runs", "units", "waiting")

    def __init__(self, feed: bytes) -> None:
        self.feed = feed
        self.number = 0  # in its text
        self.floor = 0  # the least clock of its next element: clocks ascend in the order of the feed
        self.last = -1  # the clock of the last element in `runs`
        self.runs = _NO_RUNS
        self.doomed: ClockRanges = clock_ranges.NONE  # clocks above the floor that are deleted already
        self.gone: ClockRanges = clock_ranges.NONE  # clocks below the floor, of many runs, that are known to be deleted
        self.waiting: Waiters | None = None  # names of the insertions that wait for elements of this writer
        self.units: Waiting | None = None  # insertions of this writer that wait

    def find(self, clock: int) -> tuple[Run, int] | None:
        """Return the run that holds an element, and the index of the element in it."""
        run = self.runs.at(clock)
        if run is None:
            return None
        place, rest = divmod(clock - run.start, run.stride)
        return None if rest or place >= run.length else (run, place)

    def peek(self, clock: int) -> tuple[AnyRun, int] | None:
        """Do the same without opening the leaf of the run."""
        run = self.runs.peek(clock, self)
        if run is None:
            return None
        place, rest = divmod(clock - run.start, run.stride)
        return None if rest or place >= run.length else (run, place)

    def add(self, run: Run) -> None:
        """Add a run. Its clocks lie between those of its neighbours."""
        if self.runs is _NO_RUNS:
            self.runs = ClockOrder()
        if run.start > self.last:
            self.runs.append(run)
            self.last = run.end
        else:
            self.runs.insert(run)
            self.runs.touch(run.start)
            self.runs.shifts += 1

    def doom(self, first: int, last: int) -> None:
        """Record the deletion of elements in a range of clocks that have not arrived."""
        first = max(first, self.floor)
        if first <= last:
            self.doomed = with_range(self.doomed, first, last)

    def doomed_in(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the deleted ranges that overlap a range of clocks."""
        return overlapping(self.doomed, first, last)

    def bury(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Record that all elements that have arrived in these ranges are deleted."""
        for first, last in ranges:
            last = min(last, self.floor - 1)
            if first <= last:
                self.gone = with_range(self.gone, first, last)

    def unburied(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the parts of ascending ranges of which it is not recorded that they are deleted."""
        found = []
        for first, last in ranges:
            for low, high in overlapping(self.gone, first, last):
                if first < low:
                    found.append((first, low - 1))
                first = high + 1
            if first <= last:
                found.append((first, last))
        return found

    def raise_floor(self, floor: int) -> None:
        """Raise the least clock of the next element, and drop the deleted ranges below it."""
        if floor > self.floor:
            self.floor = floor
            if self.doomed:
                self.doomed = clock_ranges.since(self.doomed, floor)


class Unit:
    """One insertion: a chain of elements, in pieces that are shown (text) or deleted (None)."""

    __slots__ = ("above", "above_clock", "item", "left", "length", "pieces", "start", "writer")

    def __init__(self, writer: Writer, start: int, length: int, text: str | None, item: bytes | None) -> None:
        self.writer = writer
        self.start = start
        self.length = length
        self.pieces: list[tuple[int, str | None]] = [(length, text)]
        self.item = item if text is not None else None
        self.above: Writer | None = None
        self.above_clock = 0
        self.left = False

    def hide(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Delete the elements in ascending ranges of clocks that do not overlap, in one pass."""
        bounds = [(max(low - self.start, 0), min(high - self.start + 1, self.length)) for low, high in ranges]
        bounds = [(low, high) for low, high in bounds if low < high]
        if not bounds:
            return
        self.item = None
        cuts = {0, self.length, *(at for pair in bounds for at in pair)}
        cuts.update(accumulate(count for count, _ in self.pieces))
        kept: list[tuple[int, str | None]] = []
        pieces, hidden = iter(self.pieces), iter(bounds)
        begin, end, text = 0, 0, None  # the piece that contains the cut
        low, high = next(hidden)
        for at, stop in pairwise(sorted(cuts)):
            if at >= end:
                count, text = next(pieces)
                begin, end = at, at + count
            while high <= at:
                low, high = next(hidden, (self.length, self.length + 1))
            part = None if text is None or low <= at else text[at - begin : stop - begin]
            if kept and part is None and kept[-1][1] is None:
                kept[-1] = (kept[-1][0] + stop - at, None)
            else:
                kept.append((stop - at, part))
        self.pieces = kept

    def joined(self) -> list[tuple[int, str | None]]:
        """Return the pieces; as one piece with holes if they are short."""
        if len(self.pieces) < 2 or self.length > HOLES_MAX * len(self.pieces):
            return self.pieces
        return [(self.length, "".join([HOLE * count if text is None else text for count, text in self.pieces]))]


# Nobody changes these: whoever has something to store replaces them.
_NO_RUNS = ClockOrder()
