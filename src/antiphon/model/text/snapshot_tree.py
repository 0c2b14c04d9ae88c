"""The tree of a text from the columns of its snapshot: parents and children, the order of the document, packed leaves.

Runs are numbers here, those of all writers in one row, and objects only in the first leaf.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from antiphon.model.text.clock_order import BLOCK_MAX, ClockOrder
from antiphon.model.text.leaves import LEAF_MAX, Leaf
from antiphon.model.text.marks import TextState
from antiphon.model.text.packed_runs import RunColumns
from antiphon.model.text.runs import LAMPORT, OFFSET_BITS
from antiphon.model.text.siblings import FEW_MAX, Child, ManySiblings
from antiphon.model.text.snapshot_columns import Ints, WriterColumns, check


def build(state: TextState, columns: Sequence[WriterColumns | None]) -> None:
    """Build the tree of a text that has writers, and nothing else yet."""
    count = 0
    filled = [column for column in columns if column is not None]
    for column in filled:
        column.cut_for_children(columns)
    for column in filled:
        column.divide()
        column.first = count
        count += len(column.begins)
    state.leaves.count(sum(column.messages for column in filled))
    if count:
        _Tree(state, columns, filled, count).build()


class _Tree:
    """The fields of all runs. A parent is the number of its run plus 1, and 0 is the root."""

    def __init__(
        self,
        state: TextState,
        listed: Sequence[WriterColumns | None],
        columns: Sequence[WriterColumns],
        count: int,
    ) -> None:
        self.state = state
        self.listed = listed
        self.columns = columns
        self.count = count
        self.writers = np.repeat(
            np.array([column.writer.number for column in columns]), [len(column.begins) for column in columns]
        )
        self.places = np.zeros(len(listed) + 1, np.int64)  # of a column, by the number of its writer
        self.places[[column.writer.number for column in columns]] = np.arange(len(columns))
        self.starts = np.concatenate([column.starts for column in columns])
        self.sizes = np.concatenate([column.sizes for column in columns])
        strides = np.where(np.concatenate([column.typed for column in columns]), LAMPORT, 1)
        self.strides = strides.astype(self.starts.dtype)  # objects, if clocks have more than 64 bits
        self.shown = np.concatenate([np.diff(column.shown, append=len(column.text)) for column in columns])
        self.parents = np.arange(count)  # the run before
        self.lefts = np.zeros(count, bool)

    def build(self) -> None:
        """Fill the state."""
        self._read_parents()
        self._read_aboves()
        self._read_children()
        order = self._order()
        chunk = max(LEAF_MAX * 2 // 3, 2)
        leaf_of = np.empty(self.count, np.int64)
        leaf_of[order] = (np.arange(self.count) + 1) // chunk  # the root is the first of its leaf
        leaves = self._make_leaves(order, chunk)
        for column in self.columns:
            self._load(column, leaf_of, leaves)
        for leaf in list(self.state.leaves.open):
            for run in leaf.runs:
                run.leaf = leaf
                if run is not self.state.root:
                    run.writer.runs.open(run)

    def _read_parents(self) -> None:
        for column in self.columns:
            runs = np.searchsorted(column.begins, column.heads) + column.first
            self.parents[runs[column.wheres == 0]] = 0
            self.lefts[runs] = column.lefts
            for where, parent in column.parents_in(self.listed):
                chosen = column.wheres == where
                ordinals = column.parents[chosen]
                self.parents[runs[chosen]] = np.searchsorted(parent.begins, ordinals, "right") + parent.first

    def _read_aboves(self) -> None:
        """Set the writers and clocks of parents, and how far above those clocks the runs begin."""
        above, root = self.parents - 1, self.parents == 0
        ends = self.starts + (self.sizes - 1) * self.strides
        clocks = np.where(root, 0, np.where(self.lefts, self.starts[above], ends[above]))
        self.aboves = np.where(root, 0, self.writers[above])
        self.distances = self.starts - clocks
        lower = (clocks >> OFFSET_BITS) < (self.starts >> OFFSET_BITS)
        own = (self.aboves == self.writers) & (self.distances > 0)
        check((root | lower | own).all(), "an element whose parent is later than itself")

    def _read_children(self) -> None:
        """Set `children`, runs by parent and side, and `firsts`: where those of a parent and side begin in them.

        They ascend because writers and their runs do.
        """
        keys = self.parents * 2 + ~self.lefts
        order = np.argsort(keys, kind="stable")
        firsts = np.searchsorted(keys[order], np.arange(2 * self.count + 3))
        self.children, self.firsts = array("q", order.tobytes()), array("q", firsts.tobytes())

    def _order(self) -> Ints:
        """Return the runs in the order of the document, without recursion: chains may be very deep.

        Every parent is earlier than its children, so this reaches all of them.
        """
        children, firsts = self.children, self.firsts
        found, stack = array("q"), array("q", children[firsts[1] : firsts[2]][::-1])
        while stack:
            run = stack.pop()
            at = 2 * run + 2
            if run < 0:  # its left children are done
                run = ~run
                at = 2 * run + 2
            elif firsts[at] < firsts[at + 1]:
                stack.append(~run)
                stack.extend(children[firsts[at] : firsts[at + 1]][::-1])
                continue
            found.append(run)
            if firsts[at + 1] < firsts[at + 2]:
                stack.extend(children[firsts[at + 1] : firsts[at + 2]][::-1])
        return np.frombuffer(found, np.int64)

    def _names(self, low: int, high: int) -> list[Child]:
        runs = np.frombuffer(self.children, np.int64)[low:high]
        writers = self.state.leaves.writers
        pairs = zip(self.writers[runs].tolist(), self.starts[runs].tolist(), strict=True)
        return [(writers[writer].feed, start) for writer, start in pairs]

    def _many(self, low: int, high: int) -> ManySiblings:
        found = ManySiblings(())
        for first in range(low, high, BLOCK_MAX):
            for child in self._names(first, min(first + BLOCK_MAX, high)):
                found.add(child)
        return found

    def _make_leaves(self, order: Ints, chunk: int) -> list[Leaf]:
        state = self.state
        root, leaf = state.root, state.head
        few = self.firsts[2] - self.firsts[1] <= FEW_MAX
        low, high = self.firsts[1:3]
        root.rights = tuple(self._names(low, high)) if few else self._many(low, high)
        leaves = [leaf]
        packed = (self.count + 1) / chunk > state.leaves.limit
        first = 0
        while first < self.count:
            runs = order[first : first + chunk - (not first)]
            columns, shown = self._columns_of(runs)
            if first:
                new = Leaf(state.leaves)
                leaf.after, new.before = new, leaf
                leaf = new
                leaves.append(leaf)
            leaf.load(columns, shown, packed=packed and first > 0)
            state.length += shown
            first += len(runs)
        return leaves

    def _columns_of(self, runs: Ints) -> tuple[RunColumns, int]:
        """Return the fields of adjacent runs, and how many of their elements are shown."""
        found = RunColumns()
        found.starts = self.starts[runs].tolist()
        found.writers = self.writers[runs].tolist()
        found.lengths = self.sizes[runs].tolist()
        found.strides = self.strides[runs].tolist()
        found.aboves = self.aboves[runs].tolist()
        found.distances = self.distances[runs].tolist()
        shown = self.shown[runs]
        rows = zip(runs.tolist(), shown.tolist(), self.places[found.writers].tolist(), strict=True)
        for (run, count, place), left in zip(rows, self.lefts[runs].tolist(), strict=True):
            column = self.columns[place]
            text, item = column.content(run - column.first, count)
            found.add_content(text, item, left)
        self._add_children(found, runs)
        return found, int(shown.sum())

    def _add_children(self, found: RunColumns, runs: Ints) -> None:
        firsts, children = np.frombuffer(self.firsts, np.int64), np.frombuffer(self.children, np.int64)
        lows, middles, highs = firsts[2 * runs + 2], firsts[2 * runs + 3], firsts[2 * runs + 4]
        counts = np.column_stack((middles - lows, highs - middles))
        many = counts > FEW_MAX
        if many.any():
            for at, right in np.argwhere(many).tolist():
                low, high = (middles[at], highs[at]) if right else (lows[at], middles[at])
                found.add_object(at, "rights" if right else "lefts", self._many(int(low), int(high)))
            lows, highs = np.where(many[:, 0], middles, lows), np.where(many[:, 1], middles, highs)
            counts[many] = 0
        found.counts = counts.ravel().tolist()
        sizes = highs - lows
        total = int(sizes.sum())
        if total:
            chosen = children[np.repeat(lows - (np.cumsum(sizes) - sizes), sizes) + np.arange(total)]
            found.child_writers = self.writers[chosen].tolist()
            found.child_distances = (self.starts[chosen] - np.repeat(self.starts[runs], sizes)).tolist()

    def _load(self, column: WriterColumns, leaf_of: Ints, leaves: list[Leaf]) -> None:
        end = column.first + len(column.begins)
        if column.first < end:
            column.writer.runs = ClockOrder()
        for first in range(column.first, end, BLOCK_MAX):
            block = slice(first, min(first + BLOCK_MAX, end))
            found = [leaves[leaf] for leaf in leaf_of[block].tolist()]
            column.writer.runs.load(self.starts[block].tolist(), self.sizes[block].tolist(), found)
        if column.first < end:
            last = end - 1
            column.writer.last = int(self.starts[last]) + int(self.sizes[last] - 1) * int(self.strides[last])
