"""Marks: formatting of a text. For each character and name, the covering mark with the greatest stamp wins.

Of marks with the same name and the same two anchors only the latest is kept. They cover the same characters in every
state, so the earlier ones can never show again, and the result does not depend on the order of delivery.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.text.codec import Anchor, Insert, Mark
from antiphon.model.text.copies import Copies
from antiphon.model.text.fugue import Sequence
from antiphon.model.text.leaves import Leaf
from antiphon.model.text.mark_columns import KeptMark, Key, MarkColumns
from antiphon.model.text.runs import HOLE

_NO_MARKS = MarkColumns()  # nobody changes it
SHOWN_MAX = 64  # names that one character shows; it bounds the output that hostile marks cause


class Segment(NamedTuple):
    """A part of the text with the same winning marks throughout.

    If all names are requested, it has the latest `SHOWN_MAX` marks that set a value. If some names are requested, it
    has all their marks, including those that unset a value.
    """

    start: int
    stop: int
    winners: dict[str, KeptMark]


class TextState(Sequence):
    """A sequence and its marks. `copies` serves the undo of this session, and is in no snapshot."""

    __slots__ = ("copies", "copy", "listed", "marks", "missing")

    def __init__(self) -> None:
        super().__init__()
        self.marks = _NO_MARKS
        self.copy: TextState | None = None  # in which insertions that wait have a place: see `orphans`
        self.missing: dict[bytes, int] = {}  # in such a copy, by feed: the greatest clock of a missing element
        self.copies: dict[bytes, Copies] = {}
        self.listed: tuple[dict[int, bytes], int] = ({}, 0)  # writers by place in the last snapshot; shifts

    def add_copies(self, insert: Insert, feed: bytes) -> None:
        """Record the copies that a feed's undo made, so that undoing the original insertion deletes them too.

        Each feed has its own entries, and only its undo reads them, so no writer can damage those of another.
        """
        copies = self.copies.setdefault(feed, Copies())
        clock = insert.start
        for original, first, last in insert.revived:
            copies.add(clock, original, first, last)
            clock += last - first + 1

    def copies_of(self, feed: bytes) -> dict[tuple[bytes, int], int]:
        """Return the copies that a feed's undo made: by element, the clock of its copy."""
        return self.copies[feed].by_original() if feed in self.copies else {}

    def add_mark(self, mark: Mark, stamp: Stamp, nth: int) -> None:
        """Add a mark, the `nth` of its message, unless a later one has the same name and anchors."""
        self.keep_mark(KeptMark((stamp.lamport, stamp.feed, stamp.seq, nth), mark))

    def keep_mark(self, kept: KeptMark) -> None:
        """Add a mark with its key."""
        if self.marks is _NO_MARKS:
            self.marks = MarkColumns()
        self.marks.add(kept)


class Places:
    """Positions of anchors in an unchanging text: in the text shown, or among all elements."""

    def __init__(self, state: Sequence, *, among_all: bool = False) -> None:
        self._state = state
        self._among_all = among_all
        self._before: dict[Leaf, int] = {}
        leaf: Leaf | None = state.head
        count = 0
        while leaf is not None:
            self._before[leaf] = count
            count += sum(run.length for run in leaf.copies()) if among_all else leaf.shown
            leaf = leaf.after
        self.length = count

    def of(self, anchor: Anchor) -> int | None:
        """Return the length of the text before an anchor; None if its element has not arrived."""
        if not anchor.feed:
            return self.length if anchor.after else 0
        writer = self._state.writers.get(anchor.feed)
        found = None if writer is None else writer.find(anchor.clock)
        if found is None:
            return None
        run, at = found
        count = self._before[run.leaf]
        for other in run.leaf.runs:
            if other is run:
                break
            count += other.length if self._among_all else other.shown
        if self._among_all:
            return count + at + anchor.after
        is_shown = run.text is not None and run.text[at] != HOLE
        return count + run.shown_until(at) + (anchor.after and is_shown)


def segments(state: TextState, names: Iterable[str] | None = None, *, among_all: bool = False) -> list[Segment]:
    """Return the text shown (or all elements), divided where the winning marks change; of some names only, if given."""
    places = Places(state, among_all=among_all)
    wanted = None if names is None else set(names)
    events: list[tuple[int, bool, KeptMark]] = []
    for covering in state.marks:
        if wanted is not None and covering.mark.name not in wanted:
            continue
        start, stop = places.of(covering.mark.start), places.of(covering.mark.end)
        state.leaves.tidy()
        if start is not None and stop is not None and start < stop:
            events += [(start, True, covering), (stop, False, covering)]
    events.sort(key=lambda event: event[0])
    found: list[Segment] = []
    active: dict[str, list[KeptMark]] = {}
    ranked: list[KeptMark] = []
    position = 0
    ends: list[tuple[int, bool, KeptMark | None]] = [*events, (places.length, False, None)]
    for at, begins, kept in ends:
        if at > position:
            winners = {kept.mark.name: kept for kept in (ranked if wanted is not None else ranked[-SHOWN_MAX:])}
            if found and found[-1].winners == winners:
                found[-1] = found[-1]._replace(stop=at)
            else:
                found.append(Segment(position, at, winners))
            position = at
        if kept is None:
            break
        layers = active.setdefault(kept.mark.name, [])
        before = layers[-1] if layers else None
        if begins:
            insort(layers, kept, key=_key)
        else:
            del layers[bisect_left(layers, kept.key, key=_key)]
        after = layers[-1] if layers else None
        if before is not after:
            if before is not None and (wanted is not None or before.mark.value is not None):
                del ranked[bisect_left(ranked, before.key, key=_key)]
            if after is not None and (wanted is not None or after.mark.value is not None):
                insort(ranked, after, key=_key)
    return found


def _key(kept: KeptMark) -> Key:
    return kept.key


def anchor_before(state: Sequence, index: int) -> Anchor:
    """Return the anchor before the element shown at a position; the end of the text if there is none."""
    if index >= state.length:
        return Anchor(b"", 0, True)
    run, at = state.find(index)
    return Anchor(run.writer.feed, run.clock(at), False)


def anchor_after(state: Sequence, index: int) -> Anchor:
    """Return the anchor after the element shown right before a position; the start of the text if there is none."""
    if index <= 0:
        return Anchor(b"", 0, False)
    run, at = state.find(index - 1)
    return Anchor(run.writer.feed, run.clock(at), True)
