"""CAR files: what is exported is read again, here and by npm's @ipld/car; what is damaged is refused."""

from __future__ import annotations

import io
import json
import random
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import BLOB_SIZE_MAX, DAG_CBOR, Cid
from antiphon.core.errors import AntiphonError, BadEncoding, DamagedBlob, InvalidInput, MissingBlob, TooLarge
from antiphon.core.timeframe import Timeframe
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.car import encode_header, export, read_car, read_header, sections, write_car
from antiphon.snapshot.car_file import CarFile
from antiphon.snapshot.root import FeedCut, SnapshotRoot, encode_death
from antiphon.snapshot.walk import missing, walk

CHANCE = random.Random(1)
TRICKY = b"\x01\x71\x12\x1c" + bytes(28)  # a key that looks like a CID
ITEMS = {CHANCE.randbytes(16): CHANCE.randbytes(CHANCE.choice([0, 10, 250, 3000, 60_000])) for _ in range(300)} | {
    b"\xff" * 16: bytes(Cid.of(b"a value that looks like a link"))
}
FEEDS = {
    CHANCE.randbytes(32): FeedCut(number, CHANCE.randbytes(32), number, number, Timeframe({b"c" * 32: number})).encode()
    for number in range(1, 40)
} | {TRICKY: FeedCut(0, bytes(32), 0, 0, Timeframe()).encode()}


def snapshot(blobs: MemoryBlobs) -> Cid:
    deaths = {key: encode_death(3) for key in list(ITEMS)[:5]}
    root = SnapshotRoot(
        party=TRICKY,
        number=3,
        previous=Cid.of(b"not in the file", DAG_CBOR),
        created_ms=1_700_000_000_000,
        models=(("antiphon/text", 1, 1),),
        item_count=len(ITEMS),
        feed_count=len(FEEDS),
        items=tree.build(sorted(ITEMS.items()), blobs),
        feeds=tree.build(sorted(FEEDS.items()), blobs),
        deaths=tree.build(sorted(deaths.items()), blobs),
    )
    return blobs.put(root.encode(), DAG_CBOR)


def test_an_exported_snapshot_is_read_again() -> None:
    here, there, file = MemoryBlobs(), MemoryBlobs(), io.BytesIO()
    cid = snapshot(here)

    assert export([cid], here, file) == len(here)
    assert read_car(io.BytesIO(file.getvalue()), there) == [cid]
    assert list(there) == list(here)
    assert list(missing(cid, there)) == []
    root = SnapshotRoot.decode(there.get(cid))
    assert dict(tree.entries(root.items, there)) == ITEMS
    assert dict(tree.entries(root.feeds, there)) == FEEDS


def test_roots_come_first_then_what_is_below_depth_first() -> None:
    blobs, file = MemoryBlobs(), io.BytesIO()
    cid, other = snapshot(blobs), blobs.put(b"another root")
    export([cid, other, cid], blobs, file)
    file.seek(0)

    assert read_header(file) == [cid, other]
    written = [found for found, _ in sections(file)]
    assert written == [cid, other, *list(walk(cid, blobs))[1:]]


