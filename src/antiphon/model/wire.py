"""Protobuf's wire format, written and read by hand where the library would cost more than everything else.

Most mutations write one text at one key: `plain_bytes` writes exactly that form, and `fast_mutation` reads it.
Snapshots consist of thousands of small messages, which `field` and `varint` encode. `tags` takes the numbers of fields
from the schemas. Tests compare the bytes with the library's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from google.protobuf.descriptor import FieldDescriptor

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import array_pb2, item_pb2, message_pb2, messenger_pb2, object_pb2, text_pb2, value_pb2

_SCHEMAS = (array_pb2, item_pb2, message_pb2, messenger_pb2, object_pb2, text_pb2, value_pb2)
_SIZED = (FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE)
Form = TypeVar("Form", bytes, int)
_PLAIN_MAX = 90  # bytes of key and text, so that every length fits into one byte
_SHORT = tuple(bytes([number]) for number in range(128))


def varint(number: int) -> bytes:
    """Encode an unsigned integer."""
    if number < 128:
        return _SHORT[number]
    if number < 1 << 14:  # unrolled: the numbers of stamps have these sizes, and every register has a stamp
        return bytes((number & 127 | 128, number >> 7))
    if number < 1 << 21:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


class Tags(Generic[Form]):
    """Tags of the fields of one message type, as attributes that have the names of the fields."""

    def __init__(self, tags: dict[str, Form]) -> None:
        for name, tag in tags.items():
            setattr(self, name, tag)  # the interpreter finds attributes that were set one by one fastest

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Form: ...


def tags(*messages: str) -> list[Tags[bytes]]:
    """Return the encoded tags of the fields of some message types, as the schemas number them.

    Modules call this when they are imported. So a field's number is written in its schema alone. Fields that hold
    floating-point numbers are not supported: no code handles them by hand.

    >>> (name,) = tags("Name")
    >>> name.feed, name.lamport, name.seq
    (b'\\x08', b'\\x10', b'\\x18')
    """
    types = {name: found for schema in _SCHEMAS for name, found in schema.DESCRIPTOR.message_types_by_name.items()}
    known = [types[message].fields for message in messages]
    return [Tags({one.name: varint(one.number << 3 | _is_sized(one) << 1) for one in fields}) for fields in known]


def _is_sized(one: FieldDescriptor) -> bool:
    """True if the length of a field's content is written. Several integers are packed into one content."""
    return one.type in _SIZED or bool(one.is_repeated)


def tag_numbers(*messages: str) -> list[Tags[int]]:
    """Return the same tags as numbers, for code that compares bytes. A tag of two bytes is in little-endian order."""
    return [Tags({name: int.from_bytes(tag, "little") for name, tag in vars(one).items()}) for one in tags(*messages)]


NAME, VALUE, _MUTATION, _OP = tags("Name", "Value", "ObjectMutation", "ObjectOp")
OWN_NAME_FORM = NAME.lamport + b"%b" + NAME.seq + b"%b"  # of a message of the writer's own feed
NAME_FORM = NAME.feed + b"%c" + OWN_NAME_FORM
_NAME_FIELD_FORM = b"%b%c" + NAME_FORM
TEXT_FORM = VALUE.text + b"%c%b"  # of less than 128 bytes
_WRITE_FORM = _MUTATION.ops + b"%c" + _OP.path + b"%c%b" + _OP.write + b"%c%b"
_REPLACE_FORM = _WRITE_FORM + _OP.replaces + b"%c%b"


def number_at(data: bytes, at: int, size: int) -> tuple[int, int]:
    """Read a varint of at most 8 bytes; return it and its end. For any other, the end lies beyond `size`."""
    byte = data[at] if at < size else 0x80
    if byte < 0x80:
        return byte, at + 1
    if at + 2 < size:  # unrolled: most have two or three bytes
        second = data[at + 1]
        if second < 0x80:
            return byte & 0x7F | second << 7, at + 2
        third = data[at + 2]
        if third < 0x80:
            return byte & 0x7F | (second & 0x7F) << 7 | third << 14, at + 3
    number = shift = 0
    for where in range(at, min(size, at + 8)):
        byte = data[where]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, where + 1
        shift += 7
    return 0, size + 1


def field(tag: bytes, content: bytes) -> bytes:
    """Encode a field that holds bytes, text or a message."""
    return b"%b%b%b" % (tag, varint(len(content)), content)


def number_field(tag: bytes, number: int) -> bytes:
    """Encode a field that holds an unsigned integer. A 0 is not written."""
    return tag + varint(number) if number else b""


def stamp_fields(feed: int, stamp: Stamp) -> bytes:
    """Encode the fields of a `Name`. An `ObjectEntry` begins with the same fields."""
    numbers = number_field(NAME.lamport, stamp.lamport) + number_field(NAME.seq, stamp.seq)
    return number_field(NAME.feed, feed) + numbers


def name_field(tag: bytes, feed: int, stamp: Stamp) -> bytes:
    """Encode a field that holds a `Name`."""
    lamport, _, seq = stamp
    if lamport and seq and 0 < feed < 128:  # as nearly all: a 0 is not written
        first, second = varint(lamport), varint(seq)
        return _NAME_FIELD_FORM % (tag, 4 + len(first) + len(second), feed, first, second)
    return field(tag, stamp_fields(feed, stamp))


def plain_bytes(key: str, content: str | int, replaces: Stamp | None) -> bytes:
    """Encode a mutation that writes one text or integer at one key.

    It replaces one message of the writer's own feed, or none. Returns empty bytes if it is too long for this form.
    """
    try:
        name = key.encode()
        if type(content) is str:
            text = content.encode()
            value = TEXT_FORM % (len(text), text) if len(text) < _PLAIN_MAX else b""
        elif -(1 << 55) < content < 1 << 55:  # type: ignore[operator]
            value = VALUE.integer + varint((content << 1) ^ (content >> 63))  # type: ignore[operator]
        else:
            value = b""
    except UnicodeEncodeError:
        return b""  # the library raises the error that says what is wrong
    length, size = len(name), len(value)
    if not value or not name or length + size > _PLAIN_MAX:
        return b""
    if replaces is None:
        return _WRITE_FORM % (length + size + 4, length, name, size, value)
    lamport, _, seq = replaces
    named = OWN_NAME_FORM % (varint(lamport), varint(seq)) if seq else NAME.lamport + varint(lamport)
    return _REPLACE_FORM % (length + size + len(named) + 6, length, name, size, value, len(named), named)
