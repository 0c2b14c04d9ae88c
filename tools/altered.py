"""Mutate protobuf messages in ways that still parse: other values, order and number of fields.

Bytes that are flipped at random mostly break a length and go no further than the parser. Here a valid message is
parsed, changed somewhere in its tree, and serialised again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

CHANGES_MAX = 4
_EDGES = (0, 1, 2, 3, 127, 128, (1 << 20) - 1, 1 << 20, (1 << 31) - 1, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63)
_BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


def altered(kind: type[Message], data: bytes, chance: random.Random, others: tuple[bytes, ...] = ()) -> bytes:
    """A valid encoding with some fields changed; `others` are encodings from which parts are taken."""
    message = kind.FromString(data)
    parts = [part for other in (data, chance.choice(others or (data,))) for part in tree(kind.FromString(other))]
    for _ in range(chance.randint(1, CHANGES_MAX)):
        _change(chance.choice([*tree(message)]), chance, parts)
    return message.SerializeToString(deterministic=True)


def scrambled(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some flipped, repeated, inserted or removed."""
    for _ in range(chance.randint(1, CHANGES_MAX)):
        at, size = chance.randrange(len(data) + 1), chance.choice((1, 1, 2, 4, 16))
        how = chance.randrange(4)
        piece = (chance.randbytes(size), data[at : at + size] * 2, b"", bytes([chance.choice((0, 1, 127, 128, 255))]))
        data = data[:at] + piece[how] + data[at + (0 if how == 0 else size) :]
    return data


def tree(message: Message) -> Iterator[Message]:
    """The message and all messages inside it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else (value,):
                yield from tree(part)


def _change(message: Message, chance: random.Random, parts: list[Message]) -> None:
    """Change one field: mostly one that is set."""
    fields: list[Any] = [field for field, _ in message.ListFields()]
    field = chance.choice(fields if fields and chance.random() < 0.8 else [*message.DESCRIPTOR.fields])
    if field.is_repeated:
        _change_list(getattr(message, field.name), field, chance, parts)
    elif chance.random() < 0.1:
        message.ClearField(field.name)
    elif field.message_type is not None:
        part = _part(field, chance, parts)
        getattr(message, field.name).CopyFrom(part)
    else:
        setattr(message, field.name, _scalar(field, getattr(message, field.name), chance, parts))


def _change_list(values: Any, field: FieldDescriptor, chance: random.Random, parts: list[Message]) -> None:
    now = list(values)
    at, other = (chance.randrange(len(now)), chance.randrange(len(now))) if now else (0, 0)
    how = chance.choice(("drop", "swap", "repeat", "change")) if now else "add"
    if how == "drop":
        del now[at]
    elif how == "swap":
        now[at], now[other] = now[other], now[at]
    elif how == "repeat":
        now.insert(other, now[at])
    elif field.message_type is not None:
        now.insert(at, _part(field, chance, parts))
    elif how == "change":
        now[at] = _scalar(field, now[at], chance, parts)
    else:
        now.append(_scalar(field, field.default_value or 0, chance, parts))
    copies = [_copy(value) for value in now]
    del values[:]
    values.extend(copies)


def _copy(value: Any) -> Any:
    if not isinstance(value, Message):
        return value
    copied = type(value)()
    copied.CopyFrom(value)
    return copied


def _part(field: FieldDescriptor, chance: random.Random, parts: list[Message]) -> Message:
    """A message of a field's type, from another encoding."""
    assert field.message_type is not None
    fitting = [part for part in parts if part.DESCRIPTOR is field.message_type]
    return chance.choice(fitting) if fitting else GetMessageClass(field.message_type)()


def _scalar(field: FieldDescriptor, now: Any, chance: random.Random, parts: list[Message]) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return not now
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return chance.randrange(6)
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return chance.choice((0.0, -0.0, float("nan"), float("-inf"), 0.1))
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return _string(field, now, chance, parts)
    low, high = _BOUNDS[kind]
    number = chance.choice((now + 1, now - 1, now * 2, -now, *_EDGES, chance.randrange(24)))
    return min(max(number, low), high)


def _string(field: FieldDescriptor, now: Any, chance: random.Random, parts: list[Message]) -> Any:
    """Return other text or bytes; for a key or an id, one of the same size from another encoding."""
    if field.type == FieldDescriptor.TYPE_STRING:
        text = str(now or "")
        return chance.choice((text + "é", text[:-1], "a", "\ufffc", "", text * 2))
    data = bytes(now or b"")
    found = [value for part in parts for _, values in part.ListFields() for value in _all_bytes(values)]
    cut = chance.randrange(len(data) + 1)
    flipped = bytes([byte ^ (at == cut) for at, byte in enumerate(data)])
    return chance.choice((*found, data[:cut], data + b"\x00", flipped, b""))


def _all_bytes(values: Any) -> list[bytes]:
    if isinstance(values, bytes):
        return [values]
    if isinstance(values, str | Message | int | float):
        return []
    return [value for value in values if isinstance(value, bytes)]