def test_an_independent_reader_finds_the_same(tmp_path: Path, root: Path) -> None:
    modules, node = root / "bench" / "anchors" / "node_modules", shutil.which("node")
    if node is None or not (modules / "@ipld" / "car").is_dir():
        pytest.skip("npm's @ipld/car is not here: install Node, then `make bench/anchors/node_modules/.built`")
    blobs, path = MemoryBlobs(), tmp_path / "snapshot.car"
    cid = snapshot(blobs)
    with path.open("wb") as file:
        export([cid], blobs, file)

    script = Path(__file__).with_name("car.mjs")
    done = subprocess.run([node, str(script), str(modules), str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["roots"] == [str(cid)]
    assert found["cids"] == [str(one) for one in walk(cid, blobs)]
    assert {bytes.fromhex(key): bytes.fromhex(value) for key, value in found["trees"]["items"]} == ITEMS
    assert {bytes.fromhex(key): bytes.fromhex(value) for key, value in found["trees"]["feeds"]} == FEEDS
    assert len(found["trees"]["deaths"]) == 5
    assert found["fields"] == {
        "format": "antiphon.snapshot.v1",
        "party": TRICKY.hex(),
        "number": 3,
        "models": [["antiphon/text", 1, 1]],
    }


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_blobs_come_back(blobs: list[bytes], chance: random.Random) -> None:
    here, there, file = MemoryBlobs(), MemoryBlobs(), io.BytesIO()
    cids = [here.put(data) for data in blobs]
    assert write_car(file, cids[:1], cids, here) == len(set(cids))
    data = file.getvalue()
    assert read_car(Slow(data, chance), there) == cids[:1]  # type: ignore[arg-type]
    assert list(there) == list(here)


class Slow(io.RawIOBase):
    """A stream that gives fewer bytes than were asked for."""

    def __init__(self, data: bytes, chance: random.Random) -> None:
        self._stream, self._chance = io.BytesIO(data), chance

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(self._chance.randrange(1, size + 1))


@given(st.data())
def test_a_file_that_was_changed_is_refused_or_holds_only_right_blobs(data: st.DataObject) -> None:
    here, there, file = MemoryBlobs(), MemoryBlobs(), io.BytesIO()
    cids = [here.put(b"%d" % number * 20) for number in range(3)]
    write_car(file, cids, cids, here)
    encoded = file.getvalue()
    at = data.draw(st.integers(0, len(encoded) - 1))
    changed = encoded[:at] + data.draw(st.binary(max_size=2)) + encoded[at + data.draw(st.integers(0, 3)) :]
    with suppress(AntiphonError):
        read_car(io.BytesIO(changed), there)
    assert all(cid.matches(there.get(cid)) for cid in there)


def test_a_file_that_is_cut_off_is_refused_everywhere() -> None:
    here, file = MemoryBlobs(), io.BytesIO()
    cids = [here.put(b"%d" % number * 20) for number in range(3)]
    write_car(file, cids, cids, here)
    encoded = file.getvalue()
    whole = {len(encoded) - sum(1 + 36 + len(here.get(cid)) for cid in cids[left:]) for left in range(4)}
    for size in range(len(encoded)):
        if size not in whole:
            with pytest.raises(BadEncoding, match="CAR file"):
                read_car(io.BytesIO(encoded[:size]), MemoryBlobs())


def test_blobs_that_come_twice_are_harmless() -> None:
    here, file = MemoryBlobs(), io.BytesIO()
    cid = here.put(b"hello")
    write_car(file, [cid], [cid], here)
    header = len(encode_header([cid]))
    there = MemoryBlobs()
    read_car(io.BytesIO(file.getvalue() + file.getvalue()[header:]), there)
    assert list(there) == [cid]


def test_a_wrong_blob_is_refused_by_its_cid() -> None:
    here, file = MemoryBlobs(), io.BytesIO()
    cid = here.put(b"hello")
    write_car(file, [cid], [cid], here)
    with pytest.raises(BadEncoding, match=str(cid)):
        read_car(io.BytesIO(file.getvalue()[:-1] + b"!"), MemoryBlobs())


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("", BadEncoding),
        ("00", BadEncoding),
        ("ffffffff7f", BadEncoding),
        ("8080807f", TooLarge),
        ("8100", BadEncoding),
        ("11a265726f6f7473806776657273696f6e01", BadEncoding),  # no roots
    ],
)
def test_headers_that_cannot_be_are_refused(data: str, error: type[AntiphonError]) -> None:
    with pytest.raises(error):
        read_car(io.BytesIO(bytes.fromhex(data)), MemoryBlobs())


def test_lengths_are_bounded_before_anything_is_read() -> None:
    header = encode_header([Cid.of(b"x")])
    for length in ("ffffff7f", "23"):  # 256 MiB, and less than a CID
        with pytest.raises(TooLarge, match="section"):
            read_car(io.BytesIO(header + bytes.fromhex(length)), MemoryBlobs())
    with pytest.raises(InvalidInput, match="roots"):
        encode_header([])
    with pytest.raises(InvalidInput, match="roots"):
        encode_header([Cid.of(b"x")] * 65)


def test_the_largest_blob_fits() -> None:
    here, there, file = MemoryBlobs(), MemoryBlobs(), io.BytesIO()
    cid = here.put(bytes(BLOB_SIZE_MAX))
    write_car(file, [cid], [cid], here)
    read_car(io.BytesIO(file.getvalue()), there)
    assert there.has(cid)


@pytest.mark.parametrize("wrong", ["item_count", "feeds", "deaths"])
def test_a_root_that_lies_about_its_trees_is_refused(wrong: str) -> None:
    blobs = MemoryBlobs()
    root = SnapshotRoot.decode(blobs.get(snapshot(blobs)))
    lies = {"item_count": 5, "feeds": root.items, "deaths": root.feeds}
    cid = blobs.put(replace(root, **{wrong: lies[wrong]}).encode(), DAG_CBOR)  # type: ignore[arg-type]
    with pytest.raises(BadEncoding, match=f"snapshot {cid}: tree"):
        list(walk(cid, blobs))


def test_nothing_is_left_out_silently() -> None:
    blobs = MemoryBlobs()
    cid = snapshot(blobs)
    blobs.delete([list(walk(cid, blobs))[-1]])
    with pytest.raises(MissingBlob):
        export([cid], blobs, io.BytesIO())


def test_a_file_that_changes_under_its_reader_is_damaged(tmp_path: Path) -> None:
    blobs, path = MemoryBlobs(), tmp_path / "blobs.car"
    cids = [blobs.put(bytes([number]) * 100_000) for number in range(2)]
    with path.open("wb") as stream:
        write_car(stream, cids[:1], cids, blobs)
    done: list[int] = []
    with CarFile.open(path, done.append) as file:
        assert (len(done), done[-1]) == (2, path.stat().st_size)
        path.write_bytes(path.read_bytes()[:150_000])
        assert file.get(cids[0]) == blobs.get(cids[0])
        with pytest.raises(DamagedBlob) as caught:
            file.get(cids[1])
        assert caught.value.cid == cids[1]
