"""Nodes that lie: every one that is read is refused if its form, its shape or its place is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import libipld
import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import AntiphonError, BadEncoding
from antiphon.snapshot import content, tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.chunks import ChunkRule
from antiphon.snapshot.content_node import ContentNode
from antiphon.snapshot.tree_node import InnerEntry, LeafEntry, Node, ends


def keys_like(*ending: bool, level: int = 0) -> list[bytes]:
    """Ascending keys that end a node of the level, or do not."""
    numbers = count(1)
    return [
        next(key for key in (n.to_bytes(16, "big") for n in numbers) if ends(key, level) == wanted) for wanted in ending
    ]


def leaf(keys: list[bytes], blobs: MemoryBlobs) -> InnerEntry:
    node = Node.leaf([LeafEntry(key, b"v") for key in keys])
    return InnerEntry(keys[-1], blobs.put(node.encode(), DAG_CBOR), len(keys))


def inner(level: int, children: list[InnerEntry], blobs: MemoryBlobs) -> Cid:
    return blobs.put(Node.inner(level, children).encode(), DAG_CBOR)


def check_refused(root: Cid, blobs: MemoryBlobs, match: str) -> None:
    for act in (
        lambda: list(tree.entries(root, blobs)),
        lambda: list(tree.walk(root, blobs)),
        lambda: list(tree.diff(None, root, blobs)),
        lambda: [tree.get(root, number.to_bytes(16, "big"), blobs) for number in range(60)],
    ):
        with pytest.raises(BadEncoding, match=match) as caught:
            act()
        assert "baf" in str(caught.value)  # it names a CID


@dataclass
class Family:
    """A right tree of two leaves, to be spoilt."""

    blobs: MemoryBlobs
    keys: list[bytes]

    def root(self, first: InnerEntry, second: InnerEntry) -> Cid:
        return inner(1, [first, second], self.blobs)


@pytest.fixture
def family() -> Family:
    return Family(MemoryBlobs(), keys_like(False, False, True, False, False))


def test_a_right_tree_is_read(family: Family) -> None:
    root = family.root(leaf(family.keys[:3], family.blobs), leaf(family.keys[3:], family.blobs))
    assert root == tree.build([(key, b"v") for key in family.keys], MemoryBlobs())
    assert [key for key, _ in tree.entries(root, family.blobs)] == family.keys


def test_a_leaf_that_ends_too_early_is_refused(family: Family) -> None:
    root = family.root(leaf(family.keys[:2], family.blobs), leaf(family.keys[2:3], family.blobs))
    check_refused(root, family.blobs, "ends at .* does not end it")


def test_a_leaf_that_ends_too_late_is_refused(family: Family) -> None:
    check_refused(leaf(family.keys, family.blobs).link, family.blobs, "continues after")


def test_wrong_counts_are_refused(family: Family) -> None:
    first, second = leaf(family.keys[:3], family.blobs), leaf(family.keys[3:], family.blobs)
    check_refused(family.root(first, second._replace(below=3)), family.blobs, "2 entries, 3 are announced")


def test_keys_outside_of_their_range_are_refused(family: Family) -> None:
    first, second = leaf(family.keys[:3], family.blobs), leaf(family.keys[3:], family.blobs)
    check_refused(family.root(first, second._replace(key=b"\xff" * 16)), family.blobs, "do not lie between")
    low = leaf([family.keys[1], family.keys[4]], family.blobs)
    check_refused(family.root(first, low), family.blobs, "do not lie between")


def test_wrong_levels_are_refused(family: Family) -> None:
    first, second = leaf(family.keys[:3], family.blobs), leaf(family.keys[3:], family.blobs)
    check_refused(inner(2, [first, second], family.blobs), family.blobs, "level 0 below level 2")
    check_refused(inner(9, [first, second], family.blobs), family.blobs, "level 9")


def test_a_root_with_one_child_is_refused(family: Family) -> None:
    check_refused(inner(1, [leaf(family.keys[:2], family.blobs)], family.blobs), family.blobs, "single child")


def test_a_node_that_is_raw_is_refused(family: Family) -> None:
    data = Node.leaf([LeafEntry(family.keys[0], b"v")]).encode()
    raw = family.blobs.put(data, RAW)
    with pytest.raises(BadEncoding, match=str(raw)):
        list(tree.entries(raw, family.blobs))
    entry = InnerEntry(family.keys[2], raw, 1)
    check_refused(family.root(entry, leaf(family.keys[3:], family.blobs)), family.blobs, "a key, a link and a count")


def test_keys_that_do_not_ascend_are_refused(family: Family) -> None:
    for keys in (family.keys[1::-1], family.keys[:1] * 2):
        check_refused(leaf(keys, family.blobs).link, family.blobs, "do not ascend")


def test_values_that_are_kept_in_the_wrong_way_are_refused() -> None:
    blobs, key = MemoryBlobs(), b"k" * 16
    inline = Node.leaf([LeafEntry(key, bytes(1024))]).encode()
    assert Node.decode(inline, "node").held == (bytes(1024),)
    too_large = inline.replace(b"\x59\x04\x00", b"\x59\x04\x01") + b"\0"
    with pytest.raises(BadEncoding, match="no value of up to 1024"):
        Node.decode(too_large, "node")

    def get(link: Cid) -> bytes | None:
        return tree.get(blobs.put(Node.leaf([LeafEntry(key, link)]).encode(), DAG_CBOR), key, blobs)

    with pytest.raises(BadEncoding, match="belongs into its leaf"):
        get(blobs.put(bytes(1024)))
    with pytest.raises(BadEncoding, match="not cut where the rule says"):
        get(content.write(bytes(5000), blobs, rule=ChunkRule(1024, 1024, 2048)))
    with pytest.raises(AntiphonError, match="has 209715200000 bytes"):
        get(huge(blobs))


def huge(blobs: MemoryBlobs) -> Cid:
    node = ContentNode(0, ((blobs.put(bytes(200_000)), 200_000),) * 1024)
    link = blobs.put(node.encode(), DAG_CBOR)
    return blobs.put(ContentNode(1, ((link, node.size),) * 1024).encode(), DAG_CBOR)


# -- form


def some_nodes() -> list[bytes]:
    keys = keys_like(False, False, True)
    links = [
        InnerEntry(bytes([n]) * 32, Cid.of(b"%d" % n, DAG_CBOR), below) for n, below in enumerate((1, 300, 1 << 33))
    ]
    return [
        Node.leaf(
            [LeafEntry(key, value) for key, value in zip(keys, (b"", bytes(30), Cid.of(b"x")), strict=True)]
        ).encode(),
        Node.leaf([LeafEntry(b"k" * 32, bytes(300))]).encode(),
        Node.inner(3, links).encode(),
    ]


@pytest.mark.parametrize("data", some_nodes())
def test_other_readers_of_dag_cbor_agree(data: bytes) -> None:
    """libipld hands links out as bytes, but reads the same."""
    level, items = libipld.decode_dag_cbor(data)
    node = Node.decode(data, "node")
    assert level == node.level
    columns = 3 if level else 2
    assert (tuple(items[::columns]), tuple(items[1::columns])) == (node.keys, node.held)
    assert node.encode() == data


@given(st.sampled_from(some_nodes()), st.data())
def test_a_node_has_one_encoding(data: bytes, chance: st.DataObject) -> None:
    at = chance.draw(st.integers(0, len(data)))
    piece = chance.draw(st.binary(max_size=3))
    changed = data[:at] + piece + data[at + chance.draw(st.integers(0, 3)) :]
    try:
        node = Node.decode(changed, "node")
    except BadEncoding:
        return
    assert node.encode() == changed


@pytest.mark.parametrize(
    "value", ["1817", "190001", "1a00000001", "1b0000000000000001", "00", "1bffffffffffffffff", "20"]
)
def test_counts_have_one_form(value: str) -> None:
    entry = InnerEntry(b"k" * 16, Cid.of(b"x", DAG_CBOR), 1)
    data = Node.inner(1, [entry]).encode()
    with pytest.raises(BadEncoding):
        Node.decode(data[:-1] + bytes.fromhex(value), "node")


@pytest.mark.parametrize("head", [b"\x58\x05", b"\x59\x00\x05", b"\x5a\x00\x00\x00\x05", b"\x5a\x20"])
def test_a_value_whose_size_is_not_in_its_shortest_form_is_refused(head: bytes) -> None:
    data = Node.leaf([LeafEntry(b"k" * 16, b"12345")]).encode()
    assert data.endswith(b"\x4512345")
    with pytest.raises(BadEncoding):
        Node.decode(data.removesuffix(b"\x4512345") + head + b"12345" * 7, "node")
    with pytest.raises(BadEncoding):
        Node.decode(data.removesuffix(b"\x4512345") + head + b"12345", "node")
