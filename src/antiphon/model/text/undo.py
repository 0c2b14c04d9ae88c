"""Undo of one message of a text: insertions are deleted, deletions restored, and marks set to their former values.

Changes of others stay: their text inside an insertion, their deletions, and their marks over those of the message.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.text.codec import END, Anchor, Draft, Mark, Ops
from antiphon.model.text.leaves import next_to
from antiphon.model.text.mark_columns import KeptMark, Key
from antiphon.model.text.marks import SHOWN_MAX, Places, Segment, TextState, segments
from antiphon.model.text.runs import HOLE, OFFSET_BITS, Run, Writer

GROUP_MAX = 1024  # elements restored in one insertion, so that their marks fit into a mutation
_SPAN_MAX = (1 << 64) - 1
_FEW = 16  # parts of runs that are deleted one by one


class Gone(NamedTuple):
    """An element that was shown before it was deleted."""

    feed: bytes
    clock: int
    text: str
    item: bytes | None


Bounds = list[tuple[Anchor, bytes | None]]  # the start of a value of a mark, and the value


class Captured(NamedTuple):
    """The state before a message, for its undo: elements in the order of the document, and values under each mark."""

    deleted: list[Gone]
    marked: list[Bounds]


def shown_in(state: TextState, feed: bytes, first: int, last: int) -> Iterator[tuple[Run, int, int]]:
    """Yield the runs of a feed that are shown in a range of clocks, with the first index and the one after the last."""
    writer = state.writers.get(feed)
    if writer is None:
        return
    for run in writer.runs.since(first):
        if run.start > last:
            break
        low = 0 if first <= run.start else -((run.start - first) // run.stride)
        high = min((last - run.start) // run.stride + 1, run.length)
        if low < high and run.shown_until(high) > run.shown_until(low):
            yield run, low, high


def delete_runs(draft: Draft, parts: Sequence[tuple[Run, int, int]]) -> None:
    """Delete parts of runs, each from an index to before another, with as few operations as possible.

    What lies between two parts of a writer, in the order of clocks, is one range with them if it is deleted already or
    has not found its place. So a few ranges delete a text of a million runs.
    """
    if len(parts) < _FEW:
        for run, low, high in parts:
            delete_run(draft, run, low, high)
        return
    chosen: dict[Writer, dict[int, tuple[int, int]]] = {}
    for run, low, high in parts:
        chosen.setdefault(run.writer, {})[run.start] = low, high
    for writer, runs in chosen.items():
        _delete_chosen(draft, writer, runs)


def _delete_chosen(draft: Draft, writer: Writer, runs: dict[int, tuple[int, int]]) -> None:
    bounds: tuple[int, int] | None = None
    first, last = min(runs), max(runs)
    for run in takewhile(lambda run: run.start <= last, writer.runs.since(first)):
        run.leaf.leaves.tidy()  # it is only read
        if run.text is None:
            continue
        low, high = runs.get(run.start, (0, 0))
        if bounds is not None and (low or not high or run.clock(high - 1) - bounds[0] > _SPAN_MAX):
            draft.delete(writer.feed, *bounds)
            bounds = None
        if not high:
            continue
        if run.clock(high - 1) - run.clock(low) > _SPAN_MAX:
            delete_run(draft, run, low, high)
            continue
        bounds = (run.clock(low) if bounds is None else bounds[0]), run.clock(high - 1)
        if high < run.length:
            draft.delete(writer.feed, *bounds)
            bounds = None
    if bounds is not None:
        draft.delete(writer.feed, *bounds)


def delete_run(draft: Draft, run: Run, low: int, high: int) -> None:
    """Delete elements of a run, one by one if they are too far apart for one operation."""
    first, last = run.clock(low), run.clock(high - 1)
    if last - first <= _SPAN_MAX:
        draft.delete(run.writer.feed, first, last)
        return
    for at in range(low, high):
        draft.delete(run.writer.feed, run.clock(at), run.clock(at))


def capture(state: TextState, ops: Ops) -> Captured:
    """Return what `revert` needs of the state right before a mutation is applied."""
    whole = Whole(state)
    places = Places(state) if ops.deletes else None
    found: list[tuple[int, Gone]] = []
    seen: set[tuple[bytes, int]] = set()
    for feed, first, last in ops.deletes:
        for run, low, high in shown_in(state, feed, first, last):
            assert places is not None
            position = places.of(Anchor(feed, run.clock(low), False)) or 0
            assert run.text is not None
            for at in range(low, high):
                clock = run.clock(at)
                if run.text[at] == HOLE:
                    continue
                if (feed, clock) not in seen:
                    seen.add((feed, clock))
                    found.append((position, Gone(feed, clock, run.text[at], run.item)))
                position += 1
    found.sort(key=lambda pair: pair[0])
    return Captured([gone for _, gone in found], [_bounds(mark, whole) for mark in ops.marks])


def _bounds(mark: Mark, whole: Whole) -> Bounds:
    """Return the starts of the values under a mark, among all elements: deleted ones may be restored."""
    start, stop = whole.places.of(mark.start), whole.places.of(mark.end)
    bounds: Bounds = []
    if start is None or stop is None:
        return bounds
    for piece in whole.pieces_of(mark.name, start, stop):
        kept = piece.winners.get(mark.name)
        value = None if kept is None else kept.mark.value
        if not bounds or bounds[-1][1] != value:
            bounds.append((whole.anchor_before(piece.start) if piece.start > start else mark.start, value))
    return bounds


class Whole:
    """All elements of an unchanging text, including deleted ones, and the marks over them."""

    def __init__(self, state: TextState) -> None:
        self.state = state
        self._named: dict[str, tuple[list[int], list[Segment]]] = {}

    @cached_property
    def places(self) -> Places:
        """Positions of anchors among all elements."""
        return Places(self.state, among_all=True)

    @cached_property
    def _order(self) -> tuple[list[Run], list[int]]:
        runs = [run for run in self.state.runs() if run.length]
        return runs, list(accumulate((run.length for run in runs), initial=0))

    def anchor_before(self, position: int) -> Anchor:
        """Return the anchor before the element at a position; the end of the text if there is none."""
        if position >= self.places.length:
            return END
        runs, starts = self._order
        at = bisect_right(starts, position) - 1
        return Anchor(runs[at].writer.feed, runs[at].clock(position - starts[at]), False)

    def copies(self, feed: bytes) -> dict[int, list[tuple[bytes, int]]]:
        """Return the positions of copies that a feed's undo made, each with its chain of originals."""
        origins = {clock: original for original, clock in self.state.copies_of(feed).items()}
        found = {}
        for clock in origins:
            position = self.places.of(Anchor(feed, clock, False))
            if position is None:
                continue
            chain = [(feed, clock)]
            seen = set(chain)  # a peer may send a cycle of copies
            while chain[-1][0] == feed and (original := origins.get(chain[-1][1])) and original not in seen:
                chain.append(original)
                seen.add(original)
            found[position] = chain
        return found

    def pieces_of(self, name: str, start: int, stop: int) -> Iterator[Segment]:
        """Return the winning marks of a name in the pieces that a range overlaps."""
        if name not in self._named:
            pieces = segments(self.state, [name], among_all=True)
            self._named[name] = [piece.stop for piece in pieces], pieces
        stops, pieces = self._named[name]
        for at in range(bisect_right(stops, start), bisect_left(stops, stop) + 1):
            if at < len(pieces) and pieces[at].start < stop:
                yield pieces[at]

    @cached_property
    def _pieces(self) -> tuple[list[int], list[Segment]]:
        pieces = segments(self.state, among_all=True)
        return [piece.stop for piece in pieces], pieces

    def values_at(self, position: int) -> dict[str, bytes]:
        """Return the marks over an element."""
        stops, pieces = self._pieces
        return _values(pieces[bisect_right(stops, position)].winners)

    @cached_property
    def _marks(self) -> list[tuple[int, int, KeptMark]]:
        """Return, for each mark whose anchors have arrived, the positions of its start and end."""
        found = []
        for kept in self.state.marks:
            low, high = self.places.of(kept.mark.start), self.places.of(kept.mark.end)
            if low is not None and high is not None:
                found.append((low, high, kept))
        return found

    def values_after(self, position: int) -> dict[str, bytes]:
        """Return the marks of a new element right after the one before a position."""
        winners: dict[str, KeptMark] = {}
        for low, high, kept in self._marks:
            if low > position or high < position:
                continue
            start, end = kept.mark.start, kept.mark.end
            if (low == position and not start.after) or (high == position and end.after and end.feed):
                continue
            known = winners.get(kept.mark.name)
            if known is None or known.key < kept.key:
                winners[kept.mark.name] = kept
        latest = sorted((kept for kept in winners.values() if kept.mark.value is not None), reverse=True)[:SHOWN_MAX]
        return _values({kept.mark.name: kept for kept in latest})


