"""`Sink`: write blocks into the feed store, many in a transaction. Other devices' feeds are verified like a peer's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from antiphon.feed.encoder import Append
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore

GATHERED_MAX = 32 << 20


class Sink:
    """Collects blocks in order, and writes them when 32 MiB are there, or on `flush`."""

    def __init__(self, store: FeedStore, tick: Callable[[int], None]) -> None:
        self.store = store
        self._tick = tick
        self._own: list[Append] = []
        self._others: list[Span] = []
        self._size = 0
        self._count = 0

    def put(self, appends: Sequence[Append], spans: Sequence[Span], *, own: bool) -> None:
        """Take blocks of a feed: the appends of the home's own feed, or the spans of another device's feed."""
        if own:
            self._own.extend(appends)
        else:
            self._others.extend(spans)
        self._size += sum(span.size for span in spans)
        self._count += sum(span.count for span in spans)
        if self._size >= GATHERED_MAX:
            self.flush()

    def flush(self) -> None:
        """Write all collected blocks to the store."""
        with self.store.batch() as batch:
            batch.changes.extend(self._own)
            for span in self._others:
                batch.ingest(span)
        self._own, self._others, self._size = [], [], 0
        self._tick(self._count)
        self._count = 0
