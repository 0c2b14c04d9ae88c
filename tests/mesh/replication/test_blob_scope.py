"""The blobs of a party: all that its snapshots hold, found on demand, and no others."""

from __future__ import annotations

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.mesh.replication.blob_scope import BlobScope
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.root import SnapshotRoot
from antiphon.snapshot.tree_node import Node


class Counting(MemoryBlobs):
    """Blobs that count how many are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def get(self, cid: Cid) -> bytes:
        self.reads += 1
        return super().get(cid)


def build(blobs: MemoryBlobs, *values: bytes) -> Cid:
    root = tree.build(((number.to_bytes(16, "big"), value) for number, value in enumerate(values)), blobs)
    assert root is not None
    return root


@pytest.fixture
def blobs() -> Counting:
    return Counting()


def test_all_blobs_of_a_snapshot_are_reached_and_no_others(blobs: Counting) -> None:
    large = bytes(5_000)
    root = build(blobs, *(b"%d" % number for number in range(500)), large)
    foreign, file = build(blobs, *(b"x%d" % number for number in range(100))), blobs.put(b"a file")
    scope = BlobScope(blobs)
    assert all(scope.reaches(cid, [root]) for cid in tree.walk(root, blobs))
    assert not scope.reaches(file, [root])
    assert not any(scope.reaches(cid, [root]) for cid in set(tree.walk(foreign, blobs)) - set(tree.walk(root, blobs)))


def test_a_cid_inside_a_value_is_no_link(blobs: Counting) -> None:
    """A member can write any bytes into an item, also those of a link."""
    file = blobs.put(b"a file of another party")
    root = build(blobs, b"\xd8\x2a\x58\x25\x00" + file, bytes(file))
    assert not BlobScope(blobs).reaches(file, [root])


def test_each_node_is_read_once_and_the_next_epoch_costs_its_new_nodes(blobs: Counting) -> None:
    first = build(blobs, *(b"%d" % number for number in range(2_000)))
    second = tree.update(first, [((3).to_bytes(16, "big"), b"changed")], blobs)
    assert second is not None
    scope, nodes = BlobScope(blobs), sum(1 for _ in tree.walk(first, blobs))
    blobs.reads = 0
    for number in range(50):
        assert not scope.reaches(Cid.of(b"foreign %d" % number), [first])
    assert blobs.reads == nodes
    assert not scope.reaches(Cid.of(b"foreign"), [first, second])
    assert blobs.reads <= nodes + 4


def test_what_arrives_later_is_reached_then(blobs: Counting) -> None:
    root = build(blobs, *(b"%d" % number for number in range(500)))
    here = Counting()
    scope, cids = BlobScope(here), list(tree.walk(root, blobs))
    assert scope.reaches(root, [root])
    assert not scope.reaches(cids[-1], [root])
    here.put_all((cid, blobs.get(cid)) for cid in cids)
    scope.arrived()
    assert all(scope.reaches(cid, [root]) for cid in cids)


def test_the_snapshot_of_another_party_that_liars_link_into_theirs_is_not_reached(blobs: Counting) -> None:
    """Its CID stands in control feeds, which members of a child party hold, too; the CIDs below it do not."""
    items = build(blobs, b"secret", bytes(5_000))
    foreign = blobs.put(SnapshotRoot(b"q" * 32, 1, None, 5, items=items, item_count=2).encode(), DAG_CBOR)
    own = build(blobs, *(b"%d" % number for number in range(3)))
    keys = (bytes(16), b"k" * 16)
    forged = blobs.put(Node(1, keys, (own, foreign), (3, 2)).encode(), DAG_CBOR)
    root = blobs.put(SnapshotRoot(b"p" * 32, 1, None, 5, items=forged, item_count=3).encode(), DAG_CBOR)
    scope = BlobScope(blobs)
    assert all(scope.reaches(cid, [root]) for cid in (root, forged, own))
    assert not any(scope.reaches(cid, [root]) for cid in (foreign, *tree.walk(items, blobs)))
    assert scope.reaches(foreign, [root, foreign]), "of its own party it is the root"
