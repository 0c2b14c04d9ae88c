"""Marks in columns are those of a dictionary, and their snapshot is what the library encodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from antiphon.model.text import mark_columns, snapshot_marks
from antiphon.model.text.codec import Anchor, Mark
from antiphon.model.text.mark_columns import KeptMark, MarkColumns
from antiphon.model.value import value_bytes

FEEDS = [bytes([number]) * 32 for number in (7, 200, 3)]
LAMPORTS = st.sampled_from([0, 1, 2, 127, 128, 255, 256, 1 << 16, (1 << 32) - 1, 1 << 32, (1 << 63) - 1])
ANCHORS = st.one_of(
    st.builds(Anchor, st.just(b""), st.just(0), st.booleans()),
    st.builds(
        lambda feed, lamport, offset, after: Anchor(feed, lamport << 20 | offset, after),
        st.sampled_from(FEEDS),
        LAMPORTS,
        st.sampled_from([0, 1, (1 << 20) - 1]),
        st.booleans(),
    ),
)
VALUES = st.none() | st.sampled_from([True, 5, "é" * 9, "long " * 20]).map(value_bytes)
MARKS = st.builds(Mark, st.sampled_from(["b", "i", "link", "é", "n" * 100]), VALUES, ANCHORS, ANCHORS)
KEYS = st.tuples(LAMPORTS, st.sampled_from(FEEDS), LAMPORTS, st.integers(0, 300))


def by_library(marks: list[KeptMark]) -> bytes:
    return snapshot_marks.of_library(marks, {feed: at for at, feed in enumerate(sorted(FEEDS))})


def by_columns(marks: MarkColumns) -> bytes:
    return b"".join(snapshot_marks.encoded(marks, {feed: at for at, feed in enumerate(sorted(FEEDS))}))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks are settled and encoded a few at a time."""
    monkeypatch.setattr(mark_columns, "_NEW_MIN", 3)
    monkeypatch.setattr(mark_columns, "_PORTION", 2)
    monkeypatch.setattr(snapshot_marks, "_AT_ONCE", 5)
    monkeypatch.setattr(snapshot_marks, "_FEW", 2)


@given(st.lists(st.builds(KeptMark, KEYS, MARKS), max_size=40, unique_by=lambda kept: kept.key), st.data())
def test_columns_hold_the_latest_mark_of_each_name_and_two_anchors(added: list[KeptMark], data: Any) -> None:
    """Given marks in any order, read at any time, then of those of one place the latest remains, by name and stamp."""
    marks, known = MarkColumns(), dict[tuple[Any, ...], KeptMark]()
    for kept in data.draw(st.permutations(added)):
        marks.add(kept)
        place = kept.mark.name, kept.mark.start, kept.mark.end
        known[place] = max(known.get(place, kept), kept, key=lambda one: one.key)
        if data.draw(st.integers(0, 9)) == 0:
            assert len(marks) == len(known)
    expected = sorted(known.values(), key=lambda kept: (kept.mark.name, kept.key))
    assert by_columns(marks) == by_library(expected)
    assert list(marks) == expected
    assert bool(marks) is bool(expected)
    named = {feed for key, mark in expected for feed in (key[1], mark.start.feed, mark.end.feed)} - {b""}
    assert marks.feeds() == named


def test_more_names_and_feeds_than_a_byte_counts_are_kept() -> None:
    """Given marks that each have a name and feeds of their own, then columns become wider, and all are there."""
    added = []
    for number in range(1, 700):
        writer, *ends = (bytes([part, number % 256, number // 256]) + bytes(29) for part in (1, 2, 3))
        start, end = (Anchor(feed, number << 20, False) for feed in ends)
        added.append(KeptMark((1000, writer, 5, 0), Mark(f"{number:03}", value_bytes(number), start, end)))
    marks = MarkColumns()
    for kept in added:
        marks.add(kept)
    assert list(marks) == added
    assert len(marks.feeds()) == 3 * 699


def test_a_word_that_came_first_and_sorts_last_gets_a_number_that_its_column_had_no_room_for() -> None:
    """Given one writer and one name that sort behind hundreds of others, then numbers do not wrap around."""
    marks, writer, added = MarkColumns(), b"\xff" * 32, []
    for number in range(400):
        start = Anchor(bytes([1, number % 256, number // 256]) + bytes(29), 1 << 20, False)
        name = "zz" if number % 2 else f"{number:03}"
        added.append(KeptMark((9, writer, number, 0), Mark(name, None, start, Anchor(writer, 1 << 20, True))))
    for kept in added:
        marks.add(kept)
    assert list(marks) == sorted(added, key=lambda kept: (kept.mark.name, kept.key))


def test_values_of_marks_that_are_gone_take_no_memory() -> None:
    """Given one place that is marked again and again, then its last value alone remains."""
    marks, end = MarkColumns(), Anchor(b"", 0, True)
    for seq in range(1000):
        value = value_bytes(f"{seq} " * 100)
        marks.add(KeptMark((seq, FEEDS[0], seq, 0), Mark("link", value, Anchor(b"", 0, False), end)))
    assert [kept.mark.value for kept in marks] == [value_bytes("999 " * 100)]
    assert len(marks.settled()[3]) < 1000


def test_two_places_of_one_hash_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a hash that is the same for all, which a hostile writer would choose, then no mark is taken for another."""
    monkeypatch.setattr(mark_columns, "_FACTOR", np.uint64(0))
    marks = MarkColumns()
    for seq in range(50):
        place = Anchor(FEEDS[0], seq % 20, False)
        marks.add(KeptMark((seq, FEEDS[0], seq, 0), Mark("b", None, place, Anchor(b"", 0, True))))
    assert [kept.key[0] for kept in marks] == list(range(30, 50))
