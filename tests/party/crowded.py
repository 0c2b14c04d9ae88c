"""A device that opens more data feeds than count, and peers that write to the items which begin there."""

from __future__ import annotations

import random

from tests.party.epochs.epoch_acts import change, member

from antiphon.core.ids import ItemId
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.limits import DEVICE_FEEDS_MAX
from antiphon.model.message import Genesis, write_genesis
from antiphon.testing.peers import Peers, pair_of
from antiphon.testing.spans import SpanWriter


def open_many_feeds(peers: Peers, chance: random.Random) -> None:
    """Somebody opens more data feeds than a device may have, and begins items in some. Others may write to them.

    A genesis in a feed beyond the budget is void, so its item is hidden until others have built on it.
    """
    peer, other = chance.sample(peers.all, 2)
    pairs = [pair_of(f"{peer.name}'s feed {chance.random()}") for _ in range(DEVICE_FEEDS_MAX)]
    for pair in pairs:
        peer.admit_feed(pair)
    entries = member(peer).machine.entries()
    lamport, items = 1 + max(entry.lamport for entry in entries), []
    for pair in (chance.choice(pairs[:-1]), pairs[-1]):
        message = write_genesis(Genesis(chance.randbytes(16), "antiphon/object", 1))
        items.append(ItemId.derive(lamport, party=peer.party.key, feed=pair.key, genesis=message))
        writer = SpanWriter(pair, peer.party.key, seed=len(items))
        peer.take(writer.extend([Draft(Kind.GENESIS, items[-1], message)], seen=entries))
    if chance.random() < 0.7:
        peers.pass_on(peer, other)
        other.forge(change(other, chance.choice(items), "title", "built on"), seen=member(other).machine.entries())
        other.party.process()
