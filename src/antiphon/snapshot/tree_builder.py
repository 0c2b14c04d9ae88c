"""`TreeBuilder`: builds a tree from sorted entries, with one open node for each level in memory."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.snapshot import tree_values
from antiphon.snapshot.blobs import BlobBatch, Blobs
from antiphon.snapshot.limits import LEAF_ENTRIES_MAX, LEVEL_MAX
from antiphon.snapshot.tree_node import InnerEntry, LeafEntry, Node, check_key, ends, entries_max


def build(entries: Iterable[tuple[bytes, bytes]], blobs: Blobs) -> Cid | None:
    """Build the tree with these entries, whose keys ascend. Return its root; None if there are none.

    >>> from antiphon.snapshot.blobs import MemoryBlobs
    >>> build([(b"a" * 16, b"1"), (b"b" * 16, b"2")], MemoryBlobs())
    Cid(bafyreiatoz7moqbriseqi6wxsbews36jldgj4m2vmmjmsmdpsho57k5qvm)
    """
    builder = TreeBuilder(blobs)
    for key, value in entries:
        builder.add(key, value)
    return builder.finish()


class TreeBuilder:
    """Builds a tree, with one open node for each level.

    A full node is closed only when another entry follows. So a node that stays alone at its level is the root.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._batch = BlobBatch(blobs)
        self._leaf: list[LeafEntry] = []
        self._full = False  # the leaf has ended
        self._inner: list[list[InnerEntry]] = [[]]  # of level 1 and above
        self._last = b""

    def add(self, key: bytes, value: bytes) -> None:
        """Add the next entry."""
        check_key(key, len(self._last))
        if key <= self._last:
            raise InvalidInput(f"keys of a tree ascend: {key.hex()} came after {self._last.hex()}")
        self.add_leaf_entry(LeafEntry(bytes(key), tree_values.store(value, self._batch)))

    def add_leaf_entry(self, entry: LeafEntry) -> None:
        """Add the next entry as another leaf holds it: a value, or the link to a large one."""
        if self._full:
            self._close(0)
        self._leaf.append(entry)
        self._last = key = entry.key
        self._full = len(self._leaf) >= LEAF_ENTRIES_MAX or ends(key, 0)

    def take(self, level: int, entry: InnerEntry) -> bool:
        """Add an existing node that ends by the rule, if building its entries here would give the same node.

        Otherwise return False and add nothing. Either way more entries follow: full nodes up to its level are closed.
        """
        for number in range(level + 1):
            if self._group(number):
                if not self._ended(number):
                    return False
                self._close(number)
        self._put(level + 1, entry)
        self._last = entry.key
        return True

    def _group(self, level: int) -> list[InnerEntry] | list[LeafEntry]:
        if level == 0:
            return self._leaf
        while level > len(self._inner):
            self._inner.append([])
        return self._inner[level - 1]

    def _ended(self, level: int) -> bool:
        if level == 0:
            return self._full
        group = self._group(level)
        return ends(group[-1].key, level) or len(group) >= entries_max(level)

    def _put(self, level: int, entry: InnerEntry) -> None:
        if self._group(level) and self._ended(level):
            self._close(level)
        self._group(level)
        self._inner[level - 1].append(entry)

    def _close(self, level: int) -> None:
        if level > LEVEL_MAX:
            raise TooLarge(f"a tree of more than {LEVEL_MAX + 1} levels")
        node = Node.inner(level, self._inner[level - 1]) if level else Node.leaf(self._leaf)
        self._group(level).clear()
        self._full = self._full and level > 0
        link = self._batch.add(node.encode(), DAG_CBOR)
        self._put(level + 1, InnerEntry(node.keys[-1], link, node.total))

    def finish(self) -> Cid | None:
        """Close all nodes. Return the root, or None if there was no entry."""
        level = 0
        while level < len(self._inner) or self._group(level):
            top = level >= len(self._inner)
            group = self._group(level)
            if top and level and len(group) == 1:
                self._batch.flush()
                return self._inner[level - 1][0].link
            if group:
                self._close(level)
            level += 1
        return None
