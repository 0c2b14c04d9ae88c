"""The blobs of a tree that lead to some of its keys: sent to a peer that needs only these keys.

They prove the values. Each blob is checked by its CID from the root on, so a reader learns the values of the keys, and
which keys are not in the tree.

>>> from antiphon.snapshot import tree
>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> blobs, part = MemoryBlobs(), MemoryBlobs()
>>> root = tree.build(((bytes([i]) * 16, b"value %d" % i) for i in range(200)), blobs)
>>> key = bytes([7]) * 16
>>> part.put_all((cid, blobs.get(cid)) for cid in paths(root, [key], blobs))
>>> tree.get(root, key, part), len(list(part)) < len(list(tree.walk(root, blobs)))
(b'value 7', True)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, MissingBlob
from antiphon.snapshot import walk
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.limits import BATCH_COUNT_MAX
from antiphon.snapshot.tree_reader import PlacedNode


def paths(root: Cid | None, keys: Iterable[bytes], blobs: Blobs) -> Iterator[Cid]:
    """Yield the blobs on the paths to these keys, and of their values, parents first, each once."""
    for cid, here in _Paths(blobs, strict=True).tree(root, keys):
        assert here
        yield cid


def missing_on_paths(root: Cid | None, keys: Iterable[bytes], blobs: Blobs, limit: int = BATCH_COUNT_MAX) -> list[Cid]:
    """Return up to `limit` missing blobs on these paths. Call it again when they have been put."""
    found = _Paths(blobs, strict=False).tree(root, keys)
    return list(islice((cid for cid, here in found if not here), limit))


class _Paths:
    """Yields each CID, and True if its blob is held. CIDs below a missing blob are unknown."""

    def __init__(self, blobs: Blobs, *, strict: bool) -> None:
        self._blobs = blobs
        self._strict = strict
        self._seen: set[Cid] = set()

    def tree(self, root: Cid | None, keys: Iterable[bytes]) -> Iterator[tuple[Cid, bool]]:
        wanted = sorted(set(keys))
        if root is not None and wanted:
            yield from self._node(root, None, 0, wanted)

    def _node(self, cid: Cid, parent: PlacedNode | None, index: int, wanted: list[bytes]) -> Iterator[tuple[Cid, bool]]:
        try:
            place = PlacedNode.root(cid, self._blobs) if parent is None else parent.child(index, self._blobs)
        except (MissingBlob, DamagedBlob):
            if self._strict:
                raise
            yield cid, False
            return
        yield cid, True
        start = 0
        for at, last in enumerate(place.keys):
            end = bisect_left(wanted, last + b"\0", start)
            if start < end and place.node.level:
                yield from self._node(place.node.child(at).link, place, at, wanted[start:end])
            elif start < end and wanted[end - 1] == last:
                yield from self._value(place.node.held[at])
            start = end

    def _value(self, held: bytes | Cid) -> Iterator[tuple[Cid, bool]]:
        if not isinstance(held, Cid):
            return
        if self._strict:
            for cid in walk.walk(held, self._blobs, seen=self._seen):
                yield cid, True
        else:
            for cid in walk.missing(held, self._blobs, known=self._seen):
                self._seen.add(cid)  # values may share chunks
                yield cid, False
