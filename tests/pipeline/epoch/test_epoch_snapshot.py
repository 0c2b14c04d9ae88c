"""The snapshot of an epoch computed on Spark has the CID that peers have agreed on."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession
from tests.party.helpers import narrow
from tests.party.histories import act, models, some_ranges
from tests.pipeline.helpers import collect, live

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput, InvalidMutation, MissingBlob, NotAuthorised, UnknownItem
from antiphon.halo.credentials.claims import Policy
from antiphon.pipeline.epoch.epoch_snapshot import changed, plan_epoch, snapshot
from antiphon.pipeline.fold.fold_job import fold_survey
from antiphon.pipeline.plan.survey import survey
from antiphon.snapshot.blob_store import BlobStore
from antiphon.testing.peers import Peer, Peers


def some_epochs(peers: Peers, chance: random.Random) -> Peer:
    """A party with a few epochs, late messages, revocations and erasures; a peer that has all of it."""
    alice, _, _ = (peers.add(name) for name in ("alice", "bob", "carol"))
    assert alice.member is not None
    alice.member.set_policy(Policy(attesters=(bytes(alice.device.key),), deleted_epochs=1, message_count=3))
    for step in range(120):
        peer, other = chance.sample(peers.all, 2)
        with suppress(NotAuthorised, InvalidInput, InvalidMutation, UnknownItem, MissingBlob, IndexError):
            if step % 30 == 29:
                alice.epochs.declare()
            elif chance.random() < 0.25:
                some_ranges(other, peer, chance)
            elif chance.random() < 0.08:
                narrow(peers, chance)
            else:
                act(peer, chance)
    peers.settle()
    for peer in peers.all[1:]:
        peers.pass_blobs(alice, peer, whole=True)
    peers.settle()
    return alice


def keep_blobs(peer: Peer) -> None:
    """On the disk, where a home has them."""
    with BlobStore.open(peer.folder / "blobs") as kept:
        kept.put_all((cid, peer.blobs.get(cid)) for cid in peer.blobs)  # type: ignore[attr-defined]


def test_spark_comes_to_the_snapshots_that_peers_agreed_on(spark: SparkSession, tmp_path: Path) -> None:
    with Peers(tmp_path, models=models()) as peers:
        alice = some_epochs(peers, random.Random(5))
        keep_blobs(alice)
        chain = alice.epochs.chain().final
        assert len(chain) >= 3
        for epoch in chain:
            plan = plan_epoch(spark, alice.folder, alice.party.key, epoch.number)
            blobs = snapshot(changed(spark, plan, models), plan).collect()

            (root,) = [row for row in blobs if row.root]
            assert Cid(bytes(root.cid)) == Cid(epoch.snapshot)
            assert all(alice.blobs.get(Cid(bytes(row.cid))) == row.data for row in blobs if row.root)


def test_on_an_epoch_spark_folds_what_a_live_peer_folds(spark: SparkSession, tmp_path: Path) -> None:
    with Peers(tmp_path, models=models()) as peers:
        alice = some_epochs(peers, random.Random(6))
        chance = random.Random(7)
        for _ in range(30):
            with suppress(NotAuthorised, InvalidInput, InvalidMutation, UnknownItem):
                act(chance.choice(peers.all), chance)
        peers.sync()
        assert "is not" in survey(spark, alice.folder).plans[0].error  # it would have to guess
        keep_blobs(alice)
        looked = survey(spark, alice.folder)
        states, refusals = collect(looked, fold_survey(spark, looked, models))[alice.party.key]
        wanted, listed = live(alice)

        assert looked.plans[0].number == alice.epochs.number > 0
        assert states == wanted
        bases = {lane.feed: lane.base for lane in looked.plans[0].lanes}
        assert refusals == {place: why for place, why in listed.items() if place[1] >= bases[place[0]]}
