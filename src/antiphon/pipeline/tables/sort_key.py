"""Sort keys: bytes that compare as values do in queries, so that any engine that compares bytes can filter and sort.

>>> key_of(2) < key_of(2.5) < key_of(3) < key_of("a") < key_of(None) < key_of(b"")
True
>>> key_of(1) == key_of(1.0), value_of(key_of(1.0)), key_of(True) == key_of(1)
(True, 1, False)
>>> key_of("a").hex(), key_of(1).hex()
('0261', '01bff00000000000000000')

The first byte is the kind: 1 for numbers, 2 for text, then those of `query.value_order`. A number is stored as the
greatest double ≤ the number, its bits flipped so that they ascend, and the excess over that double: so integers and
reals compare exactly. Text is UTF-8, whose byte order is the order of its characters.

Long keys are truncated in tables to one byte more than `KEY_SIZE_MAX`, the size of the longest key that they are
compared with: so each comparison has the same result as with the complete key.
"""

from __future__ import annotations

import math
import struct

from antiphon.core.errors import BadEncoding
from antiphon.model.value import Value
from antiphon.query import value_order
from antiphon.query.value_order import CONTAINER, REFERENCE, canonical, column

KEY_SIZE_MAX = 256  # bytes of the longest key that truncated keys can be compared with
NUMBER, TEXT = 1, 2
_BEYOND = 2  # added to the kinds of `query.value_order`
REFERENCE_KIND, CONTAINER_KIND = REFERENCE + _BEYOND, CONTAINER + _BEYOND
_NUMBER = struct.Struct(">QH")
_REAL, _BITS = struct.Struct(">d"), struct.Struct(">Q")
_SIGN, _ALL = 1 << 63, (1 << 64) - 1
NO_ELEMENTS = bytes([CONTAINER_KIND]) + b"[]"
_ZERO = b"\x01\x80" + bytes(9)
_WHOLE_MAX = 1 << 53


def key_of(value: Value) -> bytes:
    """Return the sort key of a value."""
    kind = type(value)
    if kind is str:
        return b"\x02" + value.encode()  # type: ignore[no-any-return]
    if kind is int and -_WHOLE_MAX <= value <= _WHOLE_MAX:
        return _exact(value)
    if value == [] and kind is list:
        return NO_ELEMENTS
    stored = column(value)
    if isinstance(stored, str):
        return b"\x02" + stored.encode()
    if isinstance(stored, bytes):
        return bytes([stored[0] + _BEYOND]) + stored[1:]
    assert stored is not None, "nothing has no key"
    return _number(stored)


def truncate(key: bytes) -> bytes:
    """Return a key as tables store it."""
    return key[: KEY_SIZE_MAX + 1]


def is_complete(stored: bytes) -> bool:
    """True if a stored key was not truncated."""
    return len(stored) <= KEY_SIZE_MAX


def value_of(key: bytes) -> Value:
    """Return the value of a complete key, in the form of `value_order.canonical`; raise `BadEncoding` if it is none."""
    try:
        kind, rest = key[0], key[1:]
        if kind == NUMBER:
            return _read_number(*_NUMBER.unpack(rest))
        return rest.decode() if kind == TEXT else value_order.value_of(bytes([kind - _BEYOND]) + rest)
    except (IndexError, ValueError, struct.error):
        raise BadEncoding(f"a sort key that is none: {key[:40].hex()}") from None


def _exact(number: int) -> bytes:
    """Return the key of an integer that a double equals: most are."""
    if number > 0:
        return b"\x01" + _REAL.pack(-number) + b"\0\0"  # the sign bit set
    return _number(number) if number else _ZERO


def _number(number: int | float) -> bytes:
    real = float(number)
    if real > number:
        real = math.nextafter(real, -math.inf)
    (bits,) = _BITS.unpack(_REAL.pack(real))
    excess = number - int(real) if isinstance(number, int) else 0
    return b"\x01" + _NUMBER.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN, excess)


def _read_number(bits: int, excess: int) -> int | float:
    (real,) = _REAL.unpack(_BITS.pack(bits & ~_SIGN if bits & _SIGN else bits ^ _ALL))
    return canonical(int(real) + excess if excess else real)  # type: ignore[no-any-return]
