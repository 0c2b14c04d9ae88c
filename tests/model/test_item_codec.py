"""An item's bytes: snapshots and records go round, and bytes that are neither are refused."""

from __future__ import annotations

import random
from functools import cache
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding, InvalidInput, UnknownModel
from antiphon.core.ids import ItemId
from antiphon.core.v1 import item_pb2
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import META, ItemState, fold
from antiphon.model.message import Change, Genesis, Note, wrap, write_change, write_genesis

PARTY = sha256(b"party").digest()
A, B = sorted(sha256(name).digest() for name in (b"alice", b"bob"))
NONCE = b"n" * 16
OTHER = ItemId.derive(2, party=PARTY, feed=A, genesis=NONCE)
NAMES = ("antiphon/object", "antiphon/array", "antiphon/text", "antiphon/messenger", "example/unheard")


def item_of(genesis: bytes) -> ItemId:
    return ItemId.derive(1, party=PARTY, feed=A, genesis=genesis)


@cache
def models() -> ModelFactory:
    return ModelFactory.standard()


def made(name: str, seed: int = 0) -> ItemState:
    """An item with some of everything."""
    chance = random.Random(seed)
    genesis = write_genesis(Genesis(NONCE, name, 1, OTHER, (OTHER, OTHER)))
    item = fold(PARTY, item_of(genesis), None, [Note(Kind.GENESIS, 1, A, 0, 5, genesis)], models()).item
    assert item is not None
    notes = [
        Note(Kind.CHANGE, 2, A, 1, 0, write_change(Change(parent=b""))),
        Note(Kind.CHANGE, 3, B, 0, 0, write_change(Change(deleted=True))),
        Note(Kind.CHANGE, 4, B, 1, 0, write_change(Change(forked_to=OTHER))),
        Note(Kind.METADATA, 5, B, 2, 0, wrap(Kind.METADATA, META.set(META.initial(), "name", "N", feed=B))),
    ]
    fold(PARTY, item.id, item, notes, models())
    for at in range(8):
        if item.model is not None:
            mutation = item.model.rehearse(item.state, chance, B)
            fold(
                PARTY,
                item.id,
                item,
                [Note(Kind.MUTATION, 6 + at, B, 3 + at, 0, wrap(Kind.MUTATION, mutation))],
                models(),
            )
    return item


@pytest.mark.parametrize("name", NAMES)
def test_a_record_holds_everything(name: str) -> None:
    item = made(name)
    again = item_codec.decode(item_codec.encode(item), models())
    for part in ("id", "name", "version", "genesis", "created_ms", "link", "parents", "forks", "deleted", "is_deleted"):
        assert getattr(again, part) == getattr(item, part)
    assert (again.value, again.metadata, again.frame, again.tail) == (item.value, item.metadata, item.frame, item.tail)
    if item.model is not None:
        assert item_codec.snapshot(again) == item_codec.snapshot(item)


@pytest.mark.parametrize("spoil", [{"frame": {}}, {"trimmed": True}, {"is_deleted": True}], ids=str)
def test_the_record_of_an_item_with_mutations_alone_keeps_what_no_other_has(spoil: dict[str, Any]) -> None:
    """The short way of plain items once failed without a frame, and dropped the two flags."""
    genesis = write_genesis(Genesis(NONCE, "antiphon/object", 1))
    item = fold(PARTY, item_of(genesis), None, [Note(Kind.GENESIS, 1, A, 0, 5, genesis)], models()).item
    assert item is not None
    for name, value in spoil.items():
        setattr(item, name, value)

    back = item_codec.decode(item_codec.encode(item), models())

    assert [getattr(back, name) for name in spoil] == [*spoil.values()]


@given(lines=st.lists(st.tuples(st.sampled_from((A, B, PARTY)), st.integers(0, 1 << 40)), max_size=5))
def test_the_record_of_an_item_with_mutations_alone_is_that_of_the_library(lines: list[tuple[bytes, int]]) -> None:
    """Whoever wrote to it."""
    genesis = write_genesis(Genesis(NONCE, "antiphon/object", 1))
    notes = [Note(Kind.GENESIS, 1, A, 0, 5, genesis)]
    for feed, seq in lines:
        mutation = META.set(META.initial(), "title", "Milk", feed=feed)
        notes.append(Note(Kind.MUTATION, 2 + seq, feed, seq + 1, 6, wrap(Kind.MUTATION, mutation)))
    item = fold(PARTY, item_of(genesis), None, notes, models()).item
    assert item is not None

    assert item_codec.encode(item) == item_codec._encode(item)


ACTS = (
    (Kind.CHANGE, write_change(Change(parent=b""))),
    (Kind.CHANGE, write_change(Change(parent=OTHER))),
    (Kind.CHANGE, write_change(Change(deleted=True))),
    (Kind.CHANGE, write_change(Change(deleted=False))),
    (Kind.CHANGE, write_change(Change(forked_to=OTHER))),
    (Kind.METADATA, wrap(Kind.METADATA, META.set(META.initial(), "name", "N"))),
    (Kind.MUTATION, wrap(Kind.MUTATION, META.set(META.initial(), "title", "Milk"))),
)


