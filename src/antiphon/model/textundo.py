"""Undo of one message of a text: what it inserted goes, what it deleted comes back, what it marked is marked as before.

What others did since stays: their words inside an insertion, their deletions, their marks over ours.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.marks import Kept, Places, TextState, anchor_before, segments, winners_after
from antiphon.model.runs import Run, next_to
from antiphon.model.textcodec import Anchor, Draft, Mark, Ops

_SPAN_MAX = (1 << 64) - 1


class Gone(NamedTuple):
    """An element that was shown before it was deleted."""

    feed: bytes
    clock: int
    text: str
    item: bytes | None


Bounds = list[tuple[Anchor, bytes | None]]  # where a value of a mark begins, and the value


class Captured(NamedTuple):
    """What an undo will want back: the elements in the order of the document, and of each mark what it covered."""

    deleted: list[Gone]
    marked: list[Bounds]


def shown_in(state: TextState, feed: bytes, first: int, last: int) -> Iterator[tuple[Run, int, int]]:
    """The runs (from element, to before element) of a feed that are shown in a range of clocks."""
    writer = state.writers.get(feed)
    if writer is None:
        return
    for at in range(max(bisect_right(writer.starts, first) - 1, 0), len(writer.runs)):
        run = writer.runs[at]
        if run.start > last:
            break
        low = 0 if first <= run.start else -((run.start - first) // run.stride)
        high = min((last - run.start) // run.stride + 1, run.length)
        if run.text is not None and low < high:
            yield run, low, high


def delete_run(draft: Draft, run: Run, low: int, high: int) -> None:
    """Delete elements of a run; one by one if they lie too far apart for one operation."""
    first, last = run.clock(low), run.clock(high - 1)
    if last - first <= _SPAN_MAX:
        draft.delete(run.writer.feed, first, last)
        return
    for at in range(low, high):
        draft.delete(run.writer.feed, run.clock(at), run.clock(at))


def capture(state: TextState, ops: Ops) -> Captured:
    """What `revert` wants to know of the state right before a mutation is applied."""
    places = Places(state)
    found: list[tuple[int, Gone]] = []
    seen: set[tuple[bytes, int]] = set()
    for feed, first, last in ops.deletes:
        for run, low, high in shown_in(state, feed, first, last):
            position = places.of(Anchor(feed, run.clock(low), False)) or 0
            for at in range(low, high):
                clock = run.clock(at)
                if (feed, clock) in seen:
                    continue
                seen.add((feed, clock))
                assert run.text is not None
                found.append((position + at - low, Gone(feed, clock, run.text[at], run.item)))
    found.sort(key=lambda pair: pair[0])
    return Captured([gone for _, gone in found], [_bounds(state, mark, places) for mark in ops.marks])


def _bounds(state: TextState, mark: Mark, places: Places) -> Bounds:
    start, stop = places.of(mark.start), places.of(mark.end)
    bounds: Bounds = []
    if start is None or stop is None:
        return bounds
    for piece in segments(state, [mark.name]):
        if piece.stop > start and piece.start < stop:
            kept = piece.winners.get(mark.name)
            value = None if kept is None else kept.mark.value
            if not bounds or bounds[-1][1] != value:
                bounds.append((anchor_before(state, piece.start) if piece.start > start else mark.start, value))
    return bounds


def revert(state: TextState, captured: Captured, ops: Ops, stamp: Stamp, feed: bytes) -> list[bytes]:
    """The mutations that undo a message: one, or none if nothing is left to undo, or some if it is very much."""
    drafts = [Draft(feed)]
    draft = drafts[0]
    if ops.inserts:
        for run, low, high in shown_in(state, stamp.feed, ops.base, ops.end - 1):
            delete_run(draft, run, low, high)
        if state.copies:
            _delete_copies(state, draft, ops, stamp.feed, feed)
    for group in _groups(state, captured.deleted):
        if draft.is_full:
            draft = Draft(feed)
            drafts.append(draft)
        _bring_back(state, draft, group)
    for nth, (mark, bounds) in enumerate(zip(ops.marks, captured.marked, strict=True)):
        if not (mark.start.feed == stamp.feed and ops.base <= mark.start.clock < ops.end):
            _unmark(state, draft, mark, (stamp.lamport, stamp.feed, stamp.seq, nth), bounds)
    return [draft.bytes() for draft in drafts if draft.proto.ByteSize()]


def _delete_copies(state: TextState, draft: Draft, ops: Ops, writer: bytes, feed: bytes) -> None:
    """Delete what this writer's earlier undos brought back of an insertion."""
    for clock in range(ops.base, ops.end):
        copy = state.copies.get((writer, clock))
        seen = {(writer, clock)}  # a peer may have sent copies of copies in a ring
        while copy is not None and copy not in seen and copy[0] == feed:
            for run, low, high in shown_in(state, feed, copy[1], copy[1]):
                delete_run(draft, run, low, high)
            seen.add(copy)
            copy = state.copies.get(copy)


