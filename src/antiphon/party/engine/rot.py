"""`Rot`: data feeds with blocks that have changed on the disk. Each is delivered up to the first of them.

To the rest of the party, the blocks from there on are blocks that have not arrived: messages that have seen them wait,
and all others go on. Nothing is dropped here: `antiphon doctor --repair` drops what is rotten, and peers send it again.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from antiphon.core.errors import CorruptBlock
from antiphon.core.reasons import Reason, because
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import NO_END

_LOG = logging.getLogger(__name__)


class RottenBlock(NamedTuple):
    """The first block of a feed that was found changed, and the feed's record at that time."""

    seq: int
    record: FeedRecord | None
    reason: str


class Rot:
    """The rotten blocks that were found, by feed. It outlives the engine, which is built again without them."""

    def __init__(self) -> None:
        self._found: dict[bytes, RottenBlock] = {}
        self._told: dict[bytes, int] = {}  # the rot that the log has, which may be found again after each new block

    def __bool__(self) -> bool:
        """True if any rot is known."""
        return bool(self._found)

    def note(self, error: CorruptBlock, record: FeedRecord | None) -> bool:
        """Take note of a rotten block. False if it is known that the feed ends there, or before."""
        if error.seq >= self.end(error.feed):
            return False
        self._found[error.feed] = RottenBlock(error.seq, record, because(Reason.DAMAGED, str(error)))
        if self._told.get(error.feed) == error.seq:
            return True
        self._told[error.feed] = error.seq
        _LOG.warning("feed %s is delivered only up to its rot: %s", error.feed.hex()[:8], error)
        return True

    def end(self, feed: bytes) -> int:
        """Return the first rotten block of a feed; `NO_END` if none is known."""
        found = self._found.get(feed)
        return NO_END if found is None else found.seq

    def reason(self, feed: bytes) -> str:
        """Return why a feed is not delivered further; "" if no rot is known."""
        found = self._found.get(feed)
        return "" if found is None else found.reason

    def look_again(self, record: FeedRecord) -> None:
        """Forget the rot of a feed if anything was dropped or stored since: the blocks may be sound now."""
        found = self._found.get(record.feed)
        if found is not None and found.record != record:
            del self._found[record.feed]
