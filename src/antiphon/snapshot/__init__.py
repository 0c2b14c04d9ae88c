"""Snapshots: the state of a party as blobs that are named by their content.

blobs, blobstore      the port of a blob store; in memory, and on disk
collecting            when blobs may be let go
cbor                  the part of DAG-CBOR that is written here
chunks                where bytes are cut
contentnode, content  bytes of any size as blobs
node, values          nodes of a tree, and what its leaves hold
build, update         making trees
read, diff, walk      reading, comparing and going through them
tree                  all of that by one name
root                  the root of a snapshot, and feeds at its cut
car, carfile          blobs in one file
overlay               blobs beside a store, for one computation
"""

from __future__ import annotations

from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import Blobs, MemoryBlobs
from antiphon.snapshot.root import FeedCut, ModelPin, SnapshotRoot

__all__ = ["BlobStore", "Blobs", "FeedCut", "MemoryBlobs", "ModelPin", "SnapshotRoot"]
