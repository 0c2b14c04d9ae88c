"""The root of a snapshot and the cuts of feeds: one encoding each, and bounds on everything."""

from __future__ import annotations

from dataclasses import replace

import libipld
import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import AntiphonError, BadEncoding, InvalidInput
from antiphon.core.timeframe import Timeframe
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.root import FeedCut, SnapshotRoot, decode_death, encode_death

NODE = Cid.of(b"node", DAG_CBOR)
ROOT = SnapshotRoot(
    party=b"p" * 32,
    number=2,
    previous=Cid.of(b"before", DAG_CBOR),
    created_ms=1_700_000_000_000,
    control=Timeframe({b"c" * 32: 5}),
    models=(("antiphon/object", 1, 1), ("antiphon/text", 1, 1), ("antiphon/text", 2, 1)),
    item_count=3,
    feed_count=1,
    items=NODE,
    feeds=NODE,
    deaths=None,
)

keys = st.binary(min_size=32, max_size=32)
numbers = st.one_of(st.integers(0, 300), st.integers(0, (1 << 63) - 1))
timeframes = st.dictionaries(keys, numbers, max_size=4).map(Timeframe)
links = st.binary(max_size=4).map(lambda data: Cid.of(data, DAG_CBOR))
models = st.dictionaries(st.tuples(st.text(min_size=1, max_size=20), numbers), numbers, max_size=4).map(
    lambda found: tuple(sorted((name, version, codec) for (name, version), codec in found.items()))
)


@st.composite
def roots(draw: st.DrawFn) -> SnapshotRoot:
    items, feeds = draw(st.none() | links), draw(st.none() | links)
    return SnapshotRoot(
        party=draw(keys),
        number=draw(numbers),
        previous=draw(st.none() | links),
        created_ms=draw(numbers),
        control=draw(timeframes),
        models=draw(models),
        item_count=draw(st.integers(1, 1 << 40)) if items else 0,
        feed_count=draw(st.integers(1, 1 << 40)) if feeds else 0,
        items=items,
        feeds=feeds,
        deaths=draw(st.none() | links),
    )


@given(roots())
def test_a_root_comes_back(root: SnapshotRoot) -> None:
    assert SnapshotRoot.decode(root.encode()) == root
    assert root.cid == Cid.of(root.encode(), DAG_CBOR)


def test_other_readers_of_dag_cbor_read_it() -> None:
    read = libipld.decode_dag_cbor(ROOT.encode())
    assert read["format"] == "antiphon.snapshot.v1"
    assert (read["items"], read["deaths"], read["number"], read["party"]) == (NODE, None, 2, b"p" * 32)
    assert read["models"][0] == ["antiphon/object", 1, 1]
    assert list(read) == sorted(read, key=lambda name: (len(name), name))
    # The timeframe's bytes begin like a CID, to libipld: what it writes for them is a link, and another root.
    assert libipld.encode_dag_cbor(read) != ROOT.encode()
    plain = replace(ROOT, control=Timeframe()).encode()
    assert libipld.encode_dag_cbor(libipld.decode_dag_cbor(plain)) == plain


def test_a_party_whose_key_looks_like_a_cid_keeps_its_root() -> None:
    root = replace(ROOT, party=b"\x01\x71\x12\x1c" + bytes(28))
    assert SnapshotRoot.decode(root.encode()) == root
    assert root.encode().count(b"\xd8\x2a") == ROOT.encode().count(b"\xd8\x2a")


