"""Effects of an object's mutations on messages that have not arrived; see `antiphon.model.heard`.

Honest histories leave this empty. For each feed a heap holds the seqs for which something waits. So a hostile writer
who names a million future messages does not make each message of that feed cost a million steps.
"""

from __future__ import annotations

import heapq

from antiphon.core.stamp import Stamp
from antiphon.model.bounds import Bounds
from antiphon.model.object.register import Path


class PendingFeed:
    """Effects on messages of one feed: what is replaced already at each path, and what to add to its counters."""

    __slots__ = ("_due", "_seqs", "bounds", "increments")

    def __init__(self) -> None:
        self.bounds: dict[Path, Bounds] = {}
        self.increments: dict[Stamp, dict[Path, int]] = {}
        self._due: dict[int, list[Path | Stamp]] = {}  # by seq: the paths and counters with an effect that ends there
        self._seqs: list[int] = []  # a heap

    def replace(self, path: Path, name: Stamp) -> bool:
        """Replace what a name covers at a path and below. False if another name there covers it, or it another."""
        bounds = self.bounds.get(path)
        if bounds is None:
            bounds = self.bounds[path] = Bounds()
        covered = bounds.add(name)
        if covered >= 0:
            self._end(name.seq).append(path)
        return covered == 0

    def increment(self, path: Path, base: Stamp, by: int) -> None:
        """Add to the counter that a message is going to create."""
        sums = self.increments.get(base)
        if sums is None:
            sums = self.increments[base] = {}
            self._end(base.seq).append(base)
        sums[path] = sums.get(path, 0) + by

    def _end(self, seq: int) -> list[Path | Stamp]:
        ends = self._due.get(seq)
        if ends is None:
            ends = self._due[seq] = []
            heapq.heappush(self._seqs, seq)
        return ends

    def replaces(self, path: Path, stamp: Stamp) -> bool:
        """True if the entry that a message writes at a path is replaced already."""
        for size in range(1, len(path) + 1):
            bounds = self.bounds.get(path[:size])
            if bounds is not None and bounds.has(stamp):
                return True
        return False

    def forget(self, seq: int) -> bool:
        """Drop the effects on messages up to a seq. True if none is left."""
        while self._seqs and self._seqs[0] <= seq:
            for end in self._due.pop(heapq.heappop(self._seqs)):
                if isinstance(end, Stamp):
                    del self.increments[end]
                elif (bounds := self.bounds.get(end)) is not None:
                    bounds.forget(seq)
                    if not bounds.pairs:
                        del self.bounds[end]
        return not self._seqs


class PendingMessages:
    """The effects on messages that were named and have not arrived, by feed."""

    __slots__ = ("feeds",)

    def __init__(self) -> None:
        self.feeds: dict[bytes, PendingFeed] = {}

    def __bool__(self) -> bool:
        return bool(self.feeds)

    def at(self, feed: bytes) -> PendingFeed:
        """Return the effects on messages of a feed, created if missing, for adding to them."""
        found = self.feeds.get(feed)
        if found is None:
            found = self.feeds[feed] = PendingFeed()
        return found

    def forget(self, heard: Stamp) -> None:
        """Drop the effects on a message that has arrived, and on all earlier ones of its feed."""
        found = self.feeds.get(heard.feed)
        if found is not None and found.forget(heard.seq):
            del self.feeds[heard.feed]
