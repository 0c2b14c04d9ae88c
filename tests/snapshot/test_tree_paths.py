"""The part of a tree that leads to some keys: it shows these as the whole does, and is fetched in bounded rounds."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given, settings, strategies as st

from antiphon.core.cid import Cid
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.tree_paths import missing_on_paths, paths


def key(number: int) -> bytes:
    return sha256(b"%d" % number).digest()[:16]


def whole() -> tuple[Cid, MemoryBlobs]:
    blobs = MemoryBlobs()
    pairs = sorted((key(number), b"%d " % number * (1 + number % 7 * 300)) for number in range(500))
    root = tree.build(pairs, blobs)
    assert root is not None
    return root, blobs


ROOT, BLOBS = whole()


@given(st.sets(st.integers(0, 600), max_size=20), st.integers(1, 5))
@settings(max_examples=50)
def test_the_paths_show_what_the_tree_has_of_these_keys(numbers: set[int], limit: int) -> None:
    keys = [key(number) for number in numbers]
    part = MemoryBlobs()
    while wanted := missing_on_paths(ROOT, keys, part, limit):
        assert len(wanted) <= limit
        part.put_all((cid, BLOBS.get(cid)) for cid in wanted)
    assert set(part) == set(paths(ROOT, keys, BLOBS))
    for one in keys:
        assert tree.get(ROOT, one, part) == tree.get(ROOT, one, BLOBS)


def test_the_empty_tree_has_no_paths() -> None:
    assert missing_on_paths(None, [key(1)], BLOBS) == []
    assert list(paths(None, [key(1)], BLOBS)) == []


def test_a_blob_that_several_values_share_is_asked_for_once() -> None:
    blobs, part = MemoryBlobs(), MemoryBlobs()
    root = tree.build(sorted((key(number), bytes(3000)) for number in range(5)), blobs)
    assert root is not None
    part.put_all([(root, blobs.get(root))])
    assert missing_on_paths(root, map(key, range(5)), part) == [Cid.of(bytes(3000))]


def test_a_key_that_the_tree_lacks_asks_for_no_value_of_another() -> None:
    blobs = MemoryBlobs()
    values = {key(number): bytes([number]) * 3000 for number in range(6)}
    root = tree.build(sorted(values.items()), blobs)
    for held in values:
        for lacking in (bytes([*held[:-1], held[-1] ^ 1]), bytes([held[0] ^ 1, *held[1:]])):
            assert lacking not in values
            assert not {Cid.of(value) for value in values.values()} & set(paths(root, [lacking], blobs))
