"""Where blocks go: into the feed store, many in a transaction. Others' are verified on the way, as from a peer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from antiphon.feed.encoder import Append
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore

GATHERED_MAX = 32 << 20


class Sink:
    """Gathers what is written, in its order, until there is enough, or somebody needs it to be in the store."""

    def __init__(self, store: FeedStore, tick: Callable[[int], None]) -> None:
        self.store = store
        self._tick = tick
        self._own: list[Append] = []
        self._others: list[Span] = []
        self._size = 0
        self._count = 0

    def put(self, appends: Sequence[Append], spans: Sequence[Span], *, own: bool) -> None:
        """Blocks of a feed: of one that this home writes the appends, to be written again, of another the spans."""
        if own:
            self._own.extend(appends)
        else:
            self._others.extend(spans)
        self._size += sum(span.size for span in spans)
        self._count += sum(span.count for span in spans)
        if self._size >= GATHERED_MAX:
            self.flush()

    def flush(self) -> None:
        """Let all of it be in the store."""
        with self.store.batch() as batch:
            batch.changes.extend(self._own)
            for span in self._others:
                batch.ingest(span)
        self._own, self._others, self._size = [], [], 0
        self._tick(self._count)
        self._count = 0
