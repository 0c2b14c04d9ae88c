"""`FeedRecord`: the state of one feed in the store: its party, the held blocks, its head, and where it ends."""

from __future__ import annotations

import enum
import struct
import zlib
from dataclasses import dataclass, replace

from antiphon.core.codec import u32
from antiphon.core.errors import CorruptBlock
from antiphon.core.keys import SIGNATURE_SIZE
from antiphon.feed.chain import Head
from antiphon.feed.header import NO_END, NO_HASH

_VERSION = 1
_WRITABLE = 1
_RETIRED = 2
_IGNORED = 4
_LAYOUT = struct.Struct("<BBB32sQ32sQQ32sQ64sQI")
_LENGTH_AT = struct.calcsize("<BBB32sQ32sQ")


class End(enum.IntEnum):
    """Reason why a feed ends before its last stored block."""

    NONE = 0
    FAULT = 1  # its writer signed a header that breaks the rules
    FORK = 2  # its writer signed two histories


_ENDS = frozenset(map(int, End))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Blocks [start, length) are held. Blocks from `end` on are kept as evidence, not served as history."""

    start: int
    length: int
    end: int | None


@dataclass(frozen=True)
class FeedRecord:
    """The state of one feed in the store. It changes only together with the feed's blocks, in one transaction."""

    feed: bytes
    party: bytes
    writable: bool = False  # this store writes it, with its private key
    retired: bool = False  # restored from a backup or closed: this store never writes it again
    ignored: bool = False  # no body of it is read in this store, and only small geneses are kept
    start: int = 0
    start_hash: bytes = NO_HASH  # of block start - 1
    start_lamport: int = 0
    length: int = 0
    hash: bytes = NO_HASH
    lamport: int = 0
    signature: bytes = bytes(SIGNATURE_SIZE)
    end: int = NO_END
    why: End = End.NONE
    branches: int = 0  # how often a span of another branch was kept, or has grown

    @property
    def valid_length(self) -> int:
        """The length without blocks at or after `end`."""
        return min(self.length, self.end)

    @property
    def head(self) -> Head | None:
        """Signed head of the feed; None if it has no blocks."""
        return Head(self.length, self.hash, self.signature) if self.length else None

    @property
    def bounds(self) -> Bounds:
        """Range of the blocks that the store holds, and the feed's end."""
        return Bounds(self.start, self.length, None if self.why is End.NONE else self.end)

    def ended(self, at: int, why: End) -> FeedRecord:
        """Return the record with an end at `at`. The least end wins; an end never moves up."""
        return replace(self, end=at, why=why) if at < self.end else self

    def extended(self, length: int, last: bytes, lamport: int, signature: bytes) -> FeedRecord:
        """Return the feed's record with more blocks. Every append calls this, and `replace` takes much longer."""
        made = object.__new__(FeedRecord)
        vars(made).update(vars(self), length=length, hash=last, lamport=lamport, signature=signature)
        return made

    def encode(self) -> bytes:
        """Encode the record for the store, with a checksum over the feed's key and the record."""
        data = _LAYOUT.pack(
            _VERSION,
            _WRITABLE * self.writable | _RETIRED * self.retired | _IGNORED * self.ignored,
            self.why,
            self.party,
            self.start,
            self.start_hash,
            self.start_lamport,
            self.length,
            self.hash,
            self.lamport,
            self.signature,
            self.end,
            self.branches,
        )
        return data + u32(zlib.crc32(self.feed + data))

    @staticmethod
    def claimed_party(data: bytes) -> bytes | None:
        """Return the party in a stored record whose bytes have changed, perhaps these; None if it is too short."""
        return data[3:35] if len(data) >= 35 else None

    @staticmethod
    def claimed_start(data: bytes) -> tuple[int, bytes] | None:
        """Return the start and the hash before it in such a record; None if it is too short."""
        return (int.from_bytes(data[35:43], "little"), data[43:75]) if len(data) >= 75 else None

    @staticmethod
    def claimed_length(data: bytes) -> int:
        """Return the length in a stored record, which is not checked; 0 if it is too short."""
        return int.from_bytes(data[_LENGTH_AT : _LENGTH_AT + 8], "little") if len(data) >= _LAYOUT.size else 0

    @classmethod
    def decode(cls, feed: bytes, data: bytes) -> FeedRecord:
        """Decode a stored record; raise `CorruptBlock` if it is damaged or of an unknown version."""
        whole = len(data) == _LAYOUT.size + 4
        if not whole or zlib.crc32(feed + data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise CorruptBlock(
                f"feed {feed.hex()[:8]}: its record on disk has changed; run `antiphon doctor --repair`, then sync",
                feed=feed,
                seq=0,
            )
        version, flags, why, party, start, start_hash, start_lamport, *rest = _LAYOUT.unpack_from(data)
        length, last, lamport, signature, end, branches = rest
        if version != _VERSION or flags & ~(_WRITABLE | _RETIRED | _IGNORED) or why not in _ENDS:
            raise CorruptBlock(
                f"feed {feed.hex()[:8]}: its record has version {version}, flags {flags} and end {why}, which this "
                "version does not know; use the version of Antiphon that wrote it",
                feed=feed,
                seq=0,
            )
        return cls(
            feed=feed,
            party=party,
            writable=bool(flags & _WRITABLE),
            retired=bool(flags & _RETIRED),
            ignored=bool(flags & _IGNORED),
            start=start,
            start_hash=start_hash,
            start_lamport=start_lamport,
            length=length,
            hash=last,
            lamport=lamport,
            signature=signature,
            end=end,
            why=End(why),
            branches=branches,
        )
