"""Content: any bytes come back, whole or in part; edits share blobs; what lies about sizes is refused."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from hashlib import sha256

import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob, TooLarge
from antiphon.snapshot import content, content_node
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.chunks import ITEM_CHUNKS, ChunkRule
from antiphon.snapshot.content_node import ContentNode
from antiphon.snapshot.limits import CONTENT_LEVEL_MAX
from antiphon.snapshot.walk import walk

TINY = ChunkRule(32, 16, 64)  # so that small bytes have nodes above nodes
BYTES = random.Random(1).randbytes(200_000)


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content_node, "CHUNK_SIZE_MIN", 1)
        yield


class Counting(MemoryBlobs):
    """Says what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[Cid] = []

    def get(self, cid: Cid) -> bytes:
        self.read.append(cid)
        return super().get(cid)


@given(st.integers(0, 6000), st.integers(0, 6000), st.integers(0, 6000))
def test_bytes_come_back_whole_and_in_part(size: int, start: int, end: int) -> None:
    blobs, data = MemoryBlobs(), BYTES[:size]
    cid = content.write(data, blobs, rule=TINY)

    assert content.write(io.BytesIO(data), MemoryBlobs(), rule=TINY) == cid
    assert content.read(cid, blobs, rule=TINY) == data
    assert content.size_of(cid, blobs) == size
    assert b"".join(content.pieces(cid, blobs)) == data
    assert (
        b"".join(content.pieces(cid, blobs, start=min(start, end), end=max(start, end)))
        == data[min(start, end) : max(start, end)]
    )
    assert set(walk(cid, blobs)) == set(blobs)  # nothing is written that is not part of it


def test_large_content_is_nested_and_shares_all_but_a_path() -> None:
    blobs = MemoryBlobs()
    before = content.write(BYTES, blobs, rule=TINY)
    root = content.root_of(before, blobs)
    assert root.level > 0
    assert content.read(before, blobs, rule=TINY) == BYTES
    assert set(walk(before, blobs)) == set(blobs)  # also below the last node of a level, which may end early

    count = len(blobs)
    for at in (0, 100_000, len(BYTES)):
        edited = BYTES[:at] + b"inserted" + BYTES[at:]
        assert content.read(content.write(edited, blobs, rule=TINY), blobs) == edited
    assert len(blobs) - count <= 3 * (3 + root.level + 2)


def test_a_range_reads_only_what_it_needs() -> None:
    blobs = Counting()
    cid = content.write(BYTES, blobs, rule=TINY)
    blobs.read.clear()
    assert b"".join(content.pieces(cid, blobs, start=150_000, end=150_010)) == BYTES[150_000:150_010]
    assert len(blobs.read) <= content.root_of(cid, blobs).level + 4


def test_one_chunk_stands_for_itself() -> None:
    blobs = MemoryBlobs()
    assert content.write(b"", blobs) == Cid.of(b"")
    assert content.write(b"small", blobs) == Cid.of(b"small")
    assert content.read(Cid.of(b""), blobs, rule=ITEM_CHUNKS) == b""


def test_limits_are_kept() -> None:
    blobs = Counting()
    cid = content.write(BYTES, blobs)
    blobs.read.clear()
    with pytest.raises(TooLarge, match=f"{cid} has 200000 bytes"):
        content.read(cid, blobs, size_max=199_999)
    assert blobs.read == [cid]
    with pytest.raises(InvalidInput, match="no range"):
        content.pieces(cid, blobs, start=5, end=4)
    with pytest.raises(MissingBlob):
        content.read(Cid.of(b"absent"), blobs)


def test_content_that_is_cut_elsewhere_is_refused() -> None:
    """Else one value would have two CIDs."""
    blobs = MemoryBlobs()
    cid = content.write(BYTES[:5000], blobs, rule=TINY)
    with pytest.raises(BadEncoding, match="not cut where the rule says"):
        content.read(cid, blobs, rule=ITEM_CHUNKS)


# -- hostile nodes


def chunk(blobs: MemoryBlobs, number: int = 0, size: int = 100) -> tuple[Cid, int]:
    data = bytes([number]) * size
    return blobs.put(data), size


def put(blobs: MemoryBlobs, node: ContentNode) -> Cid:
    return blobs.put(node.encode(), DAG_CBOR)


def check_refused(cid: Cid, blobs: MemoryBlobs, match: str) -> None:
    with pytest.raises(BadEncoding, match=match) as caught:
        content.read(cid, blobs)
    assert "baf" in str(caught.value)  # it names a CID


def test_a_chunk_of_another_size_is_refused() -> None:
    blobs = MemoryBlobs()
    (first, _), second = chunk(blobs), chunk(blobs, 1)
    check_refused(put(blobs, ContentNode(0, ((first, 99), second))), blobs, "has 100 bytes, 99 are announced")
    check_refused(put(blobs, ContentNode(0, ((first, 0), second))), blobs, "with 0 bytes")
    check_refused(put(blobs, ContentNode(0, ((first, 1 << 30), second))), blobs, "with 1073741824 bytes")


