"""Each first message is answered once, within the times that are taken, and in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.mesh.channel.limits import CLOCK_OFF_MS_MAX
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes

NOW_MS = 1_700_000_000_000


def key(number: int) -> bytes:
    return number.to_bytes(32, "little")


def test_a_key_is_taken_once() -> None:
    seen = SeenHandshakes()
    assert seen.add(key(1), sent_ms=NOW_MS, now_ms=NOW_MS)
    assert not seen.add(key(1), sent_ms=NOW_MS, now_ms=NOW_MS)
    assert not seen.add(key(1), sent_ms=NOW_MS, now_ms=NOW_MS + CLOCK_OFF_MS_MAX)
    assert seen.add(key(2), sent_ms=NOW_MS, now_ms=NOW_MS)


def test_clocks_may_be_ten_minutes_off() -> None:
    seen = SeenHandshakes()
    for number, off in enumerate((-CLOCK_OFF_MS_MAX, CLOCK_OFF_MS_MAX)):
        assert seen.add(key(number), sent_ms=NOW_MS + off, now_ms=NOW_MS)
    for number, off in enumerate((-CLOCK_OFF_MS_MAX - 1, CLOCK_OFF_MS_MAX + 1), start=2):
        assert not seen.add(key(number), sent_ms=NOW_MS + off, now_ms=NOW_MS)


@given(
    st.integers(3, 8) | st.just(1 << 16),
    st.lists(st.tuples(st.integers(0, 5), st.integers(-700_000, 700_000), st.integers(0, 900_000)), max_size=40),
)
def test_no_message_is_ever_answered_twice(count_max: int, steps: list[tuple[int, int, int]]) -> None:
    """Even in a flood, but for messages that were ahead of the clock when it came."""
    seen, answered, now_ms = SeenHandshakes(count_max), set(), NOW_MS
    for number, off, passing in steps:
        now_ms += passing
        sent_ms = NOW_MS + off  # so that keys come again with the same time
        if seen.add(key(number), sent_ms=sent_ms, now_ms=now_ms):
            assert (number, sent_ms) not in answered
            if sent_ms < now_ms or count_max > len(steps):
                answered.add((number, sent_ms))
        assert len(seen) <= count_max


def test_a_flood_takes_bounded_memory_and_leaves_later_times() -> None:
    seen = SeenHandshakes(100)
    for number in range(1000):
        seen.add(key(number), sent_ms=NOW_MS, now_ms=NOW_MS)
    assert len(seen) <= 100
    later_ms = NOW_MS + 60_000
    for number in range(1000, 1100):
        assert seen.add(key(number), sent_ms=later_ms, now_ms=later_ms)
    assert len(seen) == 100
    assert not seen.add(key(0), sent_ms=NOW_MS, now_ms=later_ms)
    assert not seen.add(key(999), sent_ms=NOW_MS, now_ms=later_ms)


@pytest.mark.parametrize("ahead_ms", [0, 60_000, CLOCK_OFF_MS_MAX])
def test_a_flood_from_the_future_does_not_shut_out_the_present(ahead_ms: int) -> None:
    seen = SeenHandshakes(100)
    for number in range(1000):
        seen.add(key(number), sent_ms=NOW_MS + ahead_ms, now_ms=NOW_MS)
    assert seen.add(key(2000), sent_ms=NOW_MS, now_ms=NOW_MS)
    assert not seen.add(key(2000), sent_ms=NOW_MS, now_ms=NOW_MS)


def test_what_is_too_old_is_forgotten() -> None:
    seen = SeenHandshakes()
    for minute in range(100):
        now_ms = NOW_MS + minute * 60_000
        assert seen.add(key(minute), sent_ms=now_ms, now_ms=now_ms)
    assert len(seen) <= 13


def test_a_clock_that_was_ahead_does_not_lock_the_device_out() -> None:
    seen = SeenHandshakes()
    later = NOW_MS + 365 * 24 * 3600 * 1000
    for step in range(3):
        assert seen.add(key(step), sent_ms=later + step * CLOCK_OFF_MS_MAX, now_ms=later + step * CLOCK_OFF_MS_MAX)
    assert seen.add(key(9), sent_ms=NOW_MS, now_ms=NOW_MS)
    assert len(seen) == 1


def test_a_flood_while_the_clock_was_ahead_does_not_lock_the_device_out() -> None:
    seen = SeenHandshakes(10)
    later = NOW_MS + 365 * 24 * 3600 * 1000
    for number in range(30):
        seen.add(key(number), sent_ms=later, now_ms=later)
    assert seen.add(key(99), sent_ms=NOW_MS, now_ms=NOW_MS)
