"""Rules 2, 9 and 10 on whole peers, each with the counterexample that forced it.

Rule 11 is in `test_refusals.py` and `test_models.py`, rule 12 in `tests/party/test_rules.py`, rule 13 in
`test_erasure.py`; `tests/halo/finality/test_search.py` goes through every run of small elections for rule 10.
"""

from __future__ import annotations

import pytest
from tests.party.epochs.epoch_acts import (
    agree_on,
    change,
    device,
    epoch,
    first,
    join,
    member,
    note,
    pen,
    refusals,
    same,
    settle,
    told,
)

from antiphon.core.errors import NotAuthorised
from antiphon.feed.header import Entry
from antiphon.halo.credentials.claims import Narrowing, Role
from antiphon.testing.peers import Peer, Peers, Ticks

pytestmark = pytest.mark.slow


def faults(peer: Peer) -> list[tuple[bytes, int, str]]:
    return [(found.feed, found.seq, found.reason) for found in peer.party.status().blocked]


def data_feed(peer: Peer) -> bytes:
    return bytes(member(peer).open_data_feed().feed)


# -- rule 2: joiners judge exactly like veterans


class Case:
    """Alice and Bob have written, Dora keeps all of it, and Carol has joined at the epoch that holds it."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.alice, self.bob, self.dora = (peers.add(name) for name in ("alice", "bob", "dora"))
        self.item = bytes(note(self.alice, "Alice's").id)
        for number in range(3):
            note(self.alice, f"Alice's {number}")
            peers.sync()
            note(self.bob, f"Bob's {number}")
            peers.sync()
        self.feed = data_feed(self.alice)
        self.lamports = [block.lamport for block in self.alice.store.read(self.feed)]
        self.hashes = [block.hash for block in self.alice.store.read(self.feed)]
        self.paper = pen(self.bob)

    def joined(self) -> Peer:
        epoch(self.peers)
        return join(self.peers, "carol", of=self.alice)

    def hear(self, *peers: Peer, seq: int, lamport: int, hash_: bytes) -> None:
        """Bob writes that he has seen something of Alice's feed, true or not."""
        entry = Entry(self.feed, seq, lamport, hash_)
        for span in self.paper.extend([change(self.bob, self.item, f"saw {seq}", lamport)], seen=[entry]):
            for peer in peers:
                peer.take([span])


@pytest.fixture
def case(peers: Peers) -> Case:
    return Case(peers)


def test_rule_2_entries_inside_the_cut_are_judged_by_the_root_alone(case: Case) -> None:
    """Bob names another branch, and too low a lamport: a joiner cannot tell, so nobody does."""
    carol = case.joined()
    case.hear(case.dora, carol, seq=2, lamport=case.lamports[2] - 1, hash_=bytes(32))
    for peer in (case.dora, carol):
        assert faults(peer) == []
        assert peer.party.item(case.item).value["saw 2"] == case.lamports[2] - 1
    same(case.dora, carol)


def test_rule_2_an_entry_that_does_not_move_is_no_fault(case: Case) -> None:
    """Veterans know that Bob had seen more before the cut; a joiner does not."""
    carol = case.joined()
    case.hear(case.dora, carol, seq=0, lamport=case.lamports[0], hash_=case.hashes[0])
    assert faults(case.dora) == faults(carol) == []
    same(case.dora, carol)
    assert carol.party.item(case.item).value["saw 0"] == case.lamports[0]


def test_rule_2_a_lamport_above_the_roots_waits_for_veterans_and_joiners_alike(case: Case) -> None:
    """It names another branch, as far as a joiner can tell, and may be honest: it is no fault, and waits."""
    carol = case.joined()
    case.hear(case.dora, carol, seq=2, lamport=case.lamports[-1] + 1, hash_=case.hashes[2])
    for peer in (case.dora, carol):
        with peer.party.locked() as engine:
            (blocked,) = engine.delivery.blocked()
            assert [entry.seq for entry in engine.delivery.wanted()] == [2]
        assert blocked.feed == data_feed(case.bob)
        assert "wrong lamport" not in blocked.reason
    same(case.dora, carol)
    assert "saw 2" not in carol.party.item(case.item).value


def test_rule_2_verdicts_are_taken_again_at_each_rebase(case: Case) -> None:
    """Before the epoch it is plain that Bob lies about a lamport. Joiners will not see that: so it is no fault then."""
    case.hear(case.alice, case.dora, seq=2, lamport=case.lamports[2] - 1, hash_=case.hashes[2])
    for peer in (case.alice, case.dora):
        assert ["tells a wrong lamport" in reason for _, _, reason in faults(peer)] == [True]
    case.peers.all.remove(case.bob)  # he has not got it himself
    carol = case.joined()
    case.peers.settle()
    for peer in (case.alice, case.dora, carol):
        assert faults(peer) == []
        assert peer.party.item(case.item).value["saw 2"] == case.lamports[2] - 1
    same(case.alice, case.dora, carol)
    epoch(case.peers)
    same(case.alice, case.dora, carol)


def test_rule_2_a_joiner_who_knows_no_message_attests_what_a_veteran_does(peers: Peers, alice: Peer) -> None:
    """Carol has the root and the tail alone, and computes the next epoch all the same."""
    for number in range(5):
        note(alice, f"note {number}")
    epoch(peers)
    carol = join(peers, "carol", Role.EDITOR)
    agree_on(peers, alice, carol)
    epoch(peers, alice)
    note(carol, "hers")
    genesis = epoch(peers)
    assert device(carol) in carol.epochs.chain().votes[-1]
    assert genesis.number == 3
    same(alice, carol)


# -- rule 9: one judge


