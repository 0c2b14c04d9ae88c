"""The frames of a link, as values and as bytes. The first byte is the kind; what follows has a fixed layout.

A frame of an unknown kind is a value too: a link passes it over, so that a later version may send one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.mesh.link.limits import BOX_SIZE_MAX, PIECE_SIZE_MAX, TAG_GROUP, TAGS_IN_FRAME_MAX

TAG_SIZE: Final = 16
DIGEST_SIZE: Final = 32
TOKEN_SIZE: Final = 8
_BOX_SIZE_MIN: Final = 16  # the authentication tag of a box
_TAGS, _SHOW, _SHOWN, _DIGEST, _DATA, _PING, _PONG = range(1, 8)
_FIRST, _LAST = 1, 2
_DATA_HEAD: Final = 2 + TAG_SIZE


@dataclass(frozen=True, slots=True)
class Tags:
    """Tags of parties in which the sender speaks, and random ones: a multiple of 16."""

    tags: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Show:
    """A session message, encrypted for devices that hold the party: its tag at the other end has not come."""

    tag: bytes
    box: bytes


@dataclass(frozen=True, slots=True)
class Shown:
    """The answer to every `Show`."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of what the sender holds of a party. `stream` is the sender's tag of the party."""

    stream: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Data:
    """A piece of a session message."""

    stream: bytes
    first: bool
    last: bool
    piece: bytes


@dataclass(frozen=True, slots=True)
class Ping:
    """A request for a `Pong` with the same token."""

    token: bytes


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a `Ping`."""

    token: bytes


@dataclass(frozen=True, slots=True)
class UnknownFrame:
    """A frame of a kind that this version does not know."""

    data: bytes


Frame = Tags | Show | Shown | Digest | Data | Ping | Pong | UnknownFrame


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame."""
    match frame:
        case Data(stream, first, last, piece):
            return bytes((_DATA, first * _FIRST | last * _LAST)) + stream + piece
        case Tags(tags):
            return bytes((_TAGS,)) + b"".join(tags)
        case Show(tag, box):
            return bytes((_SHOW,)) + tag + box
        case Shown():
            return bytes((_SHOWN,))
        case Digest(stream, digest):
            return bytes((_DIGEST,)) + stream + digest
        case Ping(token):
            return bytes((_PING,)) + token
        case Pong(token):
            return bytes((_PONG,)) + token
        case UnknownFrame(data):
            return data


def decode(data: bytes) -> Frame:
    """Read a frame. Each has one encoding only."""
    if not data:
        raise BadEncoding("a frame of a link has a kind, its first byte: this one is empty; drop the connection")
    kind, size = data[0], len(data) - 1
    if kind == _DATA:
        return _decode_data(data)
    if kind == _TAGS:
        return _decode_tags(data)
    if kind == _SHOW:
        if size - TAG_SIZE > BOX_SIZE_MAX:
            raise TooLarge(f"a shown message has {size - TAG_SIZE} bytes, {BOX_SIZE_MAX} are allowed")
        _check(size >= TAG_SIZE + _BOX_SIZE_MIN, "a shown message", size)
        return Show(data[1 : 1 + TAG_SIZE], data[1 + TAG_SIZE :])
    if kind == _SHOWN:
        _check(not size, "the answer to a shown message", size)
        return Shown()
    if kind == _DIGEST:
        _check(size == TAG_SIZE + DIGEST_SIZE, "a digest", size)
        return Digest(data[1 : 1 + TAG_SIZE], data[1 + TAG_SIZE :])
    if kind in (_PING, _PONG):
        _check(size == TOKEN_SIZE, "a keep-alive", size)
        return Ping(data[1:]) if kind == _PING else Pong(data[1:])
    return UnknownFrame(data)


def _decode_data(data: bytes) -> Data:
    size = len(data) - _DATA_HEAD
    if size > PIECE_SIZE_MAX:
        raise TooLarge(f"a piece of a message has {size} bytes, {PIECE_SIZE_MAX} are allowed")
    _check(size > 0 and data[1] <= _FIRST | _LAST, "a piece of a message", size)
    return Data(data[2:_DATA_HEAD], bool(data[1] & _FIRST), bool(data[1] & _LAST), data[_DATA_HEAD:])


def _decode_tags(data: bytes) -> Tags:
    count, rest = divmod(len(data) - 1, TAG_SIZE)
    if count > TAGS_IN_FRAME_MAX:
        raise TooLarge(f"a frame has {count} tags, {TAGS_IN_FRAME_MAX} are allowed")
    _check(not rest and count > 0 and count % TAG_GROUP == 0, "a list of tags", len(data) - 1)
    return Tags(tuple(data[at : at + TAG_SIZE] for at in range(1, len(data), TAG_SIZE)))


def _check(right: bool, what: str, size: int) -> None:
    if not right:
        raise BadEncoding(f"{what} of a link is not laid out as it must be, with {size} bytes; drop the connection")
