"""Values that items hold: JSON's types, bytes, aware datetimes and references to items; with one encoding each.

>>> from datetime import UTC, datetime
>>> value = {"tags": ["a", 1, None, True, 2.5], "at": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"bytes"}
>>> read_value(to_proto(value)) == value
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.ids import ITEM_ID_SIZE, ItemId
from antiphon.core.v1 import value_pb2
from antiphon.model.model import InvalidMutation
from antiphon.model.wire import TEXT_FORM

VALUE_DEPTH_MAX = 32
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_TIME_MIN = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _US
_TIME_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _US
_NAN = float("nan")

Value = Any  # None, bool, int, float, str, bytes, datetime, Reference, list of these, dict of str to these


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """The id of an item, with the key of its party. An empty `party` means the party that holds the reference."""

    item: bytes
    party: bytes = b""

    def __post_init__(self) -> None:
        if len(self.item) != ITEM_ID_SIZE or len(self.party) not in (0, 32):
            raise InvalidInput("a reference is an item id of 16 bytes, and a party key of 32 or none")

    def __str__(self) -> str:
        return f"{self.party.hex()}/{self.item.hex()}" if self.party else self.item.hex()


def to_proto(value: Value, depth: int = 0) -> value_pb2.Value:
    """Return the protobuf form of a value, or raise `InvalidInput` for an object that is no value."""
    kind = type(value)
    if kind is str:
        return value_pb2.Value(text=_utf8(value))
    if kind is bool:  # before int: in Python a bool is an int
        return value_pb2.Value(boolean=value)
    if kind is int:
        if not _INT_MIN <= value <= _INT_MAX:
            raise InvalidInput(f"the integer {value} does not fit into 64 bits; keep it as text or bytes")
        return value_pb2.Value(integer=value)
    if kind is float:
        return value_pb2.Value(real=_NAN if math.isnan(value) else value)
    if value is None:
        return value_pb2.Value(null=True)
    if isinstance(value, ItemId):  # before bytes: an item id is a subclass of bytes
        return value_pb2.Value(reference=value_pb2.Reference(item=value))
    if isinstance(value, bytes | bytearray | memoryview):
        return value_pb2.Value(data=bytes(value))
    if isinstance(value, datetime):
        return value_pb2.Value(time_us=_time_us(value))
    if isinstance(value, Reference):
        return value_pb2.Value(reference=value_pb2.Reference(item=value.item, party=value.party))
    return _container(value, depth)


def _time_us(value: datetime) -> int:
    if value.utcoffset() is None:
        raise InvalidInput(f"the datetime {value} has no time zone; give it one, say datetime.now(UTC)")
    time_us = (value - _EPOCH) // _US
    if not _TIME_MIN <= time_us <= _TIME_MAX:  # its time zone may carry it out of range
        raise InvalidInput(f"the datetime {value} is outside the years 1 to 9999 in UTC")
    return time_us


def _container(value: Value, depth: int) -> value_pb2.Value:
    if isinstance(value, list | tuple | dict) and depth >= VALUE_DEPTH_MAX:
        raise TooLarge(f"a value nested more than {VALUE_DEPTH_MAX} deep")
    if isinstance(value, list | tuple):
        return value_pb2.Value(list=value_pb2.ValueList(values=[to_proto(part, depth + 1) for part in value]))
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise InvalidInput("the keys of a map are text")
        fields = [value_pb2.ValueField(key=_utf8(key), value=to_proto(value[key], depth + 1)) for key in sorted(value)]
        return value_pb2.Value(map=value_pb2.ValueMap(fields=fields))
    if isinstance(value, str):  # a subclass, such as an enum, is stored as plain text
        return to_proto(str.__str__(value))
    if isinstance(value, int | float):
        return to_proto(int.__int__(value) if isinstance(value, int) else float.__float__(value))
    raise InvalidInput(
        f"a {type(value).__name__} is no value; values are None, bool, int, float, str, bytes, datetime, Reference, "
        "and lists and dicts of them"
    )


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"text that is not valid Unicode: {error}") from None
    return text


def read_value(proto: value_pb2.Value, depth: int = 0) -> Value:
    """Return the Python value of a received protobuf value, or raise `InvalidMutation`."""
    kind = proto.WhichOneof("kind")
    if kind == "real":
        return _NAN if math.isnan(proto.real) else proto.real
    if kind in ("text", "boolean", "integer", "data"):
        return getattr(proto, kind)
    if kind == "null":
        return None
    if kind == "time_us":
        if not _TIME_MIN <= proto.time_us <= _TIME_MAX:
            raise InvalidMutation(f"the time {proto.time_us} is outside the years 1 to 9999")
        return _EPOCH + proto.time_us * _US
    if kind == "reference":
        return _reference(proto.reference)
    if kind is None:
        raise InvalidMutation("a value of a kind that this version does not know")
    if depth >= VALUE_DEPTH_MAX:
        raise InvalidMutation(f"a value nested more than {VALUE_DEPTH_MAX} deep")
    if kind == "list":
        return [read_value(part, depth + 1) for part in proto.list.values]
    fields = {field.key: read_value(field.value, depth + 1) for field in proto.map.fields}
    if len(fields) != len(proto.map.fields):
        raise InvalidMutation("a map that has a key twice")
    return fields


def _reference(proto: value_pb2.Reference) -> Reference:
    try:
        return Reference(proto.item, proto.party)
    except InvalidInput as error:
        raise InvalidMutation(str(error)) from None


def value_bytes(value: Value) -> bytes:
    """Return the canonical encoding: equal values of one type have equal bytes (1, True and 1.0 differ)."""
    if type(value) is str and len(value) < 32:  # the common case, by hand: fewer than 128 bytes
        try:
            text = value.encode()
        except UnicodeEncodeError:
            pass  # `to_proto` raises the error
        else:
            return TEXT_FORM % (len(text), text)
    return to_proto(value).SerializeToString(deterministic=True)