@given(
    acts=st.lists(
        st.tuples(st.sampled_from(ACTS), st.sampled_from((A, B, PARTY)), st.sampled_from((0, 1, 200, 1 << 40))),
        max_size=8,
    ),
    parent=st.sampled_from((b"", bytes(OTHER))),
    name=st.sampled_from(NAMES[:3]),
    created=st.sampled_from((0, 5, 1 << 41)),
)
def test_a_snapshot_by_hand_is_that_of_the_library(
    acts: list[tuple[tuple[Kind, bytes], bytes, int]], parent: bytes, name: str, created: int
) -> None:
    """Whatever was said of the item, by whom, and when."""
    genesis = write_genesis(Genesis(NONCE, name, 1, parent))
    notes = [Note(Kind.GENESIS, 1, A, 0, created, genesis)]
    seqs = {A: 1}
    for (kind, message), feed, later in acts:
        seq = seqs.get(feed, 0)
        notes.append(Note(kind, notes[-1].lamport + 1 + later, feed, seq, 6, message))
        seqs[feed] = seq + 1 + later
    item = fold(PARTY, item_of(genesis), None, notes, models()).item
    assert item is not None
    assert item.model is not None
    library = item_codec._snapshot(item, ())
    library.state = item.model.snapshot(item.state)

    expected = library.SerializeToString(deterministic=True)
    assert item_codec.snapshot(item) == item_codec.snapshot(item, library.state) == expected
    assert b"".join(item_codec._plain(item)) == expected, "it was not put together by hand"
    assert item_codec.encode(item) == item_codec._encode(item)


@pytest.mark.parametrize("name", NAMES[:4])
def test_a_snapshot_restores_to_itself(name: str) -> None:
    data = item_codec.snapshot(made(name))
    again = item_codec.restore(data, models())
    assert (again.value, item_codec.snapshot(again)) == (made(name).value, data)


def test_an_opaque_item_has_no_snapshot_until_its_code_is_here() -> None:
    with pytest.raises(UnknownModel, match=r"no code for its model example/unheard 1 is here; its messages are safe"):
        item_codec.snapshot(made("example/unheard"))


def test_a_snapshot_in_another_order_is_refused() -> None:
    """Parent claims ascend; another order would give another parent under the same content."""
    proto = item_pb2.ItemSnapshot.FromString(item_codec.snapshot(made("antiphon/object")))
    claims = list(proto.parents)
    del proto.parents[:]
    proto.parents.extend(reversed(claims))
    with pytest.raises(BadEncoding, match="do not ascend"):
        item_codec.restore(proto.SerializeToString(deterministic=True), models())


@pytest.mark.parametrize(
    "spoil",
    [
        {"id": b"short"},
        {"model": ""},
        {"version": 0},
        {"link": {"source": b"x", "target": b"y"}},
        {"forks": [{"at": {"feed": 1, "lamport": 9}, "item": b"short"}]},
        {"parents": [{"at": {"feed": 1, "lamport": 9}, "item": b"short"}]},
        {"genesis": {"feed": 7}},
        {"genesis": {"feed": 0}},
        {"feeds": [b"short"]},
        {"metadata": b"\xff\xff"},
        {"state": b"\xff\xff"},
        {"messages": [{"at": {"feed": 1, "lamport": 9}}]},
    ],
)
def test_a_snapshot_that_says_what_cannot_be_is_refused(spoil: dict[str, Any]) -> None:
    proto = item_pb2.ItemSnapshot.FromString(item_codec.snapshot(made("antiphon/object")))
    for name in spoil:
        proto.ClearField(name)
    proto.MergeFrom(item_pb2.ItemSnapshot(**spoil))
    with pytest.raises(InvalidInput):
        item_codec.restore(proto.SerializeToString(deterministic=True), models())


def test_unknown_fields_are_not_canonical() -> None:
    data = item_codec.snapshot(made("antiphon/object"))
    with pytest.raises(BadEncoding, match="not the canonical bytes"):
        item_codec.restore(data + b"\xfa\x7f\x01x", models())


@given(data=st.binary(max_size=200))
def test_rubbish_is_no_item(data: bytes) -> None:
    for read in (item_codec.decode, item_codec.restore):
        try:
            item = read(data, models())
        except InvalidInput:
            continue
        assert len(item.id) == 16


@given(name=st.sampled_from(NAMES[:4]), seed=st.integers(0, 9), at=st.integers(0, 1 << 16), to=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_stands_for_itself(name: str, seed: int, at: int, to: int) -> None:
    data = bytearray(item_codec.snapshot(made(name, seed)))
    data[at % len(data)] = to
    try:
        item = item_codec.restore(bytes(data), models())
    except InvalidInput:
        return
    assert item.model is None or item_codec.snapshot(item) == bytes(data)


@given(name=st.sampled_from(NAMES), seed=st.integers(0, 9), at=st.integers(0, 1 << 16), to=st.integers(0, 255))
def test_a_changed_byte_in_a_record_crashes_nothing(name: str, seed: int, at: int, to: int) -> None:
    data = bytearray(item_codec.encode(made(name, seed)))
    data[at % len(data)] = to
    try:
        item = item_codec.decode(bytes(data), models())
    except InvalidInput:
        return
    assert item_codec.encode(item)
