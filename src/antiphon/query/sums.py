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
from fractions import Fraction

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
    return _nearest(_exact(numbers))


def mean_of(numbers: Sequence[Number]) -> float | None:
    """The float nearest to the mean; None if there are no numbers."""
    if not numbers:
        return None
    special = _special(numbers)
    return _nearest(_exact(numbers) / len(numbers)) if special is None else special


@dataclass(slots=True)
class Sum:
    """An exact sum, computed in parts and merged: `value` is `sum_of` all numbers, `mean` is `mean_of` them."""

    ints: bool = True  # all numbers are ints
    whole: int = 0  # exact, in units of 2^-1074
    count: int = 0
    up: bool = False  # an infinity is among them
    down: bool = False

    def add(self, number: Number, times: int = 1) -> None:
        """Add a number, several times over if `times` says so."""
        self.count += times
        if type(number) is float and math.isinf(number):
            self.up, self.down, self.ints = self.up or number > 0, self.down or number < 0, False
            return
        self.ints = self.ints and type(number) is int
        self.whole += _scaled(number) * times

    def add_all(self, other: Sum) -> None:
        """Merge another part into this one."""
        self.ints, self.whole, self.count = self.ints and other.ints, self.whole + other.whole, self.count + other.count
        self.up, self.down = self.up or other.up, self.down or other.down

    def value(self) -> Number:
        """The sum so far."""
        return self.whole >> _SCALE if self.ints else self._over(1)

    def mean(self) -> float | None:
        """The mean so far; None without numbers."""
        return self._over(self.count) if self.count else None

    def _over(self, count: int) -> float:
        if self.up or self.down:
            return math.nan if self.up and self.down else math.inf if self.up else -math.inf
        return _nearest(Fraction(self.whole, count << _SCALE))


def _special(numbers: Sequence[Number]) -> float | None:
    """The sum if an infinity is among the numbers; else None."""
    found = {number for number in numbers if type(number) is float and math.isinf(number)}
    return sum(found) if found else None


def _exact(numbers: Sequence[Number]) -> Fraction:
    return Fraction(sum(map(_scaled, numbers)), 1 << _SCALE)


def _scaled(number: Number) -> int:
    """A finite number, in units of 2^-1074."""
    top, bottom = number.as_integer_ratio()
    return top << (_SCALE + 1 - bottom.bit_length())  # the bottom is a power of two


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
