"""Protobuf's wire format by hand, for the places where its library costs more than everything else.

Most mutations write one text at one key: `plain_bytes` writes that form, and no other (`fast_mutation` reads it).
Snapshots are made of thousands of small messages: `field` and `varint` put their bytes together. Tests compare both
with the library.
"""

from __future__ import annotations

from antiphon.core.stamp import Stamp

_PLAIN_MAX = 90  # bytes of key and text, so that every length fits into one byte
_SHORT = tuple(bytes([number]) for number in range(128))


def varint(number: int) -> bytes:
    if number < 128:
        return _SHORT[number]
    if number < 1 << 14:  # written out: stamps have these sizes, and every register has one
        return bytes((number & 127 | 128, number >> 7))
    if number < 1 << 21:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_at(data: bytes, at: int, size: int) -> tuple[int, int]:
    """A number of at most 8 bytes, and where it ends; else an end that fits nothing."""
    byte = data[at] if at < size else 0x80
    if byte < 0x80:
        return byte, at + 1
    if at + 2 < size:  # written out: most have two or three bytes
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
    """A field that holds bytes, text or a message."""
    return b"%b%b%b" % (tag, varint(len(content)), content)


def number_field(tag: bytes, number: int) -> bytes:
    """A field that holds an unsigned integer; nothing is written for 0."""
    return tag + varint(number) if number else b""


def stamp_fields(feed: int, stamp: Stamp) -> bytes:
    """The fields of a `Name`, with which an `ObjectEntry` begins as well."""
    return number_field(b"\x08", feed) + number_field(b"\x10", stamp.lamport) + number_field(b"\x18", stamp.seq)


def plain_bytes(key: str, content: str | int, replaces: Stamp | None) -> bytes:
    """A mutation that writes one text or integer at one key, in place of one message of the writer's feed, or of none.

    Empty if it is too long for this form.
    """
    try:
        name = key.encode()
        if type(content) is str:
            text = content.encode()
            value = b"\x2a%c%b" % (len(text), text) if len(text) < _PLAIN_MAX else b""
        elif -(1 << 55) < content < 1 << 55:  # type: ignore[operator]
            value = b"\x18" + varint((content << 1) ^ (content >> 63))  # type: ignore[operator]
        else:
            value = b""
    except UnicodeEncodeError:
        return b""  # the library says what is wrong with it
    length, size = len(name), len(value)
    if not value or not name or length + size > _PLAIN_MAX:
        return b""
    if replaces is None:
        return b"\x12%c\x0a%c%b\x1a%c%b" % (length + size + 4, length, name, size, value)
    lamport, _, seq = replaces
    named = b"\x10%b\x18%b" % (varint(lamport), varint(seq)) if seq else b"\x10%b" % varint(lamport)
    form = b"\x12%c\x0a%c%b\x1a%c%b\x3a%c%b"
    return form % (length + size + len(named) + 6, length, name, size, value, len(named), named)
