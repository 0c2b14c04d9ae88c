"""The order and equality of values in queries, the same in Python and in SQLite.

Numbers come first, then text, None, bools, NaN, bytes, datetimes, references, and last lists and maps. Each of these is
a kind. Only values of one kind are compared, and lists and maps only for equality.

>>> compare("<", 1, 1.5), compare("=", 1, True), compare("<", 1, "a")
(True, False, False)
>>> sorted(["b", None, 2.5, "a", 2], key=sort_key)
[2, 2.5, 'a', 'b', None]
>>> column(2.0), column("a"), column(None)
(2.0, 'a', b'\\x01')

An int and a float that are equal, 2 and 2.0, are one value in comparisons, in sorting and as a group, and `canonical`
gives the one form of both: the int. Columns keep the type, so that a sum of floats is a float. Integers that do not fit
into 64 bits, which counters may reach, stand for the nearest float.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any

from antiphon.core.errors import BadEncoding
from antiphon.core.ids import ITEM_ID_SIZE, ItemId
from antiphon.model.value import Reference, Value
from antiphon.query.facts import MISSING, Missing
from antiphon.query.packed_json import from_time_us, pack, time_us, unpack

Column = int | float | str | bytes | None
SortKey = tuple[int, Any]
ExtremeKey = tuple[int, Any, bool]

NONE, BOOL, NAN, BYTES, TIME, REFERENCE, CONTAINER = range(1, 8)  # the first byte of a blob
_TIME, _CONTAINER = bytes([TIME]), bytes([CONTAINER])
_FALSE, _TRUE = bytes([BOOL, 0]), bytes([BOOL, 1])
_BIAS = 1 << 63  # so that times before 1970 sort first as bytes too
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_NAN = float("nan")
_OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def column(value: Value) -> Column:
    """The form of a value that SQLite stores, whose order in SQLite is this order. `MISSING` is NULL."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is bool:
        return _TRUE if value else _FALSE
    if kind is int:
        return value if _INT_MIN <= value <= _INT_MAX else _real(value)
    if kind is float:
        return _number(value)
    if value is None:
        return bytes([NONE])
    if isinstance(value, Missing):
        return None
    return _blob(value)


def _number(value: float) -> Column:
    return bytes([NAN]) if value != value else value + 0.0  # which turns -0.0 into 0.0


def _real(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _blob(value: Value) -> Column:
    kind = type(value)
    if kind is dict or kind is list:
        return _CONTAINER + pack(value, canonical=True).encode()
    if isinstance(value, Reference):
        return bytes([REFERENCE]) + value.item + value.party
    if isinstance(value, ItemId):  # before bytes: an item id is those too
        return bytes([REFERENCE]) + value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes([BYTES]) + bytes(value)
    if isinstance(value, datetime):
        return time_column(time_us(value))
    if isinstance(value, str):  # a subclass, of an enum for example, counts as its base
        return str.__str__(value)
    if isinstance(value, int):
        return column(int.__int__(value))
    if isinstance(value, float):
        return _number(float.__float__(value))
    return _CONTAINER + pack(value, canonical=True).encode()


def time_column(us: int) -> bytes:
    """The column of a datetime, by its microseconds since 1970."""
    return _TIME + (us + _BIAS).to_bytes(8, "big")


def value_of(stored: object) -> Value | Missing:
    """The value of a column, or `BadEncoding`."""
    if stored is None:
        return MISSING
    if not isinstance(stored, bytes):
        return stored
    tag, rest = (stored[0], stored[1:]) if stored else (0, b"")
    try:
        return _READ[tag](rest)
    except (KeyError, ValueError, OverflowError):
        raise BadEncoding(f"a column that holds no value: {stored[:40].hex()}") from None


def _reference(rest: bytes) -> Reference:
    return Reference(rest[:ITEM_ID_SIZE], rest[ITEM_ID_SIZE:])


_READ: dict[int, Callable[[bytes], Value]] = {
    NONE: lambda rest: None,
    BOOL: lambda rest: rest != b"\0",
    NAN: lambda rest: _NAN,
    BYTES: lambda rest: rest,
    TIME: lambda rest: from_time_us(int.from_bytes(rest, "big") - _BIAS),
    REFERENCE: _reference,
    CONTAINER: lambda rest: unpack(rest.decode()),
}


def canonical(value: Value) -> Value:
    """Return the common form of all values equal to this one: an int for a float that is whole and fits 64 bits."""
    return canonical_of(column(value))


def canonical_of(stored: object) -> Value | Missing:
    """The canonical value of a column, or `BadEncoding`."""
    whole = type(stored) is float and stored.is_integer() and _INT_MIN <= stored < -_INT_MIN
    return int(stored) if whole else value_of(stored)  # type: ignore[call-overload]


def extreme_key(value: Value, *, greatest: bool) -> ExtremeKey:
    """The order in which `min` and `max` choose: of an int and a float that are equal, both choose the int."""
    key = sort_key(value)
    return *key, (type(key[1]) is float) is not greatest


def sort_key(value: Value) -> SortKey:
    """The key of a value for Python's `sorted`."""
    stored = column(value)
    if isinstance(stored, str):
        return 1, stored
    return (2, stored) if isinstance(stored, bytes) else (0, stored)


def kind_of(key: SortKey) -> int:
    """The kind of a sort key: 0 for numbers, -1 for text, else the first byte."""
    rank, stored = key
    return int(stored[0]) if rank == 2 else -rank


def compare(op: str, found: Value, wanted: Value) -> bool:
    """True if `found` compares so with `wanted`, as the filter `Compare` means it."""
    left, right = sort_key(found), sort_key(wanted)
    if op == "=":
        return left == right
    kind = kind_of(left)
    return kind == kind_of(right) and kind != CONTAINER and _OPS[op](left, right)
