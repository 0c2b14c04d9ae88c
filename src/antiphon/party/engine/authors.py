"""`Authors`: a cache of message authors. Every message to an item with an access list needs its author.

The authors that the states of such items follow from are recorded with the lanes, and saved with them. So neither a new
control block nor an opening folds such an item again, unless the authors of its own messages have changed.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

from antiphon.core.sightings import Seen
from antiphon.model.access import Author
from antiphon.party.engine.lane import FAR, Lane, find_steps
from antiphon.party.engine.ports import AuthorRun, EpochJudge, Posting

_begin = operator.itemgetter(0)
_DIGEST_SIZE = 16
NOBODY = b""  # in place of a digest: the authors must be asked again

Steps = tuple[tuple[int, Author], ...]  # (first seq, author), within one control timeframe
Part = tuple[int, int, int]  # messages [low, high) of a lane, by its number


class Authors:
    """Authors as an authority names them, cached by feed and control timeframe until the authority changes."""

    def __init__(self, authority: EpochJudge) -> None:
        self._authority = authority
        self._known: dict[tuple[bytes, int], Steps] = {}
        self._own: tuple[bytes, Seen, Steps] | None = None
        self._digests: dict[Author, bytes] = {}
        self._all_recorded = False

    def of(self, lane: Lane, seq: int) -> Author:
        """Return the author of a message of a lane."""
        starts = lane.state.segments.starts
        at = bisect.bisect_right(starts, seq) - 1
        return author_at(self._steps(lane.feed, starts[at] if at >= 0 else 0, lane.seen_at(seq)), seq)

    def forget(self, lanes: Iterable[Lane]) -> None:
        """Drop the cache, and what is recorded, after a change of the authority: no item depends on the answers."""
        self._known, self._own, self._digests = {}, None, {}
        self._all_recorded = False
        for lane in lanes:
            lane.state.authors = []

    def changed(self, lanes: Iterable[Lane]) -> list[Part]:
        """Refresh the cache after a change of the authority, and record the authors of all messages outside the base.

        Returns the ranges whose authors were recorded otherwise, or not at all.
        """
        self._known, self._own, self._digests = {}, None, {}
        found: list[Part] = []
        for lane in lanes:
            state = lane.state
            runs = self.runs(lane, state.base, state.position)
            found += [(state.number, low, high) for low, high in differing(state.authors, runs)]
            state.authors = runs
        return found

    def record(self, lane: Lane, first: int = 0, own: Steps | None = None) -> None:
        """Record the authors of messages that were delivered since, if any item has asked for authors.

        `own` are the authors by which this device folded the messages from `first` on before it wrote them. If the
        cache has others, nobody is recorded, so that a change of the authority has their items folded again.
        """
        state = lane.state
        start = max([state.base, *(run.stop for run in state.authors[-1:])])
        if start >= state.position or (own is None and not self._known):
            return
        runs = self.runs(lane, start, state.position)
        folded = runs if own is None else self._merged(own, first, state.position)
        if differing(runs, folded):
            runs = [AuthorRun(start, state.position, NOBODY)]
        state.authors = merge([*state.authors, *runs])

    def record_moved(self, lanes: Mapping[bytes, Lane], moved: Iterable[bytes]) -> None:
        """Record the authors of delivered messages in the lanes that have moved; in all after an item first asks."""
        if self._known:
            for feed in moved if self._all_recorded else lanes:
                self.record(lanes[feed])
        self._all_recorded = bool(self._known)

    def runs(self, lane: Lane, start: int, stop: int) -> list[AuthorRun]:
        """Return the authors of messages [start, stop) of a lane."""
        found: list[AuthorRun] = []
        for low, high, origin, seen in lane.pieces(start, stop, self._authority.acts_about(lane.feed)):
            found += self._merged(self._steps(lane.feed, origin, seen), low, high)
        return merge(found)

    def _merged(self, steps: Steps, low: int, high: int) -> list[AuthorRun]:
        """Return the authors of messages [low, high) by the steps of their timeframe."""
        ends = [*(begin for begin, _ in steps[1:]), FAR]
        parts = [(max(begin, low), min(end, high), author) for (begin, author), end in zip(steps, ends, strict=True)]
        return merge([AuthorRun(start, stop, self._digest(author)) for start, stop, author in parts if start < stop])

    def _digest(self, author: Author) -> bytes:
        known = self._digests.get(author)
        if known is None:
            told = b"".join([b"\1" if author.owner else b"\0", *author.names])
            known = self._digests[author] = sha256(told).digest()[:_DIGEST_SIZE]
        return known

    def _steps(self, feed: bytes, origin: int, seen: Seen) -> Steps:
        steps = self._known.get((feed, origin))
        if steps is None:
            steps = self._known[feed, origin] = self.find(feed, origin, seen)
        return steps

    def own(self, feed: bytes, origin: int, seen: Seen) -> Steps:
        """Return the authors of messages that this device is about to write: mostly as the last time."""
        if self._own is None or self._own[0] != feed or (self._own[1] is not seen and self._own[1] != seen):
            self._own = feed, seen, self.find(feed, origin, seen)
        return self._own[2]

    def find(self, feed: bytes, origin: int, seen: Seen) -> Steps:
        """Find by bisection where the author changes.

        Of two messages with the same control timeframe, the later belongs to no more groups: no author comes twice.
        """
        return find_steps(origin, lambda seq: self._authority.author(feed, seq, seen))


def author_at(steps: Steps, seq: int) -> Author:
    """Return the author at a seq."""
    return steps[0][1] if len(steps) == 1 else steps[bisect.bisect_right(steps, seq, key=_begin) - 1][1]


def merge(runs: Sequence[AuthorRun]) -> list[AuthorRun]:
    """Merge neighbours of one author."""
    found: list[AuthorRun] = []
    for run in runs:
        if found and found[-1].stop == run.start and found[-1].digest == run.digest:
            found[-1] = found[-1]._replace(stop=run.stop)
        else:
            found.append(run)
    return found


def differing(before: Sequence[AuthorRun], after: Sequence[AuthorRun]) -> list[tuple[int, int]]:
    """Return the ranges of `after` whose authors are others in `before`, or not there."""
    marks = sorted({mark for run in (*before, *after) for mark in (run.start, run.stop)})
    found: list[tuple[int, int]] = []
    for low, high in pairwise(marks):
        if _digest_at(after, low) in (NOBODY, _digest_at(before, low)):
            continue
        if found and found[-1][1] == low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return found


def _digest_at(runs: Sequence[AuthorRun], seq: int) -> bytes:
    at = bisect.bisect_right(runs, seq, key=_begin) - 1
    return runs[at].digest if at >= 0 and seq < runs[at].stop else NOBODY


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
