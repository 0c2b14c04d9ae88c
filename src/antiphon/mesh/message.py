"""What peers say to each other about a party, as values. How they are bytes is in `codec`."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.cid import Cid

NONCE_SIZE = 8


@dataclass(frozen=True, slots=True)
class Holding:
    """What a peer holds of one feed: blocks [start, length), the last with this hash."""

    feed: bytes
    start: int
    length: int
    hash: bytes
    control: bool = False
    fork: int | None = None  # where the feed is cut, if there is evidence of a fork


@dataclass(frozen=True, slots=True)
class Announcement:
    """What changed in what the sender holds, after so many announcements. With `since` of 0, that is all."""

    since: int
    upto: int
    holdings: tuple[Holding, ...]


@dataclass(frozen=True, slots=True)
class Want:
    """Asks for blocks of feeds, each from a seq on, and for evidence of forks; the most urgent first."""

    request: int
    size_max: int
    ranges: tuple[tuple[bytes, int], ...]
    forks: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranges:
    """Answers `Want`, perhaps in part: a span a feed, and of which feeds no such range can be given."""

    request: int
    spans: tuple[bytes, ...]
    lacks: tuple[tuple[bytes, int], ...] = ()
    forks: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class WantBlobs:
    """Asks for blobs."""

    request: int
    cids: tuple[Cid, ...]


@dataclass(frozen=True, slots=True)
class Blobs:
    """Answers `WantBlobs`, perhaps in part: blobs, and those that are not held."""

    request: int
    blobs: tuple[tuple[Cid, bytes], ...]
    lacks: tuple[Cid, ...] = ()


Body = Announcement | Want | Ranges | WantBlobs | Blobs


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session: whose, from which end to which, and how far the other's announcements were heard."""

    party: bytes
    sender: bytes
    receiver: bytes  # empty while it is not known
    heard: int
    body: Body | None = None
