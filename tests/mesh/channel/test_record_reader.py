"""Cutting a stream into records: however the bytes arrive, the records are the same, and none is too large."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import ChannelFault
from antiphon.mesh.channel.record_reader import RecordReader


def framed(record: bytes) -> bytes:
    return len(record).to_bytes(2, "big") + record


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_records_do_not_depend_on_how_their_bytes_arrive(records: list[bytes], chance: st.DataObject) -> None:
    stream = b"".join(map(framed, records))
    reader, got, at = RecordReader(40), list[bytes](), 0
    while at < len(stream):
        size = chance.draw(st.integers(1, 60))
        got += map(bytes, reader.split(stream[at : at + size]))
        at += size
        assert reader.held <= 42
    assert got == records
    assert reader.held == 0


@pytest.mark.parametrize("cut", [1, 2, 3, 100])
def test_a_record_above_the_limit_is_refused_before_it_is_kept(cut: int) -> None:
    reader, stream = RecordReader(10), framed(bytes(11))
    if cut == 1:
        assert list(reader.split(stream[:1])) == []
        stream = stream[1:]
    with pytest.raises(ChannelFault, match="11 bytes"):
        list(reader.split(stream[:cut]))
    assert reader.held <= 2


def test_the_limit_may_change_between_two_records() -> None:
    reader = RecordReader(1)
    got = []
    for record in reader.split(framed(b"a") + framed(b"bcd")):
        got.append(bytes(record))
        reader.size_max = 3
    assert got == [b"a", b"bcd"]


def test_complete_records_are_not_copied() -> None:
    stream = framed(b"one") + framed(b"two")
    assert [record.obj for record in RecordReader(3).split(stream)] == [stream, stream]
