"""Position keys: always room between two, no two alike, and short where people write in a row."""

from __future__ import annotations

import random
from bisect import insort

import pytest
from hypothesis import example, given, strategies as st

from antiphon.core.stamp import STAMP_SIZE, Stamp
from antiphon.model.array.position import (
    AFTER,
    KEY_SIZE_MAX,
    OFFSET_MAX,
    SELF,
    KeyReader,
    Place,
    between,
    encode_int,
    key_size,
    read_path,
    span_of,
)
from antiphon.model.model import InvalidMutation

ALICE, BOB, EVE = b"a" * 32, b"b" * 32, b"\xff" * 32
numbers = st.integers(-(1 << 62), 1 << 62) | st.integers(-9000, 9000) | st.sampled_from([63, 64, 8255, 8256, 1056831])


@given(numbers, numbers)
@example(1056831, 1056832)
@example(-65, -64)
def test_encoded_numbers_sort_like_numbers_and_none_begins_another(one: int, other: int) -> None:
    first, second = encode_int(one), encode_int(other)
    assert (first < second) == (one < other)
    assert one == other or not first.startswith(second)


def test_a_key_ends_in_its_stamp() -> None:
    stamp = Stamp(7, ALICE, 3)
    span = span_of(b"", False, -1, 3, stamp)
    keys = list(span.all_keys())
    assert keys == [span.key(at) for at in range(3)]
    assert list(span.part(1, 3).all_keys()) == keys[1:]
    assert keys == sorted(keys)
    assert all(key.endswith(stamp.encode()) for key in keys)
    assert all(KeyReader().read(key[:-STAMP_SIZE], stamp).key(0) == key for key in keys)


@given(st.integers(0, 1 << 32))
def test_there_is_room_between_any_two_neighbours(seed: int) -> None:
    """Also where two elements share an offset, which happens when mutations were made from one state."""
    chance = random.Random(seed)
    keys: list[bytes] = []
    places: list[Place] = []
    for lamport in range(1, 60):
        feed = chance.choice([ALICE, BOB, EVE])
        index = chance.randint(0, len(keys)) if chance.random() < 0.7 else len(keys) // 2
        left, right = keys[index - 1] if index else None, keys[index] if index < len(keys) else None
        count = chance.choice([1, 1, 3])
        place = between(left, right, count, chance.choice([feed, b""]))
        stale = bool(places) and chance.random() < 0.2
        if stale:
            place = chance.choice(places)
        if place.extends:
            feed = next(one for one in (ALICE, BOB, EVE) if one[:4] == read_path(place.path).tag)
        span = span_of(place.path, place.extends, place.offset, count, Stamp(lamport, feed, lamport))
        made = list(span.all_keys())
        assert all(len(key) <= key_size(place, count) for key in made)
        if not stale:
            assert left is None or left < made[0]
            assert right is None or made[-1] < right
        places.append(place)
        for key in made:
            assert key not in keys
            insort(keys, key)


def grow(writers: list[bytes], front: bool, count: int) -> list[bytes]:
    keys: list[bytes] = []
    for number in range(count):
        feed = writers[number % len(writers)]
        place = (
            between(None, keys[0], 1, feed) if front and keys else between(keys[-1] if keys else None, None, 1, feed)
        )
        key = span_of(place.path, place.extends, place.offset, 1, Stamp(number + 1, feed, number)).key(0)
        keys.insert(0 if front else len(keys), key)
    assert keys == sorted(keys)
    return keys


@pytest.mark.parametrize("front", [False, True])
@pytest.mark.parametrize("writers", [[ALICE], [ALICE, BOB], [bytes([number]) * 32 for number in range(50)]])
def test_keys_stay_short_at_both_ends(writers: list[bytes], front: bool) -> None:
    keys = grow(writers, front, 10_000)
    assert max(map(len, keys)) <= STAMP_SIZE + 24


@given(st.binary(max_size=60), st.booleans())
def test_paths_from_outside_are_read_or_refused(path: bytes, extends: bool) -> None:
    try:
        key = span_of(path, extends, 0, 1, Stamp(5, ALICE, 1)).key(0)
    except InvalidMutation:
        return
    assert key.startswith(path)
    assert between(key, None, 1, BOB) is not None
    assert KeyReader().read(key[:-STAMP_SIZE], Stamp(5, ALICE, 1)).key(0) == key


def test_what_a_hostile_path_may_not_say() -> None:
    theirs = span_of(b"", False, 0, 1, Stamp(5, BOB, 0)).key(0)
    run = theirs[: read_path(theirs).steps[-1].run]
    stamp = Stamp(6, ALICE, 0)
    with pytest.raises(InvalidMutation, match="another writer"):
        span_of(run, True, 1, 1, stamp)
    with pytest.raises(InvalidMutation, match="does not extend"):
        span_of(run, False, 1, 1, stamp)
    with pytest.raises(InvalidMutation, match="cannot have seen"):
        span_of(theirs, False, 0, 1, Stamp(4, ALICE, 0))
    with pytest.raises(InvalidMutation, match="more than"):
        span_of(theirs * 20, False, 0, 1, stamp)
    with pytest.raises(InvalidMutation, match="more than"):
        span_of((run + b"\x80" + AFTER) * 122, False, 0, 1, stamp)
    with pytest.raises(InvalidMutation, match="out of range"):
        span_of(b"", False, OFFSET_MAX, 2, stamp)
    with pytest.raises(InvalidMutation, match="the mark 9"):
        span_of(run + b"\x80\x09", False, 0, 1, stamp)
    with pytest.raises(InvalidMutation, match="cut off"):
        span_of(theirs[:-1], False, 0, 1, stamp)
    for path in (b"", run + b"\x80", run + b"\x80" + AFTER, theirs):
        with pytest.raises(InvalidMutation, match="a position key"):
            KeyReader().read(path, stamp)
    assert theirs[-STAMP_SIZE - 1 : -STAMP_SIZE] == SELF


def test_an_offset_at_its_end_opens_a_run() -> None:
    last = span_of(b"", False, OFFSET_MAX, 1, Stamp(1, ALICE, 0)).key(0)
    place = between(last, None, 1, ALICE)
    assert not place.extends
    assert span_of(place.path, False, place.offset, 1, Stamp(2, ALICE, 1)).key(0) > last
    assert KEY_SIZE_MAX == 1024
