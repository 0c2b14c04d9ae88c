"""Scorched earth: the creator of an item takes its own genesis away, and what others wrote into it stays (rule 26)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.attacks.equivocator import check_all
from tests.party.epochs.epoch_acts import agree_on, epoch, join, member, same, say
from tests.party.forked import confront

from antiphon.core.errors import UnknownItem
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.keys import PublicKey
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Erasure, FeedEnd, Position, Role
from antiphon.halo.rights.verdict import was_taken
from antiphon.model.message import Genesis, write_genesis
from antiphon.party.live.item import Item
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as party:
        for name in ("alice", "bob", "mallory"):
            party.add(name)
        yield party


def paper(peer: Peer, words: str = "Once upon a time") -> Item:
    """A text that others may write into."""
    item = peer.party.create("antiphon/text")
    item.edit("insert", 0, words)
    return item


def feed_of(peer: Peer) -> bytes:
    return bytes(member(peer).open_data_feed().feed)


def control_of(peer: Peer) -> bytes:
    control = member(peer).control
    assert control is not None
    return bytes(control.feed)


def ends_itself(peers: Peers, mallory: Peer) -> None:
    """The device ends its own data feed before the first block, and keeps its control feed."""
    own = {control_of(mallory): 1 + peers.all[0].lengths()[control_of(mallory)]}
    say(mallory, FeedEnd(bytes(mallory.key), bytes(mallory.device.key), own))


def ends_its_control_feed(peers: Peers, mallory: Peer) -> None:
    """The device ends all its feeds before the first block: then no admission of its data feed is in force either."""
    say(mallory, FeedEnd(bytes(mallory.key), bytes(mallory.device.key), {}))


def erases_all(peers: Peers, mallory: Peer) -> None:
    feed = feed_of(mallory)
    say(mallory, Erasure(tuple(Position(feed, seq) for seq in range(mallory.lengths()[feed]))))


def forks_its_data_feed(peers: Peers, mallory: Peer) -> None:
    """The device signs another block 0 of its data feed: there is no history of it any more."""
    writer = SpanWriter(mallory.keys.pair(PublicKey(feed_of(mallory))), mallory.party.key, seed=5)
    (twin,) = writer.extend([Draft(Kind.MUTATION, SYSTEM_ITEM, b"another beginning")])
    for peer in peers.all:
        peer.take([twin])
    confront(peers)


def forks_all_of_its_control_feed(peers: Peers, mallory: Peer) -> None:
    """The device signs another block 0 of its control feed: nothing in it is history."""
    writer = SpanWriter(mallory.keys.pair(PublicKey(control_of(mallory))), mallory.party.key, seed=5)
    (twin,) = writer.extend([Draft(Kind.CREDENTIAL, SYSTEM_ITEM, b"another beginning")])
    for peer in peers.all:
        peer.take([twin])
    confront(peers)


def forks_its_control_feed(peers: Peers, mallory: Peer) -> None:
    """The device signs another block 1 of its control feed: the admission of its data feed is beyond the fork."""
    writer = SpanWriter(mallory.keys.pair(PublicKey(control_of(mallory))), mallory.party.key, seed=5)
    first = mallory.store.block(control_of(mallory), 0)
    writer.record = replace(writer.record, length=1, hash=first.hash, lamport=first.lamport)
    (twin,) = writer.extend([Draft(Kind.CREDENTIAL, SYSTEM_ITEM, b"another act")])
    for peer in peers.all:
        peer.take([twin])
    for peer in peers.all[:2]:
        member(peer).publish_forks()


Attack = Callable[[Peers, Peer], None]
ATTACKS = [ends_itself, ends_its_control_feed, erases_all]
FORKS: list[Attack] = [forks_its_control_feed, forks_all_of_its_control_feed]


@pytest.mark.parametrize("attack", [*ATTACKS, *FORKS])
def test_what_others_wrote_into_an_item_stays(peers: Peers, attack: Attack) -> None:
    alice, bob, mallory = peers.all
    item = paper(mallory)
    child = mallory.party.create("antiphon/object", parent=item.id)
    peers.sync()
    bob.party.item(item.id).edit("insert", 4, ", Bob wrote,")
    bob.party.item(child.id).edit("set", "by", "Bob")
    peers.sync()
    attack(peers, mallory)
    check_all(peers, item, ", Bob wrote,")
    for peer in (alice, bob):
        assert peer.party.item(child.id).value == {"by": "Bob"}
        assert peer.party.item(child.id).parent == item.id
        peer.party.item(item.id).edit("insert", 0, peer.name)
    check_all(peers, item, "bobalice, Bob wrote,")


def test_what_others_wrote_into_an_item_stays_beyond_a_fork(peers: Peers) -> None:
    """Nobody has the bodies of its branch but those of geneses, so a text begins empty."""
    alice, bob, mallory = peers.all
    item = mallory.party.create("antiphon/text")
    child = mallory.party.create("antiphon/object", parent=item.id)
    peers.sync()
    bob.party.item(item.id).edit("insert", 0, "Bob wrote")
    bob.party.item(child.id).edit("set", "by", "Bob")
    peers.sync()
    forks_its_data_feed(peers, mallory)
    peers.all.remove(mallory)
    check_all(peers, item, "Bob wrote")
    for peer in (alice, bob):
        assert peer.party.item(child.id).value == {"by": "Bob"}
        assert peer.party.item(child.id).parent == item.id
    alice.party.item(item.id).edit("insert", 3, " and Alice")
    check_all(peers, item, "Bob and Alice wrote")
    agree_on(peers, alice)
    epoch(peers)
    check_all(peers, item, "Bob and Alice wrote")
    same(*peers.all, join(peers, "dora"))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_item_that_nobody_built_on_is_hidden_until_somebody_does(peers: Peers, attack: Attack) -> None:
    """Bob was away: his message comes after the attack, and after an epoch."""
    alice, bob, mallory = peers.all
    agree_on(peers, alice)
    item = paper(mallory)
    peers.sync()
    bob.party.item(item.id).edit("insert", 4, ", Bob wrote,")
    peers.all.remove(bob)
    attack(peers, mallory)
    peers.sync()
    for peer in peers.all:
        with pytest.raises(UnknownItem, match="nobody else has built on it"):
            _ = peer.party.item(item.id).value
        assert item.id not in peer.party.items()
    epoch(peers)
    with pytest.raises(UnknownItem):
        _ = alice.party.item(item.id).value
    carol = join(peers, "carol", Role.EDITOR)
    assert carol.party.status().items == alice.party.status().items == 0
    peers.all.append(bob)
    peers.settle()
    check_all(peers, item, ", Bob wrote,")
    same(*peers.all)
    epoch(peers)
    check_all(peers, item, ", Bob wrote,")
    same(*peers.all, join(peers, "dora"))


def test_a_hidden_item_is_dropped_like_a_deleted_one(peers: Peers) -> None:
    alice, bob, mallory = peers.all
    agree_on(peers, alice, deleted_epochs=1)
    item = paper(mallory)
    kept = paper(alice)
    peers.sync()
    bob.party.item(item.id).edit("insert", 4, ", Bob wrote,")
    peers.all.remove(bob)
    ends_itself(peers, mallory)
    for number in range(2):
        alice.party.item(kept.id).edit("insert", 0, str(number))
        epoch(peers)
        base = alice.epochs.base
        assert base is not None
        assert (base.item(item.id) is not None, base.hidden_count) == ((True, 1), (False, 0))[number]
    peers.all.append(bob)
    peers.settle()
    for peer in peers.all:
        with pytest.raises(UnknownItem):
            _ = peer.party.item(item.id).value
    same(*peers.all)


def test_a_revoked_member_leaves_its_items_to_those_who_built_on_them(peers: Peers) -> None:
    alice, bob, mallory = peers.all
    peers.sync()
    peers.all.remove(mallory)
    late = paper(mallory, "past the cut")
    taken = paper(mallory, "past the cut, too")
    member(alice).revoke(mallory.key)
    peers.all.append(mallory)
    peers.pass_on(mallory, bob)
    bob.party.item(late.id).edit("insert", 0, "Bob has not heard of it: ")
    check_all(peers, late, "Bob has not heard of it: ")
    assert taken.id not in alice.party.items()
    assert was_taken(bob.party.item(late.id).history()[0].refused)


def test_a_void_owner_does_not_take_the_items_of_those_it_admitted(peers: Peers) -> None:
    """Mallory is an owner, admits Carol, and ends its own control feed before that: all that Carol did is void."""
    alice, bob, mallory = peers.all
    member(alice).admit(mallory.key, [Role.OWNER])
    peers.sync()
    others, peers.all = peers.all, [mallory]
    carol = peers.add("carol")
    peers.all = [*others, carol]
    peers.sync()
    item = paper(carol)
    peers.sync()
    bob.party.item(item.id).edit("insert", 4, ", Bob wrote,")
    peers.sync()
    ends_its_control_feed(peers, mallory)
    check_all(peers, item, ", Bob wrote,")


def test_a_reader_takes_no_room_in_snapshots(peers: Peers) -> None:
    alice = peers.all[0]
    agree_on(peers, alice)
    rhoda = peers.add("rhoda", Role.READER)
    feed = feed_of(rhoda)  # opens it
    lamport = 1 + max(entry.lamport for entry in member(rhoda).machine.entries())
    message = write_genesis(Genesis(b"n" * 16, "antiphon/object", 1))
    item = ItemId.derive(lamport, party=rhoda.party.key, feed=feed, genesis=message)
    (block,) = rhoda.forge(Draft(Kind.GENESIS, item, message))
    assert block.lamport == lamport
    epoch(peers)
    base = alice.epochs.base
    assert base is not None
    assert base.length(feed_of(rhoda)) == 1
    assert base.item(item) is None
