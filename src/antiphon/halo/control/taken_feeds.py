"""`TakenFeeds`: how far the feeds of a store were taken into a party state machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.store.party_records import ChangedFeeds
from antiphon.feed.store.reader import FeedReader


def _spans() -> dict[bytes, dict[bytes, int]]:
    return defaultdict(dict)


@dataclass(slots=True)
class TakenFeeds:
    """The memory of `fold_control_feeds`, by feed: it reads only what is new."""

    folded: dict[bytes, FeedRecord] = field(default_factory=dict)  # the record up to which blocks were taken
    shown: dict[bytes, dict[bytes, int]] = field(default_factory=_spans)  # by last hash: where spans of branches begin
    data: dict[bytes, dict[bytes, int]] = field(default_factory=_spans)  # the same, looked at in vain for control
    strangers: dict[bytes, bytes] = field(default_factory=dict)  # control feeds that were not known: their identities
    beginless: dict[bytes, FeedRecord] = field(default_factory=dict)  # only later blocks of a branch are here
    again: set[bytes] = field(default_factory=set)  # feeds of which not all is taken, or evidence may come by itself
    _source: tuple[FeedReader, ChangedFeeds] | None = None

    def news(self, store: FeedReader, party: bytes) -> list[FeedRecord]:
        """Return the records of the feeds to look at: they have changed, or not all of them could be taken before."""
        if self._source is None or self._source[0] is not store:
            self._source = store, store.changed_feeds(party)
        changed = self._source[1]
        self.again.update(record.feed for record in changed.take())
        return [record for feed in sorted(self.again) if (record := changed.get(feed)) is not None]

    def finish(self, record: FeedRecord) -> None:
        """Look at a feed no more until its record changes, if all of it is taken."""
        if self.folded.get(record.feed) is record and record.why is not End.FAULT:
            self.again.discard(record.feed)
