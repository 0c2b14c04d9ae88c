"""Trees: a sorted map that reads as a dict does, has one CID for one content, and shares what did not change."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.cid import CID_SIZE, DAG_CBOR, Cid
from antiphon.core.errors import InvalidInput, MissingBlob
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.tree_node import Node, ends
from antiphon.snapshot.tree_reader import load_root

Entries = dict[bytes, bytes]
CHANCE = random.Random(1)
ITEMS = sorted((number.to_bytes(5, "big") + CHANCE.randbytes(11), CHANCE.randbytes(250)) for number in range(20_000))

#: Keys from a small range collide; those of one byte in front are spread. Both kinds of size.
keys = st.one_of(
    st.integers(0, 300).map(lambda number: number.to_bytes(16, "big")), st.binary(min_size=16, max_size=16)
)
values = st.one_of(
    st.binary(max_size=8),
    st.sampled_from([bytes(1024), bytes(1025), bytes(20_000), CHANCE.randbytes(50_000)]),
    st.just(bytes(Cid.of(b"looks like a link"))),
)
maps = st.dictionaries(keys, values, max_size=150)


class Counting(MemoryBlobs):
    """Says what was read, and how much was written for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[Cid] = []
        self.written = 0

    def get(self, cid: Cid) -> bytes:
        self.read.append(cid)
        return super().get(cid)

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        new = dict(pairs)
        self.written += sum(len(data) for cid, data in new.items() if not self.has(cid))
        super().put_all(new.items())


def applied(entries: Entries, changes: Mapping[bytes, bytes | None]) -> Entries:
    merged = {**entries, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def built(entries: Entries, blobs: MemoryBlobs | None = None) -> Cid | None:
    return tree.build(sorted(entries.items()), MemoryBlobs() if blobs is None else blobs)


# -- laws


@given(maps, keys)
def test_a_tree_reads_as_a_dict(entries: Entries, other: bytes) -> None:
    blobs = MemoryBlobs()
    root = built(entries, blobs)

    assert list(tree.entries(root, blobs)) == sorted(entries.items())
    assert all(tree.get(root, key, blobs) == value for key, value in entries.items())
    assert tree.get(root, other, blobs) == entries.get(other)
    assert tree.get_many(root, [*entries, other], blobs) == entries
    assert list(tree.entries(root, blobs, start=other)) == sorted(
        (key, value) for key, value in entries.items() if key >= other
    )
    assert (root is None) == (not entries)
    assert tree.stats(root, blobs).entries == tree.count(root, blobs) == len(entries)


@given(maps, st.lists(st.dictionaries(keys, st.one_of(st.none(), values), max_size=40), max_size=4))
def test_every_history_gives_the_tree_of_its_result(entries: Entries, history: list[dict[bytes, bytes | None]]) -> None:
    blobs = MemoryBlobs()
    root = built(entries, blobs)
    for changes in history:
        root = tree.update(root, sorted(changes.items()), blobs)
        entries = applied(entries, changes)
    assert root == built(entries)
    assert list(tree.entries(root, blobs)) == sorted(entries.items())


@settings(max_examples=40)
@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 30), st.randoms(use_true_random=False))
def test_large_trees_obey_the_same_law(start: int, count: int, changed: int, chance: random.Random) -> None:
    entries = dict(ITEMS[start : start + count])
    blobs = MemoryBlobs()
    root = built(entries, blobs)
    picked = chance.sample(ITEMS[:6000], changed) + ITEMS[start : start + chance.choice([0, 0, 700])]
    changes = {key: chance.choice([None, b"new", value]) for key, value in picked}
    after = tree.update(root, sorted(changes.items()), blobs)
    assert after == built(applied(entries, changes))
    assert tree.update(after, sorted((key, entries.get(key)) for key in changes), blobs) == root


@given(maps, maps, st.booleans())
def test_the_difference_is_that_of_two_dicts(old: Entries, new: Entries, related: bool) -> None:
    blobs = MemoryBlobs()
    if related:
        new = old | new
    found = list(tree.diff(built(old, blobs), built(new, blobs), blobs))
    assert found == [
        (key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)
    ]


@given(maps)
def test_what_is_written_is_what_can_be_reached(entries: Entries) -> None:
    blobs = MemoryBlobs()
    root = built(entries, blobs)
    if root is not None:
        reached = list(tree.walk(root, blobs))
        assert reached[0] == root
        assert sorted(reached) == list(blobs)  # each once, and nothing beside
        assert list(tree.missing(root, blobs)) == []


