"""What passes between two stores when one follows a view alone: the list of what belongs to it, blobs, bodies.

All of it is checked where it comes in: blobs by their CIDs, bodies by their headers, and what is on a list by what the
items themselves say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.api.taking import take_blobs
from antiphon.core.errors import MissingBlob

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.party.oneview import OneView
    from antiphon.party.viewsource import ViewSource


def fetch_view(giver: Party, taker: Party, view: OneView) -> int:
    """Until the taker wants nothing more that the giver has; returns how many lists, blobs and bodies came."""
    source, theirs, ours, total = giver.epochs.views, giver.processor.blobs, taker.processor.blobs, 0
    with taker.store.followed.driving, ours.putting():  # nobody collects them before the party stands on them
        view.step()
        while moved := _answer(source, view) + take_blobs(theirs, ours, view.blobs()) + _bodies(source, view):
            total += moved
            view.step()
    return total


def _answer(source: ViewSource, view: OneView) -> int:
    ask = view.ask()
    if ask is None:
        return 0
    try:
        view.take_list(ask, source.belonging(ask.snapshot, ask.roots))
    except MissingBlob:  # who gives does not have that snapshot whole
        return 0
    return 1


def _bodies(source: ViewSource, view: OneView) -> int:
    return sum(view.take_bodies(feed, source.bodies(feed, seqs)) for feed, seqs in view.bodies().items())