def test_rule_9_what_a_final_epoch_holds_a_late_revocation_takes_nothing_of(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    """Alice revokes Bob with a cut before the epoch: what it holds of his stays, and what came after it goes."""
    mine = note(bob, "inside")
    peers.sync()
    dora = peers.add("dora", Role.OWNER)
    epoch(peers)
    late = note(bob, "outside")
    peers.sync()
    one = member(alice)
    one.write_claim(Narrowing(bytes(bob.key), frozenset(), {}))  # feeds that it does not name end at nothing
    peers.settle()
    carol = join(peers, "carol", of=alice)
    for peer in (alice, dora, carol):
        assert peer.party.item(mine.id).value == {"title": "inside"}
        assert late.id not in peer.party.items()
    assert len(told(alice)) == 2, "a genesis and a title"
    assert told(alice) == told(dora) == told(carol)
    same(alice, dora, carol)
    epoch(peers)
    same(alice, dora, carol)
    assert carol.party.item(mine.id).value == {"title": "inside"}


def test_rule_9_an_attester_refuses_an_epoch_that_does_not_know_of_a_revocation(peers: Peers, alice: Peer) -> None:
    """Bob declares before he hears that Carol is demoted. Alice has written that, so she refuses."""
    bob, carol = peers.add("bob", Role.OWNER), peers.add("carol")
    agree_on(peers, alice, bob, generator=device(bob))
    note(carol)
    peers.sync()
    stamp = member(alice).demote(carol.key, [Role.READER])
    bob.epochs.declare()
    peers.settle()
    assert {peer.epochs.number for peer in peers.all} == {0}
    ((who, refusal),) = refusals(carol)
    assert who == device(alice)
    assert f"lacks the narrowing {stamp}" in refusal.reason
    for peer in (alice, bob):
        member(peer).endorse(1, device(alice))
        peers.sync()
    alice.epochs.declare()
    settle(peers)
    same(alice, bob, carol)
    assert alice.epochs.number == 1


def test_rule_9_an_expiry_takes_effect_at_an_epoch_for_everybody(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Clocks differ, so an expiry binds nobody by itself: the first epoch whose time has reached it does."""
    carol = peers.add("carol", None)
    assert isinstance(alice.clock, Ticks)
    member(alice).admit(carol.key, [Role.EDITOR], expires_ms=alice.clock.ms + 50_000)
    peers.pass_on(alice, carol)
    carol.join()
    early = note(carol, "in time")
    for peer in (alice, bob, carol):
        assert isinstance(peer.clock, Ticks)
        peer.clock.ms += 60_000
    settle(peers)
    epoch(peers)
    with pytest.raises(NotAuthorised, match="is no member"):
        note(carol, "too late")
    carol.forge(change(carol, early.id, "title", "forged"))
    peers.settle()
    dora = join(peers, "dora")
    for peer in peers.all:
        assert peer.party.item(early.id).value == {"title": "in time"}
    assert told(alice) == told(dora) == told(bob)
    assert len(told(alice)) == 1
    same(*peers.all)

    member(alice).admit(carol.key, [Role.EDITOR])  # an expiry ends no feed
    peers.sync()
    note(carol, "back again")
    epoch(peers)
    same(*peers.all)
    assert {"title": "back again"} in [dora.party.item(item).value for item in dora.party.items()]


# -- rule 10: only a final epoch counts


def test_rule_10_before_a_majority_has_attested_nothing_moves(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Nobody rebases, prunes or starts from it, and no cut of a revocation is moved."""
    carol = peers.add("carol")
    agree_on(peers, alice, bob, carol)
    mine = note(alice)
    peers.sync()
    chosen = first(peers)
    others = [peer for peer in peers.all if peer is not chosen]
    genesis = chosen.epochs.declare()
    peers.sync()  # all know of it, and nobody speaks
    for peer in peers.all:
        assert (peer.epochs.number, peer.epochs.prune(), peer.epochs.base) == (0, 0, None)
        assert peer.epochs.begins() == {}
        assert peer.party.authority.final_epochs() == ()
    (proposal,) = others[0].epochs.chain().open.proposals
    assert proposal.attested == (device(chosen),)
    others[0].epochs.step()
    assert others[0].epochs.number == 1, "two of three"
    settle(peers)
    same(*peers.all)
    assert [epoch.snapshot for epoch in chosen.epochs.chain().final] == [genesis.snapshot]
    assert all(peer.epochs.prune() > 0 for peer in peers.all)
    assert carol.party.item(mine.id).value == {"title": "note"}


def test_rule_10_a_joiner_wants_as_many_attestations_as_policy_says(peers: Peers, alice: Peer, bob: Peer) -> None:
    """The generator shows its own genesis to a joiner: that is one word, and policy wants two."""
    agree_on(peers, alice, bob, attestations_min=2)
    note(alice)
    epoch(peers)
    agree_on(peers, alice, attestations_min=2)
    epoch(peers)
    alone = epoch(peers, alice)
    assert alone.number == 3
    assert len(alice.epochs.chain().votes[-1]) == 1
    alice.epochs.prune()
    others, peers.all = peers.all, [alice]
    carol = peers.add("carol", Role.READER)
    peers.settle()
    assert carol.epochs.number == 0
    assert "has 1 attestations, and policy wants 2" in carol.epochs.waits_for
    assert "ask other peers" in carol.epochs.waits_for
    peers.all = [*others, carol]
    agree_on(peers, alice, bob, attestations_min=2)
    peers.all.remove(carol)
    epoch(peers, alice)
    epoch(peers)
    alice.epochs.prune()
    bob.epochs.prune()
    peers.all.append(carol)
    settle(peers)
    same(alice, bob, carol)
