"""Transfer of a held view from one store to another: the list of items that belong to it, blobs and bodies.

Everything is checked on arrival: blobs by their CIDs, bodies by their headers, and the list by the items themselves.
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
    """Fetch until the taker wants nothing more that the giver has. Return the number of lists, blobs and bodies."""
    source, theirs, ours, total = giver.epochs.views, giver.processor.blobs, taker.processor.blobs, 0
    with taker.store.held_views.step_lock, ours.putting():  # no garbage collection before the party uses the blobs
        view.step()
        while moved := _answer(source, view) + take_blobs(theirs, ours, view.blobs()) + _bodies(source, view):
            total += moved
            view.step()
    return total


def _answer(source: ViewSource, view: PartialParty) -> int:
    """Answer the view's request for the list of items that belong to it. Return the number of answers."""
    ask = view.ask()
    if ask is None:
        return 0
    try:
        view.take_list(ask, source.belonging(ask.snapshot, ask.roots))
    except MissingBlob:  # the giver does not have the complete snapshot
        return 0
    return 1


def _bodies(source: ViewSource, view: PartialParty) -> int:
    """Copy the bodies that the view requests. Return their number."""
    return sum(view.take_bodies(feed, source.bodies(feed, seqs)) for feed, seqs in view.bodies().items())


def fetch_rest(giver: Party, taker: Party) -> tuple[int, bool]:
    """For a store that is to hold the whole party again: fetch the bodies outside its epoch, and the snapshot.

    Return the number of bodies and blobs, and whether everything has arrived.
    """
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


def fetch_dropped(giver: Party, taker: Party) -> int:
    """Fetch the bodies of feeds that the taker ignores no longer. Return how many came."""
    moved, base = 0, taker.processor.engine.base
    for feed in taker.operator.wanted():
        start = max(taker.processor.store.bounds(feed).start, 0 if base is None else base.length(feed))
        whole = True
        for seqs in _left_out(taker.processor.store, feed, start):
            came = _fill(giver, taker, feed, seqs)
            moved += len(came)
            whole = whole and came | taker.processor.authority.erased(feed) >= set(seqs)
        if whole:
            taker.operator.came(feed)
    if moved:
        taker.refresh()
    return moved


def _left_out(store: FeedReader, feed: bytes, start: int) -> list[list[int]]:
    """Return the seqs of the bodies that were left out, by span."""
    return [
        [span.first + at for at in range(low, high) if span.states[at] == BodyState.LEFT_OUT]
        for span, low, high in store.runs(feed, start)
        if BodyState.LEFT_OUT in span.states[low:high]
    ]


def _fill(giver: Party, taker: Party, feed: bytes, seqs: list[int]) -> set[int]:
    """Copy bodies that were left out. Return their seqs."""
    filled: set[int] = set()
    while bodies := giver.epochs.views.bodies(feed, set(seqs) - filled):
        taker.processor.store.fill(feed, bodies)
        filled |= bodies.keys()
    return filled
