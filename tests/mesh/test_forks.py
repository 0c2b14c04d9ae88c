"""A writer signs two histories, and shows each to others: whoever talks to whom, all come to hold the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mesh.wire import Wire
from tests.party.epochs.epoch_acts import member, note, pen
from tests.party.forked import Forked

from antiphon.feed.feed_record import End
from antiphon.halo.credentials.claims import Role
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import Forged


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        yield made


def ends(feed: bytes, *peers: Peer) -> list[int | None]:
    return [peer.store.bounds(feed).end for peer in peers]


@pytest.mark.parametrize("longer", [0, 1, 40])
def test_two_branches_meet_and_both_sides_cut_the_feed(peers: Peers, longer: int) -> None:
    forked = Forked(peers, longer=longer)
    before = [len(peer.store.quarantine().refusals) for peer in peers.all]
    Wire(peers).run()

    record = forked.alice.store.record(forked.feed)
    assert record.why is End.FORK
    assert ends(forked.feed, forked.carol) == [record.end]
    assert forked.alice.store.fork(forked.feed) is not None
    assert forked.titles() == ["common", "common"]
    after = [len(peer.store.quarantine().refusals) for peer in peers.all]
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 1]  # the fork, and no failed attempts


def test_who_has_heard_of_neither_branch_gets_one_and_the_evidence(peers: Peers) -> None:
    forked = Forked(peers)
    dora = peers.add("dora", None)
    member(peers.all[0]).admit(dora.key, [Role.READER])
    Wire(peers, [("alice", "carol"), ("carol", "dora")]).run()

    assert None not in ends(forked.feed, forked.alice, forked.carol, dora)
    assert len(set(ends(forked.feed, forked.alice, forked.carol, dora))) == 1


def test_evidence_passes_through_peers_that_hold_one_branch(peers: Peers) -> None:
    forked = Forked(peers)
    erin = peers.add("erin", None)
    member(peers.all[0]).admit(erin.key, [Role.READER])
    peers.pass_on(forked.alice, erin)
    Wire(peers, [("alice", "carol"), ("alice", "erin")]).run()

    assert ends(forked.feed, erin) == ends(forked.feed, forked.alice) == ends(forked.feed, forked.carol)
    assert erin.store.fork(forked.feed) == forked.alice.store.fork(forked.feed)


def test_a_fork_far_back_is_found_in_few_steps(peers: Peers) -> None:
    forked = Forked(peers)
    for peer in (forked.alice, forked.carol):
        note(peer)
    peers.all.append(forked.mallory)
    for number in range(300):  # on the branch that Alice holds
        forked.item.edit("set", "title", str(number))
    peers.pass_on(forked.mallory, forked.alice)
    peers.all.remove(forked.mallory)
    wire = Wire(peers)
    wire.run()

    assert ends(forked.feed, forked.alice) == ends(forked.feed, forked.carol) != [None]
    assert wire.messages < 40


def test_who_holds_a_fault_finds_out_that_others_were_shown_something_else(peers: Peers) -> None:
    """Carol was shown a block that breaks a rule, and takes nothing behind it; Alice holds a longer, good history."""
    alice, mallory, carol = (peers.add(name) for name in ("alice", "mallory", "carol"))
    item = note(mallory)
    peers.sync()
    paper = pen(mallory)
    for number in range(5):
        item.edit("set", "title", str(number))
    peers.pass_on(mallory, alice)
    carol.take([paper.forge(Forged(item=item.id, lamport=1))])
    peers.all.remove(mallory)
    feed = bytes(paper.pair.key)
    assert carol.store.record(feed).why is End.FAULT
    Wire(peers).run()

    assert carol.store.fork(feed) is not None
    for peer in (alice, carol):
        member(peer).publish_forks()
    Wire(peers).run()
    assert alice.snapshots() == carol.snapshots()
    assert alice.party.timeframe == carol.party.timeframe
