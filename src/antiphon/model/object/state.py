"""The state of an object, and the effect of an operation on it.

The state is a set of entries. Each operation that writes adds one entry (path, stamp, content). Each name in the
`replaces` of an operation at a path permanently removes the entries of the named message at that path and below it, and
its entries at the proper ancestors, except marks of containers. So the set of operations decides which entries remain,
and their order does not. An increment adds to one entry: the counter of the named message at exactly that path, if it
remains. An increment that arrives before its counter waits for it. So every order gives the same state, even if a
hostile writer names arbitrary messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.heard import Heard
from antiphon.model.object.pending import PendingMessages
from antiphon.model.object.register import Content, Counter, Node, Path, find, grow, is_container, trim


class Delete:
    """The content of an operation that only removes entries."""


class Increment(NamedTuple):
    """The content of an operation that adds to a counter."""

    by: int


DELETE = Delete()


class Op(NamedTuple):
    """An operation: `content` is a value, `Mark`, `Counter`, `Increment` or `DELETE`."""

    path: Path
    content: Content
    names: Sequence[Stamp] = ()


class ObjectState:
    """Registers by path, the last message of each feed, and effects on messages that have not arrived."""

    __slots__ = ("heard", "kept", "root")

    def __init__(self) -> None:
        self.root = Node()
        self.heard = Heard()
        self.kept = PendingMessages()

    def take(self, ops: Iterable[Op], stamp: Stamp) -> None:
        """Apply the operations of one message, which are checked already."""
        effects = self.kept.get(stamp) if self.kept else None
        if effects is not None:
            # Entries that are replaced already are never added. The names of the message take effect all the same.
            above = effects.above_gone()
            ops = [
                Op(op.path, DELETE, op.names)
                if type(op.content) is not Increment and effects.replaces(op.path, op.content, above)
                else op
                for op in ops
            ]
        for path, content, names in ops:
            if type(content) is Increment:
                self._increment(path, content.by, names[0])
            elif len(path) == 1:
                self._take_flat(path, content, names, stamp)
            else:
                self._take(path, content, names, stamp)
        if effects is not None:
            self._add_pending(effects.increments, stamp)

    def hear(self, stamp: Stamp) -> None:
        """Record the arrival of a message."""
        self.heard[stamp.feed] = stamp.seq
        if self.kept:
            self.kept.forget(stamp)

    def _take_flat(self, path: Path, content: Content, names: Sequence[Stamp], stamp: Stamp) -> None:
        """Apply an operation at a path of one key, which has no ancestors. Most operations are like that."""
        children = self.root.children
        node = children.get(path[0])
        if node is None:
            if content is DELETE:
                self._keep(path, names)
                return
            node = children[path[0]] = Node()
        elif node.children and names:
            _remove_below(node, frozenset(names))
        values = node.values
        for name in names:
            if values.pop(name, node) is node and self.heard.get(name.feed, -1) < name.seq:
                self.kept.at(name).gone[path] = None
        if content is not DELETE:
            values[stamp] = content
        elif not values and not node.children:
            del children[path[0]]

    def _take(self, path: Path, content: Content, names: Sequence[Stamp], stamp: Stamp) -> None:
        if names:
            self._keep(path, names)
            self._remove(path, names)
        if content is not DELETE:
            grow(self.root, path).values[stamp] = content
        elif names:
            trim(self.root, path)

    def _keep(self, path: Path, names: Iterable[Stamp]) -> None:
        for name in names:
            if self.heard.get(name.feed, -1) < name.seq:
                self.kept.at(name).gone[path] = None

    def _remove(self, path: Path, names: Sequence[Stamp]) -> None:
        node = self.root
        last = len(path) - 1
        for depth, segment in enumerate(path):
            child = node.children.get(segment)
            if child is None:
                return
            node = child
            if depth < last and node.values:
                for name in names:
                    if name in node.values and not is_container(node.values[name]):
                        del node.values[name]
        for name in names:
            node.values.pop(name, None)
        if node.children:
            _remove_below(node, frozenset(names))

    def _increment(self, path: Path, by: int, base: Stamp) -> None:
        if not self.heard.has(base):
            increments = self.kept.at(base).increments
            increments[path] = increments.get(path, 0) + by
            return
        self._add(path, base, by)

    def _add(self, path: Path, base: Stamp, by: int) -> None:
        node = find(self.root, path)
        counter = node.values.get(base) if node else None
        if node and type(counter) is Counter:
            node.values[base] = Counter(counter.total + by)

    def _add_pending(self, increments: dict[Path, int], stamp: Stamp) -> None:
        for path, by in increments.items():
            self._add(path, stamp, by)


def _remove_below(node: Node, names: frozenset[Stamp]) -> None:
    """Remove the entries of these messages from all nodes below a node."""
    for segment, child in list(node.children.items()):
        for name in names.intersection(child.values):
            del child.values[name]
        if child.children:
            _remove_below(child, names)
        if not child.values and not child.children:
            node.drop(segment)
