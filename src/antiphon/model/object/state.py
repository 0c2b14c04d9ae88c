"""The state of an object, and the effect of an operation on it.

The state is a set of entries. Each operation that writes adds one entry (path, stamp, content), and permanently removes
the earlier entries of its own feed at exactly that path: a writer has always seen them. Each name in the `replaces` of
an operation permanently removes the entries of the messages that it covers (see `antiphon.model.bounds`) at that path
and below it. So the set of operations decides which entries remain, and their order does not. An increment adds to one
entry: the counter of the named message at exactly that path, if it remains. An increment that arrives before its
counter waits for it. So every order gives the same state, even if a hostile writer names arbitrary messages.

A register therefore has at most one entry of each feed, and one name of each feed replaces everything below a path.
What lies below is removed when the state is next read: removing it for each operation would let a hostile writer repeat
a small operation at a great map, at the price of the whole map each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.bounds import Bounds, covers
from antiphon.model.heard import Heard
from antiphon.model.object.pending import PendingFeed, PendingMessages
from antiphon.model.object.register import Content, Counter, Node, Path, find, grow, trim


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

    __slots__ = ("heard", "kept", "replaced", "tree")

    def __init__(self) -> None:
        self.tree = Node.root()  # may hold entries that are in `replaced`; read `root`
        self.replaced: dict[Path, dict[bytes, Bounds]] = {}  # by path and feed: what is still to be removed below it
        self.heard = Heard()
        self.kept = PendingMessages()

    @property
    def root(self) -> Node:
        """The registers by path."""
        if self.replaced:
            self._sweep()
        return self.tree

    def take(self, ops: Iterable[Op], stamp: Stamp) -> None:
        """Apply the operations of one message, which are checked already."""
        effects = self.kept.feeds.get(stamp.feed) if self.kept.feeds else None
        for path, content, names in ops:
            if type(content) is Increment:
                self._increment(path, content.by, names[0])
            else:
                self._take(path, content, names, stamp, effects)
        if effects is not None:
            for path, by in effects.increments.get(stamp, {}).items():
                self._add(path, stamp, by)

    def hear(self, stamp: Stamp) -> None:
        """Record the arrival of a message."""
        self.heard[stamp.feed] = stamp.seq
        if self.kept:
            self.kept.forget(stamp)

    def _take(
        self, path: Path, content: Content, names: Sequence[Stamp], stamp: Stamp, effects: PendingFeed | None
    ) -> None:
        # An entry that is replaced already is never added. The names of its operation take effect all the same.
        adds = content is not DELETE and (effects is None or not effects.replaces(path, stamp))
        heard = self.heard
        for name in names:
            if heard.get(name.feed, -1) < name.seq:
                self.kept.at(name.feed).replace(path, name)
        node = self.tree.children.get(path[0]) if len(path) == 1 else find(self.tree, path)
        if node is None:
            if adds:
                grow(self.tree, path).entries[stamp.feed] = stamp, content
            return
        entries = node.entries
        for name in names:
            entry = entries.get(name.feed)
            if entry is not None and covers(name, entry[0]):
                del entries[name.feed]
        if node.children and names:
            self._replace_below(path, names)
        if adds:
            entries[stamp.feed] = stamp, content
            return
        entries.pop(stamp.feed, None)
        if not entries and not node.children:
            trim(self.tree, path)

    def _replace_below(self, path: Path, names: Sequence[Stamp]) -> None:
        replaced = self.replaced.setdefault(path, {})
        for name in names:
            if name.feed in self.heard:  # else nothing of this feed is here
                replaced.setdefault(name.feed, Bounds()).add(name)

    def _sweep(self) -> None:
        """Remove the entries that are replaced by operations above them, and the nodes that become empty."""
        for path, replaced in self.replaced.items():
            node = find(self.tree, path)
            if node is not None:
                _remove_below(node, replaced)
                trim(self.tree, path)
        self.replaced = {}

    def _increment(self, path: Path, by: int, base: Stamp) -> None:
        if self.heard.has(base):
            self._add(path, base, by)
        else:
            self.kept.at(base.feed).increment(path, base, by)

    def _add(self, path: Path, base: Stamp, by: int) -> None:
        node = find(self.tree, path)
        stamp, content = node.entries.get(base.feed, (None, None)) if node else (None, None)
        if node and stamp == base and type(content) is Counter:
            node.entries[base.feed] = base, Counter(content.total + by)


def _remove_below(node: Node, replaced: dict[bytes, Bounds]) -> None:
    """Remove the entries of replaced messages from all nodes below a node."""
    for segment, child in list(node.children.items()):
        entries = child.entries
        for feed in [feed for feed in entries if feed in replaced and replaced[feed].has(entries[feed][0])]:
            del entries[feed]
        if child.children:
            _remove_below(child, replaced)
        if not entries and not child.children:
            node.drop(segment)
