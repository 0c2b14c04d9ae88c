"""`PackedRun`: one run of a packed leaf. What hangs a new run below another one reads and changes it like a `Run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from antiphon.model.text.runs import Edge, Run
from antiphon.model.text.siblings import Child, ManySiblings, Siblings

if TYPE_CHECKING:
    from antiphon.model.text.leaves import Leaf


class PackedRun:
    """A run by its index in a leaf. Its leaf may be opened meanwhile, but no run put before it.

    Children that do not fit into the columns of the leaf open it.
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


AnyRun: TypeAlias = "Run | PackedRun"
