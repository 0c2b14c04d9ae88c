"""Walk all blobs of a snapshot, a tree or content: for garbage collection, CAR files, and fetching.

The first byte of a blob tells its type: a map is a snapshot's root, a list of 2 a node of a tree, a list of 4 a node of
content; a raw blob is a chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from antiphon.core.cid import RAW, Cid
from antiphon.core.errors import BadEncoding, DamagedBlob, MissingBlob
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.core.keys import KEY_SIZE
from antiphon.snapshot import content
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.cbor import array
from antiphon.snapshot.content_node import ContentNode
from antiphon.snapshot.limits import BATCH_COUNT_MAX
from antiphon.snapshot.root import SnapshotRoot
from antiphon.snapshot.tree_node import Node
from antiphon.snapshot.tree_reader import PlacedNode, load_root


def walk(cid: Cid, blobs: Blobs, *, seen: set[Cid] | None = None) -> Iterator[Cid]:
    """Yield every CID that can be reached, depth first, each once. Chunks are not read.

    CIDs in `seen`, and everything below, are skipped; the walk adds to it. So a second walk with the same set, over
    the next snapshot, visits only new blobs.

    >>> from antiphon.snapshot.blobs import MemoryBlobs
    >>> from antiphon.snapshot.tree_builder import build
    >>> blobs = MemoryBlobs()
    >>> root = build([(b"k" * 16, bytes(2000))], blobs)
    >>> list(walk(root, blobs)) == [root, Cid.of(bytes(2000))]
    True
    """
    for found, here in _Walk(blobs, set() if seen is None else seen, strict=True).any(cid):
        assert here
        yield found


def reachable(cid: Cid, blobs: Blobs, *, seen: set[Cid] | None = None) -> Iterator[Cid]:
    """Yield every CID that can be reached if blobs may be missing: a missing one is yielded, CIDs below are unknown."""
    for found, _ in _Walk(blobs, set() if seen is None else seen, strict=False).any(cid):
        yield found


def missing(cid: Cid, blobs: Blobs, *, known: Collection[Cid] = ()) -> Iterator[Cid]:
    """Yield the CIDs whose blobs are missing or damaged. CIDs below a missing node are unknown.

    CIDs in `known` are assumed to be held, with everything below them: for example trees that are held whole.
    """
    pending: list[Cid] = []
    for found, here in _Walk(blobs, set(), known=known, strict=False).any(cid):
        if not here:
            yield found
        elif found.codec == RAW:
            pending.append(found)
            if len(pending) >= BATCH_COUNT_MAX:
                yield from blobs.missing(pending)
                pending = []
    yield from blobs.missing(pending)


def links(cid: Cid, blobs: Blobs, *, part: bool = False) -> list[Cid]:
    """Return the CIDs in one node of a snapshot, a tree or content. A chunk has none, and is not read.

    With `part`, the root of a snapshot is refused with `BadEncoding`: no snapshot is part of another.
    """
    if cid.codec == RAW:
        return []
    data, what = blobs.get(cid), str(cid)
    if data[:1] == array(2):
        node = Node.decode(data, what)
        return [Cid(held) for held in node.held if node.level or isinstance(held, Cid)]
    if data[:1] == array(4):
        return [link for link, _ in ContentNode.decode(data, what).links]
    if part:
        raise BadEncoding(f"{what} is no part of a snapshot")
    root = SnapshotRoot.decode(data)
    return [tree for tree in (root.items, root.feeds, root.deaths) if tree is not None]


class _Walk:
    """Yields each CID, and True if its blob could be read; chunks are not read.

    A node is marked as seen only after everything below it: a node that is linked from a wrong place is refused there,
    and must still be walked where it belongs.
    """

    def __init__(self, blobs: Blobs, seen: set[Cid], *, known: Collection[Cid] = (), strict: bool) -> None:
        self._blobs = blobs
        self._seen = seen
        self._known = known
        self._strict = strict

    def _is_new(self, cid: Cid) -> bool:
        return cid not in self._seen and cid not in self._known

    def _lacks(self, error: MissingBlob | DamagedBlob, cid: Cid) -> Iterator[tuple[Cid, bool]]:
        if self._strict:
            raise error
        yield cid, False
        self._seen.add(cid)

    def any(self, cid: Cid) -> Iterator[tuple[Cid, bool]]:
        if not self._is_new(cid):
            return
        if cid.codec == RAW:
            yield from self._chunk(cid)
            return
        try:
            first = self._blobs.get(cid)[:1]
        except (MissingBlob, DamagedBlob) as error:
            yield from self._lacks(error, cid)
            return
        if first == array(2):
            yield from self._tree(cid, None, 0)
        elif first == array(4):
            yield from self._content(cid, None, 0, True)
        elif first >= b"\xa0":
            yield from self._snapshot(cid)
        else:
            raise BadEncoding(f"{cid} is no part of a snapshot")

    def _snapshot(self, cid: Cid) -> Iterator[tuple[Cid, bool]]:
        root = SnapshotRoot.decode(self._blobs.get(cid))
        yield cid, True
        for tree, key_size, count in (
            (root.items, ITEM_ID_SIZE, root.item_count),
            (root.feeds, KEY_SIZE, root.feed_count),
            (root.deaths, ITEM_ID_SIZE, None),
        ):
            if tree is None:
                continue
            with suppress(MissingBlob, DamagedBlob):  # then `_tree` yields it
                top = load_root(tree, self._blobs)
                if len(top.keys[0]) != key_size or count not in (None, top.total):
                    raise BadEncoding(
                        f"snapshot {cid}: tree {tree} has {top.total} entries with keys of {len(top.keys[0])} bytes"
                    )
            yield from self._tree(tree, None, 0)
        self._seen.add(cid)

    def _chunk(self, cid: Cid) -> Iterator[tuple[Cid, bool]]:
        if self._is_new(cid):
            yield cid, True
            self._seen.add(cid)

    def _tree(self, cid: Cid, parent: PlacedNode | None, index: int) -> Iterator[tuple[Cid, bool]]:
        if not self._is_new(cid):
            return
        try:
            place = PlacedNode.root(cid, self._blobs) if parent is None else parent.child(index, self._blobs)
        except (MissingBlob, DamagedBlob) as error:
            yield from self._lacks(error, cid)
            return
        yield cid, True
        for number, held in enumerate(place.node.held):
            if place.node.level:
                yield from self._tree(place.node.child(number).link, place, number)
            elif isinstance(held, Cid):
                yield from self._chunk(held) if held.codec == RAW else self._content(held, None, 0, True)
        self._seen.add(cid)

    def _content(self, cid: Cid, parent: ContentNode | None, index: int, rightmost: bool) -> Iterator[tuple[Cid, bool]]:
        if not self._is_new(cid):
            return
        try:
            node = (
                content.root_of(cid, self._blobs)
                if parent is None
                else content.below(parent, index, self._blobs, rightmost)
            )
        except (MissingBlob, DamagedBlob) as error:
            yield from self._lacks(error, cid)
            return
        yield cid, True
        for number, (link, _) in enumerate(node.links):
            if node.level:
                last = rightmost and number == len(node.links) - 1
                yield from self._content(link, node, number, last)
            else:
                yield from self._chunk(link)
        self._seen.add(cid)


@dataclass
class Stats:
    """Counts of a tree. Shared chunks count once."""

    entries: int = 0
    levels: int = 0
    nodes: int = 0
    node_size: int = 0
    chunks: int = 0


def stats(root: Cid | None, blobs: Blobs) -> Stats:
    """Count the nodes and chunks of a tree by walking it."""
    if root is None:
        return Stats()
    top = PlacedNode.root(root, blobs).node
    found = Stats(entries=top.total, levels=top.level + 1)
    for cid in walk(root, blobs):
        if cid.codec == RAW:
            found.chunks += 1
        else:
            found.nodes += 1
            found.node_size += len(blobs.get(cid))
    return found
