"""The digest of what is held: equal where neither end lacks anything, by the store's records alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mesh.replication.wire import Wire
from tests.party.epochs.epoch_acts import epoch, note

from antiphon.mesh.replication.digest import HoldingsDigest, holdings_digest
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        made.add("alice")
        made.add("bob")
        yield made


def digest_of(peer: Peer) -> bytes:
    return holdings_digest(peer.store, peer.party.key)


def test_it_follows_each_change_and_is_the_same_in_whichever_order(peers: Peers) -> None:
    alice, bob = peers.all
    peers.sync()
    kept = HoldingsDigest(alice.store, alice.party.key)
    seen = [kept.get()]
    for peer in (alice, bob, alice):
        note(peer)
        peers.sync()
        seen.append(kept.get())
        assert kept.get() == digest_of(alice) == digest_of(bob)
    assert len(set(seen)) == len(seen)


def test_what_is_pruned_does_not_count(peers: Peers) -> None:
    alice, bob = peers.all
    note(alice)
    epoch(peers)
    Wire(peers).run()
    assert digest_of(alice) == digest_of(bob)
    before = digest_of(alice)
    assert alice.epochs.prune()
    assert digest_of(alice) == before


def test_other_branches_count(peers: Peers) -> None:
    """Who holds the same history, and lacks a branch that others may refer to, is not at one with who has it."""
    alice, bob = peers.all
    peers.sync()
    writer = SpanWriter(pair_of("a writer of two histories"), alice.party.key)
    history = writer.write(2)
    other = writer.fork()
    for peer in (alice, bob):
        peer.store.ingest(history)
    assert digest_of(alice) == digest_of(bob)
    alice.store.ingest_branch([writer.write()])
    bob.store.ingest_branch([other.write()])
    assert digest_of(alice) != digest_of(bob)
