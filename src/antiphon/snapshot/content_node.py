"""Nodes of content: ["content", level, size, [link, size, …]]. At level 0 the links lead to chunks, else to nodes.

The end of a node follows from the digests of its links. So bytes inserted at the front of a file change one node, not
all of them.

>>> chunk = Cid.of(b"hello")
>>> node = ContentNode(0, ((chunk, 5), (chunk, 5)))
>>> node.size, ContentNode.decode(node.encode(), "example") == node
(10, True)
"""

from __future__ import annotations

from typing import NamedTuple

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import BadEncoding
from antiphon.snapshot.cbor import CborReader, array, link, text, uint
from antiphon.snapshot.chunks import FILE_CHUNKS, ITEM_CHUNKS
from antiphon.snapshot.limits import CONTENT_LEVEL_MAX, CONTENT_SIZE_MAX, GROUP_LINKS_MAX, GROUP_LINKS_MIN

CHUNK_SIZE_MIN = ITEM_CHUNKS.size_min  # of all but the last
CHUNK_SIZE_MAX = FILE_CHUNKS.size_max
_NAME = "content"


def ends_group(count: int, last: Cid) -> bool:
    """True if a node with `count` links ends with this one: from 16 links on, one in 256 digests ends a node."""
    return count >= GROUP_LINKS_MAX or (count >= GROUP_LINKS_MIN and last[-1] == 0)


class ContentNode(NamedTuple):
    """A node: links to chunks or nodes, with their sizes."""

    level: int
    links: tuple[tuple[Cid, int], ...]

    @property
    def size(self) -> int:
        return sum(size for _, size in self.links)

    def encode(self) -> bytes:
        parts = [array(4), text(_NAME), uint(self.level), uint(self.size), array(2 * len(self.links))]
        for cid, size in self.links:
            parts += (link(cid), uint(size))
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, what: str) -> ContentNode:
        reader = CborReader(data, what)
        if reader.array() != 4 or reader.text() != _NAME:
            raise BadEncoding(f"{what}: no node of content")
        level, size, (count, over) = reader.uint(), reader.uint(), divmod(reader.array(), 2)
        if level > CONTENT_LEVEL_MAX or size > CONTENT_SIZE_MAX:
            raise BadEncoding(f"{what}: content of {size} bytes with level {level}")
        if over or not 0 < count <= GROUP_LINKS_MAX:
            raise BadEncoding(f"{what}: {count} links in a node")
        node = cls(level, tuple((reader.link(), reader.uint()) for _ in range(count)))
        reader.done()
        node._check(what, size)
        return node

    def _check(self, what: str, announced: int) -> None:
        codec, size_max = (DAG_CBOR, CONTENT_SIZE_MAX) if self.level else (RAW, CHUNK_SIZE_MAX)
        for cid, size in self.links:
            if cid.codec != codec or not 0 < size <= size_max:
                raise BadEncoding(f"{what}: {cid} with {size} bytes in a node of level {self.level}")
        if self.size != announced:
            raise BadEncoding(f"{what}: {announced} bytes are announced, {self.size} are there")

    def check_shape(self, what: str, *, rightmost: bool) -> None:
        """Refuse a node that does not end by the rule; only the last of a level may end early, or be small."""
        for index, (cid, _) in enumerate(self.links[:-1], start=1):
            if ends_group(index, cid):
                raise BadEncoding(f"{what}: the node continues after {cid}, which ends it")
        if not rightmost and not ends_group(len(self.links), self.links[-1][0]):
            raise BadEncoding(f"{what}: the node ends at {self.links[-1][0]}, which does not end it")
        # Otherwise a few nodes, repeated, could describe a file of very many tiny chunks.
        least = min((size for _, size in (self.links[:-1] if rightmost else self.links)), default=CHUNK_SIZE_MIN)
        if least < CHUNK_SIZE_MIN:
            raise BadEncoding(f"{what}: {least} bytes in one link; only the last has less than {CHUNK_SIZE_MIN}")