@given(maps.filter(bool), st.randoms(use_true_random=False))
def test_missing_blobs_are_found_until_all_are_there(entries: Entries, chance: random.Random) -> None:
    source, blobs = MemoryBlobs(), MemoryBlobs()
    root = built(entries, source)
    assert root is not None
    blobs.put_all((cid, source.get(cid)) for cid in source if chance.random() < 0.5)
    rounds = 0
    while wanted := list(tree.missing(root, blobs)):
        assert set(blobs.missing(wanted)) == set(wanted)
        with pytest.raises(MissingBlob):
            list(tree.entries(root, blobs))
        blobs.put_all((cid, source.get(cid)) for cid in wanted)
        rounds += 1
    assert rounds <= 6
    assert dict(tree.entries(root, blobs)) == entries


# -- shape


def test_nodes_end_where_keys_say_so() -> None:
    blobs = MemoryBlobs()
    root = tree.build(ITEMS, blobs)
    assert root is not None
    nodes = [Node.decode(blobs.get(cid), "node") for cid in tree.walk(root, blobs)]
    leaves = [node for node in nodes if not node.level]
    assert 13 < len(ITEMS) / len(leaves) < 15
    assert max(len(node.keys) for node in leaves) == 32
    assert max(len(node.keys) for node in nodes) <= 128
    assert sum(ends(node.keys[-1], 0) for node in leaves) > 0.8 * len(leaves)
    assert tree.stats(root, blobs).levels == 3


def test_keys_that_end_no_node_are_cut_all_the_same() -> None:
    """Ids can be ground."""
    ground = [(key, b"") for key, _ in ITEMS if not ends(key, 0)][:5000]
    blobs = MemoryBlobs()
    root = tree.build(ground, blobs)
    assert root is not None
    assert load_root(root, blobs).level == 2
    changes = [(ground[100][0], None), (ground[4000][0], b"new")]
    assert tree.update(root, changes, blobs) == built(applied(dict(ground), dict(changes)))


def test_keys_that_end_every_node_are_bounded_too() -> None:
    ground = [(key, b"") for key, _ in ITEMS if ends(key, 1)]
    blobs = MemoryBlobs()
    root = tree.build(ground, blobs)
    assert root is not None
    assert [key for key, _ in tree.entries(root, blobs)] == [key for key, _ in ground]
    assert all(
        tree.update(root, [(key, None)], blobs) == built(applied(dict(ground), {key: None})) for key, _ in ground
    )


def test_a_tree_that_shrinks_begins_lower() -> None:
    blobs = MemoryBlobs()
    root = tree.build(ITEMS[:3000], blobs)
    for left in (2999, 500, 40, 1, 0):
        root = tree.update(root, [(key, None) for key, _ in ITEMS[left:3000]], blobs)
        assert root == built(dict(ITEMS[:left]))


# -- sharing


def test_scattered_changes_rewrite_a_quarter_and_new_items_their_own() -> None:
    blobs = Counting()
    root = tree.build(ITEMS, blobs)
    whole, chance = blobs.written, random.Random(2)
    for picked, share in ((chance.sample(ITEMS, 200), 0.25), (ITEMS[-200:], 0.03)):
        blobs.written = 0
        tree.update(root, sorted((key, chance.randbytes(250)) for key, _ in picked), blobs)
        assert blobs.written <= share * whole


def test_one_change_writes_and_reads_one_path() -> None:
    blobs = Counting()
    root = tree.build(ITEMS, blobs)
    for key, value in (ITEMS[10_000], ITEMS[0], ITEMS[-1]):
        blobs.read.clear()
        blobs.written = 0
        after = tree.update(root, [(key, b"new")], blobs)
        assert len(blobs.read) <= 12
        assert blobs.written < 40_000

        blobs.read.clear()
        assert list(tree.diff(root, after, blobs)) == [(key, value, b"new")]
        assert len(blobs.read) <= 6


def test_one_key_is_read_by_its_path() -> None:
    blobs = Counting()
    root = tree.build(ITEMS, blobs)
    blobs.read.clear()
    assert tree.get(root, ITEMS[7_000][0], blobs) == ITEMS[7_000][1]
    assert len(blobs.read) == 3
    blobs.read.clear()
    assert tree.get_many(root, [key for key, _ in ITEMS[7_000:7_010]], blobs) == dict(ITEMS[7_000:7_010])
    assert len(blobs.read) <= 5


