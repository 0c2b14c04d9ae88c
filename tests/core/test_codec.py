"""A reader never goes past its bytes, whatever it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding


@given(st.binary(max_size=60), st.lists(st.integers(-5, 70), max_size=10))
def test_taking_gives_the_bytes_in_order_or_an_error(data: bytes, counts: list[int]) -> None:
    reader, at = Reader(data, "thing"), 0
    for count in counts:
        if 0 <= count <= len(data) - at:
            assert reader.take(count) == data[at : at + count]
            at += count
        else:
            with pytest.raises(BadEncoding, match=f"thing: {count} bytes wanted at offset {at}, {len(data) - at} are"):
                reader.take(count)
    assert reader.rest() == data[at:]
    reader.done()


@given(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 63) - 1))
def test_integers_come_back(small: int, large: int) -> None:
    reader = Reader(u32(small) + u64(large), "thing")

    assert (reader.u32(), reader.u64()) == (small, large)
    reader.done()


def test_integers_are_little_endian() -> None:
    reader = Reader(bytes(range(1, 16)), "thing")

    assert (reader.u8(), reader.u16(), reader.u32(), reader.u64()) == (0x01, 0x0302, 0x07060504, 0x0F0E0D0C0B0A0908)
    assert (u32(1), u64(258)) == (b"\1\0\0\0", b"\2\1\0\0\0\0\0\0")


@pytest.mark.parametrize("read", [Reader.u8, Reader.u16, Reader.u32, Reader.u64])
def test_an_integer_that_is_cut_off_is_refused(read: object) -> None:
    assert callable(read)
    with pytest.raises(BadEncoding, match="0 are left"):
        read(Reader(b"", "thing"))


@given(st.integers(1 << 63, (1 << 64) - 1))
def test_integers_above_a_signed_one_are_refused(value: int) -> None:
    """Arrow, SQL and Spark hold 64-bit integers with a sign."""
    with pytest.raises(BadEncoding, match=str(value)):
        Reader(u64(value), "thing").u64()


def test_bytes_left_over_are_refused() -> None:
    reader = Reader(b"abc", "thing")
    reader.take(1)

    with pytest.raises(BadEncoding, match="thing: 2 bytes too many"):
        reader.done()
