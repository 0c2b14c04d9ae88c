"""Blobs and geneses that nobody can work with: refused or waited for, for all to see, and nobody is stopped by them."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from tests.party.epochs.epoch_acts import (
    agree_on,
    change,
    device,
    epoch,
    held,
    honest,
    join,
    member,
    note,
    pen,
    refusals,
    same,
    say,
    settle,
    takes_over,
)
from tests.party.forked import Forked, confront

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import DamagedBlob, DamagedItems
from antiphon.core.timeframe import Timeframe
from antiphon.halo.credentials.claims import EpochGenesis, EpochRefusal
from antiphon.model.factory import ModelFactory
from antiphon.party.epochs.driver import EpochDriver
from antiphon.party.epochs.plan import common_control
from antiphon.party.epochs.snapshot_fold import EpochPlan, EpochSnapshot
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.root import FeedCut, SnapshotRoot
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


class Damaged(MemoryBlobs):
    """Some blobs have changed on the disk."""

    def __init__(self, blobs: MemoryBlobs) -> None:
        super().__init__()
        self.put_all((cid, blobs.get(cid)) for cid in blobs)
        self.damaged: set[Cid] = set()

    def get(self, cid: Cid) -> bytes:
        if cid in self.damaged:
            raise DamagedBlob(f"blob {cid} has changed on the disk", cid=cid)
        return super().get(cid)


def spoil(peer: Peer) -> Damaged:
    """All nodes of the snapshot's items that this peer stands on have changed on its disk."""
    base, blobs = peer.epochs.base, Damaged(held(peer))
    assert base is not None
    assert base.root.items is not None
    peer.blobs = blobs
    peer.restart()
    blobs.damaged.update(tree.walk(base.root.items, held(peer)))
    return blobs


def acts(peer: Peer) -> int:
    return member(peer).machine.act_count


# -- blobs of one's own that are damaged


def test_an_attester_whose_base_is_damaged_waits_until_it_is_put_again(peers: Peers, alice: Peer, bob: Peer) -> None:
    agree_on(peers, alice, bob, generator=device(alice))
    mine = note(alice)
    epoch(peers)
    blobs = spoil(bob)
    mine.delete()  # so that its base is looked at
    peers.sync()
    alice.epochs.declare()
    peers.sync()
    assert not bob.epochs.step()
    assert "has changed on the disk" in bob.epochs.waits_for
    assert refusals(bob) == [], "a failing disk is no reason to refuse"
    blobs.damaged.clear()
    peers.settle()
    assert bob.epochs.waits_for == "", "what was waited for has come"
    assert bob.epochs.number == 2
    same(alice, bob)


