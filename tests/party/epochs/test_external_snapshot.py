"""Epochs whose snapshot was computed elsewhere: all rules are those of any epoch, and what came is compared first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.party.epochs.epoch_acts import agree_on, device, epoch, held, note, settle, takes_over

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import AntiphonError, InvalidInput
from antiphon.halo.credentials.claims import EpochGenesis
from antiphon.model.epoch_fold import EpochItem, fold_on
from antiphon.party.epochs import snapshot_fold
from antiphon.party.epochs.snapshot_fold import EpochPlan
from antiphon.snapshot import tree
from antiphon.snapshot.root import SnapshotRoot
from antiphon.testing.peers import Peer, Peers


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    """Alice declares; she, Bob and Carol attest. The party stands on an epoch, and something came since."""
    with Peers(tmp_path) as peers:
        alice, bob, carol = (peers.add(name) for name in ("alice", "bob", "carol"))
        agree_on(peers, alice, bob, carol, generator=device(alice), deleted_epochs=1)
        items = [note(peer, f"{peer.name} {number}") for peer in peers.all for number in range(8)]
        epoch(peers, alice)
        items[0].edit("set", "title", "changed")
        items[1].delete()
        note(bob, "new")
        peers.sync()
        yield peers


def afresh(peer: Peer, plan: EpochPlan) -> Cid:
    """What another computation comes to: nothing of it is remembered by the peer."""
    made = peer.epochs._compute(plan).cid
    peer.epochs._made = None
    return made


def test_what_was_computed_elsewhere_is_declared_and_stood_on_without_a_fold(
    peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, carol = peers.all
    agree_on(peers, alice, generator=device(alice), deleted_epochs=1, message_count=2)  # from the epoch after the next
    epoch(peers, alice)
    talk = bob.party.create("antiphon/messenger")  # some of it is let go, so an epoch has other bytes than rows have
    for number in range(4):
        talk.edit("post", f"post {number}")
    peers.sync()
    folded: list[bool] = []

    def counted(*given: Any) -> EpochItem:
        folded.append(True)
        return fold_on(*given)

    def make(plan: EpochPlan) -> Cid:
        made = afresh(bob, plan)
        alice.blobs.put_all((cid, bob.blobs.get(cid)) for cid in held(bob))
        monkeypatch.setattr(snapshot_fold, "fold_on", counted)
        return made

    genesis = alice.epochs.declare(maker=make)

    assert (alice.epochs.number, folded) == (3, [])
    assert alice.epochs.base is not None
    assert alice.epochs.base.cid == genesis.snapshot
    settle(peers)
    assert folded  # by those who recompute it
    assert {peer.epochs.number for peer in peers.all} == {3}
    assert len({peer.party.snapshot(talk.id) for peer in peers.all}) == 1
    carol.rebuild()
    assert carol.party.snapshot(talk.id) == alice.party.snapshot(talk.id)


def test_who_lost_the_race_declares_nothing(peers: Peers) -> None:
    """While it is computed, the others take over, and make another snapshot final."""
    alice, bob, carol = peers.all
    won: list[EpochGenesis] = []

    def slow(plan: EpochPlan) -> Cid:
        made = afresh(alice, plan)
        if not won:
            peers.all = [bob, carol]
            note(bob, "what Alice has not seen")
            peers.sync()
            won.append(takes_over(peers, bob, bob, carol))
            peers.all = [alice, bob, carol]
            peers.pass_on(bob, alice)
        return made

    with pytest.raises(AntiphonError, match="epoch"):
        alice.epochs.declare(maker=slow)
    settle(peers)

    final = alice.epochs.chain().final
    assert [bytes(one.snapshot) for one in final][1:] == [bytes(won[0].snapshot)]
    assert {peer.epochs.number for peer in peers.all} == {2}


def test_a_snapshot_of_other_messages_is_not_declared(peers: Peers) -> None:
    alice = peers.all[0]

    def other(plan: EpochPlan) -> Cid:
        shorter = {feed: max(0, length - 1) for feed, length in plan.cut.items()}
        return afresh(alice, EpochPlan(**{name: getattr(plan, name) for name in plan.__slots__} | {"cut": shorter}))

    with pytest.raises(InvalidInput, match="computed elsewhere, is not that of epoch 2"):
        alice.epochs.declare(maker=other)
    assert len(alice.epochs.chain().open.proposals) == 0


def test_a_snapshot_that_still_has_what_is_buried_is_not_declared(peers: Peers) -> None:
    alice = peers.all[0]
    epoch(peers, alice)  # it finds an item deleted, which goes with the next
    base = alice.epochs.base
    assert base is not None
    ((dead, _),) = base.deaths()
    data = base.item(dead)
    assert data is not None

    def with_it(plan: EpochPlan) -> Cid:
        root = SnapshotRoot.decode(alice.blobs.get(afresh(alice, plan)))
        items = tree.update(root.items, [(dead, data)], alice.blobs)
        kept = replace(root, items=items, item_count=root.item_count + 1)
        return alice.blobs.put(kept.encode(), DAG_CBOR)

    with pytest.raises(InvalidInput, match=f"item {dead.hex()} differs"):
        alice.epochs.declare(maker=with_it)
    assert alice.epochs.declare(maker=lambda plan: afresh(alice, plan)).number == 3
