"""Random histories about access lists: groups, roles, revocations, forks, epochs and crashes; and how states must be.

`check` compares what a peer shows of items with access lists, and the authors that it has recorded, with what follows
from the same blocks when every author is asked for again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress

from tests.party.epochs.epoch_acts import member, pen
from tests.party.forked import confront
from tests.party.helpers import all_of, end_feed, guarding, sent, setting

from antiphon.core.errors import AntiphonError, MissingBlob
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Narrowing, Position, Role
from antiphon.model import item_codec
from antiphon.model.access import Author
from antiphon.model.fold import fold
from antiphon.party.engine.authors import NOBODY, Authors
from antiphon.party.engine.engine import Engine
from antiphon.testing.peers import Peer, Peers

GROUPS = [bytes([name]) * 32 for name in b"gh"]


class History:
    """One random history of a party of three, of which the first is the owner."""

    def __init__(self, peers: Peers, chance: random.Random) -> None:
        self.peers = peers
        self.chance = chance
        for name in ("alice", "bob", "carol"):
            peers.add(name)
        alice, bob, carol = peers.all
        self.items = [peer.party.create("antiphon/object").id for peer in (alice, alice, bob)]
        for group, peer in zip(GROUPS, (bob, carol), strict=True):
            member(alice).admit_to_group(group, peer.key)
        peers.sync()
        for item in self.items:
            alice.party.item(item).restrict_writers(*chance.sample(GROUPS, chance.randrange(1, 3)))
        peers.sync()

    def step(self) -> None:
        """Let somebody do something, as far as it is allowed, and let somebody hear of it."""
        chance = self.chance
        peer = chance.choice(self.peers.all)
        act = chance.choice(ACTS)
        with suppress(AntiphonError):
            act(self, peer)
        if chance.random() < 0.5:
            self.peers.pass_on(chance.choice(self.peers.all), peer)
        check(peer)

    def names(self) -> list[bytes]:
        known = [*(bytes(peer.key) for peer in self.peers.all), *GROUPS]
        return self.chance.sample(known, self.chance.randrange(1, 3))

    # -- acts

    def write(self, peer: Peer) -> None:
        with peer.party.batch():
            for item in self.chance.sample(self.items, self.chance.randrange(1, 3)):
                peer.party.item(item).edit("set", self.chance.choice("abc"), self.chance.randrange(100))

    def restrict(self, peer: Peer) -> None:
        peer.party.item(self.chance.choice(self.items)).restrict_writers(*self.names())

    def forge(self, peer: Peer) -> None:
        """Write without any check, perhaps far below the lamports of others."""
        item = peer.party.item(self.chance.choice(self.items))
        messages = [(Kind.MUTATION, setting("d", self.chance.choice("xyz")))]
        if self.chance.random() < 0.5:
            messages.append((Kind.CHANGE, guarding(self.names(), self.names() if self.chance.random() < 0.3 else ())))
        seen = all_of(peer)
        sent(peer, item, *messages, seen=self.chance.sample(seen, self.chance.randrange(len(seen) + 1)))
        peer.party.process()

    def gather(self, peer: Peer) -> None:
        member(self.peers.all[0]).admit_to_group(self.chance.choice(GROUPS), self.chance.choice(self.names()))

    def part(self, peer: Peer) -> None:
        """Alice takes somebody out of a group, perhaps from an earlier message on."""
        self.narrow(self.chance.choice(self.peers.all), group=self.chance.choice(GROUPS))

    def promote(self, peer: Peer) -> None:
        roles = self.chance.choice([[Role.OWNER], [Role.EDITOR], [Role.OWNER, Role.EDITOR]])
        member(self.peers.all[0]).admit(self.chance.choice(self.peers.all[1:]).key, roles)

    def demote(self, peer: Peer) -> None:
        roles = self.chance.choice([[], [Role.READER], [Role.EDITOR], [Role.EDITOR]])
        self.narrow(self.chance.choice(self.peers.all[1:]), roles)

    def narrow(self, other: Peer, roles: Iterable[Role] = (), group: bytes = b"") -> None:
        """Alice takes rights from somebody, with a cut at any message that she has, or at the last one."""
        alice, feed = self.peers.all[0], member(other).data
        length = alice.lengths().get(feed.feed, 0) if feed is not None else 0
        cuts = {bytes(feed.feed): self.chance.choice([length, self.chance.randrange(length + 1)])} if feed else {}
        member(alice).write_claim(Narrowing(bytes(other.key), frozenset(roles), cuts, group=group))

    def revoke(self, peer: Peer) -> None:
        alice, other = self.peers.all[0], self.chance.choice(self.peers.all[1:])
        member(alice).revoke(other.key, before=self.earlier(alice, other))

    def end(self, peer: Peer) -> None:
        if peer is not self.peers.all[0]:
            end_feed(peer, self.chance)

    def erase(self, peer: Peer) -> None:
        frame = peer.party.timeframe
        feed = self.chance.choice(sorted(frame))
        member(peer).erase(Position(feed, self.chance.randrange(frame[feed] + 1)))

    def fork(self, peer: Peer) -> None:
        """Sign two continuations of one's own data feed; two others get one each."""
        peer = self.peers.all[2]
        messages = [Draft(Kind.MUTATION, self.chance.choice(self.items), setting("f", name)) for name in "uv"]
        for taker, draft in zip(self.peers.all[:2], messages, strict=True):
            taker.take(pen(peer).extend([draft]))
        if self.chance.random() < 0.5:
            confront(self.peers)

    def crash(self, peer: Peer) -> None:
        peer.restart(crash=self.chance.random() < 0.7)

    def rebuild(self, peer: Peer) -> None:
        peer.rebuild()

    def declare(self, peer: Peer) -> None:
        self.peers.all[0].epochs.declare()

    def stand(self, peer: Peer) -> None:
        self.peers.settle()

    def save(self, peer: Peer) -> None:
        peer.party.save()

    def earlier(self, peer: Peer, other: Peer) -> Stamp | None:
        """A message of another peer, before which it is cut; None to cut it at the last one."""
        feed = member(other).data
        length = 0 if feed is None else peer.store.record(feed.feed).length
        if feed is None or not length or self.chance.random() < 0.4:
            return None
        block = peer.store.block(feed.feed, self.chance.randrange(length))
        return Stamp(block.lamport, block.feed, block.seq)


