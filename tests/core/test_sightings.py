"""The log of a feed's timeframes answers as copies of them would."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from antiphon.core.sightings import Sightings

FEEDS = [bytes([number]) * 32 for number in range(4)]
#: What each block of a feed saw, some blocks nothing.
blocks = st.lists(st.dictionaries(st.sampled_from(FEEDS), st.integers(0, 6), max_size=3), max_size=12)


def copied(seen: list[dict[bytes, int]]) -> list[dict[bytes, int]]:
    """The timeframe of each block, in full."""
    frames, known = [], dict[bytes, int]()
    for more in seen:
        known = {**known, **{feed: max(at, known.get(feed, -1)) for feed, at in more.items()}}
        frames.append(known)
    return frames


def logged(seen: list[dict[bytes, int]]) -> Sightings:
    return Sightings(enumerate(seen))


@given(blocks)
def test_a_view_is_equal_to_a_copy(seen: list[dict[bytes, int]]) -> None:
    log, frames = logged(seen), copied(seen)
    for seq, frame in enumerate(frames):
        view = log.at(seq)
        assert dict(view) == frame == view
        assert len(view) == len(frame)
        assert [view.get(feed, -1) for feed in FEEDS] == [frame.get(feed, -1) for feed in FEEDS]
        assert [feed in view for feed in FEEDS] == [feed in frame for feed in FEEDS]


@given(blocks)
def test_a_view_does_not_grow_with_its_log(seen: list[dict[bytes, int]]) -> None:
    log, views = Sightings(), []
    for seq, more in enumerate(seen):
        log.see(seq, more)
        views.append(log.at(seq))
    assert [dict(view) for view in views] == copied(seen)


@given(blocks, st.integers(0, 12), st.integers(0, 12))
def test_pieces_have_one_timeframe_each_and_leave_nothing_out(
    seen: list[dict[bytes, int]], start: int, stop: int
) -> None:
    log, frames = logged(seen), copied([*seen, *[{}] * 13])
    pieces = list(log.pieces(start, stop))
    assert [seq for low, high, _ in pieces for seq in range(low, high)] == list(range(start, stop))
    for low, high, origin in pieces:
        assert all(frames[seq] == frames[low] for seq in range(low, high))
        assert frames[origin] == frames[low] or (origin == 0 and not frames[low])
        assert origin <= low


@given(
    blocks,
    st.integers(0, 12),
    st.integers(0, 12),
    st.lists(st.tuples(st.sampled_from(FEEDS), st.lists(st.integers(0, 9), unique=True).map(sorted)), max_size=4),
)
def test_pieces_by_marked_blocks_are_told_apart_by_these_alone(
    seen: list[dict[bytes, int]], start: int, stop: int, marks: list[tuple[bytes, list[int]]]
) -> None:
    log, frames = logged(seen), copied([*seen, *[{}] * 13])

    def marked(seq: int) -> list[int]:
        return [sum(mark <= frames[seq].get(feed, -1) for mark in seqs) for feed, seqs in marks]

    pieces = list(log.pieces(start, stop, marks))
    assert [seq for low, high, _ in pieces for seq in range(low, high)] == list(range(start, stop))
    for low, high, origin in pieces:
        assert all(marked(seq) == marked(low) for seq in range(origin, high))
        assert origin == 0 or marked(origin - 1) != marked(low)
        assert low in (start, origin)


@given(blocks, st.integers(0, 12))
def test_a_part_of_a_log_answers_like_the_whole(seen: list[dict[bytes, int]], at: int) -> None:
    log, frames = logged(seen), copied([*seen, *[{}] * 13])
    since, until = log.since(at), log.until(at)
    assert all(dict(since.at(seq)) == frames[seq] for seq in range(at, len(frames)))
    assert all(start >= at for start in since.starts)
    assert all(dict(until.at(seq)) == frames[seq] for seq in range(at))
    assert all(start < at for start in until.starts)


@pytest.mark.parametrize("again", [Sightings.copy, lambda log: Sightings(log.steps())])
@given(blocks)
def test_the_steps_of_a_log_make_an_equal_one(
    again: Callable[[Sightings], Sightings], seen: list[dict[bytes, int]]
) -> None:
    log = logged(seen)
    assert again(log) == log
    assert log.starts == [seq for seq, frame in enumerate(copied(seen)) if frame != copied([{}, *seen])[seq]]


def test_a_log_is_no_key_and_equals_no_other_thing() -> None:
    assert Sightings() != {}
    with pytest.raises(TypeError):
        hash(Sightings())
    with pytest.raises(KeyError):
        Sightings().at(3)[FEEDS[0]]