def _groups(state: TextState, deleted: list[Gone]) -> Iterator[list[Gone]]:
    """Deleted elements that still are neighbours go back together."""
    group: list[Gone] = []
    last: tuple[Run, int] | None = None
    for gone in deleted:
        found = state.writer(gone.feed).find(gone.clock)
        if found is None:
            continue
        if last is not None and _apart(last, found):
            yield group
            group = []
        group.append(gone)
        last = found
    if group:
        yield group


def _apart(one: tuple[Run, int], other: tuple[Run, int]) -> bool:
    """Whether anything stands between two elements; deleted ones count, for undo may bring them back as well."""
    (run, at), (following, place) = one, other
    if run is following:
        return place != at + 1
    return at + 1 < run.length or place > 0 or next_to(run, 1) is not following


def _bring_back(state: TextState, draft: Draft, group: list[Gone]) -> None:
    """Insert elements anew, right after where the last of them was."""
    found = state.writer(group[-1].feed).find(group[-1].clock)
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
    if state.marks:
        _mark_again(state, draft, group, before)


def _mark_again(state: TextState, draft: Draft, group: list[Gone], before: int) -> None:
    """Give what comes back the marks that cover where it was, if they do not cover where it stands now."""
    pieces = segments(state, among_all=True)
    stops = [piece.stop for piece in pieces]
    places = Places(state, among_all=True)
    given = _values(winners_after(state, Anchor(group[-1].feed, group[-1].clock, True)))
    began: dict[str, tuple[int, bytes | None]] = {}
    for nth, gone in enumerate([*group, None], start=before + 1):
        differs: dict[str, bytes | None] = {}
        if gone is not None:
            at = places.of(Anchor(gone.feed, gone.clock, False))
            assert at is not None
            wanted = _values(pieces[bisect_right(stops, at)].winners)
            names = sorted(wanted.keys() | given.keys())
            differs = {name: wanted.get(name) for name in names if wanted.get(name) != given.get(name)}
        for name, (start, value) in list(began.items()):
            if name not in differs or differs[name] != value:
                draft.mark(name, value, start, nth - 1)
                del began[name]
        for name, value in differs.items():
            began.setdefault(name, (nth, value))


def _values(winners: dict[str, Kept]) -> dict[str, bytes]:
    return {name: kept.mark.value for name, kept in winners.items() if kept.mark.value is not None}


def _unmark(state: TextState, draft: Draft, mark: Mark, key: tuple[int, bytes, int, int], bounds: Bounds) -> None:
    """Set the values from before wherever the mark still wins."""
    places = Places(state)
    start, stop = places.of(mark.start), places.of(mark.end)
    if start is None or stop is None:
        return
    anchors = {stop: mark.end}
    values: list[tuple[int, bytes | None]] = []
    for anchor, value in bounds:
        position = places.of(anchor)
        if position is not None:
            values.append((position, value))
            anchors[position] = anchor
    anchors[start] = mark.start
    for piece in segments(state, [mark.name]):
        kept = piece.winners.get(mark.name)
        if kept is None or kept.key != key:
            continue
        inner = (position for position, _ in values if piece.start < position < piece.stop)
        cuts = sorted({piece.start, piece.stop, *inner})
        for low, high in pairwise(cuts):
            before = next((value for position, value in reversed(values) if position <= low), None)
            draft.mark(
                mark.name,
                before,
                anchors.get(low) or anchor_before(state, low),
                anchors.get(high) or anchor_before(state, high),
            )
