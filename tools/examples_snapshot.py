"""Examples of the parts of snapshots: blobs, content, trees, roots, CAR files."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable

from tools.example import BOB_DATA, CONTROL, DATA, ITEM, NOW_MS, PARTY, Example

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.timeframe import Timeframe
from antiphon.party.bundle.nodes import BundleFeed, BundleRoot, decode_list, decode_page, encode_list, encode_page
from antiphon.snapshot import content, tree
from antiphon.snapshot.blob_store import FORMAT, BlobStore
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.car import export, read_car, write_car
from antiphon.snapshot.chunks import ITEM_CHUNKS
from antiphon.snapshot.content_node import ContentNode
from antiphon.snapshot.root import FeedCut, SnapshotRoot, decode_death, encode_death
from antiphon.snapshot.tree_node import Node, ends
from antiphon.snapshot.walk import walk

LONG = bytes(range(256)) * 72  # two chunks


def entries() -> dict[bytes, bytes]:
    """A small item, a large one, and as many others as it takes for a second leaf."""
    found = {bytes(ITEM): b"the item", bytes(ITEM[:-1]) + b"\xff": LONG}
    for number in range(3, 100):
        key = number.to_bytes(5, "big") + bytes(11)
        found[key] = b""
        if ends(key, 0):
            break
    return {**found, b"\0\1" + bytes(14): b"the last"}


def snapshot(blobs: MemoryBlobs) -> SnapshotRoot:
    cuts = {
        bytes(DATA.key): FeedCut(2, b"h" * 32, 3, NOW_MS, Timeframe({CONTROL.key: 4})),
        bytes(BOB_DATA.key): FeedCut(0, bytes(32), 0, 0, Timeframe()),
    }
    items = entries()
    return SnapshotRoot(
        party=bytes(PARTY.key),
        number=1,
        previous=None,
        created_ms=NOW_MS,
        control=Timeframe({CONTROL.key: 5}),
        models=(("antiphon/object", 1, 1), ("antiphon/text", 1, 1)),
        item_count=len(items),
        feed_count=len(cuts),
        items=tree.build(sorted(items.items()), blobs),
        feeds=tree.build(sorted((feed, cut.encode()) for feed, cut in cuts.items()), blobs),
        deaths=tree.build([(bytes(ITEM), encode_death(1))], blobs),
    )


def bundle(root: SnapshotRoot) -> tuple[bytes, BundleRoot]:
    """A list with one span, and the root of a bundle with a control feed, and a data feed cut at block 2."""
    spans = encode_list([Cid.of(b"a span")])
    named = (Cid.of(spans, DAG_CBOR),)
    control = BundleFeed(bytes(CONTROL.key), control=True, first=0, length=6, lists=named)
    data = BundleFeed(bytes(DATA.key), control=False, first=2, length=2, lists=())
    return spans, BundleRoot(bytes(PARTY.key), bytes(CONTROL.key), root.cid, (control, data))


def car_again(data: bytes) -> bytes:
    blobs, file = MemoryBlobs(), io.BytesIO()
    roots = read_car(io.BytesIO(data), blobs)
    write_car(file, roots, walk(roots[0], blobs), blobs)
    return file.getvalue()


def stored() -> tuple[bytes, bytes]:
    """The table `meta` of a blob store with one blob of 5 bytes."""
    with tempfile.TemporaryDirectory() as folder, BlobStore.open(folder) as store:
        store.put(b"hello")
        with store._file.read() as txn:
            return txn.get(b"format", db=store._meta), txn.get(b"size", db=store._meta)


def snapshot_examples() -> dict[str, Example]:
    blobs = MemoryBlobs()
    root = snapshot(blobs)
    assert root.items is not None
    top = Node.decode(blobs.get(root.items), "items")
    long = content.write(LONG, blobs, rule=ITEM_CHUNKS)
    file = io.BytesIO()
    export([blobs.put(b"hello")], blobs, file)
    cut = FeedCut(2, b"h" * 32, 3, NOW_MS, Timeframe({CONTROL.key: 4}))
    mark, size = stored()
    spans, bundled = bundle(root)

    def node(cid: Cid) -> Example:
        return Example(blobs.get(cid), lambda data: Node.decode(data, "node").encode())

    def same(held: bytes) -> Callable[[bytes], bytes]:
        return lambda data: held

    return {
        "content-node": Example(blobs.get(long), lambda data: ContentNode.decode(data, "content").encode()),
        "tree-leaf": node(top.child(1).link),
        "tree-node": node(root.items),
        "feed-cut": Example(cut.encode(), lambda data: FeedCut.decode(data).encode()),
        "death": Example(encode_death(1), lambda data: encode_death(decode_death(data))),
        "snapshot-root": Example(root.encode(), lambda data: SnapshotRoot.decode(data).encode()),
        "bundle-list": Example(spans, lambda data: encode_list(decode_list(data))),
        "bundle-page": Example(encode_page(bundled.feeds[1:]), lambda data: encode_page(decode_page(data))),
        "bundle-root": Example(bundled.encode(), lambda data: BundleRoot.decode(data).encode()),
        "car": Example(file.getvalue(), car_again),
        "blobs-format": Example(mark, same(FORMAT)),
        "blobs-size": Example(size, same(len(b"hello").to_bytes(8, "little"))),
    }
