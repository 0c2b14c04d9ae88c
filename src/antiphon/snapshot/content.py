"""Content: bytes of any size as blobs. Content of one chunk is that chunk; more chunks are linked by nodes.

>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> blobs = MemoryBlobs()
>>> cid = write(b"0123456789" * 10_000, blobs)
>>> size_of(cid, blobs), read(cid, blobs) == b"0123456789" * 10_000
(100000, True)
>>> b"".join(pieces(cid, blobs, start=99_995, end=100_000))
b'56789'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.snapshot.blobs import BlobBatch, Blobs
from antiphon.snapshot.chunks import FILE_CHUNKS, ChunkRule, chunks, cut
from antiphon.snapshot.content_node import CHUNK_SIZE_MAX, ContentNode, ends_group
from antiphon.snapshot.limits import CONTENT_LEVEL_MAX, CONTENT_SIZE_MAX, VALUE_SIZE_MAX

# -- writing


def write(data: bytes | BinaryIO, blobs: Blobs, *, rule: ChunkRule = FILE_CHUNKS) -> Cid:
    """Put bytes, or the bytes of a stream, as content. The CID depends on the bytes and the rule alone."""
    batch = BlobBatch(blobs)
    cid = add(cut(data, rule) if isinstance(data, bytes) else chunks(data, rule), batch)
    batch.flush()
    return cid


def add(parts: Iterable[bytes], batch: BlobBatch) -> Cid:
    """Put chunks as content into a batch."""
    writer = _Writer(batch)
    for part in parts:
        writer.put(0, batch.add(part, RAW), len(part))
    return writer.finish()


class _Writer:
    """Builds the nodes of content, with one open node for each level.

    A full node is closed only when another link follows. So a node that stays alone at its level is the root.
    """

    def __init__(self, batch: BlobBatch) -> None:
        self._batch = batch
        self._open: list[list[tuple[Cid, int]]] = []
        self._size = 0

    def put(self, level: int, cid: Cid, size: int) -> None:
        if level == len(self._open):
            self._open.append([])
        group = self._open[level]
        if group and ends_group(len(group), group[-1][0]):
            self._close(level)
        self._open[level].append((cid, size))
        if level == 0:
            self._size += size
            if self._size > CONTENT_SIZE_MAX:
                raise TooLarge(f"content of more than {CONTENT_SIZE_MAX} bytes")

    def _close(self, level: int) -> None:
        if level > CONTENT_LEVEL_MAX:
            raise TooLarge(f"content of more than {CONTENT_LEVEL_MAX + 1} levels")
        node = ContentNode(level, tuple(self._open[level]))
        self._open[level] = []
        self.put(level + 1, self._batch.add(node.encode(), DAG_CBOR), node.size)

    def finish(self) -> Cid:
        if not self._open:
            return self._batch.add(b"", RAW)
        level = 0
        while level + 1 < len(self._open) or len(self._open[level]) > 1:
            self._close(level)
            level += 1
        return self._open[level][0][0]


# -- reading


def size_of(cid: Cid, blobs: Blobs) -> int:
    """Return the size of content, as its root states it."""
    return len(_chunk(cid, blobs)) if cid.codec == RAW else root_of(cid, blobs).size


def read(cid: Cid, blobs: Blobs, *, size_max: int = VALUE_SIZE_MAX, rule: ChunkRule | None = None) -> bytes:
    """Read all of the content; with `rule`, refuse it unless it is cut by that rule."""
    root = None if cid.codec == RAW else root_of(cid, blobs)
    alone = _chunk(cid, blobs) if root is None else b""
    size = len(alone) if root is None else root.size
    if size > size_max:
        raise TooLarge(f"content {cid} has {size} bytes, at most {size_max} are wanted; read it in pieces")
    parts: list[bytes] = []
    for part in [alone] if root is None else _pieces(root, cid, blobs, 0, size, True):
        # Only the last may be shorter: a few nodes, repeated, could link very many small chunks.
        if rule is not None and parts and len(parts[-1]) < rule.size_min:
            raise _wrongly_cut(cid)
        parts.append(part)
    data = b"".join(parts)
    if rule is not None and list(map(len, cut(data, rule))) != [len(part) for part in parts if part]:
        raise _wrongly_cut(cid)
    return data


def _wrongly_cut(cid: Cid) -> BadEncoding:
    return BadEncoding(f"content {cid} is not cut where the rule says; do not trust who made it")


def pieces(cid: Cid, blobs: Blobs, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes from `start` to `end`, chunk by chunk. Only these chunks, and the nodes above them, are read."""
    if start < 0 or (end is not None and end < start):
        raise InvalidInput(f"no range of bytes: {start} to {end}")
    if cid.codec == RAW:
        piece = _chunk(cid, blobs)[start:end]
        return iter([piece] if piece else [])
    root = root_of(cid, blobs)
    return _pieces(root, cid, blobs, start, root.size if end is None else min(end, root.size), True)


def _pieces(node: ContentNode, cid: Cid, blobs: Blobs, start: int, end: int, rightmost: bool) -> Iterator[bytes]:
    at = 0
    for index, (child, size) in enumerate(node.links):
        low, high = max(0, start - at), min(size, end - at)
        at += size
        if low >= high:
            continue
        if node.level == 0:
            piece = _chunk(child, blobs)
            if len(piece) != size:
                raise BadEncoding(f"content {cid}: chunk {child} has {len(piece)} bytes, {size} are announced")
            yield piece[low:high]
        else:
            last = rightmost and index == len(node.links) - 1
            yield from _pieces(below(node, index, blobs, last), child, blobs, low, high, last)


def _chunk(cid: Cid, blobs: Blobs) -> bytes:
    data = blobs.get(cid)
    if len(data) > CHUNK_SIZE_MAX:
        raise BadEncoding(f"{cid} has {len(data)} bytes, a chunk has at most {CHUNK_SIZE_MAX}")
    return data


def root_of(cid: Cid, blobs: Blobs) -> ContentNode:
    """Read the root node of content of more than one chunk."""
    node = ContentNode.decode(blobs.get(cid), f"content {cid}")
    if len(node.links) < 2:
        raise BadEncoding(f"content {cid}: a node for a single link")
    node.check_shape(f"content {cid}", rightmost=True)
    return node


def below(parent: ContentNode, index: int, blobs: Blobs, rightmost: bool) -> ContentNode:
    """Read a child of a node, and check it against the node's entry."""
    cid, size = parent.links[index]
    node = ContentNode.decode(blobs.get(cid), f"content {cid}")
    if node.level != parent.level - 1 or node.size != size:
        raise BadEncoding(
            f"content {cid}: {node.size} bytes at level {node.level}, {size} at {parent.level - 1} are announced"
        )
    node.check_shape(f"content {cid}", rightmost=rightmost)
    return node
