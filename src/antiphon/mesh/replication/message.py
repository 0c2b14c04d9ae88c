"""The messages between peers of a party, as values. `codec` encodes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.cid import Cid

NONCE_SIZE = 8


@dataclass(frozen=True, slots=True)
class Holding:
    """The blocks that a peer holds of one feed: [start, length), the last with this hash."""

    feed: bytes
    start: int
    length: int
    hash: bytes
    control: bool = False
    fork: int | None = None  # where the feed is cut, if there is evidence of a fork
    branches: int = 0  # spans that are kept of other branches

    @property
    def may_name(self) -> bool:
        """True if acts on a branch may name feeds: of control, or with another first block, perhaps one of control."""
        return self.control or self.fork == 0


@dataclass(frozen=True, slots=True)
class Announcement:
    """The holdings of the sender that changed after announcement `since`. With `since` of 0, all of them.

    `spans` are new blocks of some of these feeds, for an end that gets them from the sender.
    """

    since: int
    upto: int
    holdings: tuple[Holding, ...]
    spans: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Enough:
    """Feeds that the sender gets elsewhere: their blocks need not come with announcements."""

    feeds: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Want:
    """Requests blocks of feeds, each from a seq on, and evidence of forks; the most urgent first.

    The answer comes in parts, of `size_max` bytes in all until there is `More`.
    """

    request: int
    size_max: int
    ranges: tuple[tuple[bytes, int], ...]
    forks: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class More:
    """Allows the answer to a request `size_max` bytes in all, since the request; with 0, no more of it is wanted.

    The answer goes on `without` some feeds.
    """

    request: int
    size_max: int
    without: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranges:
    """A part of the answer to `Want`: one span for a feed, and the ranges that the sender does not have."""

    request: int
    spans: tuple[bytes, ...]
    lacks: tuple[tuple[bytes, int], ...] = ()
    forks: tuple[bytes, ...] = ()
    part: int = 0
    last: bool = True

    @property
    def size(self) -> int:
        """The bytes that count for the `size_max` of the request."""
        return sum(map(len, self.spans)) + sum(map(len, self.forks))


@dataclass(frozen=True, slots=True)
class WantBranch:
    """Requests a block by its hash, of whichever branch of its feed, and the blocks from `first` that lead to it."""

    request: int
    feed: bytes
    seq: int
    hash: bytes
    first: int


@dataclass(frozen=True, slots=True)
class Branch:
    """Answers `WantBranch`: spans that lead to the block, perhaps from a later one than `first`; none if it lacks it.

    They have all headers, and the bodies of credentials and small geneses. Of the last block that the sender has pruned
    there is a `HeadProof` instead.
    """

    request: int
    spans: tuple[bytes, ...]
    proof: bytes = b""


class Tip(NamedTuple):
    """The last block of a branch."""

    seq: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class WantTips:
    """Requests the last blocks of all branches of a feed that the other end holds, those behind the hash `after`."""

    request: int
    feed: bytes
    after: bytes = b""


@dataclass(frozen=True, slots=True)
class Tips:
    """Answers `WantTips`: the last blocks of kept branches, by hash, and at first that of the history.

    If there are `more`, they are requested with the hash of the last one.
    """

    request: int
    tips: tuple[Tip, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class WantBlobs:
    """Requests blobs."""

    request: int
    cids: tuple[Cid, ...]


@dataclass(frozen=True, slots=True)
class Blobs:
    """A part of the answer to `WantBlobs`: blobs, and the CIDs that the sender does not have."""

    request: int
    blobs: tuple[tuple[Cid, bytes], ...]
    lacks: tuple[Cid, ...] = ()
    part: int = 0
    last: bool = True


@dataclass(frozen=True, slots=True)
class Show:
    """Shows credentials (`antiphon.halo.member.device_proof`), so that the other end can admit the sender's device."""

    credentials: tuple[bytes, ...]


Request = Want | WantBranch | WantTips | WantBlobs
Answer = Ranges | Branch | Tips | Blobs
Body = Announcement | Request | Answer | Show | More | Enough


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session: its party, the names of both ends, and the acknowledged announcements."""

    party: bytes  # empty once both ends have named themselves
    sender: bytes
    receiver: bytes  # empty while it is unknown
    heard: int  # announcements of the receiver that arrived without a gap
    body: Body | None = None
    digest: bytes = b""  # of all that the sender holds, in its first messages
