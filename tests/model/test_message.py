"""The message around a mutation: quick to read and write, and the same as protobuf would have it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.v1 import message_pb2
from antiphon.feed.header import Kind
from antiphon.model.factory import MODEL_NAME_SIZE_MAX
from antiphon.model.message import (
    Change,
    Genesis,
    _plain_genesis,
    content,
    read_change,
    read_genesis,
    wrap,
    write_change,
    write_genesis,
)

SIZES = (0, 1, 2, 126, 127, 128, 129, 16383, 16384, 16385, 1 << 20)
NONCE = b"n" * 16
ITEM = b"i" * 16


@pytest.mark.parametrize("size", SIZES)
def test_wrapping_is_what_protobuf_writes_and_reading_is_what_it_reads(size: int) -> None:
    data = b"x" * size
    mutation, metadata = wrap(Kind.MUTATION, data), wrap(Kind.METADATA, data)
    assert mutation == message_pb2.Message(mutation=data).SerializeToString()
    assert metadata == message_pb2.Message(metadata=data).SerializeToString()
    assert content(Kind.MUTATION, mutation) == content(Kind.METADATA, metadata) == data


@given(data=st.binary(max_size=400))
def test_whatever_comes_is_read_as_protobuf_reads_it_or_refused(data: bytes) -> None:
    for kind, field in ((Kind.MUTATION, "mutation"), (Kind.METADATA, "metadata")):
        try:
            found: bytes | None = content(kind, data)
        except InvalidMutation:
            found = None
        assert found == _by_protobuf(data, field)


@given(data=st.binary(max_size=40), rest=st.binary(max_size=8), kind=st.sampled_from([Kind.MUTATION, Kind.METADATA]))
def test_a_message_with_more_than_its_field_is_read_as_protobuf_reads_it(data: bytes, rest: bytes, kind: Kind) -> None:
    message = wrap(kind, data) + rest
    try:
        found: bytes | None = content(kind, message)
    except InvalidMutation:
        found = None
    assert found == _by_protobuf(message, "mutation" if kind is Kind.MUTATION else "metadata")


def _by_protobuf(data: bytes, field: str) -> bytes | None:
    try:
        parsed = message_pb2.Message.FromString(data)
    except Exception:
        return None
    return getattr(parsed, field) if parsed.WhichOneof("content") == field else None


@pytest.mark.parametrize(
    "message",
    [b"", b"\x22", b"\x22\x05ab", b"\x22\x80", b"\x22\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"\x2a\x00"],
)
def test_a_message_that_is_cut_or_of_another_kind_is_refused(message: bytes) -> None:
    with pytest.raises(InvalidMutation, match=r"its body is no"):
        content(Kind.MUTATION, message)


@pytest.mark.parametrize(
    "genesis",
    [
        Genesis(NONCE, "a/b", 1),
        Genesis(NONCE, "é" * 128, (1 << 32) - 1, ITEM),
        Genesis(NONCE, "m", 2, b"", (ITEM, ITEM)),
    ],
)
def test_a_genesis_goes_round(genesis: Genesis) -> None:
    assert read_genesis(write_genesis(genesis)) == genesis


@pytest.mark.parametrize(
    ("genesis", "reason"),
    [
        (Genesis(b"short", "a/b", 1), "nonce of 16 bytes, not 5"),
        (Genesis(NONCE, "", 1), "names a model and its version"),
        (Genesis(NONCE, "x" * 257, 1), "names a model and its version"),
        (Genesis(NONCE, "a/b", 0), "names a model and its version"),
        (Genesis(NONCE, "a/b", 1, b"parent"), "no item id"),
        (Genesis(NONCE, "a/b", 1, b"", (ITEM, b"")), "no item id"),
    ],
)
def test_a_genesis_that_others_would_refuse_is_not_written(genesis: Genesis, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        write_genesis(genesis)


@pytest.mark.parametrize(
    "change",
    [Change(parent=ITEM), Change(parent=b""), Change(deleted=True), Change(deleted=False), Change(forked_to=ITEM)],
)
def test_a_change_goes_round(change: Change) -> None:
    assert read_change(write_change(change)) == change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Change(), "kind that this version does not know"),
        (Change(parent=b"short"), "change of parent names 5 bytes"),
        (Change(forked_to=b""), "change of forked_to names 0 bytes"),
    ],
)
def test_a_change_that_others_would_refuse_is_not_written(change: Change, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        write_change(change)


@given(data=st.binary(max_size=100))
def test_rubbish_is_neither_a_genesis_nor_a_change(data: bytes) -> None:
    readers: tuple[Any, ...] = (read_genesis, read_change)
    for read in readers:
        try:
            found = read(data)
        except InvalidMutation:
            continue
        assert isinstance(found, Genesis | Change)


@given(
    name=st.text(max_size=60),
    version=st.integers(0, 300),
    parent=st.sampled_from([b"", b"p" * 16, b"short"]),
    at=st.integers(0, 130),
    noise=st.binary(max_size=2),
)
def test_the_short_way_of_a_genesis_reads_what_the_library_does(
    name: str, version: int, parent: bytes, at: int, noise: bytes
) -> None:
    whole = message_pb2.Message(
        genesis=message_pb2.Genesis(nonce=b"n" * 16, model=name, version=version, parent=parent)
    ).SerializeToString()
    for data in (whole, whole[:at] + noise + whole[at + len(noise) :]):
        found = _plain_genesis(data)
        if found is not None:
            proto = message_pb2.Message.FromString(data).genesis
            assert found == Genesis(proto.nonce, proto.model, proto.version, proto.parent, None)
            assert not proto.HasField("link")
            assert found.version
            assert 0 < len(found.model.encode()) <= MODEL_NAME_SIZE_MAX


def test_a_plain_genesis_takes_the_short_way() -> None:
    for genesis in (Genesis(b"n" * 16, "antiphon/object", 1), Genesis(b"n" * 16, "my/model", 7, b"p" * 16)):
        assert _plain_genesis(write_genesis(genesis)) == genesis
