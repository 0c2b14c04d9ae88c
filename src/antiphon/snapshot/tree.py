"""A tree: a sorted map from keys to bytes, kept as blobs, whose shape follows from its content alone (a prolly tree).

>>> from antiphon.snapshot import tree
>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> blobs, key = MemoryBlobs(), b"k" * 16
>>> root = tree.build([(key, b"value")], blobs)
>>> tree.get(root, key, blobs), list(tree.entries(tree.update(root, [(key, None)], blobs), blobs))
(b'value', [])

Keys have 16 or 32 bytes, the same in all of a tree; None is the empty tree.
"""

from __future__ import annotations

from antiphon.snapshot.tree_builder import TreeBuilder, build
from antiphon.snapshot.tree_diff import diff, leaf_diff
from antiphon.snapshot.tree_reader import available_entries, count, entries, get, get_many, leaf_entries
from antiphon.snapshot.tree_update import update
from antiphon.snapshot.walk import Stats, missing, reachable, stats, walk

__all__ = [
    "Stats",
    "TreeBuilder",
    "available_entries",
    "build",
    "count",
    "diff",
    "entries",
    "get",
    "get_many",
    "leaf_diff",
    "leaf_entries",
    "missing",
    "reachable",
    "stats",
    "update",
    "walk",
]