ACTS = [
    *[History.write] * 8,
    *[History.restrict] * 2,
    *[History.forge] * 3,
    *[History.gather] * 3,
    *[History.part] * 4,
    *[History.promote] * 2,
    *[History.demote] * 3,
    History.revoke,
    History.end,
    History.erase,
    History.fork,
    *[History.crash] * 3,
    History.rebuild,
    *[History.declare] * 2,
    *[History.stand] * 2,
    History.save,
]


def check(peer: Peer) -> None:
    """A peer shows what its blocks say when all authors are asked for again, and records no others."""
    peer.party.process()
    with peer.party.locked() as engine:
        engine.catch_up()
        fresh = Authors(engine.authority)
        for item in {*engine.saved.guarded(), *(entry.id for entry in engine.cache.open())}:
            _check_item(engine, item, fresh)
        for lane in engine.delivery.lanes.values():
            state = lane.state
            for run in state.authors:
                for told in fresh.runs(lane, max(run.start, state.base), min(run.stop, state.position)):
                    assert run.digest in (NOBODY, told.digest), (peer.name, run, told)


def _check_item(engine: Engine, item: bytes, fresh: Authors) -> None:
    def author(feed: bytes, seq: int) -> Author:
        lane = engine.delivery.lanes.get(feed)
        return engine.authority.author(feed, seq, {}) if lane is None else fresh.of(lane, seq)

    entry = engine.cache.get(item)
    notes = engine.notes_outside(item, entry.postings if entry is not None else ())
    beyond = engine.beyond(item, notes)
    try:
        based = engine.based(item)
    except MissingBlob:
        return  # a peer that folded what an epoch holds by itself fetches the snapshot only when it needs it
    told = fold(engine.party, item, based, notes, engine.models, author, whole=True, beyond=beyond).state
    if entry is None:
        record = engine.load([item]).get(item)
        entry = engine.entry_of(item, record)
    shown = entry.state
    assert (shown is None) == (told is None), item.hex()
    if shown is not None and told is not None:
        assert item_codec.snapshot(shown) == item_codec.snapshot(told), item.hex()
