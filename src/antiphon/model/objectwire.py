"""Protobuf's wire format by hand, for the two places where its library costs more than everything else.

Most mutations write one text at one key. Asking the library for their seven fields takes 3 µs; `plain_write` reads that
form, and no other, in less than half of it, and leaves all else to the library. Snapshots are made of thousands of
small messages: `field` and `varint` put their bytes together. Tests compare both with the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from antiphon.core.stamp import Stamp

_PLAIN_MAX = 90  # bytes of key and text, so that every length fits into one byte
_SHORT = tuple(bytes([number]) for number in range(128))


def varint(number: int) -> bytes:
    if number < 128:
        return _SHORT[number]
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


class PlainWrite(NamedTuple):
    """One text at one key, which replaces one earlier message of the writer's own feed, or nothing."""

    key: str
    text: str
    lamport: int
    seq: int  # -1 if it replaces nothing


def plain_write(data: bytes) -> PlainWrite | None:
    """The mutation, if it is of that form and short."""
    size = len(data)
    if not 8 < size < 130 or data[0] != 0x12 or data[1] != size - 2 or data[2] != 0x0A:
        return None
    at = 4 + data[3]
    if at + 4 > size or data[at] != 0x1A or data[at + 2] != 0x2A or data[at + 3] != data[at + 1] - 2:
        return None
    end = at + 2 + data[at + 1]
    if end > size:
        return None
    try:
        key, text = data[4:at].decode(), data[at + 4 : end].decode()
    except UnicodeDecodeError:
        return None
    if end == size:
        return PlainWrite(key, text, 0, -1)
    if end + 3 > size or data[end] != 0x3A or data[end + 1] != size - end - 2 or data[end + 2] != 0x10:
        return None
    lamport, at = _number(data, end + 3, size)
    if at == size:
        return PlainWrite(key, text, lamport, 0)
    if at + 1 >= size or data[at] != 0x18:
        return None
    seq, at = _number(data, at + 1, size)
    return PlainWrite(key, text, lamport, seq) if at == size else None


def plain_bytes(key: str, text: str, replaces: Stamp | None) -> bytes:
    """The same mutation written, as the library would write it; empty if it is too long for this form."""
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


def _number(data: Sequence[int], at: int, size: int) -> tuple[int, int]:
    """A number of at most 8 bytes and where it ends; where it does not, an end that fits nothing."""
    number = shift = 0
    for where in range(at, min(size, at + 8)):
        byte = data[where]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, where + 1
        shift += 7
    return 0, size + 1
