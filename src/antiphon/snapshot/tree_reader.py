"""Read a tree. Every node is checked for its form, its shape and its place; only the needed nodes are read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import BadEncoding, DamagedBlob, MissingBlob
from antiphon.snapshot import tree_values
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.tree_node import LeafEntry, Node


def load_root(root: Cid, blobs: Blobs, *, alone: bool = False) -> Node:
    """Read the root of a tree; `alone` also accepts a node with a single child, as an update may leave one."""
    what = f"tree node {root}"
    if root.codec != DAG_CBOR:
        raise BadEncoding(f"{what}: a tree has no raw nodes")
    node = Node.decode(blobs.get(root), what)
    if node.level and len(node.keys) == 1 and not alone:
        raise BadEncoding(f"{what}: a root with a single child")
    node.check_shape(what, rightmost=True)
    return node


class PlacedNode:
    """A node at its place in a tree, which bounds the keys and the shape of its children."""

    __slots__ = ("low", "node", "rightmost")

    def __init__(self, node: Node, low: bytes = b"", rightmost: bool = True) -> None:
        self.node = node
        self.low = low  # every key is greater
        self.rightmost = rightmost  # it is the last of its level

    @property
    def keys(self) -> tuple[bytes, ...]:
        return self.node.keys

    @classmethod
    def root(cls, root: Cid, blobs: Blobs) -> PlacedNode:
        return cls(load_root(root, blobs))

    def is_rightmost(self, index: int) -> bool:
        return self.rightmost and index == len(self.keys) - 1

    def child(self, index: int, blobs: Blobs) -> PlacedNode:
        key, link, below = self.node.child(index)
        what, low = f"tree node {link}", self.keys[index - 1] if index else self.low
        node = Node.decode(blobs.get(link), what)
        if node.level != self.node.level - 1:
            raise BadEncoding(f"{what}: level {node.level} below level {self.node.level}")
        if node.keys[-1] != key or node.keys[0] <= low or len(node.keys[0]) != len(key):
            raise BadEncoding(f"{what}: its keys do not lie between {low.hex() or 'none'} and {key.hex()}")
        if node.total != below:
            raise BadEncoding(f"{what}: {node.total} entries, {below} are announced")
        node.check_shape(what, rightmost=self.is_rightmost(index))
        return PlacedNode(node, low, self.is_rightmost(index))


def count(root: Cid | None, blobs: Blobs) -> int:
    """Return the number of entries, as the root states it."""
    return 0 if root is None else load_root(root, blobs).total


def get(root: Cid | None, key: bytes, blobs: Blobs) -> bytes | None:
    """Return the value of a key, or None. Only the nodes on the path to it are read."""
    if root is None:
        return None
    place = PlacedNode.root(root, blobs)
    while (index := bisect_left(place.keys, key)) < len(place.keys):
        if not place.node.level:
            return tree_values.load(place.node.held[index], blobs) if place.keys[index] == key else None
        place = place.child(index, blobs)
    return None


def get_many(root: Cid | None, keys: Iterable[bytes], blobs: Blobs) -> dict[bytes, bytes]:
    """Return the values of the keys that are in the tree; each node is read once."""
    wanted = sorted(set(keys))
    if root is None or not wanted:
        return {}
    found = _find(PlacedNode.root(root, blobs), wanted, blobs)
    return {key: tree_values.load(value, blobs) for key, value in found}


def _find(place: PlacedNode, wanted: list[bytes], blobs: Blobs) -> Iterator[LeafEntry]:
    start = 0
    for index, last in enumerate(place.keys):
        if start == len(wanted):
            return
        if wanted[start] > last:
            continue
        if place.node.level:
            end = bisect_left(wanted, last + b"\0", start)
            yield from _find(place.child(index, blobs), wanted[start:end], blobs)
            start = end
        else:
            while start < len(wanted) and wanted[start] < last:
                start += 1
            if start < len(wanted) and wanted[start] == last:
                yield LeafEntry(last, place.node.held[index])
                start += 1


def entries(root: Cid | None, blobs: Blobs, *, start: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
    """Yield all keys and values in order, from `start` on."""
    for key, value in leaf_entries(root, blobs, start=start):
        yield key, tree_values.load(value, blobs)


def leaf_entries(root: Cid | None, blobs: Blobs, *, start: bytes | None = None) -> Iterator[LeafEntry]:
    """Yield entries as leaves hold them: a large value is a link."""
    if root is None:
        return
    place = PlacedNode.root(root, blobs)
    stack = [(place, bisect_left(place.keys, start or b""))]
    while stack:
        place, index = stack.pop()
        if not place.node.level:
            yield from place.node.entries[index:]
        elif index < len(place.keys):
            stack.append((place, index + 1))
            child = place.child(index, blobs)
            stack.append((child, bisect_left(child.keys, start or b"")))


def available_entries(root: Cid | None, blobs: Blobs) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values whose blobs are held, in order; others are skipped."""
    if root is None:
        return
    stack: list[tuple[PlacedNode | None, int]] = [(None, 0)]
    while stack:
        parent, index = stack.pop()
        try:
            place = PlacedNode.root(root, blobs) if parent is None else parent.child(index, blobs)
        except (MissingBlob, DamagedBlob):
            continue
        if place.node.level:
            stack += [(place, child) for child in reversed(range(len(place.keys)))]
            continue
        for key, held in place.node.entries:
            with suppress(MissingBlob, DamagedBlob):
                yield key, tree_values.load(held, blobs)
