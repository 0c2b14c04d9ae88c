"""Epochs on whole peers: any delivery, restarts, sleepers, prunings and joiners; one CID for each number, one state."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.party.helpers import narrow
from tests.party.histories import act, models, some_ranges

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput, InvalidMutation, MissingBlob, MissingBlocks, NotAuthorised, UnknownItem
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.lanes_at_cut import lanes_at
from antiphon.party.epochs import snapshot_fold
from antiphon.party.epochs.snapshot_fold import EpochFold
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

EXAMPLES = budget(12, 400)
_PRUNERS = ("alice", "bob")  # the others keep everything


def declare(peers: Peers, chance: random.Random) -> None:
    """Whoever's turn it is cuts here; some of the others hear of it, and speak."""
    for peer in peers.all:
        with suppress(NotAuthorised, InvalidInput):  # not its turn, or it is behind
            peer.epochs.declare()
            break
    for _ in range(chance.randrange(6)):
        giver, taker = chance.sample(peers.all, 2)
        peers.pass_on(giver, taker)
        taker.epochs.step()


def some_step(peers: Peers, chance: random.Random) -> None:
    peer, other = chance.sample(peers.all, 2)
    what = chance.random()
    if what < 0.2:
        some_ranges(other, peer, chance)
    elif what < 0.26:
        peer.epochs.step()
    elif what < 0.34:
        declare(peers, chance)
    elif what < 0.4:
        peers.pass_blobs(other, peer, whole=chance.random() < 0.7)
    elif what < 0.44:
        with suppress(NotAuthorised, InvalidInput):
            narrow(peers, chance)
    elif what < 0.52:
        pruner = peers.all[chance.randrange(len(_PRUNERS))]
        with suppress(MissingBlob):
            pruner.epochs.prune()
    else:
        try:
            with suppress(NotAuthorised, InvalidMutation, UnknownItem):  # its genesis may have been erased just now
                act(peer, chance)
        except MissingBlob:  # an item that was not fetched yet: the whole of the snapshot is
            for giver in peers.all:
                peers.pass_blobs(giver, peer, whole=True)


def recomputed(witness: Peer, number: int) -> Cid:
    """The snapshot of an epoch from the feeds alone, of one who stands on nothing, and keeps no more than a span."""
    epoch = witness.epochs.chain().final[number - 1]
    before = EpochBase.load(Cid(epoch.previous), witness.blobs, party=witness.party.key) if epoch.previous else None
    plan = witness.epochs._plan_of(epoch)
    with witness.party.locked() as engine:
        lanes = lanes_at(witness.store, engine.authority.is_control_block, before, plan.cut)
        judge = engine.authority.epoch_judge(plan.control)
    overlay = MemoryBlobs()
    overlay.put_all((cid, witness.blobs.get(cid)) for cid in witness.blobs)  # type: ignore[attr-defined]
    fold = EpochFold(witness.party.key, plan, before, lanes, None, witness.store, witness.models, judge, overlay)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_fold, "_SPANS_SIZE_MAX", 1_000)
        return fold.run().cid


def check_history(folder: str, seed: int, *, steps: int, attesters: int) -> None:
    chance = random.Random(seed)
    with Peers(folder, models=models()) as peers:
        alice = peers.add("alice")
        for name in ("bob", "carol"):
            peers.add(name, chance.choice([Role.EDITOR, Role.OWNER]))
        assert alice.member is not None
        if attesters:
            devices = sorted(bytes(peer.device.key) for peer in peers.all[:attesters])
            policy = Policy(attesters=tuple(devices), deleted_epochs=chance.choice([0, 1, 2]), message_count=5)
            alice.member.set_policy(policy)
            peers.sync()
        for _ in range(steps):
            some_step(peers, chance)
        peers.settle()
        for giver in peers.all:
            for taker in peers.all:
                if giver is not taker:
                    peers.pass_blobs(giver, taker, whole=True)
        peers.settle()
        check_agreement(peers)
        joiner = peers.add("dora", Role.READER)
        peers.settle()
        for giver in peers.all[:3]:
            peers.pass_blobs(giver, joiner, whole=True)
        peers.settle()
        check_agreement(peers)


def check_agreement(peers: Peers) -> None:
    for peer in peers.all:
        assert peer.epochs.disagreement is None, peer.epochs.disagreement
    numbers = {peer.name: (peer.epochs.number, peer.epochs.waits_for) for peer in peers.all}
    assert len({number for number, _ in numbers.values()}) == 1, numbers
    chains = [peer.epochs.chain().final for peer in peers.all]
    assert all(chain == chains[0] for chain in chains)
    wanted = peers.all[0].snapshots()
    for peer in peers.all[1:]:
        assert peer.snapshots() == wanted, peer.name
    frames = [peer.party.timeframe for peer in peers.all]
    assert all(frame == frames[0] for frame in frames)
    witness = peers.all[2]
    for number in range(1, len(chains[0]) + 1):
        with suppress(MissingBlob, MissingBlocks):  # it slept, and began later
            assert recomputed(witness, number) == chains[0][number - 1].snapshot


@given(seed=st.integers(0, 1 << 32), attesters=st.sampled_from([0, 0, 1, 2, 3]))
@settings(max_examples=EXAMPLES)
@pytest.mark.slow
def test_epochs_are_the_same_for_everybody(seed: int, attesters: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_history(folder, seed, steps=40, attesters=attesters)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "attesters"), [(500_019, 3)], ids=["an access list, judged by more than the epoch knew"]
)
def test_histories_that_once_went_wrong(seed: int, attesters: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_history(folder, seed, steps=50, attesters=attesters)