def _values(winners: dict[str, KeptMark]) -> dict[str, bytes]:
    return {name: kept.mark.value for name, kept in winners.items() if kept.mark.value is not None}


def revert(state: TextState, captured: Captured, ops: Ops, stamp: Stamp, feed: bytes) -> list[bytes]:
    """Return the mutations that undo a message: usually one, none if nothing is left, several if it is large."""
    drafts = [Draft(feed)]
    whole = Whole(state)
    if ops.inserts:
        for run, low, high in shown_in(state, stamp.feed, ops.base, ops.end - 1):
            delete_run(drafts[0], run, low, high)
        if state.copies:
            _delete_copies(state, drafts[0], ops, stamp.feed, feed)
    for group in list(_groups(state, captured.deleted)):
        if drafts[-1].is_full:
            drafts.append(Draft(feed))
        _bring_back(whole, drafts[-1], group)
    copies = whole.copies(stamp.feed) if ops.marks else {}
    for nth, (mark, bounds) in enumerate(zip(ops.marks, captured.marked, strict=True)):
        if mark.start.feed == stamp.feed and ops.base <= mark.start.clock < ops.end:
            continue
        key = (stamp.lamport, stamp.feed, stamp.seq, nth)
        for start, end, value in _before(whole, copies, mark, key, bounds):
            if drafts[-1].is_full:
                drafts.append(Draft(feed))
            drafts[-1].mark(mark.name, value, start, end)
    return [draft.bytes() for draft in drafts if draft.proto.ByteSize()]


