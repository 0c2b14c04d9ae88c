"""Held blocks of a feed have changed on the disk, and its writer has forked it: all else is replicated."""

from __future__ import annotations

import os

import pytest
from tests.attacks.equivocator import Equivocator
from tests.mesh.replication.wire import Wire
from tests.party.epochs.epoch_acts import note

from antiphon.core.errors import CorruptBlock
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.testing.peers import Peer, Peers


def rot(peer: Peer, text: bytes) -> None:
    """Change a byte of an open store wherever it lies."""
    path = peer.folder / "feeds" / "data.mdb"
    data = path.read_bytes()
    handle = os.open(path, os.O_WRONLY)
    at = data.find(text)
    assert at >= 0
    while at >= 0:
        os.pwrite(handle, bytes([text[0] ^ 1]), at)
        at = data.find(text, at + 1)
    os.close(handle)


@pytest.mark.parametrize("longer", ["neither", "alice", "bob", "evidence"])
def test_a_fork_that_cannot_be_compared_with_rotten_blocks_stops_no_session(peers: Peers, longer: str) -> None:
    """The error left the session: a sync of the whole party ended with it, or the range was requested without end."""
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all

    def write(seed: int, count: int) -> Span:
        writer = mallory.pen(seed=seed)
        (span,) = writer.extend([Draft(Kind.MUTATION, bytes(16), b"rotten soon %d" % seed) for _ in range(count)])
        return span

    one, other = write(1, 4 if longer == "alice" else 3), write(2, 4 if longer == "bob" else 3)
    alice.take([one])
    bob.take([other])
    if longer == "evidence":
        bob.take([one])
    rot(alice, b"rotten soon 1")
    with pytest.raises(CorruptBlock):
        list(alice.store.held(one.feed, one.first, one.end))
    written = note(carol, "beside the rot")
    wire = Wire(peers)
    wire.run(60_000)
    assert wire.messages < 300
    for peer in (alice, bob):
        peer.party.process()
        assert peer.party.item(written.id).value["title"] == "beside the rot"
