"""The header's layout: one for structs and columns alike, and entries in their canonical order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding
from antiphon.feed.header import (
    ENTRY,
    ENTRY_SIZE,
    HEADER,
    HEADER_SIZE,
    PACK,
    Entry,
    Flag,
    Kind,
    decode_entries,
    encode_entries,
)
from antiphon.testing.feed_strategies import hashes, u64s

u63s = st.integers(0, 2**63 - 1)
any_entries = st.builds(Entry, hashes, u63s, u63s, hashes)


@given(
    st.tuples(
        st.integers(0, 255),
        st.integers(0, 255),
        st.integers(0, 65535),
        u64s,
        u64s,
        u64s,
        st.binary(min_size=16, max_size=16),
        st.integers(0, 2**32 - 1),
        hashes,
        st.integers(0, 65535),
    )
)
def test_a_packed_header_reads_as_columns(values: tuple[int | bytes, ...]) -> None:
    (row,) = np.frombuffer(PACK(*values), dtype=HEADER)

    assert [row[name].tobytes() if row[name].dtype.kind == "V" else row[name] for name in HEADER.names or ()] == list(
        values
    )


def test_the_layout_is_the_documented_one() -> None:
    packed = PACK(1, Kind.MUTATION, Flag.MORE, 2, 3, 4, b"i" * 16, 5, b"h" * 32, 6)

    assert len(packed) == HEADER_SIZE == 82
    assert packed.hex() == (
        "01040100020000000000000003000000000000000400000000000000" + "69" * 16 + "05000000" + "68" * 32 + "0600"
    )


def test_an_entry_is_laid_out_like_its_columns() -> None:
    entry = Entry(b"f" * 32, 7, 8, b"h" * 32)

    (row,) = np.frombuffer(entry.encode(), dtype=ENTRY)

    assert len(entry.encode()) == ENTRY_SIZE == 80
    assert (row["feed"].tobytes(), row["seq"], row["lamport"], row["hash"].tobytes()) == entry


@given(st.lists(any_entries, max_size=5))
def test_entries_come_back_in_their_order(entries: list[Entry]) -> None:
    assert decode_entries(encode_entries(entries)) == tuple(sorted(entries))


@given(st.lists(any_entries, max_size=3), st.integers(1, ENTRY_SIZE - 1))
def test_a_part_of_an_entry_is_refused(entries: list[Entry], cut: int) -> None:
    whole = encode_entries([*entries, Entry(bytes(32), 0, 0, bytes(32))])

    with pytest.raises(BadEncoding, match="no whole number of entries"):
        decode_entries(whole[:-cut])


@pytest.mark.parametrize("at", [32, 40])
def test_an_integer_above_63_bits_is_refused(at: int) -> None:
    data = bytearray(Entry(bytes(32), 1, 1, bytes(32)).encode())
    data[at + 7] = 0x80

    with pytest.raises(BadEncoding, match="above 2"):
        decode_entries(bytes(data))
