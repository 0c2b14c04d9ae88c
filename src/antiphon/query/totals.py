"""Sums and means of numbers: exact, rounded once, whatever the order in which the numbers come.

>>> total([1e16, 1, -1e16]), mean([1, 2]), total([1, 2])
(1.0, 1.5, 3)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

_SCALE = 1074  # every real is a whole number of 2^-1074
_WHOLE_MAX = 1 << 53  # reals hold every integer up to here
Number = int | float


def total(numbers: Sequence[Number]) -> Number:
    """The sum: an int if all are, else the nearest real."""
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


def mean(numbers: Sequence[Number]) -> float | None:
    """The nearest real to the mean; of nothing there is none."""
    if not numbers:
        return None
    special = _special(numbers)
    return _nearest(_exact(numbers) / len(numbers)) if special is None else special


def _special(numbers: Sequence[Number]) -> float | None:
    """The sum where infinities decide it."""
    found = {number for number in numbers if type(number) is float and math.isinf(number)}
    return sum(found) if found else None


def _exact(numbers: Sequence[Number]) -> Fraction:
    whole = 0
    for number in numbers:
        top, bottom = number.as_integer_ratio()
        whole += top << (_SCALE + 1 - bottom.bit_length())  # the bottom is a power of two
    return Fraction(whole, 1 << _SCALE)


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
