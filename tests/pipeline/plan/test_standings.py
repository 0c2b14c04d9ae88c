"""Liars, forks, damaged disks and gaps: each block has its reason, the one that a live peer has, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.party.forked import Forked, confront
from tests.pipeline.counted_blocks import by_plans, by_rows
from tests.pipeline.helpers import flip, live

from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Role
from antiphon.model.message import Note, wrap
from antiphon.party.engine.judge import mark_void, void_places
from antiphon.pipeline.fold.block_account import account
from antiphon.pipeline.fold.item_fold import folded, items, refused
from antiphon.pipeline.fold.summary import summary
from antiphon.pipeline.order.messages import messages
from antiphon.pipeline.plan.party_plan import FORKED
from antiphon.pipeline.plan.standings import DELIVERED, ENDED, judged, quarantine, standings
from antiphon.pipeline.plan.survey import Survey, blocks, survey
from antiphon.testing.peers import Peer, Peers


def lied_to(peers: Peers) -> Peer:
    """What no honest program writes: nonsense, another kind than was said, items that never were, without a right."""
    alice, bob = peers.add("alice of liars"), peers.add("bob of liars")
    reader = peers.add("rita of liars", Role.READER)
    item = alice.party.create("antiphon/object")
    item.edit("set", "title", "honest")
    peers.sync()
    bob.forge(Draft(Kind.MUTATION, item.id, b"\xff\xff"), Draft(Kind.MUTATION, item.id, wrap(Kind.MUTATION, b"\x99")))
    bob.forge(Draft(Kind.METADATA, item.id, wrap(Kind.MUTATION, b"x")), Draft(Kind.GENESIS, item.id, b"no"))
    bob.forge(Draft(Kind.MUTATION, b"?" * 16, wrap(Kind.MUTATION, b"x")), Draft(Kind.CREDENTIAL, item.id, b"y"))
    reader.forge(Draft(Kind.CHANGE, item.id, b"z"))
    peers.sync()
    item.edit("set", "title", "still honest")
    return alice


def revoked(peers: Peers) -> Peer:
    alice, bob = peers.add("alice of the revoked"), peers.add("bob of the revoked")
    item = bob.party.create("antiphon/object")
    item.edit("set", "title", "before")
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    item.edit("set", "title", "after, unheard of")
    bob.party.create("antiphon/object")
    peers.sync()
    return alice


def behind(peers: Peers) -> Peer:
    """Bob has heard of what Alice wrote, and of Bob alone came what he wrote after that."""
    alice, bob, carol = (peers.add(f"{name} behind") for name in ("alice", "bob", "carol"))
    item = alice.party.create("antiphon/object")
    peers.pass_on(alice, bob)
    bob.party.item(item.id).edit("set", "title", "an answer")
    assert alice.member is not None
    own = bytes(alice.member.open_data_feed().feed)
    carol.take([span for span in bob.ranges({}) if span.feed != own])
    return carol


class Troubled(NamedTuple):
    peers: dict[str, Peer]
    looked: Survey
    judged: DataFrame
    folded: DataFrame


@pytest.fixture(scope="module")
def troubled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubled]:
    with ExitStack() as stack:

        def town(name: str) -> Peers:
            return stack.enter_context(Peers(tmp_path_factory.mktemp(name)))

        peers = {
            "lied to": lied_to(town("liars")),
            "revoked": revoked(town("revoked")),
            "behind": behind(town("behind")),
        }
        forked = Forked(town("forked"), longer=2)
        confront(forked.peers)
        peers["forked"] = forked.carol
        for peer in peers.values():
            peer.party.process()
        looked = survey(spark, [peer.folder for peer in peers.values()])
        found = judged(blocks(spark, looked), looked.plans).cache()
        made = folded(messages(found), looked.plans).cache()
        yield Troubled(peers, looked, found, made)
        found.unpersist()
        made.unpersist()


@pytest.mark.parametrize("name", ["lied to", "revoked", "behind", "forked"])
def test_the_quarantine_is_a_live_peers_block_by_block(troubled: Troubled, name: str) -> None:
    peer = troubled.peers[name]
    states, listed = live(peer)
    own = [row for row in refused(troubled.folded).collect() if bytes(row.party) == peer.party.key]

    assert {(bytes(row.feed), row.seq): row.reason for row in own} == listed
    assert bool(listed) == (name in ("lied to", "revoked"))
    made = [row for row in items(troubled.folded).collect() if bytes(row.party) == peer.party.key]
    assert {bytes(row.item): bytes(row.snapshot) for row in made} == states


def test_every_block_is_accounted_for(troubled: Troubled) -> None:
    found = account(troubled.looked, summary(troubled.folded))
    assert by_rows(troubled.judged) == by_plans(troubled.looked)
    for name, peer in troubled.peers.items():
        one = found[bytes(peer.party.key)]

        assert one.held == sum(record.length for record in peer.store.feeds(peer.party.key)), name
        assert one.lost == 0, name
        assert one.refused == len(live(peer)[1]), name
        assert one.applied > 0 or name == "behind", name
    assert found[bytes(troubled.peers["behind"].party.key)].pending > 0
    assert found[bytes(troubled.peers["forked"].party.key)].ended > 0


def test_every_derived_form_of_a_standing_agrees_block_by_block(troubled: Troubled) -> None:
    """The stage `judged`, the ranges of `standings`, and the lookups of void messages, one by one and in columns."""
    rows = {(bytes(row.feed), row.seq): row for row in troubled.judged.collect()}
    void = 0
    for plan in troubled.looked.plans:
        for _, feed, start, stop, standing, reason in standings(plan):
            for seq in range(start, stop):
                row = rows.pop((feed, seq), None)
                assert row is None if standing == ENDED else row and (row.standing, row.reason) == (standing, reason)
                if row and standing == DELIVERED:
                    voids = plan.lanes[row.lane].voids
                    note = Note(Kind.MUTATION, 1, feed, seq, 0, b"", "")
                    (at,) = void_places(voids, np.array([seq])) if voids else (-1,)
                    assert mark_void(voids, note).void == (voids[at].reason if at >= 0 else "") == (reason or "")
                    void += at >= 0
    assert not rows
    assert void


def test_what_waits_says_for_what_as_a_live_peer_does(troubled: Troubled) -> None:
    peer = troubled.peers["behind"]
    (blocked,) = peer.party.status().blocked
    rows = [row for row in quarantine(troubled.judged).collect() if bytes(row.party) == peer.party.key]

    assert {(bytes(row.feed), row.standing, row.reason) for row in rows} == {(blocked.feed, "pending", blocked.reason)}
    assert min(row.seq for row in rows) == blocked.seq


def test_a_forked_feed_says_why_it_ends(troubled: Troubled) -> None:
    peer = troubled.peers["forked"]
    (lane,) = [lane for lane in troubled.looked.plan(peer.party.key).lanes if lane.ended]

    assert lane.ended == FORKED
    assert lane.position == lane.end == peer.party.timeframe[lane.feed] + 1 < lane.length


def test_damage_ends_one_feed_here_and_harms_no_other(spark: SparkSession, tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice of damage"), peers.add("bob of damage")
        own, others = (peer.party.create("antiphon/object") for peer in (alice, bob))
        for peer, item in ((alice, own), (bob, others)):
            with peer.party.batch():
                for number in range(300):
                    item.edit("set", "key", f"{peer.name} wrote this as number {number}")
            item.edit("set", "key", f"{peer.name}'s last")
        peers.pass_on(bob, alice)
        flip(alice.folder / "feeds" / "data.mdb", b"bob of damage wrote this as number 150")
        looked = survey(spark, alice.folder)
        found = judged(blocks(spark, looked), looked.plans)
        made = folded(messages(found), looked.plans)
        states = {bytes(row.item): bytes(row.snapshot) for row in items(made).collect()}
        one = account(looked, summary(made))[bytes(alice.party.key)]
        assert by_rows(found) == by_plans(looked)
        assert bob.member is not None

        (fault,) = looked.plans[0].faults
        assert fault.feed == bob.member.open_data_feed().feed
        assert "changed" in fault.reason
        assert one.lost == 0
        assert one.ended >= 301
        assert states[own.id] == alice.party.snapshot(own.id)
        assert b"bob of damage" not in states.get(others.id, b"")
