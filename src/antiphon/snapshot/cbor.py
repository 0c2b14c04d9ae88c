"""The part of DAG-CBOR that snapshots are written in: integers from 0, bytes, text, links, lists, maps.

libipld is not used, because it writes bytes that look like a CID as a link and returns links as bytes; one in 2,449
feed keys looks so. Here bytes are bytes, a link is a `Cid`, and each value has one encoding.

>>> data = array(2) + raw(bytes(Cid.of(b"hello"))) + link(Cid.of(b"hello"))
>>> reader = CborReader(data, "example")
>>> reader.array(), type(reader.raw()).__name__, type(reader.link()).__name__, reader.done()
(2, 'bytes', 'Cid', None)
"""

from __future__ import annotations

from antiphon.core.cid import BLOB_SIZE_MAX, Cid
from antiphon.core.errors import BadEncoding, TooLarge

UINT, RAW_BYTES, TEXT, ARRAY, MAP = 0, 2, 3, 4, 5
#: Tag 42, then 37 bytes: a zero and the CID.
LINK_HEAD = bytes.fromhex("d82a582500")
LINK_SIZE = len(LINK_HEAD) + 36
_NULL = 0xF6


def head(major: int, number: int) -> bytes:
    """Encode the head of an item: its type, and its value, length or count in the shortest form."""
    top = major << 5
    if number < 24:
        return bytes((top | number,))
    if number < 1 << 8:
        return bytes((top | 24, number))
    if number < 1 << 16:
        return bytes((top | 25,)) + number.to_bytes(2, "big")
    if number < 1 << 32:
        return bytes((top | 26,)) + number.to_bytes(4, "big")
    return bytes((top | 27,)) + number.to_bytes(8, "big")


def uint(value: int) -> bytes:
    return head(UINT, value)


def raw(value: bytes) -> bytes:
    return head(RAW_BYTES, len(value)) + value


def text(value: str) -> bytes:
    encoded = value.encode()
    return head(TEXT, len(encoded)) + encoded


def array(count: int) -> bytes:
    return head(ARRAY, count)


def link(cid: Cid) -> bytes:
    return LINK_HEAD + cid


def optional_link(cid: Cid | None) -> bytes:
    return bytes((_NULL,)) if cid is None else link(cid)


def mapping(fields: dict[str, bytes]) -> bytes:
    """Encode a map from names to encoded items, in DAG-CBOR's order: short names first."""
    return head(MAP, len(fields)) + b"".join(text(name) + fields[name] for name in field_order(fields))


def field_order(names: dict[str, bytes] | tuple[str, ...]) -> list[str]:
    return sorted(names, key=lambda name: (len(name.encode()), name.encode()))


class CborReader:
    """A bounded cursor over DAG-CBOR bytes; `what` names the structure in errors."""

    __slots__ = ("_at", "_data", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        if len(data) > BLOB_SIZE_MAX:
            raise TooLarge(f"{what}: {len(data)} bytes, at most {BLOB_SIZE_MAX} are allowed")
        self._data = data
        self._at = 0
        self._what = what

    @property
    def at(self) -> int:
        """The current offset."""
        return self._at

    def uint(self) -> int:
        return self._head(UINT, "an integer")

    def raw(self) -> bytes:
        return self._take(self._head(RAW_BYTES, "bytes"))

    def text(self) -> str:
        try:
            return self._take(self._head(TEXT, "text")).decode()
        except UnicodeDecodeError:
            raise self._refuse("text that is no UTF-8") from None

    def array(self) -> int:
        return self._head(ARRAY, "a list")

    def link(self) -> Cid:
        if self._data[self._at : self._at + len(LINK_HEAD)] != LINK_HEAD:
            raise self._refuse("a link is wanted")
        self._at += len(LINK_HEAD)
        return Cid(self._take(36))

    def optional_link(self) -> Cid | None:
        if self._data[self._at : self._at + 1] == bytes((_NULL,)):
            self._at += 1
            return None
        return self.link()

    def fields(self, names: tuple[str, ...]) -> None:
        """Read the head of a map with these fields; `field` then reads their names, in DAG-CBOR's order."""
        if self._head(MAP, "a map") != len(names):
            raise self._refuse(f"{len(names)} fields are wanted")

    def field(self, name: str) -> CborReader:
        if self.text() != name:
            raise self._refuse(f"the field {name!r} is wanted")
        return self

    def done(self) -> None:
        if self._at != len(self._data):
            raise self._refuse(f"{len(self._data) - self._at} bytes too many")

    def _head(self, major: int, wanted: str) -> int:
        data, at = self._data, self._at
        if at >= len(data) or data[at] >> 5 != major:
            raise self._refuse(f"{wanted} is wanted" if major == UINT else f"{wanted} are wanted")
        number = data[at] & 31
        if number < 24:
            self._at = at + 1
            return number
        if number > 27:
            raise self._refuse("a length that DAG-CBOR does not have")
        size = 1 << (number - 24)
        self._at = at + 1
        number = int.from_bytes(self._take(size), "big")
        if number < (24 if size == 1 else 1 << (4 * size)):
            raise self._refuse("an integer that is not in its shortest form")
        return number

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise self._refuse(f"{count} bytes are wanted, {len(self._data) - self._at} are left")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def _refuse(self, problem: str) -> BadEncoding:
        return BadEncoding(f"{self._what}: {problem} at offset {self._at}")
