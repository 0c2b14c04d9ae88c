"""Change a tree. Nodes that no change touches are reused, and the result is the tree that `build` would make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.tree_builder import TreeBuilder
from antiphon.snapshot.tree_node import check_key, ends
from antiphon.snapshot.tree_reader import PlacedNode, load_root


def update(root: Cid | None, changes: Iterable[tuple[bytes, bytes | None]], blobs: Blobs) -> Cid | None:
    """Return the root of the tree after changes, whose keys ascend: a value is set, None deletes the key.

    >>> from antiphon.snapshot.blobs import MemoryBlobs
    >>> from antiphon.snapshot.tree_builder import build
    >>> blobs, one, two = MemoryBlobs(), (b"a" * 16, b"1"), (b"b" * 16, b"2")
    >>> update(build([one], blobs), [(one[0], None), two], blobs) == build([two], blobs)
    True
    """
    pending = _Changes(changes)
    builder = TreeBuilder(blobs)
    if root is not None:
        place = PlacedNode.root(root, blobs)
        pending.key_size = len(place.keys[0])
        _merge(place, pending, builder, blobs)
    for key, value in pending.until(None):
        if value is not None:
            builder.add(key, value)
    return _lowered(builder.finish(), blobs)


class _Changes:
    """Sorted changes, with a look at the next one."""

    def __init__(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._rest = iter(changes)
        self._last = b""
        self.key_size = 0
        self._next = next(self._rest, None)

    def touches(self, last: bytes) -> bool:
        """True if there is a change up to this key."""
        return self._next is not None and self._next[0] <= last

    def until(self, last: bytes | None) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the changes up to this key, or all."""
        while self._next is not None and (last is None or self._next[0] <= last):
            change = self._next
            check_key(change[0], self.key_size)
            if change[0] <= self._last:
                raise InvalidInput(f"keys of changes ascend: {change[0].hex()} came after {self._last.hex()}")
            self._last = change[0]
            self._next = next(self._rest, None)
            yield change


def _merge(place: PlacedNode, pending: _Changes, builder: TreeBuilder, blobs: Blobs) -> None:
    if not place.node.level:
        _merge_leaf(place, pending, builder)
        return
    for index in range(len(place.keys)):
        if not _reuses(place, index, pending, builder):
            _merge(place.child(index, blobs), pending, builder, blobs)


def _reuses(place: PlacedNode, index: int, pending: _Changes, builder: TreeBuilder) -> bool:
    """Reuse a child unchanged, if possible. The last of its level may have ended only because no entry followed."""
    level, key = place.node.level - 1, place.keys[index]
    ended = not place.is_rightmost(index) or ends(key, level)
    return ended and not pending.touches(key) and builder.take(level, place.node.child(index))


def _merge_leaf(place: PlacedNode, pending: _Changes, builder: TreeBuilder) -> None:
    for entry in place.node.entries:
        replaced = False
        for key, value in pending.until(entry.key):
            replaced = key == entry.key
            if value is not None:
                builder.add(key, value)
        if not replaced:
            builder.add_leaf_entry(entry)


def _lowered(root: Cid | None, blobs: Blobs) -> Cid | None:
    """Return the lowest root: below a reused node that is now alone, down to a node with several children."""
    while root is not None:
        node = load_root(root, blobs, alone=True)
        if not node.level or len(node.keys) > 1:
            break
        root = node.child(0).link
    return root
