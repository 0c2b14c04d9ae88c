"""A device that comes to another snapshot than the party: it says so, goes on, and adopts the party's when told to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput
from antiphon.halo.credentials.claims import EpochRefusal, Policy
from antiphon.party.epochs.snapshot_fold import Cancelled, EpochPlan, EpochSnapshot
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


@pytest.fixture
def bob(peers: Peers, alice: Peer, monkeypatch: pytest.MonkeyPatch) -> Peer:
    """Bob's code is wrong: his snapshot of epoch 1 is another one."""
    peer = peers.add("bob")
    note = alice.party.create("antiphon/object")
    note.edit("set", "title", "Milk")
    alice.epochs.declare()
    compute = peer.epochs._compute

    def wrong(*plan: Any) -> EpochSnapshot:
        return replace(compute(*plan), cid=Cid.of(b"something else"))

    monkeypatch.setattr(peer.epochs, "_compute", wrong)
    peers.sync()
    peer.epochs.step()
    return peer


def refusals(peer: Peer) -> list[EpochRefusal]:
    assert peer.member is not None
    peer.member.refresh()
    return [act.claim for act in peer.member.machine.acts() if isinstance(act.claim, EpochRefusal)]


def test_it_is_told_to_all_once_and_nothing_is_lost(peers: Peers, alice: Peer, bob: Peer) -> None:
    found = bob.epochs.disagreement
    assert found is not None
    assert (found.number, found.ours) == (1, Cid.of(b"something else"))
    assert bob.epochs.number == 0
    assert bob.snapshots() == alice.snapshots()
    peers.sync()
    assert [(claim.number, claim.computed) for claim in refusals(alice)] == [(1, found.ours)]

    bob.epochs.disagreement = None  # as after a restart
    assert not bob.epochs.step()
    assert len(refusals(bob)) == 1


def test_the_party_s_epoch_is_adopted(peers: Peers, alice: Peer, bob: Peer) -> None:
    theirs, ours = alice.blobs, bob.blobs
    assert isinstance(theirs, MemoryBlobs)
    assert isinstance(ours, MemoryBlobs)
    ours.delete(list(ours))
    assert not bob.epochs.adopt()
    assert "is to be adopted" in bob.epochs.waits_for
    assert len(bob.epochs.wanted()) == 1
    ours.put_all((cid, theirs.get(cid)) for cid in theirs)

    assert bob.epochs.adopt()
    assert bob.epochs.disagreement is None
    assert bob.epochs.number == 1
    assert bob.snapshots() == alice.snapshots()
    bob.party.create("antiphon/object").edit("set", "title", "Salt")
    peers.settle()
    assert bob.snapshots() == alice.snapshots()


def test_who_agrees_has_nothing_to_adopt(alice: Peer) -> None:
    with pytest.raises(InvalidInput, match="does not differ"):
        alice.epochs.adopt()


def test_what_is_called_off_for_good_does_not_begin(alice: Peer) -> None:
    alice.party.create("antiphon/object")
    alice.epochs.cancel()
    alice.epochs.cancel(for_good=True)
    with pytest.raises(Cancelled, match="epoch 1 was cancelled"):
        alice.epochs.declare()
    assert alice.epochs.chain().open.proposals == ()


def test_a_policy_that_comes_while_an_epoch_is_computed_is_taken_in(
    alice: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice.member is not None
    alice.member.set_policy(Policy())
    alice.party.create("antiphon/object")
    compute, plans = alice.epochs._compute, list[EpochPlan]()

    def computing(*plan: Any) -> EpochSnapshot:
        plans.append(plan[0])
        if len(plans) == 1:
            assert alice.member is not None
            alice.member.set_policy(Policy(keep_epochs=1))  # it replaces the first, and cuts
        return compute(*plan)

    monkeypatch.setattr(alice.epochs, "_compute", computing)
    genesis = alice.epochs.declare()
    assert alice.epochs.number == 1
    assert genesis.control == plans[1].control != plans[0].control
