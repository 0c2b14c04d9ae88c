"""A changed byte anywhere under a stored block is reported on read, with feed and seq, and never served."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from antiphon.core.errors import CorruptBlock
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.block import BodyState
from antiphon.feed.header import Entry
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.quarantine import Refusal
from antiphon.testing.spans import SpanWriter, drafts

OpenStore = Callable[..., FeedStore]
FLIPPER = Path(__file__).with_name("flipper.py")


def flip(folder: Path, first: int, flips: str = "all", seed: int = 0) -> list[str]:
    """What `flipper.py` has to say; its last line is the number of bytes that it tried."""
    done = subprocess.run(
        [sys.executable, str(FLIPPER), str(folder), str(first), flips, str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, "the reader crashed: " + "\n".join(lines[-5:])
    return lines


@pytest.fixture
def folder(open_store: OpenStore, tmp_path: Path, alice: KeyPair, bob: KeyPair, party: PublicKey) -> Path:
    """Alice's feed: a small span at 0, one with bodies left out and erased at 4, large ones at 8 and 308."""
    writer, other = SpanWriter(alice, party), SpanWriter(bob, party)
    with open_store() as store:
        store.ingest(writer.write(2, size=30, seen=[other.write(1).block(0).entry]))
        store.ingest(writer.write(2, size=10, atomic=True))
        partial = writer.write(4, size=2500)
        bodies = partial.body_list()
        store.ingest(partial.with_bodies([bodies[0], None, bodies[2], None], bytes((0, 1, 0, 1))))
        store.ingest(writer.write(300, size=4000, seen=[other.write(1).block(0).entry]))
        store.ingest(writer.write(3, size=2500, atomic=True))
        store.erase(alice.key, 7)
        assert [span.first for span in store.spans(alice.key)] == [0, 4, 8, 308]
        assert store.block(alice.key, 5).state is BodyState.LEFT_OUT
    return tmp_path / "store"


@pytest.mark.slow
def test_every_byte_of_a_small_span(folder: Path) -> None:
    complaints = flip(folder, 0)

    assert complaints[:-1] == []
    assert int(complaints[-1]) > 600


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_bytes_of_a_span_with_bodies_that_are_not_here(folder: Path, seed: int) -> None:
    complaints = flip(folder, 4, "600", seed)

    assert complaints[:-1] == []
    assert int(complaints[-1]) > 300


@pytest.mark.slow
@pytest.mark.parametrize("first", [8, 308])
def test_bytes_of_a_large_span(folder: Path, first: int) -> None:
    complaints = flip(folder, first, "300")

    assert complaints[:-1] == []
    assert int(complaints[-1]) > 150


def test_every_byte_of_a_feeds_record(store: FeedStore, tmp_path: Path, alice: KeyPair, party: PublicKey) -> None:
    store.create(alice.key, party)
    store.append(alice, party, drafts(2))

    for _ in each_byte_changed(tmp_path / "store" / "data.mdb", store.record(alice.key).encode()):
        for read in (
            lambda: store.bounds(alice.key),
            lambda: list(store.read(alice.key)),
            lambda: store.append(alice, party, drafts(1)),
        ):
            with pytest.raises(CorruptBlock) as raised:
                read()
            assert raised.value.feed == alice.key

    assert store.append(alice, party, drafts(1))[0].seq == 2


def test_every_byte_of_a_feeds_timeframe(store: FeedStore, tmp_path: Path, alice: KeyPair, party: PublicKey) -> None:
    """A wrong one would make the writer leave out what it has seen, or sign entries that do not move."""
    seen = Entry(b"seen" * 8, 3, 4, b"hash" * 8)
    store.create(alice.key, party)
    store.append(alice, party, drafts(1), seen=[seen])

    for _ in each_byte_changed(tmp_path / "store" / "data.mdb", seen.encode()):
        for read in (lambda: store.frontier(alice.key), lambda: store.append(alice, party, drafts(1), seen=[seen])):
            with pytest.raises(CorruptBlock):
                read()

    assert store.frontier(alice.key) == {seen.feed: seen}


def test_a_refusal_that_changed_is_listed_as_such(store: FeedStore, tmp_path: Path) -> None:
    refusal = Refusal(b"feed" * 8, 3, 1, 1_000, "a reason")
    store.refuse(refusal)

    for _ in each_byte_changed(tmp_path / "store" / "data.mdb", refusal.encode()):
        assert "have changed on the disk" in store.quarantine().refusals[0].reason

    assert store.quarantine().refusals == (refusal,)


def each_byte_changed(path: Path, part: bytes) -> Iterator[int]:
    """Change each byte of `part` wherever it lies in the file, and put it back."""
    places = _places(path, part)
    assert places
    handle = os.open(path, os.O_RDWR)
    try:
        for at in range(len(part)):
            for place in places:
                os.pwrite(handle, bytes([part[at] ^ 0x10]), place + at)
            yield at
            for place in places:
                os.pwrite(handle, bytes([part[at]]), place + at)
    finally:
        os.close(handle)


def test_what_is_damaged_does_not_hide_the_rest(folder: Path, open_store: OpenStore, alice: KeyPair) -> None:
    store = open_store()
    with store._env.read() as tables:
        stored = bytes(tables._stored_at(alice.key, 8)[1])
    path = folder / "data.mdb"
    (place,) = _places(path, stored)
    with path.open("r+b") as file:
        file.seek(place + len(stored) - 100)
        file.write(b"damage")

    reading = store.read(alice.key)
    assert [next(reading).seq for _ in range(8)] == list(range(8))
    with pytest.raises(CorruptBlock) as raised:
        next(reading)
    assert raised.value.seq == 307
    assert [block.seq for block in store.read(alice.key, 308)] == [308, 309, 310]
    assert store.block(alice.key, 306).seq == 306
    with pytest.raises(CorruptBlock, match="block 307: its stored bytes have changed; run `antiphon doctor --repair`"):
        store.block(alice.key, 307)


def _places(path: Path, part: bytes) -> list[int]:
    data, places = path.read_bytes(), list[int]()
    while (at := data.find(part, places[-1] + 1 if places else 0)) >= 0:
        places.append(at)
    return places
