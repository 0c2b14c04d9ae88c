"""Fuzz targets: blobs, trees, roots and CAR files of snapshots."""

from __future__ import annotations

import io
from contextlib import suppress
from functools import cache
from typing import Any

from tools.example import Example
from tools.examples_snapshot import LONG, snapshot
from tools.target import Target

from antiphon.core.cid import CID_SIZE, DAG_CBOR, Cid
from antiphon.core.errors import AntiphonError, MissingBlob
from antiphon.party.bundle.nodes import BundleRoot, decode_list, decode_page, encode_list, encode_page
from antiphon.snapshot import car, content, tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.chunks import ITEM_CHUNKS
from antiphon.snapshot.content_node import ContentNode
from antiphon.snapshot.root import FeedCut, SnapshotRoot, decode_death, encode_death
from antiphon.snapshot.tree_node import Node
from antiphon.snapshot.walk import missing, walk

Car = tuple[list[Cid], dict[Cid, bytes]]


@cache
def _below() -> tuple[tuple[Cid, bytes], ...]:
    """The blobs below the seeds, made once."""
    blobs = MemoryBlobs()
    snapshot(blobs)
    content.write(LONG, blobs, rule=ITEM_CHUNKS)
    return tuple((cid, blobs.get(cid)) for cid in blobs)


def _held() -> MemoryBlobs:
    blobs = MemoryBlobs()
    blobs.put_all(_below())
    return blobs


def read_tree(data: bytes) -> dict[bytes, bytes]:
    """Check that the tree of this node reads the same in every way, and that `build` makes it again."""
    blobs = _held()
    root = blobs.put(data, DAG_CBOR)
    read = dict(tree.entries(root, blobs))
    assert list(read) == sorted(read)
    assert tree.get_many(root, read, blobs) == read
    assert tree.build(sorted(read.items()), MemoryBlobs()) == root, "two trees for one content"
    assert not list(missing(root, blobs))
    return read


def read_content(data: bytes) -> bytes:
    """The content that begins with this node, as a whole and in pieces."""
    blobs = _held()
    cid = blobs.put(data, DAG_CBOR)
    whole = content.read(cid, blobs, size_max=1 << 20)
    assert content.size_of(cid, blobs) == len(whole)
    assert b"".join(content.pieces(cid, blobs, start=1)) == whole[1:]
    return whole


def walked(data: bytes) -> list[Cid]:
    """All blobs below a blob of any kind, as far as they are present."""
    blobs = _held()
    cid = blobs.put(data, DAG_CBOR)
    lacking = list(missing(cid, blobs))
    with suppress(MissingBlob):
        assert set(lacking) <= set(walk(cid, blobs)), "chunks are named, whether they are here or not"
    return lacking


def read_car(data: bytes) -> Car:
    blobs = MemoryBlobs()
    roots = car.read_car(io.BytesIO(data), blobs)
    return roots, {cid: blobs.get(cid) for cid in blobs}


def write_car(value: Car) -> bytes:
    roots, held = value
    blobs, file = MemoryBlobs(), io.BytesIO()
    blobs.put_all(held.items())
    car.write_car(file, roots, held, blobs)
    return file.getvalue()


def mended_car(data: bytes) -> Car:
    """A CAR file with the CIDs of its blobs corrected."""
    stream, file = io.BytesIO(data), io.BytesIO()
    file.write(car.encode_header(car.read_header(stream)))
    while (size := car._read_varint(stream)) is not None:
        cid, blob = car._read(stream, min(size, CID_SIZE)), stream.read(max(0, size - CID_SIZE))
        codec = cid[1] if cid[1:2] in (b"\x55", b"\x71") else DAG_CBOR
        file.write(car._varint(CID_SIZE + len(blob)) + Cid.of(blob, codec) + blob)
    return read_car(file.getvalue())


def _node(data: bytes) -> Node:
    """Decode the node, and check its shape."""
    node = Node.decode(data, "node")
    with suppress(AntiphonError):
        node.check_shape("node", rightmost=False)
    return node


def snapshot_targets(made: dict[str, Example]) -> dict[str, Target]:
    seeds: dict[str, Any] = {name: (example.data,) for name, example in made.items()}
    trees = (made["tree-node"].data, made["tree-leaf"].data)
    return {
        "tree-node": Target(_node, Node.encode, trees),
        "tree-read": Target(read_tree, None, trees),
        "content-node": Target(
            lambda data: ContentNode.decode(data, "content"), ContentNode.encode, seeds["content-node"]
        ),
        "content-read": Target(read_content, None, seeds["content-node"]),
        "walk": Target(walked, None, (*trees, made["content-node"].data, made["snapshot-root"].data)),
        "feed-cut": Target(FeedCut.decode, FeedCut.encode, seeds["feed-cut"]),
        "death": Target(decode_death, encode_death, seeds["death"]),
        "snapshot-root": Target(SnapshotRoot.decode, SnapshotRoot.encode, seeds["snapshot-root"]),
        "bundle-root": Target(BundleRoot.decode, BundleRoot.encode, seeds["bundle-root"]),
        "bundle-page": Target(decode_page, encode_page, seeds["bundle-page"]),
        "bundle-list": Target(decode_list, encode_list, seeds["bundle-list"]),
        "car": Target(read_car, write_car, seeds["car"], canonical=False),
        "car-mended": Target(mended_car, write_car, seeds["car"], canonical=False),
    }
