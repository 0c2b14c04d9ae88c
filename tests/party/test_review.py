"""Faults that reviews found in the live engine, replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.errors import Equivocation, InvalidInput
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.credentials.claims import Role
from antiphon.testing.peers import Peers


def test_a_data_feed_that_begins_like_a_control_feed_splits_nobody(tmp_path: Path) -> None:
    """A reader admits a data feed whose first block is a credential and whose second has seen a data feed."""
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        mallory = peers.add("mallory", Role.READER)
        note = alice.party.create("antiphon/object")
        peers.sync()
        mallory.forge(Draft(Kind.CREDENTIAL, bytes(16), b"junk"))
        feed = alice.party.authority.writer().feed
        mallory.forge(Draft(Kind.METADATA, note.id, b"x"), seen=[alice.store.block(feed, 0).entry])
        peers.sync()
        note.edit("set", "x", 1)
        peers.sync()
        bob.party.item(note.id).edit("set", "y", 2)
        peers.sync()

        for peer in peers.all:
            assert peer.party.item(note.id).value == {"x": 1, "y": 2}
            assert ["control feed" in blocked.reason for blocked in peer.party.status().blocked] == [True]
        alice.rebuild()
        assert alice.snapshots() == bob.snapshots()


def test_after_a_fork_took_messages_back_one_can_still_write(tmp_path: Path) -> None:
    """The greatest lamport went down with the messages; what is written next must be made for the lower one."""
    with Peers(tmp_path / "peers") as peers, FeedStore.open(tmp_path / "twin") as twin:
        alice, bob = peers.add("alice"), peers.add("bob")
        note = bob.party.create("antiphon/object")
        for number in range(20):
            note.edit("set", "n", number)
        peers.sync()
        feed = bytes(bob.party.authority.writer().feed)
        assert feed in alice.party.timeframe
        twin.create(feed, bob.party.key)  # bob's device signs a second history
        twin.append(bob.keys.pair(feed), bob.party.key, [Draft(Kind.METADATA, note.id, b"other")])
        (other,) = twin.spans(feed, 0)
        with pytest.raises(Equivocation):
            alice.store.ingest_bytes(other.encode())
        alice.party.process()

        assert feed not in alice.party.timeframe
        mine = alice.party.create("antiphon/object")
        mine.edit("set", "a", 1)
        assert mine.value == {"a": 1}
        assert note.id not in alice.party.items()


def test_nobody_waits_inside_a_batch(tmp_path: Path) -> None:
    """Waiting lets the lock go, and another thread's write would fall into this batch."""
    with Peers(tmp_path, authority=False) as peers:
        party = peers.add("alice").party
        note = party.create("antiphon/object")
        with pytest.raises(InvalidInput, match="do not wait inside a batch"), party.batch():  # noqa: PT012
            note.edit("set", "a", 1)
            party.wait_for(party.timeframe)
        assert note.value == {}


def test_bodies_that_come_late_are_folded_without_a_restart(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        note = alice.party.create("antiphon/object")
        note.edit("set", "a", 1)
        spans = alice.ranges({})
        bob.take([span.without_bodies() for span in spans])
        assert bob.party.items() == []
        assert len(bob.party.refused()) == 2
        for span in spans:
            bob.store.ingest(span)
        bob.party.process()
        assert bob.party.refused() == []
        assert bob.snapshots() == alice.snapshots()