def _delete_copies(state: TextState, draft: Draft, ops: Ops, writer: bytes, feed: bytes) -> None:
    """Delete the copies of an insertion that this writer's earlier undos made."""
    copies = state.copies_of(feed)
    for clock in range(ops.base, ops.end):
        copy = copies.get((writer, clock))
        seen: set[int] = set()  # a peer may send a cycle of copies
        while copy is not None and copy not in seen:
            for run, low, high in shown_in(state, feed, copy, copy):
                delete_run(draft, run, low, high)
            seen.add(copy)
            copy = copies.get((feed, copy))


def _groups(state: TextState, deleted: list[Gone]) -> Iterator[list[Gone]]:
    """Group deleted elements that are still adjacent: they are restored together."""
    group: list[Gone] = []
    last: tuple[Run, int] | None = None
    for gone in deleted:
        found = state.writer(gone.feed).find(gone.clock)
        if found is None:
            continue
        if last is not None and (len(group) == GROUP_MAX or _apart(last, found)):
            yield group
            group = []
        group.append(gone)
        last = found
    if group:
        yield group


def _apart(one: tuple[Run, int], other: tuple[Run, int]) -> bool:
    """True if any element lies between two others. Deleted ones count, because undo may restore them."""
    (run, at), (following, place) = one, other
    if run is following:
        return place != at + 1
    return at + 1 < run.length or place > 0 or next_to(run, 1) is not following


def _bring_back(whole: Whole, draft: Draft, group: list[Gone]) -> None:
    """Insert copies of elements right after the place of the last of them."""
    found = whole.state.writer(group[-1].feed).find(group[-1].clock)
    assert found is not None
    run, at = found
    left = False
    if at + 1 < run.length:
        at, left = at + 1, True
    elif run.rights:
        after = next_to(run, 1)
        assert after is not None
        run, at, left = after, 0, True
    before = draft.inserted
    begin = 0
    for nth in range(1, len(group) + 1):
        if nth < len(group) and group[nth].item is None and group[nth - 1].item is None:
            continue
        text, item = "".join(gone.text for gone in group[begin:nth]), group[begin].item or b""
        if begin == 0:
            draft.insert(text, run.writer.feed, run.clock(at), left=left, item=item)
        else:
            draft.insert_next(text, item=item)
        draft.revive([(gone.feed, gone.clock) for gone in group[begin:nth]])
        begin = nth
    if whole.state.marks:
        _mark_again(whole, draft, group, before)


