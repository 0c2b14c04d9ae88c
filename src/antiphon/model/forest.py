"""A forest whose items move. It finds in logarithmic time if one item is above another, however deep the trees are.

>>> forest = Forest({b"b": b"a"})
>>> forest.move(b"c", b"b"), forest.move(b"a", b"c"), forest.move(b"c", b"")
(True, False, True)
>>> forest.parents
{b'b': b'a'}

This is a link-cut tree (Sleator and Tarjan, 1983): each tree is divided into paths, and each path is a splay tree in
the order of depth. The time is amortised: in a sequence of moves, a single one may take longer.
"""

from __future__ import annotations

from collections.abc import Mapping


class _Node:
    """A node of a splay tree. `up` is its parent there; for the root of a splay tree, the item above the path."""

    __slots__ = ("item", "left", "right", "up")

    def __init__(self, item: bytes) -> None:
        self.item = item
        self.up: _Node | None = None
        self.left: _Node | None = None
        self.right: _Node | None = None

    def is_top(self) -> bool:
        """True for the root of a splay tree."""
        return self.up is None or (self.up.left is not self and self.up.right is not self)


class Forest:
    """Items with at most one parent each, and without cycles."""

    def __init__(self, parents: Mapping[bytes, bytes]) -> None:
        self.parents: dict[bytes, bytes] = {}
        self.steps = 0  # rotations so far, for tests
        self._nodes: dict[bytes, _Node] = {}
        for item, parent in parents.items():
            self.parents[item] = parent
            self._node(item).up = self._node(parent)

    def move(self, item: bytes, parent: bytes) -> bool:
        """Move an item and its descendants under another item, or under none. False, without effect, for a cycle."""
        node, old = self._node(item), self.parents.get(item)
        if old is not None:
            self._cut(node)
        if parent and self._root(self._node(parent)) is node:
            if old is not None:
                self._link(node, self._node(old))
            return False
        if parent:
            self._link(node, self._node(parent))
            self.parents[item] = parent
        else:
            self.parents.pop(item, None)
        return True

    def _node(self, item: bytes) -> _Node:
        found = self._nodes.get(item)
        if found is None:
            found = self._nodes[item] = _Node(item)
        return found

    def _link(self, node: _Node, above: _Node) -> None:
        self._expose(node)
        node.up = above

    def _cut(self, node: _Node) -> None:
        self._expose(node)
        assert node.left is not None
        node.left.up = None
        node.left = None

    def _root(self, node: _Node) -> _Node:
        self._expose(node)
        while node.left is not None:
            node = node.left
            self.steps += 1
        self._splay(node)
        return node

    def _expose(self, node: _Node) -> None:
        """Make the path from an item to its root one splay tree, with the item at the top."""
        below: _Node | None = None
        at: _Node | None = node
        while at is not None:
            self._splay(at)
            at.right = below
            below, at = at, at.up
            self.steps += 1
        self._splay(node)

    def _splay(self, node: _Node) -> None:
        while not node.is_top():
            up = node.up
            assert up is not None
            if not up.is_top():
                assert up.up is not None
                same = (up.left is node) is (up.up.left is up)
                self._turn(up if same else node)
            self._turn(node)

    def _turn(self, node: _Node) -> None:
        """Rotate a node with its parent."""
        self.steps += 1
        up = node.up
        assert up is not None
        top = up.up
        if top is not None and top.left is up:
            top.left = node
        elif top is not None and top.right is up:
            top.right = node
        if up.left is node:
            up.left, node.right = node.right, up
            moved = up.left
        else:
            up.right, node.left = node.left, up
            moved = up.right
        if moved is not None:
            moved.up = up
        up.up, node.up = node, top
