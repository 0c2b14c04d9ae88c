"""Which feeds and devices count: the first by epoch and stamp, without those that ended in an earlier epoch."""

from __future__ import annotations

from hypothesis import given, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.halo.rights.budgets import _first

FEEDS = [bytes([number]) * 32 for number in range(8)]
EPOCHS = st.integers(0, 3)
opened = st.dictionaries(
    st.sampled_from(FEEDS), st.tuples(EPOCHS, st.builds(Stamp, st.integers(1, 5), st.sampled_from(FEEDS), st.just(0)))
)
ended = st.dictionaries(st.sampled_from(FEEDS), EPOCHS)


@given(opened, ended, st.integers(1, 4))
def test_each_counts_if_few_came_before_it_that_had_not_ended(
    opened: dict[bytes, tuple[int, Stamp]], ended: dict[bytes, int], most: int
) -> None:
    opened = {feed: (epoch, Stamp(stamp.lamport, feed, 0)) for feed, (epoch, stamp) in opened.items()}
    wanted = set()
    for feed, key in opened.items():
        before = [other for other, older in opened.items() if older < key]
        if len([other for other in before if not ended.get(other, 99) < key[0]]) < most:
            wanted.add(feed)
    assert _first(opened, ended, most) == wanted


@given(opened, st.tuples(EPOCHS, st.integers(1, 5)), st.integers(1, 4))
def test_a_back_dated_feed_takes_no_place_from_those_in_an_epoch(
    opened: dict[bytes, tuple[int, Stamp]], late: tuple[int, int], most: int
) -> None:
    opened = {feed: (epoch, Stamp(stamp.lamport, feed, 0)) for feed, (epoch, stamp) in opened.items()}
    feed = b"\xff" * 32
    after = {**opened, feed: (late[0], Stamp(late[1], feed, 0))}
    held = {feed for feed, (epoch, _) in opened.items() if epoch < late[0]}
    assert held & _first(after, {}, most) == held & _first(opened, {}, most)
