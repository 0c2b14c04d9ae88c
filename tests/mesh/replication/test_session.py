"""Two and more peers, through sessions: what one has, the other gets, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mesh.replication.wire import Wire

from antiphon.testing.peers import Peers


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        made.add("alice")
        made.add("bob")
        yield made


def write(peers: Peers, name: str, count: int = 1) -> None:
    peer = next(peer for peer in peers.all if peer.name == name)
    for number in range(count):
        note = peer.party.create("antiphon/object")
        note.edit("set", "title", f"{name} {number}")


def test_what_one_peer_writes_the_other_gets(peers: Peers) -> None:
    write(peers, "alice", 3)
    wire = Wire(peers)
    wire.run()

    alice, bob = peers.all
    assert bob.lengths() == alice.lengths()
    assert bob.snapshots() == alice.snapshots()
    assert len(bob.snapshots()) == 3


def test_what_is_written_later_passes_without_telling_everything_again(peers: Peers) -> None:
    write(peers, "alice", 3)
    wire = Wire(peers)
    wire.run()
    before = wire.messages
    write(peers, "alice")
    wire.nodes["alice"].replica.refresh()
    wire.run()

    assert peers.all[1].snapshots() == peers.all[0].snapshots()
    assert wire.messages - before <= 4  # announced, asked for, given, and nobody says thanks


def test_quiet_peers_say_nothing_and_want_no_clock(peers: Peers) -> None:
    wire = Wire(peers)
    wire.run()
    before = wire.messages

    assert wire.poll("alice") is None
    assert wire.poll("bob") is None
    assert wire.messages == before
