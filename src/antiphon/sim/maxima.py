"""`Maxima`: the largest sizes of a peer's queues, caches and tables during a run, sampled whenever the peer works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.mesh.replication import limits
from antiphon.party.engine import demux

if TYPE_CHECKING:
    from antiphon.sim.peer import SimPeer

_OPEN_BEYOND = 1_024  # items above the limit of the cache that a batch or unsaved changes may keep open


@dataclass(slots=True)
class Maxima:
    """The maxima of one peer, over all its restarts."""

    waiting: int = 0  # messages delivered and not folded
    open_items: int = 0
    requests: int = 0  # open requests of one session
    answers: int = 0  # requests of one neighbour that are not fully answered
    feeds: int = 0  # announced by one neighbour
    claims: int = 0  # requested by all sessions together

    def look(self, peer: SimPeer) -> None:
        """Sample the current sizes."""
        if peer.party.running:
            self.waiting = max(self.waiting, peer.party.engine._demux.count)
            self.open_items = max(self.open_items, len(peer.party.engine.cache))
        for session in peer.sessions.values():
            self.requests = max(self.requests, session._requester.waiting)
            self.answers = max(self.answers, len(session._responder))
            self.feeds = max(self.feeds, len(session._requester.theirs))
        self.claims = max(self.claims, len(peer.replica.in_flight))

    def beyond(self, peer: SimPeer) -> Iterator[str]:
        """Yield a text for each size that exceeded its limit."""
        each = max(limits.RANGES_MAX, limits.CIDS_MAX) * limits.REQUESTS_MAX
        bounds = {
            "messages that wait to be folded": (self.waiting, demux.NOTES_MAX),
            "open items": (self.open_items, peer.open_items + _OPEN_BEYOND),
            "requests to one neighbour": (self.requests, limits.REQUESTS_MAX),
            "requests of one neighbour": (self.answers, limits.REQUESTS_MAX),
            "feeds of one neighbour": (self.feeds, limits.FEEDS_MAX),
            "requested feeds and blobs": (self.claims, each * max(1, len(peer.neighbours))),
        }
        for name, (found, most) in bounds.items():
            if found > most:
                yield f"{found} {name}, where {most} are allowed"
