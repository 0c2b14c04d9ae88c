"""Going through snapshots where something is damaged, or was made to mislead: nothing right is passed over for it."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import BadEncoding, DamagedBlob
from antiphon.snapshot import content, tree
from antiphon.snapshot.blobs import Blobs, MemoryBlobs
from antiphon.snapshot.content_node import ContentNode
from antiphon.snapshot.limits import INNER_ENTRIES_MAX, LEAF_ENTRIES_MAX
from antiphon.snapshot.root import SnapshotRoot
from antiphon.snapshot.tree_node import InnerEntry, Node, ends
from antiphon.snapshot.tree_reader import load_root
from antiphon.snapshot.walk import missing, reachable, walk

CHANCE = random.Random(3)
ENTRIES = sorted((CHANCE.randbytes(16), CHANCE.randbytes(100)) for _ in range(2000))


class Damaged(MemoryBlobs):
    """A store in which some blobs have changed; like one on disk, it knows that of those that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[Cid] = set()

    def get(self, cid: Cid) -> bytes:
        if cid in self.changed:
            raise DamagedBlob(f"blob {cid} has changed", cid=cid)
        return super().get(cid)


def snapshot_of(items: Cid | None, blobs: Blobs) -> Cid:
    root = SnapshotRoot(
        b"p" * 32, 1, previous=None, created_ms=1, items=items, item_count=load_root(items, blobs).total if items else 0
    )
    return blobs.put(root.encode(), DAG_CBOR)


def test_the_damaged_root_of_a_tree_is_named_like_any_other_blob() -> None:
    blobs = Damaged()
    items = tree.build(ENTRIES, blobs)
    assert items is not None
    snapshot = snapshot_of(items, blobs)
    blobs.changed = {items}

    assert list(missing(snapshot, blobs)) == [items]
    assert list(reachable(snapshot, blobs)) == [snapshot, items]
    with pytest.raises(DamagedBlob):
        list(walk(snapshot, blobs))


def marked(root: Cid, blobs: Blobs, keep: set[Cid]) -> None:
    """What a collection of garbage does with what a peer has named."""
    with suppress(BadEncoding):
        for _ in reachable(root, blobs, seen=keep):
            pass


def wrong_content(blobs: MemoryBlobs, right: Cid) -> Cid:
    """Content that hangs another file's node in, and lies about its size."""
    size = content.size_of(right, blobs)
    return blobs.put(ContentNode(4, ((right, size + 1), (right, size))).encode(), DAG_CBOR)


def wrong_tree(blobs: MemoryBlobs, right: Cid) -> Cid:
    """A tree with a node of another's in the wrong place."""
    node = load_root(right, blobs)
    entry = InnerEntry(node.keys[-1], right, node.total + 1)
    return blobs.put(Node.inner(node.level + 1, [entry, entry._replace(key=b"\xff" * 16)]).encode(), DAG_CBOR)


def right_content(blobs: MemoryBlobs) -> Cid:
    return content.write(CHANCE.randbytes(3_000_000), blobs)


def right_tree(blobs: MemoryBlobs) -> Cid:
    found = tree.build(ENTRIES, blobs)
    assert found is not None
    return found


@pytest.mark.parametrize(("right", "wrong"), [(right_content, wrong_content), (right_tree, wrong_tree)])
def test_what_hangs_in_a_wrong_place_first_is_still_gone_through_in_its_own(
    right: Callable[[MemoryBlobs], Cid], wrong: Callable[[MemoryBlobs, Cid], Cid]
) -> None:
    """Else somebody could name another's file in a file of their own, and its chunks were taken for garbage."""
    blobs, keep = MemoryBlobs(), set[Cid]()
    root = right(blobs)
    whole = set(blobs)
    marked(wrong(blobs, root), blobs, keep)
    marked(root, blobs, keep)
    assert whole <= keep


def test_a_node_that_is_right_in_its_place_and_wrong_below_is_gone_through_again() -> None:
    """A full node may stand anywhere, while its last child may be the last of its level alone."""
    blobs, keep = MemoryBlobs(), set[Cid]()
    plain = (key for number in range(1 << 20) if not ends(key := number.to_bytes(16, "big"), 0))
    count = LEAF_ENTRIES_MAX * (INNER_ENTRIES_MAX - 1) + 5
    root = tree.build([(next(plain), b"%d" % number * 500) for number in range(count)], blobs)
    assert root is not None
    node, whole = load_root(root, blobs), set(blobs)
    assert (node.level, len(node.keys)) == (1, INNER_ENTRIES_MAX)
    high = InnerEntry(b"\xff" * 16, Cid.of(b"nowhere", DAG_CBOR), 1)
    above = Node.inner(2, [InnerEntry(node.keys[-1], root, node.total), high])
    with pytest.raises(BadEncoding):
        list(reachable(blobs.put(above.encode(), DAG_CBOR), blobs))
    marked(blobs.put(above.encode(), DAG_CBOR), blobs, keep)
    marked(root, blobs, keep)
    assert whole <= keep