@given(st.data())
def test_a_root_has_one_encoding(data: st.DataObject) -> None:
    encoded = ROOT.encode()
    at = data.draw(st.integers(0, len(encoded)))
    changed = encoded[:at] + data.draw(st.binary(max_size=2)) + encoded[at + data.draw(st.integers(0, 2)) :]
    try:
        root = SnapshotRoot.decode(changed)
    except AntiphonError:
        return
    assert root.encode() == changed


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("party", b"p" * 31, "32 bytes"),
        ("number", -1, "from 0 to"),
        ("created_ms", 1 << 63, "from 0 to"),
        ("previous", Cid.of(b"raw"), "no snapshot"),
        ("items", Cid.of(b"raw"), "no raw nodes"),
        ("items", None, "3 entries in the tree None"),
        ("item_count", 0, "0 entries in the tree"),
        ("models", ROOT.models[::-1], "ascend"),
        ("models", ROOT.models[:1] * 2, "ascend"),
        ("models", (("", 1, 1),), "a model's name"),
        ("models", (("m" * 257, 1, 1),), "a model's name"),
        ("models", (("m", -1, 1),), "version -1"),
        ("models", tuple((f"{number:04}", 1, 1) for number in range(1025)), "at most 1024"),
    ],
)
def test_a_root_that_cannot_be_is_refused(field: str, value: object, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        replace(ROOT, **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b"fnumber\x02", b"fnumber\x1b" + b"\xff" * 8),
        (b"\x01\x01\x83mantiphon/text\x02\x01", b"\x01\x01\x83mantiphon/text\x01\x01"),  # twice the same model
        (b"\x58\x2c\x01\0\0\0", b"\x58\x2c\xff\xff\xff\xff"),  # a timeframe of four billion feeds
        (b"jitem_count\x03", b"jitem_count\x00"),
    ],
)
def test_bytes_of_a_root_that_cannot_be_are_no_encoding_of_one(right: bytes, wrong: bytes) -> None:
    """Whoever reads what others have made expects `BadEncoding`, and would fail on anything else."""
    data = ROOT.encode()
    assert data.count(right) == 1
    with pytest.raises(BadEncoding):
        SnapshotRoot.decode(data.replace(right, wrong))


def test_bytes_of_a_cut_that_cannot_be_are_no_encoding_of_one() -> None:
    data = FeedCut(3, b"h" * 32, 7, 9, Timeframe({b"c" * 32: 5})).encode()
    for wrong in (b"\xff" * 8 + data[8:], bytes(8) + data[8:], data[:56] + b"\xff" * 4 + data[60:]):
        with pytest.raises(BadEncoding):
            FeedCut.decode(wrong)


def test_another_format_is_refused() -> None:
    with pytest.raises(BadEncoding, match="newer Antiphon"):
        SnapshotRoot.decode(ROOT.encode().replace(b"snapshot.v1", b"snapshot.v2"))


# -- feeds and deaths


@given(st.integers(1, 1 << 60), st.binary(min_size=32, max_size=32), numbers, numbers, timeframes)
def test_a_cut_comes_back(length: int, last: bytes, lamport: int, created_ms: int, control: Timeframe) -> None:
    cut = FeedCut(length, last, lamport, created_ms, control)
    assert FeedCut.decode(cut.encode()) == cut
    with pytest.raises(BadEncoding):
        FeedCut.decode(cut.encode() + b"\0")
    with pytest.raises(BadEncoding):
        FeedCut.decode(cut.encode()[:-1])


def test_a_feed_with_nothing_has_one_form() -> None:
    empty = FeedCut(0, bytes(32), 0, 0, Timeframe())
    assert FeedCut.decode(empty.encode()) == empty
    for field, value in (
        ("hash", b"h" * 32),
        ("lamport", 1),
        ("created_ms", 1),
        ("control", Timeframe({b"c" * 32: 0})),
    ):
        with pytest.raises(InvalidInput, match="nothing in the cut"):
            replace(empty, **{field: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no feed is cut like that"):
        FeedCut(1, b"short", 0, 0, Timeframe())


def test_a_cut_of_many_control_feeds_fits_into_a_tree() -> None:
    control = Timeframe({number.to_bytes(32, "big"): number for number in range(1, 500)})
    cut = FeedCut(9, b"h" * 32, 40, 5, control)
    blobs = MemoryBlobs()
    root = tree.build([(b"f" * 32, cut.encode())], blobs)
    assert FeedCut.decode(tree.get(root, b"f" * 32, blobs) or b"") == cut


@given(numbers)
def test_a_death_comes_back(number: int) -> None:
    assert decode_death(encode_death(number)) == number
    with pytest.raises(BadEncoding):
        decode_death(encode_death(number) + b"\0")
    with pytest.raises(InvalidInput):
        encode_death(-1 - number)
