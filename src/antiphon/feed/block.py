"""One block of a feed, for those who want them one by one. Bulk work stays in the columns of a `Span`."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from antiphon.core.stamp import Stamp
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.feed.limits import SALT_SIZE


class BodyState(enum.IntEnum):
    """Whether a block's body is here. The chain verifies either way: the header holds the body's hash."""

    PRESENT = 0
    LEFT_OUT = 1  # not replicated to this peer; may be filled in later
    ERASED = 2  # never to come back


#: By number, because calling an enum class costs ten times as much.
STATES = {int(state): state for state in BodyState}


@dataclass(frozen=True, slots=True)
class Block:
    """An entry of a feed: what the header says, the block's own hash, and the body if it is here."""

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
        return Stamp(self.lamport, self.feed, self.seq)

    @property
    def entry(self) -> Entry:
        """How another feed's header refers to this block."""
        return Entry(self.feed, self.seq, self.lamport, self.hash)

    @property
    def message(self) -> bytes | None:
        """The serialised protobuf message: the body without its salt."""
        return None if self.body is None else self.body[SALT_SIZE:]
