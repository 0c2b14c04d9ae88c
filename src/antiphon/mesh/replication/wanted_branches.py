"""`WantedBranches`: the blocks that waiting blocks refer to, and that must be requested by their hashes (rule 23)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from antiphon.core.codec import u64
from antiphon.core.errors import CorruptBlock, MissingBlocks
from antiphon.feed.feed_record import End
from antiphon.feed.header import Entry
from antiphon.feed.store.feed_store import FeedStore
from antiphon.mesh.replication.holdings import Holdings
from antiphon.mesh.replication.limits import BRANCH_BACK_MAX, BRANCH_WAIT_MS, NEVER


class WantedBlock(NamedTuple):
    """A block that is missing here, and from which block on its branch is needed."""

    feed: bytes
    seq: int
    hash: bytes
    first: int
    apart: bool  # it cannot come as a part of its feed's history

    @property
    def key(self) -> bytes:
        """The block with its place. A hash alone is no name: a liar's entry may put a true hash at another place."""
        return self.feed + u64(self.seq) + self.hash


class WantedBranches:
    """The missing blocks of one party. `find` names the blocks that are waited for; `mark` tells when to ask it again.

    A block that may still come as a part of its feed is not requested at once: it is probably under way.
    """

    def __init__(
        self,
        store: FeedStore,
        holdings: Holdings,
        knows: Callable[[bytes], bool],
        find: Callable[[], Iterable[Entry]],
        mark: Callable[[], object] = tuple,
    ) -> None:
        self._store = store
        self._holdings = holdings
        self._knows = knows
        self._find = find
        self._mark = mark
        self._marked: object = None
        self._wanted: dict[bytes, WantedBlock] = {}
        self._since: dict[bytes, int] = {}
        self._unnamed_ms: int | None = None  # since when blocks wait for feeds that no act names

    def due(self, now_ms: int) -> tuple[list[WantedBlock], int]:
        """Return the blocks to request now, and when to call this again."""
        mark = (self._store.transaction, self._mark())
        if mark != self._marked:
            self._marked = mark
            entries = list(self._find())
            named = [entry for entry in entries if self._knows(entry.feed)]
            found = [self._look_for(entry) for entry in named]
            self._wanted = {block.key: block for block in found if block is not None}
            self._since = {key: self._since.get(key, now_ms) for key in self._wanted}
            if len(named) == len(entries):
                self._unnamed_ms = None
            elif self._unnamed_ms is None:
                self._unnamed_ms = now_ms
        due: list[WantedBlock] = []
        wake_ms = NEVER
        for key, block in self._wanted.items():
            at_ms = 0 if block.apart else self._since[key] + BRANCH_WAIT_MS
            if at_ms <= now_ms:
                due.append(block)
            else:
                wake_ms = min(wake_ms, at_ms)
        return due, wake_ms

    def names_due_ms(self) -> int:
        """Return from when on to look for acts that name the feeds of missing blocks; NEVER if all are named.

        The act may be under way, with its control feed.
        """
        return NEVER if self._unnamed_ms is None else self._unnamed_ms + BRANCH_WAIT_MS

    def get(self, key: bytes) -> WantedBlock | None:
        """Return the wanted block of a key; None if it is wanted no more."""
        return self._wanted.get(key)

    def _look_for(self, entry: Entry) -> WantedBlock | None:
        """Return the block that an entry names, as it must be requested; None if it is here as history."""
        feed, seq, _, hash_ = entry
        record = self._holdings.record(feed)
        if record is not None and record.start <= seq < record.length and self._held_hash(feed, seq) in (hash_, None):
            return None  # it is here, and waits itself; or it is damaged, which local readers report
        return self.missing_block(feed, seq, hash_)

    def missing_block(self, feed: bytes, seq: int, hash_: bytes) -> WantedBlock:
        """Return a block that is not here, as it must be requested."""
        record = self._holdings.record(feed)
        first = max(0, seq + 1 - BRANCH_BACK_MAX)
        if record is None:
            return WantedBlock(feed, seq, hash_, first, False)
        if record.why is End.FORK and seq >= record.end:
            first = max(first, record.end)
        return WantedBlock(feed, seq, hash_, first, seq < record.length or self._holdings.ended(feed))

    def _held_hash(self, feed: bytes, seq: int) -> bytes | None:
        try:
            return next(self._store.held(feed, seq, seq + 1)).hash_at(seq)
        except (MissingBlocks, CorruptBlock):
            return None
