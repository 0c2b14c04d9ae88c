"""`Intervals`: find the ranges that cover a point. A treap in which each node knows the greatest end of its subtree.

>>> ages = Intervals()
>>> minor = ages.add(None, below(18), "minor")
>>> grown = ages.add(above(18, itself=True), None, "grown")
>>> sorted(ages.at(18)), sorted(ages.at(3))
(['grown'], ['minor'])
>>> ages.remove(grown)
>>> list(ages.at(18))
[]

Adding, removing, and finding each range that covers a point take logarithmic time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

Held = TypeVar("Held")
Bound = tuple[Any, ...]

# A point sorts between the bounds that exclude it and those that include it, so a bound and a point are never equal.
_LOWEST: Bound = (-1,)
_HIGHEST: Bound = (1,)


def above(key: Any, *, itself: bool = False) -> Bound:
    """The bound at which a range begins."""
    return (0, key, 0 if itself else 2)


def below(key: Any, *, itself: bool = False) -> Bound:
    """The bound at which a range ends."""
    return (0, key, 2 if itself else 0)


class _Node(Generic[Held]):
    __slots__ = ("held", "high", "key", "left", "rank", "reach", "right")

    def __init__(self, key: tuple[Bound, int], high: Bound, held: Held, rank: float) -> None:
        self.key = key
        self.high = self.reach = high
        self.held = held
        self.rank = rank
        self.left: _Node[Held] | None = None
        self.right: _Node[Held] | None = None

    def measure(self) -> None:
        self.reach = self.high
        for part in (self.left, self.right):
            if part is not None and part.reach > self.reach:
                self.reach = part.reach


class Intervals(Generic[Held]):
    """Ranges with a value each. `add` returns the token that `remove` takes."""

    def __init__(self) -> None:
        self._root: _Node[Held] | None = None
        self._count = 0
        self._added = 0
        # The ranks must not be predictable: with known ranks, an attacker could choose bounds that make the tree one
        # long branch. So the system seeds them. No result depends on them.
        self._chance = random.Random()  # noqa: S311

    def __len__(self) -> int:
        return self._count

    def add(self, low: Bound | None, high: Bound | None, held: Held) -> tuple[Bound, int]:
        """Add a range with a value; None is an open end."""
        self._added += 1
        key = (_LOWEST if low is None else low, self._added)
        node = _Node(key, _HIGHEST if high is None else high, held, self._chance.random())
        left, right = _split(self._root, key)
        self._root = _merge(_merge(left, node), right)
        self._count += 1
        return key

    def remove(self, token: tuple[Bound, int]) -> None:
        """Remove the range that `add` returned this token for."""
        left, rest = _split(self._root, token)
        _, right = _split(rest, (token[0], token[1] + 1))
        self._root = _merge(left, right)
        self._count -= 1

    def at(self, key: Any) -> Iterator[Held]:
        """The values of all ranges that cover a point."""
        point: Bound = (0, key, 1)
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            if node is None or node.reach < point:
                continue
            waiting.append(node.left)
            if node.key[0] < point:
                if node.high > point:
                    yield node.held
                waiting.append(node.right)


def _split(node: _Node[Held] | None, key: tuple[Bound, int]) -> tuple[_Node[Held] | None, _Node[Held] | None]:
    """Split a tree into the nodes before a key, and the rest."""
    if node is None:
        return None, None
    if node.key < key:
        node.right, rest = _split(node.right, key)
        node.measure()
        return node, rest
    rest, node.left = _split(node.left, key)
    node.measure()
    return rest, node


def _merge(one: _Node[Held] | None, other: _Node[Held] | None) -> _Node[Held] | None:
    """Merge two trees, all keys of `one` being less than those of `other`."""
    if one is None or other is None:
        return one or other
    if one.rank > other.rank:
        one.right = _merge(one.right, other)
        one.measure()
        return one
    other.left = _merge(one, other.left)
    other.measure()
    return other
