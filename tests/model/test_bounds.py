"""`Bounds` cover what any of their names covers, with as few pairs as possible, whatever the order of names."""

from __future__ import annotations

from hypothesis import given, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.model.bounds import Bounds, covers

FEED = b"f" * 32
STAMPS = st.builds(Stamp, st.integers(0, 6), st.just(FEED), st.integers(0, 6))


@given(st.lists(STAMPS, max_size=12), st.integers(-1, 6), st.randoms(use_true_random=False))
def test_bounds_cover_what_their_names_cover(names: list[Stamp], heard: int, chance: object) -> None:
    bounds, other = Bounds(), Bounds()
    for name in names:
        bounds.add(name)
    chance.shuffle(names)  # type: ignore[attr-defined]
    for name in names:
        other.add(name)
    assert bounds.pairs == other.pairs
    for lamport in range(8):
        for seq in range(8):
            stamp = Stamp(lamport, FEED, seq)
            assert bounds.has(stamp) == any(covers(name, stamp) for name in names)
    assert bounds.pairs == sorted(bounds.pairs)
    assert not any(
        one is not two and one[0] <= two[0] and one[1] <= two[1] for one in bounds.pairs for two in bounds.pairs
    )
    bounds.forget(heard)
    again = Bounds()
    for name in names:
        if name.seq > heard:
            again.add(name)
    assert bounds.pairs == again.pairs, "what is forgotten leaves the others as if it had never been there"


def test_adding_tells_how_many_names_were_covered() -> None:
    bounds = Bounds()
    added = [bounds.add(Stamp(lamport, FEED, seq)) for lamport, seq in ((5, 1), (4, 2), (3, 3), (2, 2), (4, 9))]
    assert added == [0, 0, 0, -1, 2]
    assert bounds.pairs == [(1, 5), (9, 4)]
