"""`PartyRecords`: the records of a party's feeds in memory. After a commit only the feeds that it touched are read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.store.env import Env


class PartyRecords:
    """The feed records of one party, and the order in which they have changed. Thread-safe."""

    def __init__(self, party: bytes, env: Env | None) -> None:
        self._party = party
        self._env = env
        self._lock = threading.Lock()
        self._listed: tuple[FeedRecord, ...] | None = None
        self._order: OrderedDict[bytes, int] = OrderedDict()  # by feed: the number of its last change, ascending
        self._count = 0
        self.at = -1  # the store's transaction that these records are of
        self.by_feed: dict[bytes, FeedRecord] = {}  # in the order of keys

    @classmethod
    def frozen(cls, party: bytes, records: Iterable[FeedRecord]) -> PartyRecords:
        """Make a list of records that never change."""
        found = cls(party, None)
        found._put(list(records))
        return found

    def update(self) -> PartyRecords:
        """Read the records that have changed since the last call."""
        if self._env is not None and self.at != self._env.transaction():
            with self._lock:
                self._read(self._env)
        return self

    def begin(self, records: Iterable[FeedRecord], at: int) -> None:
        """Take the records as of a transaction, if none were read yet: somebody has read those of all parties."""
        with self._lock:
            if self.at < 0:
                self._put(records)
                self.at = at

    def _read(self, env: Env) -> None:
        now = env.transaction()
        touched = env.touched(self.at, now) if self.at >= 0 else None
        with env.read() as tables:
            if touched is None:
                found = list(tables.feeds(self._party))
                gone = self.by_feed.keys() - {record.feed for record in found}
            else:
                some = {feed: tables.find(feed) for feed in touched}
                found = [record for record in some.values() if record is not None and record.party == self._party]
                gone = {feed for feed, record in some.items() if record is None}
        for feed in gone & self.by_feed.keys():
            del self.by_feed[feed]
            self._listed = None
        self._put(found)
        self.at = now

    def _put(self, found: Iterable[FeedRecord]) -> None:
        fresh = False
        for record in found:
            known = self.by_feed.get(record.feed)
            if record is known or record == known:
                continue  # the same value stays the same object
            fresh = fresh or known is None
            self.by_feed[record.feed] = record
            self._count += 1
            self._order[record.feed] = self._count
            self._order.move_to_end(record.feed)
            self._listed = None
        if fresh:
            self.by_feed = dict(sorted(self.by_feed.items()))

    @property
    def listed(self) -> tuple[FeedRecord, ...]:
        """All records, in the order of keys."""
        with self._lock:
            if self._listed is None:
                self._listed = tuple(self.by_feed.values())
            return self._listed

    def since(self, count: int) -> tuple[int, list[FeedRecord]]:
        """Return the number of changes so far, and the records of the changes after the first `count`, the last first.

        A feed that has changed several times is in it once.
        """
        found: list[FeedRecord] = []
        with self._lock:
            for feed, number in reversed(self._order.items()):
                if number <= count:
                    break
                if feed in self.by_feed:
                    found.append(self.by_feed[feed])
            return self._count, found


class ChangedFeeds:
    """Tells one reader which feeds of a party have changed. The cost follows the changes, not the number of feeds."""

    def __init__(self, records: PartyRecords) -> None:
        self._records = records
        self._count = 0

    def take(self) -> list[FeedRecord]:
        """Return the records that have changed since the last call, in the order of keys; at first, all."""
        self._count, found = self._records.update().since(self._count)
        return sorted(found, key=_feed)

    def get(self, feed: bytes) -> FeedRecord | None:
        """Return the record of a feed, as of the last `take`; None if it is not here."""
        return self._records.by_feed.get(feed)


def _feed(record: FeedRecord) -> bytes:
    return record.feed
