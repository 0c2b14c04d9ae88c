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

from antiphon.snapshot.tree_builder import Builder, build
from antiphon.snapshot.tree_diff import diff, held_diff
from antiphon.snapshot.tree_reader import count, entries, entries_here, get, get_many, held_entries
from antiphon.snapshot.tree_update import update
from antiphon.snapshot.walk import Stats, missing, reached, stats, walk

__all__ = [
    "Builder",
    "Stats",
    "build",
    "count",
    "diff",
    "entries",
    "entries_here",
    "get",
    "get_many",
    "held_diff",
    "held_entries",
    "missing",
    "reached",
    "stats",
    "update",
    "walk",
]
