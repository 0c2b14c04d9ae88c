"""Snapshots: the state of a party as a tree of blobs, which are named by their content.

Start reading at `blobs` (the store), `tree` (a sorted map kept as blobs) and `root` (a snapshot). The names below are
public: `from antiphon.snapshot import BlobStore`. Each is loaded when it is first used.

blobs            `Blobs`: the interface of a blob store; `MemoryBlobs` in memory
blob_store       `BlobStore`: blobs on disk, in LMDB
blob_overlay     `BlobOverlay`: blobs beside a store, for one computation
blob_collection  when garbage collection may delete blobs
cbor             the part of DAG-CBOR that snapshots use
chunks           content-defined chunks
content          bytes of any size as blobs: write and read
content_node     nodes that link the chunks of content
content_stream   content as a binary stream
tree             the functions on trees, by one name
tree_node        nodes of a tree, and the rule that gives a tree its one shape
tree_values      values of a tree: small ones in the leaf, large ones as content
tree_builder     build a tree from sorted entries
tree_update      change a tree
tree_reader      read a tree
tree_diff        compare two trees
tree_paths       the blobs that lead to some keys
walk             all blobs that a CID leads to; the missing ones
root             `SnapshotRoot`, and `FeedCut`: a feed at the cut
car              CAR files: write and read
car_file         `CarFile`: the blobs of a CAR file as a read-only store
limits           limits; some are part of the format

In: sorted (key, value) entries and streams of bytes. Out: CIDs, and blobs in a store. May import `model`, `halo`,
`feed` and `core`; it uses `core`, and the LMDB file of `feed.store`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.snapshot.blob_store import BlobStore as BlobStore
    from antiphon.snapshot.blobs import Blobs as Blobs, MemoryBlobs as MemoryBlobs
    from antiphon.snapshot.car_file import CarFile as CarFile
    from antiphon.snapshot.root import FeedCut as FeedCut, ModelPin as ModelPin, SnapshotRoot as SnapshotRoot
else:
    __getattr__, __dir__ = lazy_exports(__name__)
