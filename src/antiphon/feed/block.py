"""`Block`: one block of a feed, for readers that want them one by one. Bulk work uses the columns of a `Span`."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from antiphon.core.stamp import Stamp
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.feed.limits import SALT_SIZE


class BodyState(enum.IntEnum):
    """State of a block's body in this store. The chain verifies in each: the header holds the body's hash."""

    PRESENT = 0
    LEFT_OUT = 1  # not replicated to this peer; `FeedStore.fill` may add it
    ERASED = 2  # never stored again


#: By number: a lookup takes a tenth of the time of calling the enum class.
STATES = {int(state): state for state in BodyState}


@dataclass(frozen=True, slots=True)
class Block:
    """An entry of a feed: the fields of its header, its own hash, and its body if that is present."""

    feed: bytes
    seq: int
    lamport: int
    kind: Kind
    flags: Flag
    created_ms: int
    item: bytes
    advance: tuple[Entry, ...]
    hash: bytes
    body_hash: bytes
    body: bytes | None
    state: BodyState

    @property
    def stamp(self) -> Stamp:
        """Stamp of the block: lamport, feed, seq."""
        return Stamp(self.lamport, bytes(self.feed), self.seq)

    @property
    def entry(self) -> Entry:
        """The entry by which another feed's header refers to this block."""
        return Entry(self.feed, self.seq, self.lamport, self.hash)

    @property
    def message(self) -> bytes | None:
        """The serialised protobuf message: the body without its salt."""
        return None if self.body is None else self.body[SALT_SIZE:]