def test_a_second_walk_names_what_is_new() -> None:
    blobs = MemoryBlobs()
    root = tree.build(ITEMS, blobs)
    after = tree.update(root, [(ITEMS[5][0], bytes(5000))], blobs)
    assert root is not None
    assert after is not None
    seen: set[Cid] = set()
    first = list(tree.walk(root, blobs, seen=seen))
    second = list(tree.walk(after, blobs, seen=seen))
    assert len(second) <= 8
    assert sorted({*first, *second}) == list(blobs)
    assert list(tree.missing(after, blobs, known=seen)) == []


# -- what goes in


def test_values_that_look_like_links_stay_bytes() -> None:
    """libipld would write them as links; here only what is a link is one."""
    blobs = MemoryBlobs()
    tricky = [bytes(Cid.of(b"x")), bytes(Cid.of(b"x", DAG_CBOR)), b"\x12\x20" + bytes(32), b"\x01\x55\x00\x05hello"]
    entries = {bytes([number]) * 16: value for number, value in enumerate(tricky)}
    root = built(entries, blobs)
    assert root is not None
    assert dict(tree.entries(root, blobs)) == entries
    assert list(tree.walk(root, blobs)) == [root]

    given_a_cid = tree.build([(b"k" * 16, Cid.of(b"x"))], blobs)
    assert given_a_cid == tree.build([(b"k" * 16, bytes(Cid.of(b"x")))], blobs)


def test_keys_that_look_like_links_stay_bytes() -> None:
    key = b"\x01\x71\x12\x1c" + bytes(28)  # version 1, a digest of 28 bytes: a CID, to libipld
    blobs = MemoryBlobs()
    root = tree.build([(key, b"value")], blobs)
    assert root is not None
    assert tree.get(root, key, blobs) == b"value"
    assert b"\xd8\x2a" not in blobs.get(root)


@pytest.mark.parametrize("size", [1024, 1025])
def test_a_large_value_stands_beside_its_leaf(size: int) -> None:
    blobs = MemoryBlobs()
    root = tree.build([(b"k" * 16, bytes(size))], blobs)
    assert root is not None
    assert len(blobs) == (1 if size == 1024 else 2)
    assert len(blobs.get(root)) == (3 + 17 + 3 + 1024 if size == 1024 else 3 + 17 + 5 + CID_SIZE)


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ([(b"b" * 16, b""), (b"a" * 16, b"")], "ascend"),
        ([(b"a" * 16, b""), (b"a" * 16, b"")], "ascend"),
        ([(b"a" * 16, b""), (b"b" * 32, b"")], "a key has 16 bytes"),
        ([(b"a" * 15, b"")], "16 or 32 bytes"),
        ([(b"", b"")], "16 or 32 bytes"),
    ],
)
def test_input_that_breaks_the_order_is_refused(entries: list[tuple[bytes, bytes]], match: str) -> None:
    blobs = MemoryBlobs()
    with pytest.raises(InvalidInput, match=match):
        tree.build(entries, blobs)
    with pytest.raises(InvalidInput, match=match):
        tree.update(None, entries, blobs)
    root = tree.build([(b"A" * 16, b"")], blobs)
    with pytest.raises(InvalidInput):
        tree.update(root, entries, blobs)


def test_deletions_out_of_order_are_refused_as_well() -> None:
    blobs = MemoryBlobs()
    root = tree.build([(b"b" * 16, b"")], blobs)
    with pytest.raises(InvalidInput, match="ascend"):
        tree.update(root, [(b"b" * 16, None), (b"a" * 16, None)], blobs)
    with pytest.raises(InvalidInput, match="a key has 16 bytes"):
        tree.update(root, [(b"c" * 32, None)], blobs)


def test_a_node_with_one_child_that_is_left_alone_gives_way_to_that_child() -> None:
    """When all entries but those below an inner node of one child go, the root is the one that a fresh build has."""
    chance, blobs = random.Random(9), MemoryBlobs()
    entries = sorted((chance.randbytes(16), chance.randbytes(8)) for _ in range(2500))
    root = tree.build(entries, blobs)
    assert root is not None
    top = load_root(root, blobs)
    first = Node.decode(blobs.get(top.child(0).link), "the first child")
    assert (first.level, len(first.keys)) == (1, 1)

    left = tree.update(root, [(key, None) for key, _ in entries if key > top.keys[0]], blobs)

    assert left == tree.build([entry for entry in entries if entry[0] <= top.keys[0]], blobs)
