"""Protobuf's wire format by hand, for the two places where its library costs more than everything else.

Most mutations write one text at one key: `plain_bytes` writes that form, and no other (`objectquick` reads it).
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


def field(tag: bytes, content: bytes) -> bytes:
    """A field that holds bytes, text or a message."""
    return b"%b%b%b" % (tag, varint(len(content)), content)


def number_field(tag: bytes, number: int) -> bytes:
    """A field that holds an unsigned integer; nothing is written for 0."""
    return tag + varint(number) if number else b""


def stamp_fields(feed: int, stamp: Stamp) -> bytes:
    """The fields of a `Name`, with which an `ObjectEntry` begins as well."""
    return number_field(b"\x08", feed) + number_field(b"\x10", stamp.lamport) + number_field(b"\x18", stamp.seq)


def plain_bytes(key: str, text: str, replaces: Stamp | None) -> bytes:
    """A mutation that writes one text at one key, in place of one message of the writer's own feed or of nothing.

    Empty if it is too long for this form.
    """
    try:
        name, content = key.encode(), text.encode()
    except UnicodeEncodeError:
        return b""  # the library says what is wrong with it
    size = len(content)
    if not name or len(name) + size > _PLAIN_MAX:
        return b""
    tail = b""
    if replaces is not None:
        named = b"\x10" + varint(replaces.lamport) + (b"\x18" + varint(replaces.seq) if replaces.seq else b"")
        tail = b"\x3a%c%b" % (len(named), named)
    inner = b"\x0a%c%b\x1a%c\x2a%c%b%b" % (len(name), name, size + 2, size, content, tail)
    return b"\x12%c%b" % (len(inner), inner)
