"""`Authors`: a cache of message authors. Every message to an item with an access list needs its author."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable

from antiphon.core.sightings import Seen
from antiphon.model.access import Author
from antiphon.party.engine.lane import ALL_SEQS, FAR, Lane
from antiphon.party.engine.ports import EpochJudge, Posting

_begin = operator.itemgetter(0)

Steps = tuple[tuple[int, Author], ...]  # (first seq, author), within one control timeframe
Part = tuple[int, int, int]  # messages [low, high) of a lane, by its number


class Authors:
    """Authors as an authority names them, cached by feed and control timeframe until the authority changes."""

    def __init__(self, authority: EpochJudge) -> None:
        self._authority = authority
        self._known: dict[tuple[bytes, int], Steps] = {}
        self._own: tuple[bytes, Seen, Steps] | None = None

    def of(self, lane: Lane, seq: int) -> Author:
        """Return the author of a message of a lane."""
        starts = lane.state.segments.starts
        at = bisect.bisect_right(starts, seq) - 1
        return author_at(self._steps(lane.feed, starts[at] if at >= 0 else 0, lane.seen_at(seq)), seq)

    def forget(self) -> None:
        """Drop the cache after a change of the authority, if no item depends on the answers."""
        self._known, self._own = {}, None

    def changed(self, lanes: Iterable[Lane]) -> list[Part]:
        """Refresh the cache after a change of the authority. Return ranges whose authors changed or were unknown."""
        before, self._known, self._own = self._known, {}, None
        return [
            (lane.state.number, low, high)
            for lane in lanes
            for low, high, origin, seen in lane.pieces(0, lane.state.position)
            if before.get((lane.feed, origin)) != self._steps(lane.feed, origin, seen)
        ]

    def _steps(self, feed: bytes, origin: int, seen: Seen) -> Steps:
        steps = self._known.get((feed, origin))
        if steps is None:
            steps = self._known[feed, origin] = self.find(feed, origin, seen)
        return steps

    def own(self, feed: bytes, origin: int, seen: Seen) -> Steps:
        """Return the authors of messages that this device is about to write: mostly as the last time."""
        if self._own is None or self._own[:2] != (feed, seen):
            self._own = feed, seen, self.find(feed, origin, seen)
        return self._own[2]

    def find(self, feed: bytes, origin: int, seen: Seen) -> Steps:
        """Find by bisection where the author changes.

        Of two messages with the same control timeframe, the later belongs to no more groups: no author comes twice.
        """
        steps = [(origin, self._authority.author(feed, origin, seen))]
        last = self._authority.author(feed, FAR, seen)
        while steps[-1][1] != last:
            begin, author = steps[-1]
            end = bisect.bisect_left(
                ALL_SEQS, True, lo=begin + 1, key=lambda seq: self._authority.author(feed, seq, seen) != author
            )
            steps.append((end, self._authority.author(feed, end, seen)))
        return tuple(steps)


def author_at(steps: Steps, seq: int) -> Author:
    """Return the author at a seq."""
    return steps[0][1] if len(steps) == 1 else steps[bisect.bisect_right(steps, seq, key=_begin) - 1][1]


def touched(parts: Iterable[Part], posted: Iterable[tuple[bytes, list[Posting]]]) -> set[bytes]:
    """Return the items that have postings in these ranges."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for number, low, high in parts:
        ranges.setdefault(number, []).append((low, high))
    return {
        item
        for item, postings in posted
        if any(low < post.stop and post.start < high for post in postings for low, high in ranges.get(post.number, ()))
    }
