"""`Rejudge`: folds items again when late rights, forks, bodies or model code change which messages count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.errors import InvalidMutation
from antiphon.feed.header import Flag, Kind
from antiphon.feed.span import Span
from antiphon.model.fold import NO_BODY
from antiphon.model.message import read_change
from antiphon.party.engine.authors import touched
from antiphon.party.engine.judge import Judge, changed
from antiphon.party.engine.lane import Lane

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine

_BODIES_AT_ONCE = 256


def decisive_in(span: Span, low: int, high: int) -> set[bytes]:
    """Return the items with messages among blocks [low, high) that decide whether other messages count.

    These are geneses and changes of access lists. Everything else commutes: mutations (unless their model keeps them),
    metadata, moves and deletions.
    """
    kinds = span.columns["kind"][low:high]
    found: set[bytes] = set()
    for index in np.flatnonzero(np.logical_or(np.equal(kinds, Kind.GENESIS), np.equal(kinds, Kind.CHANGE))).tolist():
        block = span.block(low + index)
        if block.kind is Kind.GENESIS or _guards(block.message):
            found.add(block.item)
    return found


def _guards(change: bytes | None) -> bool:
    """True if a change message changes the access list."""
    try:
        return change is None or read_change(change).access is not None
    except InvalidMutation:
        return False  # every fold refuses it


class Rejudge:
    """Finds the items whose messages count differently now, and has the engine fold them again."""

    def __init__(self, engine: Engine, judge: Judge) -> None:
        self._engine = engine
        self._judge = judge
        self._bodies_at = -1  # the feed store's transaction at the last search for bodies

    def judge_again(self) -> None:
        """Compare void ranges after a change of the control state. Fold items again whose messages changed standing.

        Items with access lists are folded again as well if authors of their messages have changed: roles and groups.
        """
        self._judge.forget(self._engine.authority.rights())
        spoilt = self._guarded()
        for lane in self._engine.delivery.lanes.values():
            state = lane.state
            if state.position == state.base and not state.voids:
                continue  # nothing is delivered to judge: a device may admit many feeds, and write to few
            voids = list(self._judge.voids(lane, state.base, state.position))
            for start, stop in changed(state.voids, voids):
                spoilt |= self.items_in(state.feed, start, stop)
            if state.voids != voids:
                self._engine.catch_up()  # waiting messages carry the old verdicts
                state.voids = voids
        self._engine.refold_all(spoilt)

    def _guarded(self) -> set[bytes]:
        """Return the items with access lists that have messages whose authors have changed."""
        open_ = {
            entry.id: entry.postings
            for entry in self._engine.cache.open()
            if entry.state and entry.state.access is not None
        }
        saved = self._engine.saved  # waiting messages will be folded with the new authors
        guarded = {*saved.guarded(), *open_}
        if not guarded:
            self._engine.authors.forget(self._engine.delivery.lanes.values())
            return set()
        parts = self._engine.authors.changed(self._engine.delivery.lanes.values())
        return touched(parts, ((item, saved.postings(item) + open_.get(item, [])) for item in guarded))

    def end_lane(self, lane: Lane, end: int) -> None:
        """End a feed, as every peer does, and take back all messages that were delivered beyond the end."""
        end = max(lane.state.base, self._batch_start(lane.feed, end))  # a final epoch stays
        if not self._engine.delivery.end_fork(lane.feed, end):
            return
        self._engine.catch_up()
        state = lane.state
        spoilt = self.items_in(state.feed, end, state.position)
        state.position = end
        state.segments = state.segments.until(max(end, state.base + 1))
        state.voids = [void._replace(stop=min(void.stop, end)) for void in state.voids if void.start < end]
        state.authors = [run._replace(stop=min(run.stop, end)) for run in state.authors if run.start < end]
        if end == state.base:
            cut = self._engine.base.feeds.get(state.feed) if self._engine.base is not None else None
            state.lamport, state.hash = (cut.lamport, cut.hash) if cut is not None else (0, bytes(32))
        else:
            last = self._engine.store.block(state.feed, end - 1)
            state.lamport, state.hash = last.lamport, last.hash
        self._engine.lamport = self._engine.delivery.lamport
        self._engine.refold_all(spoilt)

    def _batch_start(self, feed: bytes, end: int) -> int:
        """Round an end down to the start of its batch, as far as that is held (rule 3)."""
        bounds = self._engine.store.bounds(feed)
        while bounds.start < end < bounds.length and self._engine.store.block(feed, end - 1).flags & Flag.MORE:
            end -= 1
        return end

    def look_for_bodies(self) -> None:
        """Fold items again whose missing bodies have arrived since. The feed store does not announce bodies."""
        now = self._engine.store.transaction
        if now == self._bodies_at or self._engine.batch_open:
            return
        self._bodies_at = now
        self._engine.save()
        rows = self._engine.items.refused_for(NO_BODY, _BODIES_AT_ONCE)
        self._engine.bodiless = bool(rows)
        here = [row for row in rows if self._has_body(row.feed, row.seq)]
        self._engine.refold_all({row.item for row in here})

    def pick_up(self) -> None:
        """Fold opaque items whose model has been registered since, from their messages in the feeds."""
        waiting = {
            item for item, name, version in self._engine.items.opaque() if (name, version) in self._engine.models
        }
        for entry in self._engine.cache.open():  # includes items that are not saved yet
            item = entry.state
            if item is not None and item.model is None and (item.name, item.version) in self._engine.models:
                waiting.add(entry.id)
        self._engine.refold_all(waiting)

    def items_in(self, feed: bytes, start: int, stop: int, *, decisive: bool = False) -> set[bytes]:
        """Return the items with messages in a range of a feed; with `decisive`, as `decisive_in` does."""
        found: set[bytes] = set()
        for span in self._engine.store.spans(feed, max(start, self._engine.store.bounds(feed).start)):
            if span.first >= stop:
                break
            count = min(span.count, stop - span.first)
            found.update(decisive_in(span, 0, count) if decisive else span.columns[:count]["item"].tolist())
        return found

    def _has_body(self, feed: bytes, seq: int) -> bool:
        held = seq >= self._engine.store.bounds(feed).start
        return held and self._engine.store.block(feed, seq).message is not None
