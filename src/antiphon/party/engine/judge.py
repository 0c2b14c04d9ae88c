"""`Judge`: finds the void ranges of lanes. Rights change with control blocks, not with messages, so ranges suffice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from antiphon.core.reasons import Reason, because
from antiphon.core.sightings import Marks
from antiphon.model.message import Note
from antiphon.party.engine.lane import FAR, Lane, find_steps
from antiphon.party.engine.ports import EpochJudge, Void

ERASED = because(Reason.ERASED, "it was erased")
_START = attrgetter("start")

Steps = tuple[tuple[int, str], ...]  # (first seq, why void from there on), within one control timeframe


class Judge:
    """Void ranges by the verdicts of an authority, cached until its rights change.

    A feed may have seen control blocks at each of its messages. Most of them do not matter to its verdicts
    (`acts_about`), so the cost follows the acts that do, and not the timeframes.
    """

    def __init__(self, authority: EpochJudge) -> None:
        self._authority = authority
        self._known: dict[tuple[bytes, int], Steps] = {}
        self._acts: dict[tuple[bytes, bool], Marks | None] = {}
        self._well: dict[bytes, int] = {}  # by feed: segments from this origin on count, if rights are lasting
        self._rights: object = None

    def forget(self, rights: object) -> None:
        """Drop the cache if these are not the rights that it was filled by."""
        if rights != self._rights:
            self._rights = rights
            self._known.clear()
            self._acts.clear()
            self._well.clear()

    def voids(self, lane: Lane, start: int, stop: int) -> Iterator[Void]:
        """Yield the void ranges within [start, stop), in order."""
        if start >= stop:
            return
        erased = self._authority.erased(lane.feed)
        if len(erased) < stop - start:
            singly = sorted(seq for seq in erased if start <= seq < stop)
        else:  # most of them are not written yet
            singly = [seq for seq in range(start, stop) if seq in erased]
        for void in _merged(self._ends(lane, start, stop)):
            while singly and singly[0] < void.stop:
                seq = singly.pop(0)
                if seq < void.start:
                    yield Void(seq, seq + 1, ERASED)
            yield void
        for seq in singly:
            yield Void(seq, seq + 1, ERASED)

    def _ends(self, lane: Lane, start: int, stop: int) -> Iterator[Void]:
        """Yield the ranges beyond cuts."""
        lasting, feed = self._authority.lasting(), lane.feed
        for low, high, origin, _ in lane.pieces(start, stop, self._acts_about(feed)):
            if lasting and origin >= self._well.get(feed, FAR):
                continue  # an earlier segment counts, and rights are lasting
            steps = self._find(lane, origin)
            if steps == ((origin, ""),):
                self._well.setdefault(feed, origin)
                continue
            for begin, reason in steps:
                if reason and begin < high:
                    yield from self._why(lane, max(begin, low), high, origin)
                    break

    def _why(self, lane: Lane, start: int, stop: int, since: int) -> Iterator[Void]:
        """Yield the reasons of a void range, in which the same acts were seen that matter, since a block."""
        for low, high, origin, _ in lane.pieces(start, stop, self._acts_about(lane.feed, untaken=True)):
            steps = self._find(lane, max(origin, since))
            for (begin, reason), (end, _) in pairwise((*steps, (FAR, ""))):
                if begin < high and end > low:
                    yield Void(max(begin, low), min(end, high), reason)

    def _acts_about(self, feed: bytes, *, untaken: bool = False) -> Marks | None:
        key = feed, untaken
        if key not in self._acts:
            self._acts[key] = self._authority.acts_about(feed, untaken=untaken)
        return self._acts[key]

    def _find(self, lane: Lane, origin: int) -> Steps:
        """Return from which seqs on messages with the control timeframe of a block are void, and why."""
        feed, seen = lane.feed, lane.seen_at(origin)
        steps = self._known.get((feed, origin))
        if steps is None:
            steps = find_steps(origin, lambda seq: self._authority.verdict(feed, seq, seen))
            self._known[feed, origin] = steps
        return steps


def _merged(voids: Iterable[Void]) -> Iterator[Void]:
    """Merge neighbours that are void for one reason."""
    last: Void | None = None
    for void in voids:
        if last is not None and (last.stop, last.reason) == (void.start, void.reason):
            last = last._replace(stop=void.stop)
            continue
        if last is not None:
            yield last
        last = void
    if last is not None:
        yield last


def mark_void(voids: Sequence[Void], note: Note) -> Note:
    """Return a message with the reason of the void part that holds it; a message outside of all parts as it is."""
    at = bisect_right(voids, note.seq, key=_START) - 1
    return note._replace(void=voids[at].reason) if at >= 0 and note.seq < voids[at].stop else note


def void_places(voids: Sequence[Void], seqs: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return the place of the void part that holds each seq, and -1 where none does: `mark_void`, for columns."""
    if not voids:
        return np.full(len(seqs), -1)
    starts, stops = (np.array([void[column] for void in voids]) for column in (0, 1))
    at = np.searchsorted(starts, seqs, side="right") - 1
    return np.where((at >= 0) & (seqs < stops[at]), at, -1)


def changed(before: Iterable[Void], after: Iterable[Void]) -> list[tuple[int, int]]:
    """Return the ranges in which messages have become void, count again, or are void for another reason."""
    marks: dict[int, list[tuple[int, str]]] = {}
    for side, voids in enumerate((before, after)):
        for void in voids:
            marks.setdefault(void.stop, []).append((side, ""))
            marks.setdefault(void.start, []).append((side, void.reason))
    reasons = ["", ""]
    found: list[tuple[int, int]] = []
    for at in sorted(marks):
        if reasons[0] != reasons[1]:
            found[-1] = (found[-1][0], at)
        for side, reason in sorted(marks[at], key=lambda mark: mark[1] != ""):  # an end before the next beginning
            reasons[side] = reason
        if reasons[0] != reasons[1] and (not found or found[-1][1] != at):
            found.append((at, at))
    return [part for part in found if part[0] < part[1]]
