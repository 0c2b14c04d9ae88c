"""Each box of the first milestones, and each open issue, of the document that epochs were specified in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.party.epochs.epoch_acts import agree_on, device, epoch, first, held, join, member, note, same, settle
from tests.party.helpers import Story, factory
from tests.party.town import SILENT_MS, town

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput, MissingBlob, NotAuthorised, UnknownModel
from antiphon.core.timeframe import Timeframe
from antiphon.halo.credentials.claims import EpochGenesis
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.root import SnapshotRoot
from antiphon.testing.peers import Peer, Peers


class Counting(MemoryBlobs):
    """How many blobs were read."""

    def __init__(self, source: MemoryBlobs) -> None:
        super().__init__()
        self.put_all((cid, source.get(cid)) for cid in source)
        self.reads = 0

    def get(self, cid: Cid) -> bytes:
        self.reads += 1
        return super().get(cid)


def some_of_each(peer: Peer) -> dict[str, Any]:
    """An item of every model of the base collection; by name, its value."""
    note(peer, "Milk")
    peer.party.create("antiphon/array").edit("insert", 0, ["one"])
    peer.party.create("antiphon/text").edit("insert", 0, "Once upon a time")
    peer.party.create("antiphon/messenger").edit("post", "hello")
    peer.party.create("antiphon/file").edit("rename", "a.txt")
    items = [peer.party.item(item) for item in peer.party.items()]
    return {item.model[0]: item.value for item in items}


# -- the boxes


def test_v0_each_model_implements_to_and_from_snapshot(peers: Peers, alice: Peer, bob: Peer) -> None:
    values = some_of_each(alice)
    assert {f"{name} 1" for name in values} == set(ModelFactory.standard())
    epoch(peers)
    base = bob.epochs.base
    assert base is not None
    for item, data in base.all():
        state = item_codec.restore(data, ModelFactory.standard())
        assert state.value == values[state.name]
        assert item_codec.snapshot(state) == data == alice.party.snapshot(item)


def test_v0_models_may_decide_to_discard_information(peers: Peers, alice: Peer, bob: Peer) -> None:
    agree_on(peers, alice, message_count=2)
    talk = alice.party.create("antiphon/messenger")
    for number in range(5):
        talk.edit("post", f"message {number}")
    epoch(peers)
    carol = join(peers, "carol")
    for peer in (alice, bob, carol):
        assert [post["body"] for post in peer.party.item(talk.id).value] == ["message 3", "message 4"]
    same(alice, bob, carol)


def test_v0_party_creates_a_tree_of_item_snapshots(peers: Peers, alice: Peer) -> None:
    items = sorted(bytes(note(alice, f"note {number}").id) for number in range(300))
    epoch(peers)
    root = SnapshotRoot.decode(alice.blobs.get(alice.epochs.base.cid))  # type: ignore[union-attr]
    assert [key for key, _ in tree.entries(root.items, alice.blobs)] == items
    assert root.item_count == 300
    blobs = Counting(held(alice))
    assert tree.get(root.items, items[150], blobs) == alice.party.snapshot(items[150])
    assert blobs.reads <= 3 < len(list(tree.walk(root.cid, blobs))), "one item is read by its path"


def test_v0_party_records_a_snapshot_referenced_by_its_cid_with_its_metadata(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    note(alice)
    note(bob)
    one = epoch(peers)
    note(bob)
    two = epoch(peers)
    data = bob.blobs.get(Cid(two.snapshot))
    assert Cid.of(data, Cid(two.snapshot).codec) == two.snapshot
    root = SnapshotRoot.decode(data)
    base = EpochBase.load(Cid(two.snapshot), bob.blobs, party=bob.party.key)
    # Timeframe
    assert {feed: cut.length for feed, cut in base.feeds.items()} == two.cut
    assert Timeframe({feed: length - 1 for feed, length in two.cut.items() if length}) == bob.party.timeframe
    for feed, cut in base.feeds.items():
        if cut.length:
            last = bob.store.block(feed, cut.length - 1)
            assert (cut.hash, cut.lamport, cut.created_ms) == (last.hash, last.lamport, last.created_ms)
    # Datetime
    assert one.created_ms <= root.created_ms == two.created_ms
    # Previous snapshot CID
    assert root.previous == one.snapshot == two.previous
    assert SnapshotRoot.decode(bob.blobs.get(Cid(one.snapshot))).previous is None
    # Model versions
    assert root.models == tuple(two.models)
    assert ("antiphon/object", 1) in [pin[:2] for pin in root.models]


def test_v0_the_epoch_generator_peer_writes_an_epoch_genesis_message_to_its_feed(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    agree_on(peers, alice, bob, generator=device(bob))
    note(alice)
    genesis = epoch(peers, bob)
    feed = member(bob).control
    assert feed is not None
    written = [act for act in member(alice).machine.acts() if isinstance(act.claim, EpochGenesis)]
    assert [(act.claim, act.stamp.feed) for act in written] == [(genesis, feed.feed)]


def test_v0_peers_that_process_the_genesis_create_the_snapshot_and_store_it(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    for number in range(40):
        note(alice, f"note {number}")
    peers.sync()
    genesis = alice.epochs.declare()
    peers.sync()
    assert not bob.blobs.has(Cid(genesis.snapshot))
    assert bob.epochs.step()
    assert bob.epochs.base is not None
    assert bob.epochs.base.cid == genesis.snapshot
    assert bob.epochs.base.missing() == [], "nothing was fetched: it computed and kept all of it"


def test_v0_peers_that_join_may_request_the_snapshot_for_a_particular_epoch(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    story = note(alice, "chapter 1")
    for number in (2, 3, 4):
        epoch(peers)
        story.edit("set", "title", f"chapter {number}")
    carol = join(peers, "carol")
    with pytest.raises(MissingBlob):
        carol.epochs.snapshot(1)
    wanted = Cid(carol.epochs.chain().final[0].snapshot)  # from the control feeds, so nobody can tell her another
    held(carol).put_all((cid, alice.blobs.get(cid)) for cid in tree.walk(wanted, alice.blobs))
    found = carol.epochs.snapshot(1).item(story.id)
    assert found is not None
    assert item_codec.restore(found, carol.models).value == {"title": "chapter 1"}
    with pytest.raises(InvalidInput, match="no final epoch 4"):
        carol.epochs.snapshot(4)


@pytest.mark.parametrize("crash", [False, True])
def test_v0_each_peer_stores_the_latest_epoch_genesis_and_boots_from_it(
    peers: Peers, alice: Peer, bob: Peer, crash: bool
) -> None:
    last = b""
    for number in range(3):
        note(alice, f"note {number}")
        last = epoch(peers).snapshot
    late = note(alice, "after the last epoch")
    peers.sync()
    wanted = alice.snapshots()
    assert bob.epochs.prune() > 0
    bob.restart(crash=crash)
    assert (bob.party.status().epoch, bob.epochs.chain().last.snapshot) == (3, last)  # type: ignore[union-attr]
    bob.rebuild()  # nothing but control feeds, blobs and the tail
    assert bob.party.status().epoch == 3
    assert bob.snapshots() == wanted
    assert bob.party.item(late.id).value == {"title": "after the last epoch"}


def test_v0_multi_peer_parties_with_epoch_generation_are_simulated(peers: Peers) -> None:
    """In virtual time, with a partition. `test_laws.py` has random ones, `test_elections.py` losses."""
    one = town(peers, 5, epoch_messages=4)
    asleep = one.by_rank()[3:]
    one.sleep(*asleep)
    for number in range(4):
        for peer in (*one.awake, *asleep):  # both sides write
            note(peer, f"{peer.name} {number}")
        one.run(SILENT_MS * 2)
    assert {peer.epochs.number for peer in one.awake} != {0}
    assert {peer.epochs.number for peer in asleep} == {0}
    one.wake(*asleep)
    one.run(SILENT_MS * 6)
    same(*peers.all)
    assert len(peers.all[0].party.items()) == 20


# -- the analogies: branches of git, blocks of a blockchain


def test_a_partition_is_a_branch_and_an_epoch_the_commit_on_which_both_sides_stand(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    board = note(alice, "ours")
    peers.sync()
    fork_point = alice.party.timeframe
    board.edit("set", "by Alice", True)
    bob.party.item(board.id).edit("set", "by Bob", True)
    one, other = alice.party.timeframe, bob.party.timeframe
    assert one.covers(fork_point)
    assert other.covers(fork_point)
    assert not one.covers(other)
    assert not other.covers(one)
    peers.sync()  # a merge, which nobody has to make: the total order does
    assert alice.party.timeframe == bob.party.timeframe
    assert alice.party.timeframe.covers(one)
    commit = epoch(peers)
    same(alice, bob)
    assert board.at(fork_point).value == {"title": "ours"}
    assert board.value == {"title": "ours", "by Alice": True, "by Bob": True}
    assert epoch(peers).previous == commit.snapshot, "and each names the one before it, as blocks do"


# -- the open issues


def test_issue_who_initiates_an_epoch(peers: Peers, alice: Peer, bob: Peer) -> None:
    """The founder; then whom policy names, a bot for instance; then an election. `test_elections.py` has more."""
    carol = peers.add("carol")
    note(alice)
    peers.sync()
    with pytest.raises(NotAuthorised, match="this device may not declare epoch 1"):
        bob.epochs.declare()
    epoch(peers, alice)

    agree_on(peers, alice, bob, carol, generator=device(bob))
    epoch(peers, alice)  # which holds that policy
    with pytest.raises(NotAuthorised, match="term 0 of epoch 3 is that of device"):
        alice.epochs.declare()
    epoch(peers, bob)

    agree_on(peers, alice, bob, carol)
    epoch(peers, bob)
    chosen = first(peers)
    others = [peer for peer in peers.all if peer is not chosen]
    for peer in others:  # it is silent: the others endorse one of themselves
        member(peer).endorse(1, device(others[0]))
    peers.sync()
    genesis = others[0].epochs.declare()
    peers.settle()
    assert genesis.term == 1
    same(*peers.all)


def test_issue_stale_messages_from_peers_that_have_not_joined_the_epoch(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob writes apart while there are three epochs. Carol joins, and gets what he wrote then: all agree on it."""
    board = note(alice, "ours")
    talk = alice.party.create("antiphon/text")
    talk.edit("insert", 0, "ab")
    peers.sync()
    bob.party.item(board.id).edit("set", "title", "Bob's")
    bob.party.item(talk.id).edit("insert", 1, "-")
    note(bob, "a new one")
    peers.all.remove(bob)
    for number in range(3):
        board.edit("set", "n", number)
        epoch(peers)
    carol = join(peers, "carol")
    before = carol.snapshots()
    peers.all.append(bob)
    peers.pass_on(bob, carol)  # straight from one who knows of no epoch
    assert carol.snapshots() != before
    settle(peers)
    same(alice, carol, bob)
    assert carol.party.item(talk.id).value == "a-b"
    assert [item.value for item in map(carol.party.item, carol.party.items())].count({"title": "a new one"}) == 1


def test_issue_what_if_the_code_changes_for_models(peers: Peers, alice: Peer) -> None:
    """Who lacks the code keeps the item as it is and says nothing. `test_models.py` has the other cases."""
    alice.models = factory(Story)
    alice.restart()
    bob = peers.add("bob")
    agree_on(peers, alice, bob)
    story = alice.party.create("test/story")
    story.edit("tell", "once")
    peers.sync()
    chosen = first(peers)
    if chosen is bob:
        with pytest.raises(UnknownModel, match="no code for model test/story"):
            bob.epochs.declare()
    else:
        alice.epochs.declare()
        peers.settle()
        assert "no code for model test/story" in bob.epochs.waits_for
    assert {peer.epochs.number for peer in peers.all} == {0}
    assert bob.party.item(story.id).opaque
    bob.models.register(Story)
    if chosen is bob:
        bob.epochs.declare()
    peers.settle()
    same(alice, bob)
    assert bob.epochs.number == 1
    assert bob.party.item(story.id).value == [b"once"]
