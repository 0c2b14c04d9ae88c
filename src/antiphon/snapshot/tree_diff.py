"""Differences between two trees. Subtrees that both have are skipped without reading them."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.core.cid import Cid
from antiphon.snapshot import tree_values
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.tree_node import LeafEntry
from antiphon.snapshot.tree_reader import PlacedNode

Difference = tuple[bytes, bytes | None, bytes | None]


def diff(old: Cid | None, new: Cid | None, blobs: Blobs) -> Iterator[Difference]:
    """Yield changed keys in order, each with its value in the old and in the new tree; None where it is missing.

    >>> from antiphon.snapshot.blobs import MemoryBlobs
    >>> from antiphon.snapshot.tree_builder import build
    >>> blobs, key = MemoryBlobs(), b"k" * 16
    >>> list(diff(None, build([(key, b"1")], blobs), blobs)) == [(key, None, b"1")]
    True
    """
    for key, before, after in leaf_diff(old, new, blobs):
        yield (
            key,
            None if before is None else tree_values.load(before, blobs),
            None if after is None else tree_values.load(after, blobs),
        )


def leaf_diff(
    old: Cid | None, new: Cid | None, blobs: Blobs
) -> Iterator[tuple[bytes, bytes | Cid | None, bytes | Cid | None]]:
    """Yield the same differences with values as leaves hold them: a large value is a link."""
    if old == new:
        return
    left, right = _Cursor(old, blobs), _Cursor(new, blobs)
    while left.stack or right.stack:
        if left.stack and right.stack and left.link is not None and left.link == right.link:
            left.skip()
            right.skip()
        elif left.level < 0 and right.level < 0:
            yield from _compare(left, right)
        else:
            _open(left, right)


def _open(left: _Cursor, right: _Cursor) -> None:
    """Open the node of the higher level; at equal levels the one that ends first: the other may match a later one."""
    if left.level != right.level:
        (left if left.level > right.level else right).open()
        return
    mine, other = left.key, right.key
    if mine <= other:
        left.open()
    if other <= mine:
        right.open()


def _compare(left: _Cursor, right: _Cursor) -> Iterator[tuple[bytes, bytes | Cid | None, bytes | Cid | None]]:
    """Compare two entries, or one and the end of the other tree."""
    before, after = left.entry, right.entry
    if after is None or (before is not None and before.key < after.key):
        assert before is not None
        left.skip()
        yield before.key, before.value, None
    elif before is None or after.key < before.key:
        right.skip()
        yield after.key, None, after.value
    else:
        left.skip()
        right.skip()
        if type(before.value) is not type(after.value) or before.value != after.value:
            yield before.key, before.value, after.value


class _Cursor:
    """A cursor in a tree, at an unread node or an entry of a leaf. At the end the stack is empty."""

    def __init__(self, root: Cid | None, blobs: Blobs) -> None:
        self._blobs = blobs
        self.stack: list[tuple[PlacedNode, int]] = []
        if root is not None:
            self.stack.append((PlacedNode.root(root, blobs), 0))

    @property
    def level(self) -> int:
        """The level of the current node; -1 for an entry, and at the end."""
        return self.stack[-1][0].node.level - 1 if self.stack else -1

    @property
    def key(self) -> bytes:
        place, index = self.stack[-1]
        return place.keys[index]

    @property
    def link(self) -> Cid | None:
        place, index = self.stack[-1]
        return place.node.child(index).link if place.node.level else None

    @property
    def entry(self) -> LeafEntry | None:
        if not self.stack:
            return None
        place, index = self.stack[-1]
        return LeafEntry(place.keys[index], place.node.held[index])

    def open(self) -> None:
        place, index = self.stack[-1]
        self.stack.append((place.child(index, self._blobs), 0))

    def skip(self) -> None:
        while self.stack:
            place, index = self.stack.pop()
            if index + 1 < len(place.keys):
                self.stack.append((place, index + 1))
                return
