"""`Sequence`: the Fugue tree of a text, stored as runs. Insertions and deletions in any order give the same result.

Every element is the left or right child of another element or of the root. The document is the tree read from left to
right, with siblings ascending by (feed, clock). Elements and deletions are sets, so the order of delivery has no
effect: an insertion waits for its parent, and a deletion of elements that have not arrived is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence as Ranges
from itertools import takewhile
from sys import intern

from antiphon.core.errors import InvalidInput
from antiphon.model.text.absent_feeds import RANGES_MAX, AbsentFeeds
from antiphon.model.text.clock_ranges import ClockRanges, with_range
from antiphon.model.text.edges import end_of, hang_outside
from antiphon.model.text.leaves import LEAF_MAX, AnyRun, Leaf, Leaves, next_to
from antiphon.model.text.runs import (
    HOLE,
    LAMPORT,
    OFFSET_BITS,
    RUN_MAX,
    Run,
    Unit,
    Writer,
    some_text,
)
from antiphon.model.text.siblings import Child, next_child, outermost, with_child
from antiphon.model.text.waiting_rows import Waiters, Waiting

BURIED_MIN = 16  # runs that a range of a deletion visits; a range that visits as many is not visited again
_NOBODY = Writer(b"")
_NOTHING_ABSENT = AbsentFeeds()  # nobody changes it


class Sequence:
    """Writers, and their runs in the order of the document, after a root that is no element."""

    __slots__ = ("absent", "cursor", "cursor_start", "head", "leaves", "length", "orphans", "root", "writers")

    def __init__(self) -> None:
        self.writers: dict[bytes, Writer] = {}
        self.absent = _NOTHING_ABSENT
        self.root = Run(_NOBODY, -1, 0, None, None, None, 0, False)
        self.leaves = Leaves(_NOBODY, self.writers)
        self.head = self.root.leaf = Leaf(self.leaves)
        self.head.runs.append(self.root)
        self.length = 0  # length of the text shown
        self.orphans = 0  # insertions that wait for their parents
        self.cursor: Leaf | None = None  # the leaf of the last lookup by position
        self.cursor_start = 0  # the length of the text shown before that leaf

    def writer(self, feed: bytes) -> Writer:
        """Return the writer of a feed, created if missing."""
        writer = self.writers.get(feed)
        if writer is None:
            writer = self.writers[feed] = Writer(feed)
            self.leaves.add_writer(writer)
            writer.doomed = self.absent.take(feed)
        return writer

    def run(self, name: Child) -> Run:
        """Return a run by its name. Its leaf is opened."""
        feed, clock = name
        if not feed:
            return self.root
        found = self.writers[feed].runs.at(clock)
        assert found is not None
        return found

    def peek(self, name: Child) -> AnyRun:
        """Return a run by its name. Its leaf remains packed."""
        feed, clock = name
        if not feed:
            return self.root
        writer = self.writers[feed]
        found = writer.runs.peek(clock, writer)
        assert found is not None
        return found

    # -- insertion

    def type_one(self, writer: Writer, clock: int, parent: int, text: str) -> bool:
        """Append one typed character to its writer's last run. False, without effect, if more is needed."""
        if writer.last != parent or writer.units or writer.doomed or writer.waiting:
            return False
        run = writer.runs.last or writer.runs.at(parent)
        assert run is not None
        if run.rights or run.text is None or run.item is not None or run.length >= RUN_MAX:
            return False
        if run.length == 1:
            run.stride = clock - parent
        elif clock - parent != run.stride:
            return False
        run.text += text
        run.length += 1
        leaf = run.leaf
        leaf.shown += 1
        self.length += 1
        if leaf is not self.cursor:
            self.cursor = None
        writer.last = clock
        writer.floor = clock + 1
        return True

    def insert(self, unit: Unit, *, fresh: bool = True) -> None:
        """Apply one insertion, and all insertions that waited for it. It is fresh if none between it and its parent
        may come later."""
        todo = [unit]
        while todo:
            self.leaves.tidy()
            unit = todo.pop()
            if unit.writer.doomed:
                unit.hide(unit.writer.doomed_in(unit.start, unit.start + unit.length - 1))
            parent = self._parent(unit)
            if parent is None:
                self.keep_waiting(unit)
                continue
            # Elements that waited may lie between the clocks of a run. So only new elements may extend a run.
            self._integrate(unit, parent, fresh and unit.item is None)
            fresh = False
            todo.extend(self._woken(unit))

    def keep_waiting(self, unit: Unit) -> None:
        """Store an insertion that waits for an element that is not here."""
        writer, above = unit.writer, unit.above
        assert above is not None
        if above.waiting is None:
            above.waiting = Waiters()
        above.waiting.add(unit)
        if writer.units is None:
            writer.units = Waiting(self.leaves)
        writer.units.add(unit)
        self.orphans += 1

    def _parent(self, unit: Unit) -> AnyRun | None:
        """Return the run whose first or last element is the parent of a unit. A run is split if necessary."""
        if unit.above is None:
            return self.root
        found = unit.above.peek(unit.above_clock)
        if found is None:
            return None
        run, at = found
        if at if unit.left else at + 1 < run.length:
            run = run.open()
            right = self.split(run, at if unit.left else at + 1)
            return right if unit.left else run
        return run

    def _woken(self, unit: Unit) -> list[Unit]:
        """Remove and return the insertions that waited for the elements of a unit."""
        waiting = unit.writer.waiting
        if not waiting:
            return []
        woken = []
        for number, start in waiting.pop(unit.start, unit.start + unit.length - 1):
            units = self.leaves.writers[number].units
            assert units is not None
            woken.append(units.pop(start))
        self.orphans -= len(woken)
        return woken

    def _integrate(self, unit: Unit, parent: AnyRun, may_extend: bool) -> None:
        writer, clock = unit.writer, unit.start
        above, above_clock, left = unit.above, unit.above_clock, unit.left
        for count, text in unit.joined():
            step = count if text is None else RUN_MAX
            for begin in range(0, count, step):
                size = min(step, count - begin)
                part = None if text is None else some_text(text[begin : begin + size])
                if isinstance(parent, Run) and parent.leaf.packed is not None:
                    parent = self.peek(parent.name)  # the part before was put into a packed leaf
                if left or not may_extend or not self._extend(writer, parent, clock, size, part):
                    if size == 1 and part is not None:
                        part = intern(part)
                    run = Run(writer, clock, size, part, unit.item, above, above_clock, left)
                    self._hang(run, parent)
                    writer.add(run)
                    if run.leaf.packed is not None:
                        writer.runs.pack(run, run.leaf)
                    parent = run
                clock += size
                above, above_clock, left = writer, clock - 1, False

    def _extend(self, writer: Writer, parent: AnyRun, clock: int, size: int, text: str | None) -> bool:
        """Extend the writer's last run, if it is the parent and of the same kind as the new elements; else False."""
        last = writer.last
        if parent.writer is not writer or parent.start + (parent.length - 1) * parent.stride != last:
            return False
        parent = parent.open()
        if writer.units or parent.rights or parent.item is not None or (text is None) is not (parent.text is None):
            return False
        stride = clock - last
        if (size > 1 and stride != 1) or (parent.length > 1 and stride != parent.stride):
            return False
        if stride % LAMPORT and (stride != 1 or clock >> OFFSET_BITS != parent.start >> OFFSET_BITS):
            return False  # a run holds one message, or one element of each of several
        if text is not None:
            if parent.text is None or parent.length + size > RUN_MAX:
                return False
            parent.text += text
            self._show(parent.leaf, size - text.count(HOLE))
        parent.stride = stride
        parent.length += size
        writer.last = clock + size - 1
        return True

    def _hang(self, run: Run, parent: AnyRun) -> None:
        """Insert a run among the children of its parent, and into the document."""
        left, siblings = run.left, parent.lefts if run.left else parent.rights
        there, name = parent, run.name
        if siblings is not None:
            beside = next_child(siblings, name, 1 if left else -1)
            if beside is not None:
                there = end_of(self, self.peek(beside), left)
        if parent.left_edge is not None if left else parent.right_edge is not None:
            before = outermost(siblings, left)
            if before is None or (name < before) is left:
                hang_outside(self, run, parent, before)
        if left:
            parent.lefts = with_child(siblings, name)
        else:
            parent.rights = with_child(siblings, name)
        self._place(run, there, 0 if left else 1)

    def above(self, run: AnyRun) -> AnyRun | None:
        """Return the parent of a run; None above the root."""
        if run.above is None:
            return None if run is self.root else self.root
        found = run.above.peek(run.above_clock)
        assert found is not None
        return found[0]

    def _place(self, run: Run, there: AnyRun, step: int) -> None:
        leaf = run.leaf = there.leaf
        if run.text is not None:
            self._show(leaf, run.shown)
        if leaf.packed is not None and leaf.insert(there.index + step, run):
            return
        runs = leaf.open()
        runs.insert(there.index + step, run)
        if len(runs) > LEAF_MAX:
            leaf.halve()

    def _show(self, leaf: Leaf, count: int) -> None:
        leaf.shown += count
        self.length += count
        if leaf is not self.cursor:
            self.cursor = None

    def split(self, run: Run, at: int) -> Run:
        """Split a run before its element `at`. The second part becomes the right child of the first."""
        writer, text = run.writer, run.text
        start = run.start + at * run.stride
        above = run.start if at == 1 else start - run.stride
        right = Run(writer, start, run.length - at, None, run.item, writer, above, False)
        right.stride = run.stride
        right.rights = run.rights
        run.rights = (right.name,)
        run.length = at
        if text is not None:
            right.text = some_text(text[at:])
            run.text = some_text(text[:at])
        if run.right_edge is not None:
            right.right_edge = run.right_edge
            if right.right_edge.end == run.name:
                right.right_edge.end = right.name
        writer.runs.insert(right)
        leaf = right.leaf = run.leaf
        runs = leaf.runs
        runs.insert(runs.index(run) + 1, right)
        if len(runs) > LEAF_MAX:
            leaf.halve()
        return right

    # -- deletion

    def delete_of(self, feed: bytes, ranges: Ranges[tuple[int, int]], *, own: bool) -> None:
        """Delete elements of a feed, which need not be here."""
        if not own and feed not in self.writers:
            known = self.absent.get(feed)
            if len(known) // 2 + len(ranges) <= RANGES_MAX:
                for first, last in ranges:
                    known = with_range(known, first, last)
                self.delete_absent(feed, known)
                return
        self.delete(self.writer(feed), ranges, own=own)

    def delete_absent(self, feed: bytes, ranges: ClockRanges) -> None:
        """Set what is deleted of a feed that has no writer here."""
        if self.absent is _NOTHING_ABSENT:
            self.absent = AbsentFeeds()
        self.absent.put(feed, ranges)

    def delete(self, writer: Writer, ranges: Ranges[tuple[int, int]], *, own: bool) -> None:
        """Delete a writer's elements in ascending ranges of clocks, including those that have not arrived."""
        fresh = writer.unburied(ranges) if writer.gone else ranges
        long = [bounds for bounds in fresh if self._delete_range(writer, *bounds) >= BURIED_MIN]
        if writer.units and fresh and writer.units.hide(fresh) >= BURIED_MIN * len(fresh):
            long = list(fresh)
        if long:
            writer.bury(long)
        if not own:
            for first, last in ranges:
                writer.doom(first, last)

    def delete_one(self, writer: Writer, clock: int) -> None:
        """Delete one element of a writer, who deletes it itself and of whom nothing waits."""
        run = writer.runs.at(clock)
        if run is not None and run.text is not None:
            at, rest = divmod(clock - run.start, run.stride)
            if not rest and at < run.length:
                self._hide(run, at, at + 1)

    def _delete_range(self, writer: Writer, first: int, last: int) -> int:
        """Delete the elements in a range that have arrived; return the number of runs that were visited."""
        visited = 0
        runs: Iterable[Run]
        only = writer.runs.at(first)
        if only is not None and last <= only.start + (only.length - 1) * only.stride:
            runs = [only]  # as for most deletions
        else:
            runs = takewhile(lambda run: run.start <= last, writer.runs.since(first))
            visited = 0
        for run in runs:
            visited += 1
            if run.text is None:
                continue
            start, stride = run.start, run.stride
            low = 0 if first <= start else (first - start + stride - 1) // stride
            high = min((last - start) // stride + 1, run.length)
            if low < high:
                self._hide(run, low, high)
                self.leaves.tidy()
        return visited

    def _hide(self, run: Run, low: int, high: int) -> None:
        """Delete elements low to high of a run."""
        count = run.hide(low, high)
        if count:
            self._show(run.leaf, -count)
            runs = run.writer.runs
            if len(runs.cells) > 1:
                runs.touch(run.start)

    # -- positions

    def find(self, index: int) -> tuple[Run, int]:
        """Return the run that holds the element shown at a position, and the index of the element in it."""
        if not 0 <= index < self.length:
            raise InvalidInput(f"there is nothing at {index} in a text of {self.length} characters")
        leaf, start = self.cursor, self.cursor_start
        if leaf is None:
            leaf, start = self.head, 0
        while index < start:
            assert leaf.before is not None
            leaf = leaf.before
            start -= leaf.shown
        while index >= start + leaf.shown:
            start += leaf.shown
            assert leaf.after is not None
            leaf = leaf.after
        self.cursor, self.cursor_start = leaf, start
        rest = index - start
        for run in leaf.open():
            text = run.text
            if text is not None:
                count = len(text) if text.isascii() else len(text) - text.count(HOLE)
                if rest < count:
                    return run, rest if count == len(text) else run.nth_shown(rest)
                rest -= count
        raise AssertionError("a leaf counts what its runs show")

    def last(self) -> Run:
        """The last run of the document; the root if there is none."""
        leaf = self.head if self.cursor is None else self.cursor
        while leaf.after is not None:
            leaf = leaf.after
        self.cursor, self.cursor_start = leaf, self.length - leaf.shown
        return leaf.open()[-1]

    def gap(self, index: int) -> tuple[Run, bool, int]:
        """Return the parent for an insertion at a position: its run, True for a left child, and its index in the run.

        The insertion goes right before the element shown there, after the deleted ones. So a writer who corrects a
        typing error continues the same chain.
        """
        if index == self.length:
            last = self.last()
            return last, False, last.length - 1
        run, at = self.find(index)
        if at:
            return run, True, at
        before = next_to(run, -1)
        assert before is not None
        return (run, True, 0) if before.rights else (before, False, before.length - 1)

    def shown_before(self, run: Run) -> int:
        """Return the length of the text shown before a run."""
        count = 0
        for other in run.leaf.runs:
            if other is run:
                break
            count += other.shown
        leaf = run.leaf.before
        while leaf is not None:
            count += leaf.shown
            leaf = leaf.before
        return count

    def each_leaf(self) -> Iterator[Leaf]:
        """Yield all leaves in the order of the document."""
        leaf: Leaf | None = self.head
        while leaf is not None:
            yield leaf
            leaf = leaf.after

    def runs(self) -> Iterator[Run]:
        """Yield all runs in the order of the document, the root first. Those that are packed are copies."""
        for leaf in self.each_leaf():
            yield from leaf.copies()
