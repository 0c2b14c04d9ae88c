"""Values as JSON text that reads back as exactly the same values: 1, 1.0 and True stay apart, and NaN is kept.

>>> pack({"b": [1, 1.0, True], "a": b"raw"})
'{"b":[1,1.0,true],"a":{"\\\\ud800":["b","726177"]}}'
>>> unpack(pack({"b": [1, 1.0, True], "a": b"raw"}))
{'b': [1, 1.0, True], 'a': b'raw'}

Values that JSON lacks are a map with the one key U+D800, half a surrogate pair, which no text of an item can hold.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.ids import ItemId
from antiphon.model.value import Reference, Value

_MARK = "\ud800"
_MARK_TEXT = '{"\\ud800":'
_SURROGATE_TEXT = "\\ud"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_WITH_TEXT = (str, dict, list, tuple)


def time_us(value: datetime) -> int:
    """Microseconds since 1970."""
    if value.utcoffset() is None:
        raise InvalidInput(f"the datetime {value} has no time zone; give it one, say datetime.now(UTC)")
    return (value - _EPOCH) // _US


def from_time_us(value: int) -> datetime:
    """The time at so many microseconds since 1970."""
    return _EPOCH + value * _US


def _tagged(value: Any) -> dict[str, list[Any]]:
    if isinstance(value, Reference):
        return {_MARK: ["r", value.item.hex(), value.party.hex()]}
    if isinstance(value, ItemId):
        return {_MARK: ["r", value.hex(), ""]}
    if isinstance(value, datetime):
        return {_MARK: ["t", time_us(value)]}
    if isinstance(value, bytes | bytearray | memoryview):
        return {_MARK: ["b", bytes(value).hex()]}
    raise InvalidInput(f"a {type(value).__name__} is no value that an item can hold")


_AS_IS = json.JSONEncoder(separators=(",", ":"), default=_tagged, check_circular=False).encode
_SORTED = json.JSONEncoder(separators=(",", ":"), default=_tagged, check_circular=False, sort_keys=True).encode


def pack(value: Value, *, canonical: bool = False) -> str:
    """Return the text, in ASCII. If `canonical`, equal maps have equal texts."""
    try:
        text = _SORTED(value) if canonical else _AS_IS(value)
    except (TypeError, RecursionError) as error:
        raise InvalidInput(f"no value that an item can hold: {error}") from None
    if _SURROGATE_TEXT in text:  # a character outside the first 65536, one of our marks, or no Unicode at all
        _check_text(value)
    return text


def _check_text(value: Value) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"text that is not valid Unicode: {error}") from None
    elif isinstance(value, dict):
        for key, part in value.items():
            _check_text(key)
            _check_text(part)
    elif isinstance(value, list | tuple):
        for part in value:
            if isinstance(part, _WITH_TEXT):  # of long lists most parts have none
                _check_text(part)


def unpack(text: str) -> Value:
    """Read the value, or raise `BadEncoding`."""
    try:
        value, end = _TAGGED_DECODER.raw_decode(text) if _MARK_TEXT in text else _DECODER.raw_decode(text)
        if end != len(text):
            raise ValueError("more follows")
        return value
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise BadEncoding(f"a packed value that is none: {error}") from None


_DECODER = json.JSONDecoder()


def _untagged(found: dict[str, Any]) -> Any:
    if _MARK not in found:
        return found
    tag, first, *rest = found[_MARK]
    if tag == "b":
        return bytes.fromhex(first)
    if tag == "t":
        return from_time_us(first)
    if tag == "r":
        return Reference(bytes.fromhex(first), bytes.fromhex(rest[0]))
    raise ValueError(f"the tag {tag!r}")


_TAGGED_DECODER = json.JSONDecoder(object_hook=_untagged)
