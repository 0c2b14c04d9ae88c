"""What passes between two stores when one follows a view alone: the list of what belongs to it, blobs, bodies.

All of it is checked where it comes in: blobs by their CIDs, bodies by their headers, and what is on a list by what the
items themselves say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.api.copy_blobs import take_blobs
from antiphon.core.errors import MissingBlob
from antiphon.feed.block import BodyState

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.feed.store.reader import FeedReader
    from antiphon.party.views.partial_party import PartialParty
    from antiphon.party.views.source import ViewSource


def fetch_view(giver: Party, taker: Party, view: PartialParty) -> int:
    """Until the taker wants nothing more that the giver has; returns how many lists, blobs and bodies came."""
    source, theirs, ours, total = giver.epochs.views, giver.processor.blobs, taker.processor.blobs, 0
    with taker.store.held_views.step_lock, ours.putting():  # nobody collects them before the party stands on them
        view.step()
        while moved := _answer(source, view) + take_blobs(theirs, ours, view.blobs()) + _bodies(source, view):
            total += moved
            view.step()
    return total


def _answer(source: ViewSource, view: PartialParty) -> int:
    ask = view.ask()
    if ask is None:
        return 0
    try:
        view.take_list(ask, source.belonging(ask.snapshot, ask.roots))
    except MissingBlob:  # who gives does not have that snapshot whole
        return 0
    return 1


def _bodies(source: ViewSource, view: PartialParty) -> int:
    return sum(view.take_bodies(feed, source.bodies(feed, seqs)) for feed, seqs in view.bodies().items())


def fetch_rest(giver: Party, taker: Party) -> tuple[int, bool]:
    """For one that wants all of a party again: bodies outside its epoch, and the snapshot. How much came; is it all?"""
    base, ours = taker.processor.engine.base, taker.processor.blobs
    moved, whole = 0, True
    for record in taker.processor.store.feeds(taker.key):
        start = max(record.start, 0 if base is None else base.length(record.feed))
        for seqs in _left_out(taker.processor.store, record.feed, start):
            came = _fill(giver, taker, record.feed, seqs)
            moved += len(came)
            whole = whole and came | taker.processor.authority.erased(record.feed) >= set(seqs)
    if base is not None:
        with ours.putting():
            while taken := take_blobs(giver.processor.blobs, ours, base.missing()):
                moved += taken
        whole = whole and not base.missing()
    return moved, whole


def _left_out(store: FeedReader, feed: bytes, start: int) -> list[list[int]]:
    """The seqs of bodies that were left out, by span."""
    return [
        [span.first + at for at in range(low, high) if span.states[at] == BodyState.LEFT_OUT]
        for span, low, high in store.runs(feed, start)
        if BodyState.LEFT_OUT in span.states[low:high]
    ]


def _fill(giver: Party, taker: Party, feed: bytes, seqs: list[int]) -> set[int]:
    filled: set[int] = set()
    while bodies := giver.epochs.views.bodies(feed, set(seqs) - filled):
        taker.processor.store.fill(feed, bodies)
        filled |= bodies.keys()
    return filled
