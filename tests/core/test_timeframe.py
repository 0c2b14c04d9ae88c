"""Timeframes are a join semilattice, and have one encoding each."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from antiphon.core.codec import u32, u64
from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.timeframe import TIMEFRAME_ENTRIES_MAX, Causality, Timeframe

A, B, C = b"a" * 32, b"b" * 32, b"c" * 32

# Few feeds and small seqs, so that timeframes meet; the odd one far out.
feeds = st.sampled_from([bytes([n]) * 32 for n in range(6)])
seqs = st.integers(0, 4) | st.integers(0, (1 << 63) - 1)
timeframes = st.dictionaries(feeds, seqs, max_size=6).map(Timeframe)

OPPOSITE = {
    Causality.BEFORE: Causality.AFTER,
    Causality.AFTER: Causality.BEFORE,
    Causality.EQUAL: Causality.EQUAL,
    Causality.CONCURRENT: Causality.CONCURRENT,
}


@given(timeframes, timeframes, timeframes)
def test_merge_is_a_join(x: Timeframe, y: Timeframe, z: Timeframe) -> None:
    assert x.merge(x) == x
    assert x.merge(y) == y.merge(x)
    assert x.merge(y).merge(z) == x.merge(y.merge(z))
    assert x.merge(Timeframe()) == x


@given(timeframes, timeframes, timeframes)
def test_merge_is_the_least_that_covers_both(x: Timeframe, y: Timeframe, z: Timeframe) -> None:
    merged = x.merge(y)

    assert merged.covers(x)
    assert merged.covers(y)
    assert z.covers(merged) == (z.covers(x) and z.covers(y))


@given(timeframes, timeframes, timeframes)
def test_covers_is_a_partial_order(x: Timeframe, y: Timeframe, z: Timeframe) -> None:
    assert x.covers(x)
    assert not (x.covers(y) and y.covers(x)) or x == y
    assert not (x.covers(y) and y.covers(z)) or x.covers(z)
    assert x.covers(y) == (x.merge(y) == x)


@given(timeframes, timeframes)
def test_compare_agrees_with_covers(x: Timeframe, y: Timeframe) -> None:
    expected = {
        (True, True): Causality.EQUAL,
        (True, False): Causality.AFTER,
        (False, True): Causality.BEFORE,
        (False, False): Causality.CONCURRENT,
    }[x.covers(y), y.covers(x)]

    assert x.compare(y) is expected
    assert y.compare(x) is OPPOSITE[expected]
    assert (expected is Causality.EQUAL) == (x == y)


@given(timeframes, timeframes)
def test_missing_is_exact(x: Timeframe, y: Timeframe) -> None:
    missing = x.missing(y)

    assert x.merge(missing) == x.merge(y)
    assert all(missing[feed] == y[feed] and not x.includes(feed, y[feed]) for feed in missing)
    assert all(x.includes(feed, y[feed]) for feed in y if feed not in missing)
    assert (len(missing) == 0) == x.covers(y)


@given(timeframes, feeds, seqs)
def test_includes_is_covering_one_entry(x: Timeframe, feed: bytes, seq: int) -> None:
    assert x.includes(feed, seq) == x.covers(Timeframe({feed: seq}))


@given(st.dictionaries(feeds, seqs, max_size=6))
def test_it_is_a_mapping_in_the_order_of_feeds(entries: dict[bytes, int]) -> None:
    timeframe = Timeframe(dict(reversed(entries.items())))

    assert dict(timeframe) == entries
    assert list(timeframe) == sorted(entries)
    assert timeframe == Timeframe(entries)
    assert hash(timeframe) == hash(Timeframe(entries))


def test_it_keeps_nothing_of_what_it_was_made_from() -> None:
    entries = {A: 1}
    timeframe = Timeframe(entries)
    entries[B] = 2

    assert timeframe == Timeframe({A: 1})
    with pytest.raises(TypeError):
        timeframe[A] = 5  # type: ignore[index]


@given(timeframes)
def test_encoding_comes_back(x: Timeframe) -> None:
    assert Timeframe.decode(x.encode()) == x


@given(st.binary(max_size=130) | timeframes.map(Timeframe.encode), st.data())
@example(b"", None)
def test_what_is_decoded_is_canonical(raw: bytes, data: st.DataObject | None) -> None:
    if raw and data is not None:
        at = data.draw(st.integers(0, len(raw) - 1))
        raw = raw[:at] + data.draw(st.binary(max_size=3)) + raw[at + 1 :]
    try:
        decoded = Timeframe.decode(raw)
    except InvalidInput:
        return
    assert decoded.encode() == raw


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "4 bytes wanted"),
        (u32(1), "1 entries take 44 bytes, not 4"),
        (u32(0) + b"\0", "0 entries take 4 bytes, not 5"),
        (u32(1) + A + u64(1) + b"\0", "not 45"),
        (u32(1) + A + u64(1)[:7], "not 43"),
        (u32(2) + B + u64(1) + A + u64(1), "do not ascend"),
        (u32(2) + A + u64(1) + A + u64(1), "do not ascend"),
        (u32(1) + A + b"\xff" * 8, "above 2\\^63"),
        (u32(1) + A + (1 << 63).to_bytes(8, "little"), "above 2\\^63"),
    ],
)
def test_every_other_form_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(BadEncoding, match=reason):
        Timeframe.decode(raw)


def test_a_hostile_count_is_refused_before_anything_is_made() -> None:
    with pytest.raises(TooLarge, match="at most"):
        Timeframe.decode(u32(TIMEFRAME_ENTRIES_MAX + 1))


@pytest.mark.parametrize("entries", [{b"short": 1}, {A: -1}, {A: 1 << 63}, {A + b"\0": 0}])
def test_what_is_no_timeframe_is_refused(entries: dict[bytes, int]) -> None:
    with pytest.raises(InvalidInput, match="feed keys to seqs"):
        Timeframe(entries)


def test_it_shows_short_keys() -> None:
    assert repr(Timeframe({A: 3, C: 0})) == "Timeframe({61616161: 3, 63636363: 0})"
    assert Timeframe({A: 3}) != {A: 3}
