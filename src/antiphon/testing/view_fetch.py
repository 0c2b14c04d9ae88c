"""Exchange between a whole peer and one that holds a view, without a network: requests and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.cid import CID_SIZE
from antiphon.core.errors import MissingBlob
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.party.views.source import ViewSource

if TYPE_CHECKING:
    from antiphon.testing.peers import Peer


@dataclass
class Fetched:
    """Cost of the exchange for a view: rounds, ids in lists, blobs, bodies, and the sum in bytes."""

    rounds: int = 0
    listed: int = 0
    blobs: int = 0
    bodies: int = 0
    size: int = 0

    @property
    def count(self) -> int:
        return self.listed + self.blobs + self.bodies


def fetch_view(giver: Peer, taker: Peer) -> Fetched:
    """Exchange until the giver has nothing more that the taker wants. Blocks are passed on before: `Peers.pass_on`."""
    source = ViewSource(giver.party.key, giver.store, giver.blobs)
    view, fetched = taker.partial, Fetched()
    view.step()
    while _answer(source, taker, fetched) + _blobs(giver, taker, fetched) + _bodies(source, taker, fetched):
        fetched.rounds += 1
        view.step()
    return fetched


def _answer(source: ViewSource, taker: Peer, fetched: Fetched) -> int:
    ask = taker.partial.ask()
    if ask is None:
        return 0
    try:
        listed = source.belonging(ask.snapshot, ask.roots)
    except MissingBlob:
        return 0
    taker.partial.take_list(ask, listed)
    fetched.listed += len(listed.items)
    fetched.size += ITEM_ID_SIZE * (len(listed.items) + len(ask.roots)) + CID_SIZE
    return 1


def _blobs(giver: Peer, taker: Peer, fetched: Fetched) -> int:
    wanted = [cid for cid in taker.partial.blobs() if giver.blobs.has(cid)]
    found = [(cid, giver.blobs.get(cid)) for cid in wanted]
    taker.blobs.put_all(found)
    fetched.blobs += len(found)
    fetched.size += sum(CID_SIZE + len(data) for _, data in found)
    return len(found)


def _bodies(source: ViewSource, taker: Peer, fetched: Fetched) -> int:
    count = 0
    for feed, seqs in taker.partial.bodies().items():
        bodies = source.bodies(feed, seqs)
        count += taker.partial.take_bodies(feed, bodies)
        fetched.size += sum(map(len, bodies.values()))
    fetched.bodies += count
    return count
