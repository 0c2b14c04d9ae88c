"""Item ids sort by time, and only the author of a genesis can have derived its id (rule 5)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.ids import ITEM_ID_SIZE, SYSTEM_ITEM, ItemId

PARTY, FEED, NONCE = b"p" * 32, b"f" * 32, b"n" * 16
lamports = st.integers(0, 300) | st.integers(0, (1 << 40) - 1)
keys = st.binary(min_size=32, max_size=32)
nonces = st.binary(min_size=16, max_size=16)


@given(lamports, keys, keys, nonces)
def test_an_id_holds_its_lamport_and_matches_its_origin(lamport: int, party: bytes, feed: bytes, nonce: bytes) -> None:
    item = ItemId.derive(lamport, party=party, feed=feed, genesis=nonce)

    assert len(item) == ITEM_ID_SIZE
    assert item.lamport == lamport
    assert item.matches(lamport, party=party, feed=feed, genesis=nonce)
    assert ItemId(bytes(item)) == item


@given(lamports, keys, keys, nonces, lamports, keys, keys, nonces)
def test_no_other_origin_matches(
    lamport: int, party: bytes, feed: bytes, nonce: bytes, lamport2: int, party2: bytes, feed2: bytes, nonce2: bytes
) -> None:
    item = ItemId.derive(lamport, party=party, feed=feed, genesis=nonce)
    assume((lamport, party, feed, nonce) != (lamport2, party2, feed2, nonce2))

    assert not item.matches(lamport2, party=party2, feed=feed2, genesis=nonce2)


def test_each_part_of_the_origin_counts() -> None:
    item = ItemId.derive(7, party=PARTY, feed=FEED, genesis=NONCE)

    assert not item.matches(8, party=PARTY, feed=FEED, genesis=NONCE)
    assert not item.matches(7, party=FEED, feed=FEED, genesis=NONCE)
    assert not item.matches(7, party=PARTY, feed=PARTY, genesis=NONCE)
    assert not item.matches(7, party=PARTY, feed=FEED, genesis=b"m" * 16)


@given(lamports, lamports, nonces, nonces)
def test_neighbours_in_time_are_neighbours_in_order(one: int, other: int, nonce: bytes, nonce2: bytes) -> None:
    assume(one < other)
    first = ItemId.derive(one, party=PARTY, feed=FEED, genesis=nonce)
    second = ItemId.derive(other, party=PARTY, feed=FEED, genesis=nonce2)

    assert first < second


@pytest.mark.parametrize("lamport", [-1, 1 << 40])
def test_a_lamport_that_does_not_fit_is_refused(lamport: int) -> None:
    with pytest.raises(TooLarge, match=str(lamport)):
        ItemId.derive(lamport, party=PARTY, feed=FEED, genesis=NONCE)


@pytest.mark.parametrize(("party", "feed"), [(b"", FEED), (PARTY, FEED + b"x")])
def test_parts_of_the_wrong_size_are_refused(party: bytes, feed: bytes) -> None:
    """Else bytes could move from one part to the next and give two origins one id."""
    with pytest.raises(InvalidInput, match="derived from"):
        ItemId.derive(1, party=party, feed=feed, genesis=NONCE)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_id_has_16_bytes(size: int) -> None:
    with pytest.raises(InvalidInput, match=f"not {size}"):
        ItemId(bytes(size))


def test_the_system_item_comes_before_all_others() -> None:
    assert ItemId.derive(0, party=PARTY, feed=FEED, genesis=NONCE) > SYSTEM_ITEM
    assert str(SYSTEM_ITEM) == "00" * 16
