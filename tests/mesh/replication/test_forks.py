"""A writer signs two histories, and shows each to others: whoever talks to whom, all come to hold the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mesh.replication.wire import Wire
from tests.party.epochs.epoch_acts import change, device, held, member, note, pen, same
from tests.party.forked import Forked, pruned

from antiphon.core.errors import BadEncoding
from antiphon.feed.chain import Head
from antiphon.feed.feed_record import End
from antiphon.feed.head_proof import HeadProof
from antiphon.halo.credentials.claims import Role
from antiphon.mesh.replication.codec import decode
from antiphon.mesh.replication.limits import ANSWER_SIZE
from antiphon.mesh.replication.message import Branch
from antiphon.party.epochs.epochs import PATIENT_TERMS
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


def test_a_large_block_before_a_fork_does_not_hide_it(peers: Peers) -> None:
    """Whoever looks for the fork gets blocks up to the large one, and they are known: it once asked for these again."""
    alice, mallory, carol = (peers.add(name) for name in ("alice", "mallory", "carol"))
    item = note(mallory)
    for number in range(6):
        item.edit("set", "title", str(number))
    item.edit("set", "large", "x" * (ANSWER_SIZE + 1))
    peers.sync()
    paper = pen(mallory)
    for number in range(7):
        item.edit("set", "title", f"for Alice {number}")
    peers.pass_on(mallory, alice)
    carol.take(paper.extend([change(mallory, item.id, "title", f"for Carol {number}") for number in range(6)]))
    peers.all.remove(mallory)
    wire = Wire(peers)
    wire.run()

    assert ends(bytes(paper.pair.key), alice, carol) == [9, 9]
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


@pytest.mark.slow
@pytest.mark.parametrize("longer", [0, 2, 7])
@pytest.mark.parametrize("refers", [False, True])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_branch_that_was_pruned_is_still_proven_to_who_holds_the_other(
    peers: Peers, longer: int, refers: bool, goes_on: bool
) -> None:
    """Nobody held blocks of both, so no evidence of the fork was found, and Carol was split off for good."""
    case = pruned(peers, longer=longer, refers=refers, goes_on=goes_on)
    alice, carol = case.alice, case.carol
    wire = Wire(peers)
    wire.run()
    same(alice, carol)
    assert case.titles() == ["for Alice", "for Alice"]
    assert ("subject" in carol.party.item(case.item.id).value) is goes_on
    assert not carol.party.status().blocked
    wire.restart("carol")
    wire.run()
    same(alice, carol)

    dora = peers.add("dora", None)  # she joins through Carol alone
    member(alice).admit(dora.key, [Role.EDITOR])
    Wire(peers, [("alice", "carol"), ("carol", "dora")]).run()
    dora.join()
    for peer in (alice, carol, dora):
        note(peer, f"{peer.name} goes on")
    Wire(peers, [("alice", "carol"), ("carol", "dora")]).run()
    same(alice, carol, dora)
    # Carol's longer branch is not known to be one at Alice: its blocks might still come as history.
    member(alice).endorse(PATIENT_TERMS, device(alice))
    alice.epochs.declare()
    Wire(peers, [("alice", "carol"), ("carol", "dora")]).run()
    same(alice, carol, dora)
    assert carol.epochs.number == 2


@pytest.mark.slow
def test_who_joined_at_the_epoch_proves_its_branch_by_what_follows(peers: Peers) -> None:
    """Alice is lost. Erin has only the snapshot and the block behind it."""
    case = pruned(peers, longer=4, refers=False, goes_on=True)
    erin = peers.add("erin", None)
    member(case.alice).admit(erin.key, [Role.READER])
    Wire(peers, [("alice", "erin")]).run()
    assert erin.store.bounds(case.feed).start > 0
    peers.all.remove(case.alice)
    Wire(peers).run()
    same(erin, case.carol)


@pytest.mark.slow
def test_a_hash_alone_does_not_lead_a_device_to_another_branch(peers: Peers) -> None:
    """Who made the root can write any hash into it: without a proof Carol keeps what she has."""
    case = pruned(peers, longer=2, refers=False, goes_on=False)
    wire = Wire(peers)
    wire.watch = lambda giver, taker, data: not (isinstance(decode(data).body, Branch) and giver == "alice")
    wire.run(600_000)
    assert case.carol.epochs.disagreement is not None
    assert case.titles() == ["for Alice", "for Carol"]
    assert [entry.feed for entry in case.carol.epochs.unproven] == [case.feed]

    false = HeadProof((), Head(1 + case.carol.epochs.unproven[0].seq, bytes(32), bytes(64)))
    block = next(iter(wire.nodes["carol"].replica.branches.due(10**9)[0]))
    with pytest.raises(BadEncoding, match="does not prove block"):
        wire.nodes["carol"].replica.take_proof(block, false.encode())
    assert case.carol.epochs.disagreement is not None


def test_who_prunes_before_the_proof_comes_still_takes_it(peers: Peers) -> None:
    """Carol holds another branch that ends at the cut. She must keep it until the proof says that she may leave it."""
    case = pruned(peers, longer=2, refers=False, goes_on=True)
    alice, carol = case.alice, case.carol
    carol.take([span for span in alice.ranges(carol.lengths()) if span.feed != case.feed])
    carol.blobs.put_all((cid, alice.blobs.get(cid)) for cid in held(alice))
    carol.rebuild()
    assert carol.epochs.number == 1
    carol.epochs.prune()
    assert carol.store.record(case.feed).start == 0
    Wire(peers).run()
    carol.epochs.step()
    Wire(peers).run()

    assert carol.party.timeframe == alice.party.timeframe
    assert not carol.epochs.unproven
