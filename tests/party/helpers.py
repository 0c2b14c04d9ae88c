"""Helpers of the tests of party: compare peers, forge messages, narrow rights; `Story`, an ORDERED model."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.halo.credentials.claims import FeedEnd, Position, Role
from antiphon.model.access import Access
from antiphon.model.factory import ModelFactory
from antiphon.model.message import Change, wrap, write_change
from antiphon.model.model import Feeding, Model
from antiphon.model.object.model import ObjectModel
from antiphon.party.live.item import Item
from antiphon.testing.peers import Peer, Peers

OBJECT = ObjectModel()


def equal(peers: Peers) -> None:
    """All peers agree on everything, and with a peer that is built from the feeds alone."""
    peers.sync()
    first = shown(peers.all[0])
    for peer in peers.all[1:]:
        assert shown(peer) == first
    last = peers.all[-1]
    last.restart(crash=True)
    assert shown(last) == first
    last.rebuild()
    assert shown(last) == first


def shown(peer: Peer) -> Any:
    party = peer.party
    writers = {item: party.item(item).writers for item in party.items()}
    return peer.snapshots(), party.snapshot(SYSTEM_ITEM), writers, party.refused()


def reasons(peer: Peer, *stamps: Stamp) -> list[str]:
    refused = {(one.feed, one.seq): one.reason for one in peer.party.refused()}
    return [refused.get((stamp.feed, stamp.seq), "") for stamp in stamps]


def setting(key: str, value: str) -> bytes:
    return wrap(Kind.MUTATION, OBJECT.set(OBJECT.initial(), key, value))


def guarding(grant: Iterable[bytes] = (), revoke: Iterable[bytes] = (), cuts: dict[bytes, int] | None = None) -> bytes:
    access = Access(tuple(sorted(grant)), tuple(sorted(revoke)), tuple(sorted((cuts or {}).items())))
    return write_change(Change(access=access))


def sent(peer: Peer, item: Item, *messages: tuple[Kind, bytes], seen: Iterable[Entry] = ()) -> list[Stamp]:
    """Straight into the feed, with a lamport above what is shown as seen, now or before, and perhaps below all else."""
    written = peer.forge(*(Draft(kind, item.id, message) for kind, message in messages), seen=seen)
    return [Stamp(block.lamport, block.feed, block.seq) for block in written]


def all_of(peer: Peer) -> list[Entry]:
    """Everything that a peer can show as seen."""
    with peer.party.locked() as engine:
        lanes = [lane.state for lane in engine.delivery.lanes.values() if lane.state.position]
        return [
            *(Entry(one.feed, one.position - 1, one.lamport, one.hash) for one in lanes),
            *engine.authority.entries(),
        ]


def narrow(peers: Peers, chance: random.Random) -> None:
    """Take something away: a role, a message, the genesis of an item, a feed, the right to write to one item."""
    alice, carol = peers.all[0], peers.all[2]
    assert alice.member is not None
    what = chance.randrange(12)
    if what < 3:
        alice.member.demote(carol.key, [Role.READER])
    elif what < 6:
        alice.member.admit(carol.key, [Role.EDITOR])
    elif what < 8:
        frame = alice.party.timeframe
        if frame:
            feed = chance.choice(sorted(frame))
            alice.member.erase(Position(feed, chance.randrange(frame[feed] + 1)))
    elif what == 11 and chance.random() < 0.5:
        end_feed(chance.choice(peers.all[1:3]), chance)
    elif items := alice.party.items():
        item = alice.party.item(chance.choice(items))
        if what < 10:
            item.restrict_writers(chance.choice(peers.all).key)
        elif history := item.history():  # all of it may be pruned
            stamp = history[0].stamp
            alice.member.erase(Position(stamp.feed, stamp.seq))


def end_feed(peer: Peer, chance: random.Random) -> None:
    """End this device's own data feed anywhere, and keep its control feed."""
    member = peer.member
    assert member is not None
    feed = bytes(member.open_data_feed().feed)
    assert member.control is not None
    lengths = member.lengths()
    cuts = {feed: chance.randrange(lengths[feed] + 1), bytes(member.control.feed): 1 + lengths[member.control.feed]}
    member.write_claim(FeedEnd(member.device.identity, bytes(member.device.key), cuts))


class Story(Model[list[bytes]]):
    """ORDERED: words in the total order."""

    name = "test/story"
    feeding = Feeding.ORDERED
    commands = frozenset({"tell"})

    def initial(self) -> list[bytes]:
        return []

    def apply(self, state: list[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if not void:
            state.append(mutation)

    def snapshot(self, state: list[bytes]) -> bytes:
        return b" ".join(state)

    def restore(self, data: bytes) -> list[bytes]:
        return data.split(b" ") if data else []

    def value(self, state: list[bytes]) -> list[bytes]:
        return list(state)

    def tell(self, state: list[bytes], word: str, *, feed: bytes) -> bytes:
        return word.encode()


def factory(*more: type[Model[Any]]) -> ModelFactory:
    models = ModelFactory.standard()
    for model in more:
        models.register(model)
    return models