def _mark_again(whole: Whole, draft: Draft, group: list[Gone], before: int) -> None:
    """Give restored elements the marks that cover their former place, if they do not cover the present one."""
    end = whole.places.of(Anchor(group[-1].feed, group[-1].clock, True))
    assert end is not None
    given = whole.values_after(end)
    began: dict[str, tuple[int, bytes | None]] = {}
    for nth, gone in enumerate([*group, None], start=before + 1):
        differs: dict[str, bytes | None] = {}
        if gone is not None:
            at = whole.places.of(Anchor(gone.feed, gone.clock, False))
            assert at is not None
            wanted = whole.values_at(at)
            names = sorted(wanted.keys() | given.keys())
            differs = {name: wanted.get(name) for name in names if wanted.get(name) != given.get(name)}
        for name, (start, value) in list(began.items()):
            if name not in differs or differs[name] != value:
                if draft.has_room(name):  # otherwise hostile marks are too many; the text is restored without them
                    draft.mark(name, value, start, nth - 1)
                del began[name]
        for name, value in differs.items():
            began.setdefault(name, (nth, value))


def _before(
    whole: Whole, copies: dict[int, list[tuple[bytes, int]]], mark: Mark, key: Key, bounds: Bounds
) -> list[tuple[Anchor, Anchor, bytes | None]]:
    """Return the values before a mark, from anchor to anchor, where the mark still wins.

    A copy that undo made counts as the element that existed when the mark was set.
    """
    places = whole.places
    start, stop = places.of(mark.start), places.of(mark.end)
    if start is None or stop is None:
        return []
    anchors = {stop: mark.end}
    values: list[tuple[int, bytes | None]] = []
    for anchor, value in bounds:
        position = places.of(anchor)
        if position is not None:
            values.append((position, value))
            anchors[position] = anchor
    anchors[start] = mark.start
    cuts = {start, stop, *(position for position, _ in values)}
    cuts.update(at for position in copies for at in (position, position + 1))
    ordered = sorted(cuts)
    found: list[tuple[int, int, bytes | None]] = []
    for piece in whole.pieces_of(mark.name, *((0, places.length) if copies else (start, stop))):
        inner = ordered[bisect_right(ordered, piece.start) : bisect_left(ordered, piece.stop)]
        for low, high in pairwise([piece.start, *inner, piece.stop]):
            chain = copies.get(low)
            if not _says(mark, key, piece.winners.get(mark.name), chain):
                continue
            at = low if chain is None else _place_then(places, chain, key)
            if at is None or not start <= at < stop:
                continue
            nth = bisect_right(values, at, key=_position) - 1
            value = values[nth][1] if nth >= 0 else None
            if found and found[-1][1] == low and found[-1][2] == value:
                found[-1] = (found[-1][0], high, value)
            else:
                found.append((low, high, value))
    return [
        (anchors.get(low) or whole.anchor_before(low), anchors.get(high) or whole.anchor_before(high), value)
        for low, high, value in found
    ]


def _position(bound: tuple[int, bytes | None]) -> int:
    return bound[0]


def _says(mark: Mark, key: Key, winner: KeptMark | None, chain: list[tuple[bytes, int]] | None) -> bool:
    """True if an element has its value from a mark, also through an undo or the marks of a copy."""
    if winner is None:
        return chain is not None and mark.value is None
    if winner.key == key:
        return True
    older = chain is not None and winner.key[0] <= chain[0][1] >> OFFSET_BITS
    return winner.mark.value == mark.value and (winner.key[1] == key[1] or older)


def _place_then(places: Places, chain: list[tuple[bytes, int]], key: Key) -> int | None:
    """Return the position of the element that a copy was when a mark was set; of the first if none existed yet."""
    feed, clock = next((name for name in chain if name[1] >> OFFSET_BITS <= key[0]), chain[-1])
    return places.of(Anchor(feed, clock, False))
