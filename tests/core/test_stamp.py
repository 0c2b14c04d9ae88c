"""The byte order of stamps is their order, so that every store, table and tree sorts alike."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import STAMP_SIZE, Stamp

numbers = st.integers(0, 3) | st.integers(0, 1 << 20) | st.integers(0, (1 << 63) - 1)
feeds = st.sampled_from([bytes(32), b"a" * 32, b"\xff" * 32]) | st.binary(min_size=32, max_size=32)
stamps = st.builds(Stamp, numbers, feeds, numbers)


@given(stamps, stamps)
def test_byte_order_is_tuple_order(x: Stamp, y: Stamp) -> None:
    assert (x.encode() < y.encode()) == (x < y)
    assert (x.encode() == y.encode()) == (x == y)


@given(st.lists(stamps, max_size=20))
def test_sorting_bytes_sorts_stamps(some: list[Stamp]) -> None:
    assert sorted(stamp.encode() for stamp in some) == [stamp.encode() for stamp in sorted(some)]


@given(stamps)
def test_encoding_comes_back(stamp: Stamp) -> None:
    assert Stamp.decode(stamp.encode()) == stamp
    assert len(stamp.encode()) == STAMP_SIZE


@pytest.mark.parametrize("size", [0, 47, 49])
def test_a_stamp_has_48_bytes(size: int) -> None:
    with pytest.raises(BadEncoding, match="stamp"):
        Stamp.decode(bytes(size))


def test_lamport_comes_first_then_feed_then_seq() -> None:
    ordered = [Stamp(1, b"b" * 32, 9), Stamp(2, b"a" * 32, 7), Stamp(2, b"b" * 32, 0), Stamp(2, b"b" * 32, 256)]

    assert sorted(ordered[n] for n in (3, 0, 2, 1)) == ordered
    assert str(ordered[0]) == "1@62626262/9"
