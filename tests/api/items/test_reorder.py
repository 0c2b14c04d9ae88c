"""Sorting a list with the fewest moves, and deleting with the fewest runs."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import pytest
from hypothesis import given, strategies as st

from antiphon import Party
from antiphon.api.items.reorder import moves, moves_count, runs
from antiphon.core.errors import TooLarge
from antiphon.feed.limits import SPAN_BLOCKS_MAX


@given(st.permutations(range(12)))
def test_the_moves_lead_to_the_order(wanted: list[int]) -> None:
    now, made = sorted(wanted), moves(wanted)
    for start, to in made:
        now.insert(to, now.pop(start))
    assert now == wanted
    assert len(made) == moves_count(wanted)


def test_there_are_no_fewer_moves() -> None:
    """All orders of six: the longest ascending part stays, compared with brute force."""
    for wanted in map(list, permutations(range(6))):
        stay = max(size for size in range(7) for part in combinations(wanted, size) if list(part) == sorted(part))
        assert moves_count(wanted) == 6 - stay


@given(st.sets(st.integers(0, 30)))
def test_runs_cover_the_places_from_the_last_on(places: set[int]) -> None:
    found = runs(places)
    assert {place for first, count in found for place in range(first, first + count)} == places
    assert all(one[0] > other[0] + other[1] for one, other in pairwise(found)), "none touch"


def test_one_element_out_of_place_is_one_move(party: Party) -> None:
    numbers = party.list([*range(1, 6000), 0])
    before = len(numbers.history())
    numbers.sort()
    assert numbers.value == list(range(6000))
    assert len(numbers.history()) == before + 1
    del numbers[1:]
    assert len(numbers.history()) == before + 2


def test_what_no_batch_can_hold_is_refused_before_anything_is_done(party: Party) -> None:
    count = 2 * SPAN_BLOCKS_MAX + 2
    numbers = party.list(range(count))
    for refused in (
        numbers.reverse,
        lambda: numbers.sort(reverse=True),
        lambda: numbers.__delitem__(slice(None, None, 2)),
        lambda: numbers.__setitem__(slice(None, None, 2), range(count // 2)),
    ):
        with pytest.raises(TooLarge, match=f"takes {SPAN_BLOCKS_MAX + 1}|takes {count - 1}") as error:
            refused()
        assert f"a batch has at most {SPAN_BLOCKS_MAX}: do it in parts" in str(error.value)
    assert len(numbers.history()) == 2
    with party.batch():
        numbers.append(0)
        with pytest.raises(TooLarge, match="and 1 are in the open batch"):
            numbers.reverse()
    assert len(numbers) == count + 1, "the batch is not spoilt"


def test_keys_that_no_batch_can_hold_are_taken_away_in_parts(party: Party) -> None:
    many = party.object({f"a{number}": 1 for number in range(SPAN_BLOCKS_MAX)})
    many["more"] = 1
    with pytest.raises(TooLarge, match=f"deleting {SPAN_BLOCKS_MAX + 1} keys"):
        many.clear()
    del many["more"]
    many.clear()
    assert many.value == {}
