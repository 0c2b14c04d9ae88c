"""An incremental run leaves the same tables as a full run, byte for byte, whatever came in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.budget import budget
from tests.party.epochs.epoch_acts import member, note
from tests.party.forked import Forked, confront, view_branches
from tests.party.helpers import narrow
from tests.party.histories import act, models, some_ranges
from tests.pipeline.helpers import contents

from antiphon.core.errors import InvalidInput, InvalidMutation, MissingBlob, NotAuthorised, UnknownItem
from antiphon.halo.credentials.claims import Policy
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.plan.replan import OTHER_BASE
from antiphon.pipeline.tables.delta_folder import DeltaFolder
from antiphon.pipeline.tables.shard_tally import SHARDS
from antiphon.snapshot.blob_store import BlobStore
from antiphon.testing.peers import Peer, Peers

TOWNS, ROUNDS, STEPS = budget((6, 3, 30), (24, 8, 60))


class Town:
    """A small party that goes on with its history, and one of its peers, whose home is read."""

    def __init__(self, peers: Peers, seed: int, *, epochs: bool) -> None:
        self.peers, self.chance, self.epochs = peers, random.Random(seed), epochs
        for name in ("alice", "bob", "carol"):
            peers.add(f"{name} of town {seed}")  # keys follow from names
        if epochs:
            founder = peers.all[0]
            assert founder.member is not None
            founder.member.set_policy(Policy(attesters=(bytes(founder.device.key),), deleted_epochs=1))
        self.reader = peers.all[0] if epochs else self.chance.choice(peers.all)

    def live_on(self, steps: int) -> None:
        for _ in range(steps):
            peer, other = self.chance.sample(self.peers.all, 2)
            with suppress(NotAuthorised, InvalidInput, InvalidMutation, UnknownItem, IndexError, MissingBlob):
                if self.chance.random() < 0.3:
                    some_ranges(other, peer, self.chance)
                elif self.chance.random() < 0.15:
                    narrow(self.peers, self.chance)
                else:
                    act(peer, self.chance)
        if self.epochs and self.chance.random() < 0.7:
            with suppress(InvalidInput, MissingBlob):
                self.peers.all[0].epochs.declare()
        self.reader.party.process()
        keep_blobs(self.reader)


def keep_blobs(peer: Peer) -> None:
    """On the disk, where a home has them."""
    with BlobStore.open(peer.folder / "blobs") as kept:
        kept.put_all((cid, peer.blobs.get(cid)) for cid in peer.blobs)  # type: ignore[attr-defined]


def keys_of(spark: SparkSession, log: DeltaFolder) -> set[tuple[bytes, bytes]]:
    return {(bytes(row["party"]), bytes(row["item"])) for row in log.at_last_run().read(spark, "items").collect()}


def there(spark: SparkSession, log: DeltaFolder) -> set[tuple[bytes, bytes]]:
    """The items that there must be, by what the change feed says of all runs."""
    found: set[tuple[bytes, bytes]] = set()
    for row in sorted(log.at_last_run().read(spark, "changes").collect(), key=lambda row: row["run"]):
        key = bytes(row["party"]), bytes(row["item"])
        assert (key in found) == (row["change"] != "created"), row
        (found.discard if row["change"] == "removed" else found.add)(key)
    return found


@pytest.fixture
def towns(tmp_path: Path) -> Iterator[list[Town]]:
    with ExitStack() as stack:
        yield [
            Town(stack.enter_context(Peers(tmp_path / str(seed), models=models())), seed, epochs=seed % 3 == 2)
            for seed in range(TOWNS)
        ]


@pytest.mark.parametrize("others", [("antiphon/text", "antiphon/object"), ("antiphon/object", "antiphon/text")])
def test_a_view_that_a_late_message_gives_another_genesis_is_folded_again(
    quick: SparkSession, tmp_path: Path, others: tuple[str, str]
) -> None:
    """Alice and Bob wrote to what two branches of Mallory's feed make of a view; Bob's older message comes later."""
    log, fresh = DeltaFolder(tmp_path / "tables"), DeltaFolder(tmp_path / "fresh")
    with Peers(tmp_path / "peers", models=models()) as peers:
        alice, bob, mallory = (peers.add(name) for name in ("alice", "bob", "mallory"))
        member(mallory).open_data_feed()
        peers.sync()
        view, spans = view_branches(mallory, *others)
        peers.all.remove(mallory)
        for peer, span, model in zip((bob, alice), spans, others, strict=True):
            note(peer)
            note(peer)
            peer.take([span])
            peer.party.item(view).edit(*(("insert", 0, "x") if model == "antiphon/text" else ("set", "x", 1)))
            note(alice)
        alice.take([spans[0]])
        assert alice.party.item(view).model[0] == others[1]
        first = TableRun(quick, log, [alice.folder], models=models)
        first.run()
        confront(peers)
        assert alice.party.item(view).model[0] == others[0]
        second = TableRun(quick, log, [alice.folder], models=models)
        second.run()
        assert not any(step.full_reason for step in second.steps)
        TableRun(quick, fresh, [alice.folder], models=models).run()
    assert contents(quick, log) == contents(quick, fresh)


def test_an_incremental_run_gives_what_a_full_run_gives(
    quick: SparkSession, towns: list[Town], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaFolder(tmp_path / "tables")
    with Peers(tmp_path / "forked", models=models()) as peers:
        forked = Forked(peers, longer=2)
        homes = [*(town.reader.folder for town in towns), forked.carol.folder]
        went, reports = [], []
        for number in range(ROUNDS):
            for town in towns:
                town.live_on(STEPS)
            if number == ROUNDS - 1:
                confront(forked.peers)
            made = TableRun(quick, log, homes, models=models)
            with monkeypatch.context() as patched:
                if number == 1:  # as if there were so many messages that tasks have to share a shard
                    patched.setattr(
                        "antiphon.pipeline.tables.incremental_write.buckets_for", lambda cores, messages: 2 * SHARDS
                    )
                reports.append(made.run())
            went.append(made.steps)
        fresh = DeltaFolder(tmp_path / "fresh")
        whole = TableRun(quick, fresh, homes, models=models).run()

    assert reports[-1].parties == whole.parties
    assert not any(report.counts["lost"] for report in reports)
    assert contents(quick, log) == contents(quick, fresh)
    assert there(quick, log) == there(quick, fresh) == keys_of(quick, log)
    again = [step for steps in went[1:] for step in steps]
    assert sum(not step.full_reason and not step.unchanged for step in again) > len(again) // 3
    assert any(step.full_reason == OTHER_BASE for step in again)
