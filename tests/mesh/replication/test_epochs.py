"""Epochs over sessions: snapshots come as blobs, feeds begin at the cut, sleepers and joiners come along."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mesh.replication.wire import Weather, Wire
from tests.party.epochs.epoch_acts import epoch, held, member, note, same

from antiphon.core.cid import RAW, Cid
from antiphon.feed.block import BodyState
from antiphon.halo.credentials.claims import Position, Role
from antiphon.mesh.replication.codec import decode
from antiphon.mesh.replication.digest import holdings_digest
from antiphon.mesh.replication.message import Blobs, WantBlobs
from antiphon.snapshot.walk import links
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        made.add("alice")
        made.add("bob")
        yield made


def by_name(peers: Peers, name: str) -> Peer:
    return next(peer for peer in peers.all if peer.name == name)


def epochs_without(peers: Peers, sleeper: Peer, *, items: int = 5) -> None:
    """Three epochs that one of the peers does not hear of."""
    peers.sync()
    peers.all.remove(sleeper)
    for _ in range(3):
        for number in range(items):
            note(peers.all[0], f"meanwhile {number}")
        epoch(peers)
    peers.all.append(sleeper)


def test_who_slept_through_epochs_that_everybody_has_pruned_begins_at_the_last(peers: Peers) -> None:
    alice, bob = peers.all
    note(alice, "before")
    epochs_without(peers, bob)
    late = note(bob, "written asleep")
    assert alice.epochs.prune()
    wire = Wire(peers)
    wire.run()

    same(alice, bob)
    assert alice.party.item(late.id).value["title"] == "written asleep"
    assert wire.blobs > 0


def test_a_feed_passes_on_with_a_body_that_was_erased_before_it_came(peers: Peers) -> None:
    """Bob got a message after its writer had erased its body. He passes the feed on to who joins later."""
    alice, bob = peers.all
    item = note(alice, "harmless")
    stamp = item.edit("set", "title", "secret")
    member(alice).erase(Position(bytes(stamp.feed), stamp.seq))
    peers.all.remove(bob)
    epoch(peers, alice)
    alice.store.erase(stamp.feed, stamp.seq)
    item.edit("set", "more", 1)
    peers.all.append(bob)
    wire = Wire(peers)
    wire.nodes["bob"].replica.joining.give_up()
    wire.run()
    assert bob.store.block(stamp.feed, stamp.seq).state is BodyState.LEFT_OUT
    carol = peers.add("carol", None)
    member(alice).admit(carol.key, [Role.READER])
    Wire(peers, [("alice", "bob"), ("bob", "carol")]).run()

    assert carol.lengths() == alice.lengths()
    assert carol.party.item(item.id).value == {"title": "harmless", "more": 1}
    same(alice, bob, carol)


def test_a_joiner_gets_snapshot_and_tail_from_one_who_has_pruned(peers: Peers) -> None:
    alice, bob = peers.all
    epochs_without(peers, bob, items=60)
    peers.settle()
    note(alice, "in the tail")
    alice.epochs.prune()
    carol = peers.add("carol", None)
    member(peers.all[0]).admit(carol.key, [Role.READER])
    member(alice).admit(carol.key, [Role.READER])
    wire = Wire(peers, [("alice", "carol"), ("alice", "bob")])
    wire.run()

    assert carol.epochs.number == alice.epochs.number
    assert carol.snapshots() == alice.snapshots()
    feeds = {held.feed: held for held in wire.nodes["alice"].replica.holdings}
    assert {held.feed for held in wire.nodes["carol"].replica.holdings} == set(feeds)


def test_a_range_that_is_pruned_at_one_neighbour_comes_from_another(peers: Peers) -> None:
    alice, bob = peers.all
    note(alice, "old")
    epoch(peers)
    alice.epochs.prune()
    note(alice, "new")
    peers.sync()
    carol = peers.add("carol", None)
    member(peers.all[0]).admit(carol.key, [Role.READER])
    wire = Wire(peers, [("alice", "carol"), ("bob", "carol")])
    wire.watch = lambda giver, taker, data: not isinstance(decode(data).body, Blobs)  # she never stands on the epoch
    wire.run(600_000)

    assert carol.lengths() == bob.lengths()
    assert carol.snapshots() == bob.snapshots()


def test_fetching_blobs_goes_on_after_a_restart_where_it_broke_off(peers: Peers) -> None:
    alice, bob = peers.all
    epochs_without(peers, bob, items=100)
    alice.epochs.prune()
    wire = Wire(peers)
    given = 0

    def breaks_off(giver: str, taker: str, data: bytes) -> bool:
        nonlocal given
        body = decode(data).body
        given += len(body.blobs) if isinstance(body, Blobs) else 0
        return given < 20

    wire.watch = breaks_off
    wire.run(5_000)
    assert 0 < wire.blobs < 20
    first, wire.blobs = wire.blobs, 0
    wire.restart("bob", crash=True)
    wire.watch = lambda giver, taker, data: True
    wire.run()

    same(alice, bob)
    assert wire.blobs + first == len(held(bob))


def test_no_blob_is_asked_for_twice_though_several_neighbours_have_it(peers: Peers) -> None:
    alice, bob = peers.all
    carol = peers.add("carol")
    epochs_without(peers, bob, items=150)
    assert alice.epochs.prune()
    assert carol.epochs.prune()
    wire = Wire(peers)
    asked: list[bytes] = []

    def note_asked(giver: str, taker: str, data: bytes) -> bool:
        body = decode(data).body
        asked.extend(body.cids if isinstance(body, WantBlobs) else ())
        return True

    wire.watch = note_asked
    wire.run()

    same(alice, bob, carol)
    assert len(asked) == len(set(asked)) == wire.blobs > 0


def test_epochs_and_blobs_come_through_a_bad_network(peers: Peers) -> None:
    alice, bob = peers.all
    epochs_without(peers, bob, items=40)
    alice.epochs.prune()
    wire = Wire(peers, weather=Weather(random.Random(3), 0.3, 0.3, (5, 900)))
    wire.run()

    same(alice, bob)
    assert wire.blobs > 0


def sizes(peer: Peer) -> tuple[int, int, int]:
    """Bytes of the last snapshot, of the data feeds behind its cut, and of the control feeds."""
    base = peer.epochs.base
    assert base is not None
    cids = {Cid(base.cid)}
    unread = [Cid(base.cid)]
    while unread:
        cid = unread.pop()
        found = set() if cid.codec == RAW else set(links(cid, peer.blobs, part=cid != base.cid)) - cids
        cids |= found
        unread += found
    blobs = sum(len(peer.blobs.get(cid)) for cid in cids)
    tail = control = 0
    for record in peer.store.feeds(peer.party.key):
        cut = base.feeds.get(record.feed)
        data = [span.encode() for span in peer.store.spans(record.feed, cut.length if cut is not None else 0)]
        if cut is None:
            control += sum(map(len, data))
        else:
            tail += sum(map(len, data))
    return blobs, tail, control


def test_a_joiner_takes_snapshot_tail_and_control_feeds_and_no_history(peers: Peers) -> None:
    """The other peers have pruned nothing."""
    alice, bob = peers.all
    item = note(alice, "before")
    for number in range(600):
        item.edit("set", "title", f"a title that is written again and again: {number} " + "x" * 400)
    note(bob, "of Bob, who writes no more")
    for number in range(100):
        note(alice, f"{number}: a note that stays as it is")
    epoch(peers)
    item.edit("set", "title", "in the tail")
    carol = peers.add("carol", None)
    member(alice).admit(carol.key, [Role.READER])
    peers.all.remove(bob)
    wire = Wire(peers)
    wire.run(20_000)  # newcomers show their proof again each minute

    assert carol.snapshots() == alice.snapshots()
    same(alice, carol)
    assert wire.bytes < 1.2 * sum(sizes(alice)), (wire.bytes, sizes(alice))
    assert holdings_digest(carol.store, carol.party.key) == holdings_digest(alice.store, alice.party.key)
    peers.all[:] = [bob, carol]
    note(carol if carol.member is not None and carol.member.control is not None else bob, "later")
    Wire(peers).run()
    assert bob.snapshots() == carol.snapshots()


def test_a_joiner_that_nobody_gives_the_snapshot_takes_the_history(peers: Peers) -> None:
    alice, _ = peers.all
    note(alice, "old")
    epoch(peers)
    note(alice, "new")
    peers.sync()
    carol = peers.add("carol", None)
    member(alice).admit(carol.key, [Role.READER])
    wire = Wire(peers, [("alice", "carol")])
    wire.watch = lambda giver, taker, data: not isinstance(decode(data).body, Blobs)
    wire.run(600_000)
    assert carol.snapshots() == alice.snapshots()
    assert carol.epochs.number == alice.epochs.number, "computed"


def test_the_snapshot_of_an_earlier_epoch_is_given_by_its_number(peers: Peers) -> None:
    alice, _ = peers.all
    note(alice, "one")
    epoch(peers)
    note(alice, "two")
    epoch(peers)
    peers.settle()
    carol = peers.add("carol", None)
    member(alice).admit(carol.key, [Role.READER])
    wire = Wire(peers, [("alice", "carol")])
    wire.run()
    first = Cid(carol.epochs.chain().final[0].snapshot)
    assert carol.epochs.number == 2
    assert not carol.blobs.has(first)
    wire.nodes["carol"].replica.want_snapshot(1)
    wire.run()
    earlier = carol.epochs.snapshot(1)
    assert earlier.number == 1
    assert not earlier.missing()
    assert earlier.cid == alice.epochs.snapshot(1).cid
