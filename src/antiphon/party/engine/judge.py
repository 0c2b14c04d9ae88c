"""`Judge`: finds the void ranges of lanes. Rights change with control blocks, not with messages, so ranges suffice."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from antiphon.core.reasons import Reason, because
from antiphon.core.sightings import Seen
from antiphon.model.message import Note
from antiphon.party.engine.lane import ALL_SEQS, FAR, Lane
from antiphon.party.engine.ports import EpochJudge, Void

ERASED = because(Reason.ERASED, "it was erased")
_START = attrgetter("start")


class Judge:
    """Void ranges by the verdicts of an authority, cached until its rights change."""

    def __init__(self, authority: EpochJudge) -> None:
        self._authority = authority
        self._cuts: dict[tuple[bytes, int], tuple[int, str]] = {}
        self._well: dict[bytes, int] = {}  # by feed: segments from this origin on count, if rights are lasting
        self._rights: object = None

    def forget(self, rights: object) -> None:
        """Drop the cache if these are not the rights that it was filled by."""
        if rights != self._rights:
            self._rights = rights
            self._cuts.clear()
            self._well.clear()

    def voids(self, lane: Lane, start: int, stop: int) -> Iterator[Void]:
        """Yield the void ranges within [start, stop), in order."""
        erased = self._authority.erased(lane.feed)
        singly = sorted(seq for seq in erased if start <= seq < stop) if erased else []
        for void in self._ends(lane, start, stop):
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
        for low, high, origin, seen in lane.pieces(start, stop):
            if lasting and origin >= self._well.get(feed, FAR):
                continue  # an earlier segment counts, and rights are lasting
            key = (feed, origin)
            known = self._cuts.get(key)
            if known is None:
                known = self._cuts[key] = self._find(feed, origin, seen)
            first, reason = known
            if first < high:
                yield Void(max(first, low), high, reason)
            elif first == FAR:
                self._well.setdefault(feed, origin)

    def _find(self, feed: bytes, origin: int, seen: Seen) -> tuple[int, str]:
        """Return from which seq on messages with this control timeframe are void, and why. A cut is an end: one seq."""
        reason = self._authority.verdict(feed, origin, seen)
        if reason:
            return origin, reason
        if not self._authority.verdict(feed, FAR, seen):
            return FAR, ""
        first = bisect_left(
            ALL_SEQS, True, lo=origin + 1, key=lambda seq: self._authority.verdict(feed, seq, seen) != ""
        )
        return first, self._authority.verdict(feed, first, seen)


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
