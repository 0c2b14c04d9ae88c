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

from antiphon.snapshot.tree_builder import TreeBuilder as TreeBuilder, build as build
from antiphon.snapshot.tree_diff import diff as diff, leaf_diff as leaf_diff
from antiphon.snapshot.tree_reader import (
    available_entries as available_entries,
    count as count,
    entries as entries,
    get as get,
    get_many as get_many,
    leaf_entries as leaf_entries,
)
from antiphon.snapshot.tree_update import update as update
from antiphon.snapshot.walk import (
    Stats as Stats,
    missing as missing,
    reachable as reachable,
    stats as stats,
    walk as walk,
)
