"""Exact sums and means of numbers, rounded once at the end, so that the order of adding does not matter.

>>> sum_of([1e16, 1, -1e16]), mean_of([1, 2]), sum_of([1, 2]), sum_of([1.0, 2.0])
(1.0, 1.5, 3, 3.0)
>>> one, other = Sum(), Sum()
>>> one.add(1e16), one.add(1), other.add(-1e16), one.add_all(other)
(None, None, None, None)
>>> one.value(), one.count
(1.0, 3)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_SCALE = 1074  # every real is a whole number of 2^-1074
_WHOLE_MAX = 1 << 53  # reals hold every integer up to here
Number = int | float


def sum_of(numbers: Sequence[Number]) -> Number:
    """The sum: an int if all numbers are ints, else the nearest float."""
    if all(type(number) is int for number in numbers):
        return sum(numbers)
    special = _special(numbers)
    if special is not None:
        return special
    try:
        if all(type(number) is float or -_WHOLE_MAX <= number <= _WHOLE_MAX for number in numbers):
            return math.fsum(numbers)  # which rounds once too, but takes reals only
    except OverflowError:  # perhaps only on the way
        pass
    return _nearest(sum(map(_scaled, numbers)), 1)


def mean_of(numbers: Sequence[Number]) -> float | None:
    """The float nearest to the mean; None if there are no numbers."""
    if not numbers:
        return None
    special = _special(numbers)
    return _nearest(sum(map(_scaled, numbers)), len(numbers)) if special is None else special


@dataclass(slots=True)
class Sum:
    """An exact sum, computed in parts and merged: `value` is `sum_of` all numbers, `mean` is `mean_of` them."""

    whole: int = 0  # of all finite numbers, exact, in units of 2^-1074
    count: int = 0
    floats: int = 0  # how many of the numbers are floats
    up: int = 0  # how many are inf
    down: int = 0  # how many are -inf

    def add(self, number: Number, times: int = 1) -> None:
        """Add a number so many times; a negative `times` removes it again."""
        self.count += times
        self.floats += times if type(number) is float else 0
        if number == math.inf:
            self.up += times
        elif number == -math.inf:
            self.down += times
        else:
            self.whole += _scaled(number) * times

    def add_all(self, other: Sum) -> None:
        """Merge another part into this one."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def value(self) -> Number:
        """The sum so far."""
        return self._over(1) if self.floats else self.whole >> _SCALE

    def mean(self) -> float | None:
        """The mean so far; None without numbers."""
        return self._over(self.count) if self.count else None

    def _over(self, count: int) -> float:
        if self.up or self.down:
            return math.nan if self.up and self.down else math.inf if self.up else -math.inf
        return _nearest(self.whole, count)


def _special(numbers: Sequence[Number]) -> float | None:
    """The sum if an infinity is among the numbers; else None."""
    found = {number for number in numbers if type(number) is float and math.isinf(number)}
    return sum(found) if found else None


def _scaled(number: Number) -> int:
    """A finite number, in units of 2^-1074."""
    top, bottom = number.as_integer_ratio()
    return top << (_SCALE + 1 - bottom.bit_length())  # the bottom is a power of two


def _nearest(scaled: int, count: int) -> float:
    try:
        return scaled / (count << _SCALE)  # Python rounds the quotient of two ints correctly
    except OverflowError:
        return math.inf if scaled > 0 else -math.inf
