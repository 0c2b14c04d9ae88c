"""Orphans: insertions whose parent element is not here, and where they are shown.

Delivery is causal, so an honest writer's parent is always here before its child, with one exception: the writer of the
parent signed two histories. What it typed beyond the fork is gone, and what others typed beside that must stay. So a
missing parent counts as a deleted element right after the last element of its writer before it, or at the beginning of
the text if there is none: people type from left to right. That depends on the elements that are here, not on the order
in which they came. The state and its snapshots keep orphans as insertions that wait, and if the parent does come, they
are shown beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge

from antiphon.model.text import snapshot_reader
from antiphon.model.text.marks import TextState
from antiphon.model.text.runs import Unit, Writer


def visible(state: TextState) -> TextState:
    """Return the text to read and to edit by positions: the state itself, or a copy in which orphans have a place.

    The copy is made when it is first needed. From then on messages are applied to both.
    """
    if not state.orphans:
        return state
    if state.copy is None:
        state.copy = snapshot_reader.without_waiting(state)
        state.copy.copies = state.copies
        _adopt(state, state.copy, state.writers.values())
    return state.copy


def current_copy(state: TextState, feed: bytes) -> TextState | None:
    """Return the copy to which a message of a feed must be applied, too; drop it if it has to be made anew.

    Call this after the message was applied to the state. It may have brought an element that was missing, or one after
    which missing ones are shown; clocks ascend, so both lie above all that the feed wrote before.
    """
    copy = state.copy
    if copy is not None and (not state.orphans or copy.missing.get(feed, -1) >= copy.writer(feed).floor):
        copy = state.copy = None
    return copy


def place_orphans(state: TextState, copy: TextState) -> None:
    """Give a place to the orphans that a message has just brought into the copy."""
    if copy.orphans:
        _adopt(state, copy, copy.writers.values())


def _adopt(state: TextState, copy: TextState, writers: Iterable[Writer]) -> None:
    """Put the insertions of writers that wait into the copy. The copy keeps none that waits.

    A parent is older than what hangs below it. So in the order of clocks, a parent that is not here yet is missing.
    """
    waiting = [writer.units for writer in writers if writer.units]
    for writer in copy.writers.values():
        writer.units = writer.waiting = None
    copy.orphans = 0
    for unit in merge(*waiting, key=_start):
        parent = unit.above
        assert parent is not None
        unit.writer, unit.above = copy.writer(unit.writer.feed), copy.writer(parent.feed)
        copy.insert(unit, fresh=False)
        if copy.orphans:
            feed, clock = parent.feed, unit.above_clock
            copy.missing[feed] = max(clock, copy.missing.get(feed, clock))
            copy.insert(_stand_in(state, unit.above, clock), fresh=False)  # that wakes it
    assert not copy.orphans
    state.leaves.tidy()
    copy.leaves.tidy()


def _start(unit: Unit) -> int:
    return unit.start


def _stand_in(state: TextState, writer: Writer, clock: int) -> Unit:
    """Return a deleted element in the place of a missing one."""
    unit = Unit(writer, clock, 1, None, None)
    known = state.writers.get(writer.feed)
    before = None if known is None else known.runs.at(clock)
    if before is not None:
        unit.above = writer
        unit.above_clock = before.clock(min((clock - before.start) // before.stride, before.length - 1))
    return unit
