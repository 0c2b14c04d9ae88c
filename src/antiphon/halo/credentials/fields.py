"""Fields that several claims have, to protobuf and back: every one from outside is checked, every list bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.core.keys import KEY_SIZE
from antiphon.core.v1 import credential_pb2 as pb
from antiphon.halo.credentials.claims import Cuts, Position, Role, Roles

LIST_MAX = 8192
TEXT_MAX = 1024
_TIME_MAX = 1 << 62
_Item = TypeVar("_Item")


def role_numbers(roles: Roles) -> list[pb.Role]:
    return [cast(pb.Role, int(role)) for role in sorted(roles)]


def positions_out(positions: Sequence[Position]) -> list[pb.Position]:
    return [pb.Position(feed=feed, seq=seq) for feed, seq in sorted(positions)]


def cuts_out(cuts: Cuts) -> list[pb.Cut]:
    return [pb.Cut(feed=feed, length=length) for feed, length in sorted(cuts.items())]


def key(raw: bytes) -> bytes:
    if len(raw) != KEY_SIZE:
        raise BadEncoding(f"credential: a key of {len(raw)} bytes")
    return raw


def cid(raw: bytes) -> bytes:
    return bytes(Cid(raw))


def cid_or_none(raw: bytes) -> bytes:
    return cid(raw) if raw else b""


def number(value: int) -> int:
    if value >= 1 << 63:
        raise BadEncoding(f"credential: the number {value} is out of range")
    return value


def time_ms(value: int) -> int:
    if not 0 <= value < _TIME_MAX:
        raise BadEncoding(f"credential: the time {value} ms is out of range")
    return value


def text(value: str) -> str:
    if len(value.encode()) > TEXT_MAX:
        raise TooLarge(f"credential: a text of {len(value)} characters, at most {TEXT_MAX} bytes are allowed")
    return value


def bounded(items: Sequence[_Item]) -> Sequence[_Item]:
    if len(items) > LIST_MAX:
        raise TooLarge(f"credential: a list of {len(items)}, at most {LIST_MAX} are allowed")
    return items


def roles(numbers: Sequence[int], least: int = 0) -> Roles:
    if list(numbers) != sorted(set(numbers)) or len(numbers) < least or not set(numbers) <= set(Role):
        raise BadEncoding("credential: roles are unknown, missing, or do not ascend")
    return frozenset(Role(value) for value in numbers)


def positions(items: Sequence[pb.Position]) -> tuple[Position, ...]:
    found = tuple(Position(key(item.feed), number(item.seq)) for item in bounded(items))
    if list(found) != sorted(set(found)):
        raise BadEncoding("credential: positions do not ascend")
    return found


def control(items: Sequence[pb.Cut]) -> Cuts:
    """Read cuts of control feeds, of which none is empty: they are a timeframe."""
    found = cuts(items)
    if not all(found.values()):
        raise BadEncoding("credential: a timeframe names no control feed without blocks")
    return found


def cuts(items: Sequence[pb.Cut]) -> Cuts:
    found = {key(item.feed): number(item.length) for item in bounded(items)}
    if len(found) != len(items) or list(found) != sorted(found):
        raise BadEncoding("credential: cuts do not ascend by feed")
    return found
