"""Leaves: adjacent runs of a document. Few of them are open; the runs of the others are packed.

A leaf is opened when one of its runs is needed. How many stay open follows from the number of messages: typing never
makes more, however long the text, and thousands of insertions in one message do. To open a leaf and pack it again costs
as much as ten insertions, so most of those go into a packed leaf as it is. Leaves are packed between insertions only,
and during long walks over runs: whoever holds a run holds one of an open leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TypeAlias

from antiphon.model.text.packed_runs import Fields, PackedRuns, RunColumns, pack, read_run, unpack
from antiphon.model.text.runs import HOLE, Edge, Run, Writer
from antiphon.model.text.siblings import Child, ManySiblings, Siblings

LEAF_MAX = 60  # runs in a leaf; the bound keeps `list.index` cheap, and fits into a byte of `PackedRuns.places`
OPEN_MIN = 8  # leaves that may always be open
OPEN_MAX = 1024
OPEN_EVERY = 64  # messages after which one more leaf may be open


class Leaves:
    """The leaves of a text that are open, and its writers by number."""

    __slots__ = ("by_feed", "limit", "messages", "open", "writers")

    def __init__(self, nobody: Writer, by_feed: Mapping[bytes, Writer]) -> None:
        self.open: dict[Leaf, None] = {}  # those first opened first
        self.messages = 0  # that made the text, or a lower bound of it
        self.limit = OPEN_MIN  # of leaves that are open; raised when it is reached
        self.writers: list[Writer] = [nobody]
        self.by_feed = by_feed  # the same without the first one, who writes nothing

    def count(self, messages: int) -> None:
        """Set the number of messages that made the text."""
        self.messages = messages
        self.limit = min(OPEN_MIN + messages // OPEN_EVERY, OPEN_MAX)

    def add_writer(self, writer: Writer) -> None:
        """Give a writer a number."""
        writer.number = len(self.writers)
        self.writers.append(writer)

    def tidy(self) -> None:
        """Pack leaves if too many are open: the oldest."""
        if len(self.open) <= self.limit:
            return
        self.count(self.messages)
        if len(self.open) > self.limit:
            many = len(self.open) - self.limit * 3 // 4
            for leaf in list(islice(self.open, many)):
                leaf.pack()


_PACKED: list[Run] = []  # the runs of all leaves that are packed; nobody changes it


class Leaf:
    """Some adjacent runs of the document, and the number of their elements that are shown."""

    __slots__ = ("after", "before", "leaves", "packed", "runs", "shown")
    length = 0  # among runs, a leaf is told by its length

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.runs: list[Run] = []  # empty if they are packed
        self.packed: PackedRuns | None = None
        self.shown = 0
        self.before: Leaf | None = None
        self.after: Leaf | None = None
        leaves.open[self] = None

    def load(self, columns: RunColumns, shown: int, *, packed: bool) -> None:
        """Take runs into a leaf that has none yet."""
        self.shown = shown
        if packed:
            self.runs, self.packed = _PACKED, columns.packed()
            del self.leaves.open[self]
        else:
            self.runs += columns.runs(self.leaves.writers)

    def count(self) -> None:
        """Count the elements that are shown."""
        self.shown = sum(run.shown for run in self.runs)

    def halve(self) -> Leaf:
        """Move the second half into a new leaf after this one."""
        half = len(self.runs) // 2
        new = Leaf(self.leaves)
        new.runs = self.runs[half:]
        del self.runs[half:]
        for run in new.runs:
            run.leaf = new
        new.count()
        self.shown -= new.shown
        new.before, new.after = self, self.after
        if self.after is not None:
            self.after.before = new
        self.after = new
        return new

    def open(self) -> list[Run]:
        """Return the runs; unpack them if they are packed."""
        if not self.runs:
            assert self.packed is not None
            self.runs = unpack(self.packed, self.leaves.writers)
            self.packed = None
            self.leaves.open[self] = None
            for run in self.runs:
                run.leaf = self
                run.writer.runs.open(run)
        return self.runs

    def peek(self, writer: Writer, start: int) -> PackedRun:
        """Return a run of a packed leaf by its writer and its first clock. The leaf remains packed."""
        assert self.packed is not None
        return PackedRun(self, self.packed.find(writer.number, start))

    def copy(self, writer: Writer, start: int) -> Run:
        """Return a copy of a run of a packed leaf, by its writer and its first clock; it is not in the tree."""
        assert self.packed is not None
        return read_run(self.packed, self.packed.find(writer.number, start), self.leaves.writers)

    def insert(self, at: int, run: Run) -> bool:
        """Insert a new run into a packed leaf. False, without effect, if it does not fit."""
        packed = self.packed
        if packed is None or packed.size >= LEAF_MAX or run.item is not None:
            return False
        above = 0 if run.above is None else run.above.number
        numbers = Fields(run.start, run.writer.number, run.length, run.stride, above, run.start - run.above_clock)
        packed = packed.with_run(at, numbers, run.text, run.left)
        if packed is None:
            return False
        for field, edge in (("left_edge", run.left_edge), ("right_edge", run.right_edge)):
            if edge is not None:
                packed = packed.with_object(at, field, edge)
        self.packed = packed
        return True

    def pack(self) -> None:
        """Pack the runs. The first leaf stays open, as it holds the root."""
        if self.before is None:
            return
        self.packed = pack(self.runs, self.leaves.by_feed)
        for run in self.runs:
            run.writer.runs.pack(run, self)
        self.runs = _PACKED
        del self.leaves.open[self]

    @property
    def text(self) -> str:
        """The text that is shown."""
        if self.packed is not None:
            return self.packed.text
        return "".join([run.text for run in self.runs if run.text is not None]).replace(HOLE, "")

    @property
    def items(self) -> list[tuple[int, bytes]]:
        """The embedded items, and their positions in the text of the leaf."""
        if self.packed is not None and not self.packed.has_items:
            return []
        found, position = [], 0
        for run in self.copies():
            if run.text is not None:
                if run.item is not None:
                    found.append((position, run.item))
                position += run.shown
        return found

    def copies(self) -> list[Run]:
        """Return the runs; if they are packed, copies of them, which are not in the tree."""
        if self.runs:
            return self.runs
        assert self.packed is not None
        runs = unpack(self.packed, self.leaves.writers, in_tree=False)
        for run in runs:
            run.leaf = self
        return runs


class PackedRun:
    """One run of a packed leaf, with the attributes of a `Run` that are needed to insert a child of it.

    It is valid until a run is inserted before it in its leaf; the leaf may be opened meanwhile. Children that do not
    fit into the columns of the leaf open it.
    """

    __slots__ = ("above", "above_clock", "index", "leaf", "left", "length", "start", "stride", "writer")

    def __init__(self, leaf: Leaf, at: int) -> None:
        assert leaf.packed is not None
        fields, self.left = leaf.packed.fields(at)
        writers = leaf.leaves.writers
        self.leaf, self.index = leaf, at
        self.start, self.length, self.stride = fields.start, fields.length, fields.stride
        self.writer = writers[fields.writer]
        self.above = writers[fields.above] if fields.above else None
        self.above_clock = fields.start - fields.distance

    @property
    def end(self) -> int:
        """The clock of the last element."""
        return self.start + (self.length - 1) * self.stride

    @property
    def name(self) -> Child:
        """The name of the run among its siblings."""
        return self.writer.feed, self.start

    def open(self) -> Run:
        """Return the run itself. Its leaf is opened."""
        return self.leaf.open()[self.index]

    @property
    def lefts(self) -> Siblings | None:
        """The left children of the first element."""
        return self._children(True)

    @lefts.setter
    def lefts(self, siblings: Siblings) -> None:
        self._set_children(True, siblings)

    @property
    def rights(self) -> Siblings | None:
        """The right children of the last element."""
        return self._children(False)

    @rights.setter
    def rights(self, siblings: Siblings) -> None:
        self._set_children(False, siblings)

    @property
    def left_edge(self) -> Edge | None:
        """The left edge that the run is on, if it has a name."""
        return self._edge("left_edge")

    @left_edge.setter
    def left_edge(self, edge: Edge | None) -> None:
        self._set_edge("left_edge", edge)

    @property
    def right_edge(self) -> Edge | None:
        """The right edge that the run is on, if it has a name."""
        return self._edge("right_edge")

    @right_edge.setter
    def right_edge(self, edge: Edge | None) -> None:
        self._set_edge("right_edge", edge)

    def _children(self, left: bool) -> Siblings | None:
        packed = self.leaf.packed
        if packed is None:
            return self.open().lefts if left else self.open().rights
        many = packed.object(self.index, "lefts" if left else "rights")
        if many is not None:
            assert isinstance(many, ManySiblings)
            return many
        writers, start = self.leaf.leaves.writers, self.start
        found = packed.children(self.index, left)
        return tuple([(writers[writer].feed, start + distance) for writer, distance in found]) or None

    def _set_children(self, left: bool, siblings: Siblings) -> None:
        packed, side = self.leaf.packed, "lefts" if left else "rights"
        if packed is not None:
            names: tuple[Child, ...] = siblings if isinstance(siblings, tuple) else ()
            numbers, start = self.leaf.leaves.by_feed, self.start
            changed = packed.with_children(
                self.index, left, [(numbers[feed].number, clock - start) for feed, clock in names]
            )
            if changed is not None:
                many = siblings if isinstance(siblings, ManySiblings) else None
                self.leaf.packed = changed if many is None else changed.with_object(self.index, side, many)
                return
        setattr(self.open(), side, siblings)

    def _edge(self, field: str) -> Edge | None:
        packed = self.leaf.packed
        found = getattr(self.open(), field) if packed is None else packed.object(self.index, field)
        assert found is None or isinstance(found, Edge)
        return found

    def _set_edge(self, field: str, edge: Edge | None) -> None:
        packed = self.leaf.packed
        if packed is None:
            setattr(self.open(), field, edge)
        else:
            self.leaf.packed = packed.with_object(self.index, field, edge)


AnyRun: TypeAlias = Run | PackedRun


def next_to(run: Run, step: int) -> Run | None:
    """Return the run after another one in the document (step 1), or before it (step -1)."""
    runs = run.leaf.runs
    at = runs.index(run) + step
    if 0 <= at < len(runs):
        return runs[at]
    leaf = run.leaf.after if step > 0 else run.leaf.before
    return None if leaf is None else leaf.open()[0 if step > 0 else -1]
