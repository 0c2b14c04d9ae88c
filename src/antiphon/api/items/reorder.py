"""Which elements of a list to move, so that it comes into an order by the fewest moves.

>>> moves([1, 2, 3, 0])
[(0, 3)]
>>> runs([7, 1, 2, 3, 9])
[(9, 1), (7, 1), (1, 3)]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


def moves_count(wanted: list[int]) -> int:
    """How many moves it takes."""
    return len(wanted) - len(_longest_ascent(wanted))


def moves(wanted: list[int]) -> list[tuple[int, int]]:
    """From where to where, one after the other: `wanted` names each element by its place in the beginning.

    As many elements as can stay do; each other one is moved once, behind the one that it is to follow.
    """
    stay = _longest_ascent(wanted)
    now = sorted(wanted)
    made = []
    for place, element in enumerate(wanted):
        if element not in stay:
            start = now.index(element)
            del now[start]
            to = now.index(wanted[place - 1]) + 1 if place else 0
            now.insert(to, element)
            made.append((start, to))
    return made


def _longest_ascent(numbers: list[int]) -> set[int]:
    """The members of a longest ascending subsequence (patience sorting)."""
    tops: list[int] = []  # the least number that ends an ascent of each length
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(tops, number)
        before[number] = tops[at - 1] if at else None
        tops[at : at + 1] = [number]
    found: set[int] = set()
    last = tops[-1] if tops else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found


def runs(places: Iterable[int]) -> list[tuple[int, int]]:
    """Places as runs (first, how many), the last first: what is deleted so moves none that is still to be."""
    found: list[tuple[int, int]] = []
    for place in sorted(places, reverse=True):
        if found and found[-1][0] == place + 1:
            found[-1] = (place, found[-1][1] + 1)
        else:
            found.append((place, 1))
    return found
