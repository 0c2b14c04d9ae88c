"""A writer of data who signs two histories, and peers who find that out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

from tests.party.epochs.epoch_acts import change, member, note, pen
from tests.party.histories import edit

from antiphon.core.errors import FeedRetired, NotAuthorised, UnknownItem
from antiphon.core.ids import ItemId
from antiphon.core.keys import PublicKey
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.model.message import Genesis, Inception, write_genesis
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


def confront(peers: Peers) -> None:
    """Everybody compares all that they hold with all that the others do, and tells of forks."""
    for taker in peers.all:
        for giver in peers.all:
            taker.take(giver.ranges({}))
        member(taker).publish_forks()
    peers.sync()


def fork_with_items(peers: Peers, chance: random.Random, models: Sequence[str]) -> None:
    """Carol begins an item on each of two histories; Alice and Bob hold one each, and may write to it."""
    alice, bob, carol = peers.all[:3]
    carol.party.create(chance.choice(models))  # her first message has seen the admission of her feed
    peers.sync()
    for peer in (alice, bob):
        writer = pen(carol)
        for _ in range(chance.randrange(1, 3)):
            message = write_genesis(Genesis(chance.randbytes(16), chance.choice(models), 1))
            lamport = writer.record.lamport + 1
            item = ItemId.derive(lamport, party=peer.party.key, feed=writer.record.feed, genesis=message)
            peer.take(writer.extend([Draft(Kind.GENESIS, item, message)]))
            if chance.random() < 0.7:
                # After an earlier fork of the feed nobody sees its items.
                with suppress(UnknownItem, NotAuthorised, FeedRetired):
                    edit(peer, item, chance)


def view_branches(mallory: Peer, *models: str) -> tuple[bytes, list[Span]]:
    """Another block 0 of Mallory's data feed for each model, all with the same view; and the id of that view."""
    feed, party, key = member(mallory).open_data_feed().feed, mallory.party.key, pair_of("a view")
    proof = Inception(bytes(key.key), key.sign(Inception.statement(party, feed)))
    entries = member(mallory).machine.entries()
    item = bytes(ItemId.of_view(1 + max(entry.lamport for entry in entries), party=party, key=proof.key))
    spans = []
    for seed, model in enumerate(models):
        writer = SpanWriter(mallory.keys.pair(PublicKey(feed)), party, seed=seed)
        drafts = [Draft(Kind.GENESIS, item, write_genesis(Genesis(b"", model, 1, view=proof)))]
        spans += writer.extend(drafts, seen=entries)
    return item, spans


class Forked:
    """Mallory signs two histories of her data feed: Alice, who attests, holds one, and Carol the other."""

    def __init__(self, peers: Peers, *, longer: int = 0) -> None:
        self.peers = peers
        self.alice, self.mallory, self.carol = (peers.add(name) for name in ("alice", "mallory", "carol"))
        self.item = note(self.mallory, "common")
        peers.sync()
        self.feed = bytes(member(self.mallory).open_data_feed().feed)
        paper = pen(self.mallory)
        self.item.edit("set", "title", "for Alice")
        peers.pass_on(self.mallory, self.alice)
        drafts = [change(self.mallory, self.item.id, "title", "for Carol") for _ in range(1 + longer)]
        self.carol.take(paper.extend(drafts))
        peers.all.remove(self.mallory)

    def titles(self) -> list[str]:
        return [peer.party.item(self.item.id).value["title"] for peer in (self.alice, self.carol)]

    def known(self) -> bool:
        return all(member(peer).machine.authority.fork_ends.get(self.feed) for peer in (self.alice, self.carol))


def pruned(peers: Peers, *, longer: int, refers: bool, goes_on: bool) -> Forked:
    """Alice, who attests, makes an epoch on her branch and prunes it before she meets Carol, who holds the other."""
    case = Forked(peers, longer=longer)
    for number in range(longer // 2):  # so that the last blocks of the epoch do not follow the same one
        case.item.edit("set", "title", f"{number} for Alice")
    case.item.edit("set", "title", "for Alice")
    peers.all.append(case.mallory)
    peers.pass_on(case.mallory, case.alice)
    if refers:
        note(case.alice, "she has seen one branch")
    note(case.carol, "she has seen the other")
    case.alice.epochs.declare()
    assert case.alice.epochs.prune()
    if goes_on:
        case.item.edit("set", "subject", "behind the epoch")
        peers.pass_on(case.mallory, case.alice)
    peers.all.remove(case.mallory)
    return case
