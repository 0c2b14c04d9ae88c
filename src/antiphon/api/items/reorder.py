"""Find the moves that bring a list into an order with the fewest moves.

>>> moves([1, 2, 3, 0])
[(0, 3)]
>>> runs([7, 1, 2, 3, 9])
[(9, 1), (7, 1), (1, 3)]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


def moves_count(wanted: list[int]) -> int:
    """Return the number of moves that `moves` makes."""
    return len(wanted) - len(_longest_ascent(wanted))


def moves(wanted: list[int]) -> list[tuple[int, int]]:
    """Return the moves (from, to), one after the other. `wanted` lists the elements by their original index.

    As many elements as possible stay in place. Each other element is moved once, behind its new predecessor.
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
    """Return the members of a longest ascending subsequence (patience sorting)."""
    tops: list[int] = []  # by length, the smallest number that ends an ascent
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
    """Group indices into runs (first, count), the last run first: deleting a run then shifts no other one."""
    found: list[tuple[int, int]] = []
    for place in sorted(places, reverse=True):
        if found and found[-1][0] == place + 1:
            found[-1] = (place, found[-1][1] + 1)
        else:
            found.append((place, 1))
    return found