def test_a_size_that_is_not_the_sum_is_refused() -> None:
    blobs = MemoryBlobs()
    node = ContentNode(0, (chunk(blobs), chunk(blobs, 1))).encode()
    assert node[10:12] == b"\x18\xc8"
    check_refused(blobs.put(node[:11] + b"\xc9" + node[12:], DAG_CBOR), blobs, "201 bytes are announced, 200 are there")


def test_a_child_of_another_size_or_level_is_refused() -> None:
    blobs = MemoryBlobs()
    child = ContentNode(0, (chunk(blobs), chunk(blobs, 1)))
    link = put(blobs, child)
    check_refused(put(blobs, ContentNode(1, ((link, 201), (link, 200)))), blobs, "200 bytes at level 0, 201")
    check_refused(put(blobs, ContentNode(2, ((link, 200), (link, 200)))), blobs, "at level 0, 200 at 1")


def test_chunks_and_nodes_are_not_mixed() -> None:
    blobs = MemoryBlobs()
    raw = chunk(blobs)
    node = put(blobs, ContentNode(0, (raw, raw)))
    check_refused(put(blobs, ContentNode(0, (raw, (node, 200)))), blobs, "in a node of level 0")
    check_refused(put(blobs, ContentNode(1, (raw, raw))), blobs, "in a node of level 1")


def test_a_node_that_ends_too_early_or_too_late_is_refused() -> None:
    blobs = MemoryBlobs()
    ending = next(data for data in (b"%d" % number for number in range(5000)) if sha256(data).digest()[-1] == 0)
    raw, end = chunk(blobs), (blobs.put(ending), len(ending))
    check_refused(put(blobs, ContentNode(0, (*[raw] * 15, end, raw))), blobs, "continues after")
    early = ContentNode(0, (raw, raw))
    root = ContentNode(1, ((put(blobs, early), 200), (put(blobs, early), 200)))
    check_refused(put(blobs, root), blobs, "does not end it")
    with pytest.raises(BadEncoding, match="does not end it"):
        list(walk(put(blobs, root), blobs))
    check_refused(put(blobs, ContentNode(0, (raw,))), blobs, "single link")


def test_depth_and_form_are_bounded() -> None:
    blobs = MemoryBlobs()
    raw = chunk(blobs)
    too_deep = ContentNode(CONTENT_LEVEL_MAX + 1, ((Cid.of(b"", DAG_CBOR), 1), (Cid.of(b"", DAG_CBOR), 1)))
    check_refused(put(blobs, too_deep), blobs, f"level {CONTENT_LEVEL_MAX + 1}")
    check_refused(put(blobs, ContentNode(0, ())), blobs, "0 links")
    good = ContentNode(0, (raw, raw)).encode()
    for wrong in (b"", good + b"\0", good[:-1], b"\x83" + good[1:], good.replace(b"content", b"contend")):
        with pytest.raises(BadEncoding):
            content.read(blobs.put(wrong, DAG_CBOR), blobs)


def test_a_small_blob_that_announces_very_much_costs_nothing() -> None:
    """The same few nodes over and over: four terabytes in kilobytes."""
    blobs = Counting()
    node = ContentNode(0, (chunk(blobs, size=4),) * 1024)
    for level in range(1, 4):
        node = ContentNode(level, ((put(blobs, node), node.size),) * 1024)
    cid = put(blobs, node)
    blobs.read.clear()
    with pytest.raises(TooLarge):
        content.read(cid, blobs)
    assert len(blobs.read) == 1


def test_chunks_that_no_rule_cuts_are_refused_before_they_are_read_over_and_over() -> None:
    """A few nodes that stand for 256 MB in chunks of one byte: each would have to be got."""
    blobs = Counting()
    node = ContentNode(0, (chunk(blobs, 1, size=1),) * 1024)
    for count in (1024, 256):
        node = ContentNode(node.level + 1, ((put(blobs, node), node.size),) * count)
    cid = put(blobs, node)
    blobs.read.clear()
    with pytest.raises(BadEncoding, match="not cut where the rule says"):
        content.read(cid, blobs, rule=ITEM_CHUNKS)
    assert len(blobs.read) < 10


def test_only_the_last_chunk_of_a_file_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads a file gets its chunks one by one; with one byte in each that would take hours."""
    monkeypatch.setattr(content_node, "CHUNK_SIZE_MIN", ITEM_CHUNKS.size_min)
    blobs = MemoryBlobs()
    small, large = chunk(blobs, 1, size=1023), chunk(blobs, 2, size=1024)
    assert content.size_of(put(blobs, ContentNode(0, (large, small))), blobs) == 2047
    node = ContentNode(0, (small, large))
    full, last = ContentNode(0, (*[large] * 1023, small)), ContentNode(0, (small,))
    above = ContentNode(1, ((put(blobs, full), full.size), (put(blobs, last), last.size)))
    for wrong in (node, above):
        with pytest.raises(BadEncoding, match="1023 bytes in one link"):
            list(content.pieces(put(blobs, wrong), blobs))


def test_a_raw_blob_that_is_too_large_is_no_chunk() -> None:
    blobs = MemoryBlobs()
    check_refused(blobs.put(bytes(1 << 20), RAW), blobs, "a chunk has at most")
