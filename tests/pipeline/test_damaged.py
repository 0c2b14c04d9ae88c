"""Parties of which little can be said, or which are judged in another way: Spark says what a live peer says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.helpers import damage
from tests.pipeline.lawbulk import Bulk, differences, in_bulk
from tests.pipeline.lawhomes import Live, look, models

from antiphon.api.store import Store
from antiphon.core.errors import CorruptBlock, MissingBlocks
from antiphon.core.reasons import text_of
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Kind
from antiphon.halo.control.machine import PartyMachine
from antiphon.model.message import Note
from antiphon.model.model import Discard
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.engine.judge import ERASED
from antiphon.party.epochs.snapshot_fold import EpochPlan
from antiphon.party.live.manager import find_genesis
from antiphon.pipeline.epoch.epoch_snapshot import EpochFolding
from antiphon.pipeline.plan.party_plan import PartyPlan, Planner
from antiphon.testing.peers import Peer, Peers


class Known(NamedTuple):
    homes: dict[str, Live]
    peers: dict[str, Peer]
    bulk: dict[bytes, Bulk]


def two(stack: ExitStack, folder: Path, name: str, *, authority: bool = True) -> tuple[Peer, Peer]:
    peers = stack.enter_context(Peers(folder / name, authority=authority, models=models()))
    alice, bob = peers.add(f"alice of {name}"), peers.add(f"bob of {name}")
    for peer in (alice, bob):
        item = peer.party.create("antiphon/object")
        item.edit("set", "title", name)
    peers.sync()
    return alice, bob


def live(name: str, peer: Peer) -> Live:
    return look(name, peer.folder, peer.party, peer.store)


def family(folder: Path) -> Iterator[tuple[str, Live]]:
    """A party and a child of it, whose members are the parent's."""
    with Store.open(folder, unprotected=True) as store:
        parent = store.create_party("parent")
        child = parent.create_child("child")
        for party in (parent, child):
            party.object({"title": party.name})
        for party in (parent, child):
            party.refresh()
            yield party.name, look(party.name, folder, party.processor, store.manager.feeds)


@pytest.fixture(scope="module")
def known(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    folder = tmp_path_factory.mktemp("damaged")
    homes = dict(family(folder / "family"))
    with ExitStack() as stack:
        peers = {"open": two(stack, folder, "open", authority=False)[0]}
        for name in ("control", "genesis"):
            alice, bob = two(stack, folder, name)
            assert alice.member is not None
            assert bob.member is not None
            assert bob.member.control is not None
            peers[name] = alice
            homes[name] = live(name, alice)
            feed = bob.member.control.feed if name == "control" else alice.member.genesis_feed
            damage(alice, bytes(feed), 0)
        homes["open"] = live("open", peers["open"])
        yield Known(homes, peers, in_bulk(spark, list(homes.values()), [homes["open"].party]))


@pytest.mark.parametrize("name", ["open", "parent", "child"])
def test_spark_comes_to_what_a_live_peer_comes_to(known: Known, name: str) -> None:
    """A party without credentials, one with a child, and the child; parties in other homes are damaged meanwhile."""
    party = known.homes[name]

    assert list(differences(party, known.bulk[party.party])) == []
    assert party.states


def test_a_party_that_is_not_said_to_be_open_is_none(known: Known) -> None:
    peer = known.peers["open"]
    plan = Planner(str(peer.folder), peer.store, peer.blobs, bytes(peer.party.key)).plan()

    assert plan.error == "the party's genesis is not here, or cannot be read [local.unplanned]"
    assert all(lane.position == 0 for lane in plan.lanes)


def test_nobody_judges_a_party_with_a_damaged_control_feed(known: Known) -> None:
    """It may have held the word that takes a right away."""
    peer, bulk = known.peers["control"], known.bulk[known.homes["control"].party]
    genesis = find_genesis(peer.store, peer.party.key)
    assert genesis is not None
    with pytest.raises(CorruptBlock) as refused:
        PartyAuthority(peer.store, PartyMachine(peer.party.key, genesis)).refresh()

    assert text_of(bulk.plan.error) == str(refused.value)
    assert "changed" in bulk.plan.error
    assert {reason for _, reason in bulk.waiting.values()} == {bulk.plan.error}


def test_a_party_whose_genesis_is_damaged_says_so(known: Known) -> None:
    peer, bulk = known.peers["genesis"], known.bulk[known.homes["genesis"].party]

    assert find_genesis(peer.store, peer.party.key) is None
    assert "genesis is not here, or cannot be read; feed" in bulk.plan.error
    assert "changed" in bulk.plan.error


@pytest.mark.parametrize("name", ["control", "genesis"])
def test_no_block_of_such_a_party_is_lost(known: Known, name: str) -> None:
    counts, party = known.bulk[known.homes[name].party].report.account, known.homes[name]

    assert (counts.held, counts.lost) == (party.held, 0)
    assert counts.pending + counts.ended == counts.held
    assert counts.ended > 0


def test_no_epoch_is_computed_where_a_body_is_not_here() -> None:
    """What it makes of a void message would be another state than others have, who hold its body."""
    epoch = EpochPlan(3, {}, Timeframe(), 0, (), Discard(0, 0, 0), 0)
    plan = PartyPlan("home", b"p" * 32, (), {}, {}, epoch=epoch)
    note = Note(Kind.MUTATION, 7, b"f" * 32, 5, 0, None, ERASED)
    with pytest.raises(MissingBlocks, match="epoch 3 cannot be computed: the body of block 5 of feed 66666666"):
        list(EpochFolding({plan.party: plan}, models()).fold(plan.party, b"i" * 16, None, [note]))