def test_who_only_follows_waits_too_where_its_base_is_damaged(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine = note(alice)
    epoch(peers)
    blobs = spoil(bob)
    mine.delete()
    peers.sync()
    alice.epochs.declare()
    peers.sync()
    assert not bob.epochs.step()
    assert "has changed on the disk" in bob.epochs.waits_for
    blobs.damaged.clear()
    peers.settle()
    assert (bob.epochs.number, bob.epochs.waits_for) == (2, "")
    same(alice, bob)


def test_a_row_that_is_damaged_is_found_and_the_items_are_built_again(peers: Peers, alice: Peer, bob: Peer) -> None:
    agree_on(peers, alice, bob, generator=device(alice))
    mine = note(alice, "in a row")
    peers.sync()
    bob.party.save()
    with sqlite3.connect(bob.folder / "items.db") as database:
        database.execute("UPDATE items SET record = zeroblob(40) WHERE id = ?", (bytes(mine.id),))
    alice.epochs.declare()
    peers.sync()
    with pytest.raises(DamagedItems):
        bob.epochs.step()
    bob.epochs.step()
    peers.settle()
    assert bob.epochs.number == 1
    same(alice, bob)


# -- what a majority that lies may say


def lie(alice: Peer, **wrong: object) -> EpochGenesis:
    """The founder decides alone, and puts something else into the root."""
    genesis = honest(alice)
    root = SnapshotRoot.decode(alice.blobs.get(Cid(genesis.snapshot)))
    snapshot = alice.blobs.put(replace(root, **wrong).encode(), DAG_CBOR)  # type: ignore[arg-type]
    said = replace(genesis, snapshot=bytes(snapshot))
    say(alice, said)
    return said


def lie_about(alice: Peer, feed: bytes, item: bytes) -> None:
    """Her root has another hash of a feed at the cut than that feed has, and lacks an item."""
    root = SnapshotRoot.decode(alice.blobs.get(Cid(honest(alice).snapshot)))
    data = tree.get(root.feeds, feed, alice.blobs)
    assert data is not None
    false = replace(FeedCut.decode(data), hash=b"h" * 32).encode()
    items = tree.update(root.items, [(item, None)], alice.blobs)
    feeds = tree.update(root.feeds, [(feed, false)], alice.blobs)
    lie(alice, feeds=feeds, items=items, item_count=root.item_count - 1)


def give_all(giver: Peer, taker: Peer) -> None:
    taker.blobs.put_all((cid, held(giver).get(cid)) for cid in held(giver))


def test_a_root_with_a_false_hash_of_a_feed_moves_nobody_who_has_the_feed(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Only the proof that a writer signed two histories lets the root pick one. Nobody but Alice says so here."""
    mine = note(bob, "Bob's own")
    peers.sync()
    lie_about(alice, bytes(member(bob).open_data_feed().feed), mine.id)
    settle(peers)
    give_all(alice, bob)
    bob.epochs.step()
    assert bob.epochs.disagreement is not None
    assert bob.epochs.number == 0
    assert bob.party.item(mine.id).value == {"title": "Bob's own"}


def test_nor_does_a_false_hash_of_what_both_branches_of_a_forked_feed_have(peers: Peers) -> None:
    """That Mallory signed two histories is known; but the cut lies before they part, so there is nothing to pick."""
    case = Forked(peers)
    confront(peers)
    assert case.known()
    lie_about(case.alice, case.feed, case.item.id)
    settle(peers)
    give_all(case.alice, case.carol)
    case.carol.epochs.step()
    assert case.carol.epochs.disagreement is not None
    assert case.carol.epochs.number == 0
    assert case.carol.party.item(case.item.id).value == {"title": "common"}


@pytest.mark.parametrize("tree_of", ["items", "feeds"])
def test_a_snapshot_that_is_none_stops_no_joiner(peers: Peers, alice: Peer, tree_of: str) -> None:
    """Its blobs are what their CIDs say, and no tree. Who joins says so; the next epoch may be right."""
    mine = note(alice)
    no_tree = alice.blobs.put(b"\x82\x00\x80", DAG_CBOR)
    lie(alice, **{tree_of: no_tree})
    alice.epochs.step()
    zoe = peers.add("zoe")
    give_all(alice, zoe)
    for _ in range(2):
        zoe.epochs.step()
    assert zoe.epochs.disagreement is not None or zoe.epochs.waits_for
    assert mine.id in zoe.party.items(), "the feeds have it"


def test_what_cannot_be_computed_on_such_a_snapshot_is_refused_aloud(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Both stand on what Alice alone has made final; now Bob attests, too. He refuses what follows, and goes on."""
    agree_on(peers, alice)
    agree_on(peers, alice, bob, generator=device(alice), silent_ms=1_000)
    note(alice)
    peers.sync()
    wrong = lie(alice, deaths=alice.blobs.put(b"\x82\x00\x80", DAG_CBOR))
    peers.sync()
    give_all(alice, bob)
    bob.epochs.step()
    assert bob.epochs.disagreement is not None
    assert bob.epochs.adopt()
    note(alice)
    feed = bytes(member(alice).open_data_feed().feed)
    cut = {**wrong.cut, feed: alice.store.record(feed).length}
    control = common_control(member(alice).machine)
    known = member(alice).machine.control_hash(control)
    say(alice, replace(wrong, number=2, previous=wrong.snapshot, cut=cut, control=control, control_hash=known))
    peers.sync()
    driver = EpochDriver(bob.party, member(bob), bob.epochs)
    driver.tick(bob.clock.now_ms())
    ((who, claim),) = refusals(bob)
    assert (who, claim.computed) == (device(bob), b"")
    assert "no snapshot can be made of it" in claim.reason
    count = acts(bob)
    assert not bob.epochs.step(), "it is said once"
    assert acts(bob) == count
    driver.tick(bob.clock.now_ms() + 100_000)
    assert [found.claim.candidate for found in bob.epochs.chain().open.endorsements] == [device(bob)]


@pytest.mark.parametrize("wrong", ["cut", "control", "created_ms", "previous", "models"])
def test_a_root_that_contradicts_its_genesis_is_refused_by_who_joins(peers: Peers, alice: Peer, wrong: str) -> None:
    """Attesters recompute a root; Zoe cannot, but she sees that they have lied. The epoch after it may be right."""
    mine = note(alice)
    feed = bytes(member(alice).open_data_feed().feed)
    root = SnapshotRoot.decode(alice.blobs.get(Cid(honest(alice).snapshot)))
    short = FeedCut(1, b"h" * 32, 1, 1, Timeframe()).encode()
    lies: dict[str, dict[str, object]] = {
        "cut": {"feeds": tree.update(root.feeds, [(feed, short)], alice.blobs)},
        "control": {"control": Timeframe({feed: 5})},
        "created_ms": {"created_ms": 5},
        "previous": {"previous": Cid.of(b"another", DAG_CBOR)},
        "models": {"models": ()},
    }
    said = lie(alice, **lies[wrong])
    zoe = peers.add("zoe", models=ModelFactory())  # without code, nothing can be recomputed
    give_all(alice, zoe)
    zoe.epochs.step()
    assert zoe.epochs.number == 0
    assert f"contradicts the genesis of epoch 1: {wrong}" in zoe.epochs.waits_for
    spoken = [act.claim for act in member(zoe).machine.acts() if isinstance(act.claim, EpochRefusal)]
    assert [(claim.snapshot, claim.computed) for claim in spoken] == [(said.snapshot, b"")]
    assert wrong in spoken[0].reason
    count = acts(zoe)
    zoe.party.delete()
    zoe.party.resume()
    zoe.epochs.step()
    assert zoe.epochs.number == 0, "nor when it begins with nothing"
    assert acts(zoe) == count, "it is said once"
    assert mine.id in zoe.party.items(), "the feeds have it"


# -- what comes while a snapshot is computed


def test_a_fork_that_is_found_while_an_epoch_is_computed(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Carol has computed the epoch, and hears of the other branch before she stands on it: the root's branch holds."""
    alice, mallory, carol = (peers.add(name) for name in ("alice", "mallory", "carol"))
    item = note(mallory, "common")
    peers.sync()
    paper = pen(mallory)
    item.edit("set", "title", "in the epoch")
    peers.sync()
    branch = paper.extend([change(mallory, item.id, "title", "the other")])
    alice.epochs.declare()
    peers.all.remove(mallory)
    compute = carol.epochs._compute

    def interrupted(plan: EpochPlan) -> EpochSnapshot:
        made = compute(plan)
        carol.take(branch)
        return made

    monkeypatch.setattr(carol.epochs, "_compute", interrupted)
    settle(peers)
    monkeypatch.undo()
    member(carol).publish_forks()
    settle(peers)
    same(alice, carol)
    assert carol.party.item(item.id).value == {"title": "in the epoch"}
    dora = join(peers, "dora", of=alice)
    same(alice, carol, dora)
    note(carol, "she goes on")
    epoch(peers, alice)
    same(alice, carol, dora)


def test_nothing_is_waited_for_once_the_epoch_is_there(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob lacked a block of it, and another attester made it final without him."""
    agree_on(peers, alice, bob, generator=device(alice))
    note(alice)
    peers.sync()
    genesis = honest(alice)
    far = {feed: length + 5 for feed, length in genesis.cut.items()}
    say(alice, replace(genesis, cut=far))
    peers.sync()
    bob.epochs.step()
    assert "are not here" in bob.epochs.waits_for
    takes_over(peers, bob, alice, bob)
    assert bob.epochs.number == 1
    assert {peer.epochs.waits_for for peer in peers.all} == {""}
