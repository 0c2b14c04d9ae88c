"""`Holdings`: the blocks that a peer holds of each feed of a party, with versions, to announce only changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from antiphon.core.errors import CorruptBlock, UnknownFeed
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.mesh.replication.message import Holding


class Holdings:
    """A mirror of the feed store's records of one party. `look` is cheap if nothing was written.

    `version` counts the changes; feeds are kept in the order of their last change.
    """

    def __init__(self, store: FeedStore, party: bytes, *, control: bool = False) -> None:
        self._store = store
        self._party = bytes(party)
        self._control = control  # only control feeds count
        self._kinds: dict[bytes, bool] = {}
        self._records: dict[bytes, FeedRecord] = {}
        self._changed: dict[bytes, tuple[int, Holding]] = {}
        self._changed_feeds = store.changed_feeds(party)
        self._due: dict[bytes, FeedRecord] = {}  # records that were written, and not noted yet
        self._transaction = -1
        self.version = 1  # not 0, so that a peer announces even that it holds nothing
        self.look()

    def look(self) -> bool:
        """Read the records that were written since the last call. Return True if a holding changed."""
        now = self._store.transaction
        if now == self._transaction:
            return False
        before = self.version
        self._due.update((record.feed, record) for record in self._changed_feeds.take())
        for feed in list(self._due):
            self._note(self._due[feed])
            del self._due[feed]  # not before: a read that fails is tried again at the next look
        self._transaction = now
        return self.version != before

    def apply(self, change: Callable[[], Iterable[bytes]]) -> None:
        """Call `change`, which returns the feeds that it wrote. If nobody else wrote, only their records are read."""
        self.look()
        before = self._transaction
        try:
            for feed in change():
                with suppress(UnknownFeed):  # it was refused
                    record = self._store.record(feed)
                    if record.party == self._party:
                        self._note(record)
            after = self._store.transaction
            if after == before + 1:
                self._transaction = after
        finally:
            self.look()

    def _note(self, record: FeedRecord) -> None:
        feed = record.feed
        if not record.length or self._records.get(feed) == record:
            return
        control = self._kinds.get(feed)
        if control is None:
            try:
                control = self._kinds[feed] = self._store.first_kind(feed) is Kind.CREDENTIAL
            except CorruptBlock:  # local readers report it; what follows it may be asked for, and given
                control = False
        if self._control and not control:
            return
        self._records[feed] = record
        fork = record.end if record.why is End.FORK else None
        held = Holding(feed, record.start, record.length, record.hash, control, fork, record.branches)
        known = self._changed.get(feed)
        if known is None or known[1] != held:  # otherwise nothing changed that other peers need to know
            self.version += 1
            self._changed.pop(feed, None)
            self._changed[feed] = self.version, held

    def get(self, feed: bytes) -> Holding | None:
        known = self._changed.get(feed)
        return known[1] if known is not None else None

    def length(self, feed: bytes) -> int:
        record = self._records.get(feed)
        return record.length if record is not None else 0

    def record(self, feed: bytes) -> FeedRecord | None:
        return self._records.get(feed)

    def is_own(self, feed: bytes) -> bool:
        """True if a feed is written here, so that other peers get its blocks from here first."""
        record = self._records.get(feed)
        return record is not None and record.writable

    def ended(self, feed: bytes) -> bool:
        """True if no more blocks of a feed are taken.

        A feed that ended by a fault is compared once with the blocks of other peers, for its writer may have forked.
        """
        record = self._records.get(feed)
        if record is None or record.end > record.length:
            return False
        return record.why is not End.FAULT or self._store.fork(feed) is not None

    def since(self, version: int) -> Iterator[tuple[int, Holding]]:
        """Yield the holdings that changed after a version, latest first, each with the version of its change."""
        for known in reversed(self._changed.values()):
            if known[0] <= version:
                return
            yield known

    def __iter__(self) -> Iterator[Holding]:
        return (held for _, held in self._changed.values())

    def __len__(self) -> int:
        return len(self._changed)
