"""Access lists as bytes: they go round, in messages and in snapshots, and hostile bytes are refused."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import AntiphonError, BadEncoding, InvalidInput
from antiphon.core.ids import ItemId
from antiphon.core.v1 import item_pb2, message_pb2
from antiphon.feed.header import Kind
from antiphon.halo.rights.authorship import GROUPS_MAX
from antiphon.model import item_codec
from antiphon.model.access import ACTS_MAX, EVERYONE, Access, Author
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import ItemState, fold
from antiphon.model.message import Change, Genesis, Note, read_change, write_change, write_genesis
from antiphon.model.model import InvalidMutation

PARTY = sha256(b"party").digest()
A, B, C = sorted(sha256(name).digest() for name in (b"alice", b"bob", b"carol"))
MODELS = ModelFactory.standard()
KEYS = st.lists(st.binary(min_size=32, max_size=32), max_size=5, unique=True).map(lambda keys: tuple(sorted(keys)))
CUTS = st.dictionaries(st.binary(min_size=32, max_size=32), st.integers(0, (1 << 64) - 1), max_size=5)


def item_of(genesis: Note) -> ItemId:
    assert genesis.message is not None
    return ItemId.derive(1, party=PARTY, feed=A, genesis=genesis.message)


def authors(feed: bytes, seq: int) -> Author:
    return Author(feed, (b"g" * 32, b"h" * 32) if feed == B else (), feed == C)


def changed(lamport: int, feed: bytes, seq: int, access: Access) -> Note:
    return Note(Kind.CHANGE, lamport, feed, seq, 0, write_change(Change(access=access)))


def guarded(model: str = "antiphon/object", *notes: Note) -> ItemState:
    """An item with a list, some of whose changes do not count."""
    first = Note(Kind.GENESIS, 1, A, 0, 5, write_genesis(Genesis(bytes(16), model, 1)))
    changes = (
        changed(2, A, 1, Access((B,), (EVERYONE,), ((A, 2), (B, 1)))),
        changed(3, B, 1, Access((b"g" * 32,))),
        changed(4, C, 0, Access((), (B,), ((A, 2), (B, 2)))),
        changed(5, b"x" * 32, 0, Access((b"x" * 32,))),
    )
    item = fold(PARTY, item_of(first), None, [first, *changes, *notes], MODELS, authors, whole=True).item
    assert item is not None
    return item


# -- messages


@given(grant=KEYS, revoke=KEYS, cuts=CUTS)
def test_a_change_goes_round(grant: tuple[bytes, ...], revoke: tuple[bytes, ...], cuts: dict[bytes, int]) -> None:
    access = Access(grant, revoke, tuple(sorted(cuts.items())))
    if grant or revoke:
        assert read_change(write_change(Change(access=access))) == Change(access=access)
    else:
        with pytest.raises(InvalidInput, match="changes nothing"):
            write_change(Change(access=access))


@given(st.binary(max_size=80))
def test_hostile_bytes_are_no_change_or_one_in_its_one_form(data: bytes) -> None:
    proto = message_pb2.Change()
    try:
        proto.access.MergeFromString(data)
    except Exception:
        return
    message = message_pb2.Message(change=proto).SerializeToString()
    try:
        change = read_change(message)
    except InvalidMutation:
        return
    assert change.access is not None
    assert change.access.check() is change.access
    assert read_change(write_change(change)) == change


# -- snapshots


@pytest.mark.parametrize("model", ["antiphon/object", "antiphon/text", "example/unheard"])
def test_a_record_keeps_the_list(model: str) -> None:
    item = guarded(model)
    again = item_codec.decode(item_codec.encode(item), MODELS)
    assert item.access is not None
    assert again.access is not None
    assert again.access.acts == item.access.acts
    assert len(item.access.acts) == 4
    assert again.access.creator == item.access.creator == Author(A)
    assert again.access.names() == item.access.names()


def test_a_snapshot_keeps_the_list() -> None:
    data = item_codec.snapshot(guarded())
    item = item_codec.restore(data, MODELS)
    assert item.metadata["access"] == sorted([A, b"g" * 32])
    assert item_codec.snapshot(item) == data


def test_what_comes_after_a_snapshot_is_judged_as_before_it() -> None:
    """A back-dated change of one who was removed, and one of an owner."""
    late = [changed(3, B, 2, Access((B,))), changed(6, C, 1, Access((), (b"g" * 32,), ((A, 2), (B, 2), (C, 1))))]
    wanted = item_codec.snapshot(guarded("antiphon/object", *late))
    item = item_codec.restore(item_codec.snapshot(guarded()), MODELS)
    folded = fold(PARTY, item.id, item, late, MODELS, authors)
    assert folded.item is not None
    assert item_codec.snapshot(folded.item) == wanted


def spoilt(what: str) -> item_pb2.ItemSnapshot:
    proto = item_pb2.ItemSnapshot.FromString(item_codec.snapshot(guarded()))
    first = proto.access[0]
    if what == "order":
        proto.access.reverse()
    elif what == "twice":
        proto.access.add().CopyFrom(proto.access[-1])
    elif what == "before the genesis":
        first.at.lamport = 0
    elif what == "no author":
        first.ClearField("author")
    elif what == "no creator":
        proto.ClearField("creator")
    elif what == "groups":
        first.author.groups.extend([b"b" * 32, b"a" * 32])
    elif what == "a short group":
        first.author.groups.append(b"g")
    elif what == "nothing":
        first.access.Clear()
    elif what == "a feed out of the table":
        first.at.feed = 99
    elif what == "too many":
        for nth in range(ACTS_MAX):
            proto.access.add().CopyFrom(proto.access[-1])
            proto.access[-1].at.seq += 1 + nth
    elif what == "a creator alone":
        proto.ClearField("access")
    return proto


@pytest.mark.parametrize(
    "what",
    [
        "order",
        "twice",
        "before the genesis",
        "no author",
        "no creator",
        "groups",
        "a short group",
        "nothing",
        "a feed out of the table",
        "too many",
        "a creator alone",
    ],
)
def test_a_hostile_snapshot_is_refused(what: str) -> None:
    with pytest.raises(BadEncoding):
        item_codec.restore(spoilt(what).SerializeToString(deterministic=True), MODELS)


def test_and_the_one_it_was_made_of_is_not() -> None:
    data = spoilt("").SerializeToString(deterministic=True)
    assert item_codec.snapshot(item_codec.restore(data, MODELS)) == data


def test_a_list_of_somebody_in_as_many_groups_as_count_goes_round() -> None:
    groups = tuple(number.to_bytes(32, "big") for number in range(GROUPS_MAX))
    first = Note(Kind.GENESIS, 1, A, 0, 5, write_genesis(Genesis(bytes(16), "antiphon/object", 1)))
    notes = [first, changed(2, A, 1, Access((B,)))]
    item = fold(PARTY, item_of(first), None, notes, MODELS, lambda feed, seq: Author(feed, groups), whole=True).item
    assert item is not None
    again = item_codec.decode(item_codec.encode(item), MODELS)
    assert again.access is not None
    assert again.access.acts[0].author.groups == groups


@given(at=st.integers(0, 2000), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused_or_another_list(at: int, bit: int) -> None:
    data = bytearray(item_codec.snapshot(guarded()))
    data[at % len(data)] ^= 1 << bit
    try:
        item = item_codec.restore(bytes(data), MODELS)
    except AntiphonError:
        return
    if item.model is not None:
        assert item_codec.snapshot(item) == bytes(data)
    if item.access is not None:
        item.access.names()
