"""Spark and a live peer come to the same: items byte for byte, and what does not count message by message."""

from __future__ import annotations

import random
from contextlib import ExitStack, suppress
from pathlib import Path

from pyspark.sql import SparkSession
from tests.party.helpers import narrow
from tests.party.histories import act, models, some_ranges
from tests.pipeline.helpers import collect, live

from antiphon.core.errors import InvalidInput, InvalidMutation, NotAuthorised, UnknownItem
from antiphon.core.timeframe import Timeframe
from antiphon.pipeline.fold.fold_job import fold_survey
from antiphon.pipeline.fold.item_fold import folded
from antiphon.pipeline.order.messages import bases, messages
from antiphon.pipeline.plan.standings import judged
from antiphon.pipeline.plan.survey import blocks, survey
from antiphon.testing.peers import Peers

HISTORIES = 12


def some_history(peers: Peers, chance: random.Random, seed: int, steps: int) -> None:
    for name in ("alice", "bob", "carol"):
        peers.add(f"{name} {seed}")  # keys follow from names
    for _ in range(steps):
        peer, other = chance.sample(peers.all, 2)
        with suppress(NotAuthorised, InvalidInput, InvalidMutation, UnknownItem, IndexError):
            if chance.random() < 0.3:
                some_ranges(other, peer, chance)
            elif chance.random() < 0.1:
                narrow(peers, chance)
            else:
                act(peer, chance)


def test_spark_folds_what_live_peers_fold(spark: SparkSession, tmp_path: Path) -> None:
    with ExitStack() as stack:
        peers = {}
        for seed in range(HISTORIES):
            chance = random.Random(seed)
            town = stack.enter_context(Peers(tmp_path / str(seed), models=models()))
            some_history(town, chance, seed, steps=60)
            peer = chance.choice(town.all)  # it may lack some of what others wrote
            peer.party.process()
            peers[bytes(peer.party.key)] = peer
        assert len(peers) == HISTORIES
        looked = survey(spark, [peer.folder for peer in peers.values()])
        sorted_ = messages(judged(blocks(spark, looked), looked.plans), bases(spark, looked))
        made = collect(looked, folded(sorted_, looked.plans, models))
        assert collect(looked, fold_survey(spark, looked, models)) == made  # the same in chunks
        for party, peer in peers.items():
            states, refusals = live(peer)

            assert made[party] == (states, refusals), peer.folder
            lanes = looked.plan(party).lanes
            frame = Timeframe({lane.feed: lane.position - 1 for lane in lanes if lane.position})
            assert frame == peer.party.timeframe
