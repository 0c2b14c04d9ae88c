"""One id, two models: an equivocator begins an item as a text on one branch of its feed, as an object on the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.party.epochs.epoch_acts import member
from tests.party.forked import confront

from antiphon.core.errors import UnknownItem
from antiphon.core.ids import ItemId
from antiphon.core.keys import PublicKey
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.model.message import Genesis, write_genesis
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter

TEXT, OBJECT = (write_genesis(Genesis(b"n" * 16, model, 1)) for model in ("antiphon/text", "antiphon/object"))


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as party:
        for name in ("alice", "bob", "mallory"):
            party.add(name)
        member(party.all[2]).open_data_feed()
        party.sync()
        yield party


def branch(mallory: Peer, message: bytes, item: bytes = b"") -> tuple[bytes, Span]:
    """Another block 0 of Mallory's data feed, with this genesis, and the id of the item that it names."""
    feed = member(mallory).open_data_feed().feed
    entries = member(mallory).machine.entries()
    lamport = 1 + max(entry.lamport for entry in entries)
    named = item or bytes(ItemId.derive(lamport, party=mallory.party.key, feed=feed, genesis=message))
    writer = SpanWriter(mallory.keys.pair(PublicKey(feed)), mallory.party.key, seed=len(message))
    (span,) = writer.extend([Draft(Kind.GENESIS, named, message)], seen=entries)
    return named, span


def test_an_id_never_has_two_models(peers: Peers) -> None:
    """Mallory shows Alice the text and Bob the object, with one nonce and one lamport."""
    alice, bob, mallory = peers.all
    text, one = branch(mallory, TEXT)
    thing, other = branch(mallory, OBJECT)
    _, false = branch(mallory, OBJECT, text)
    assert text != thing
    alice.take([one])
    bob.take([other])
    alice.party.item(text).edit("insert", 0, "Alice wrote")
    bob.party.item(thing).edit("set", "by", "Bob")
    with pytest.raises(UnknownItem):
        bob.party.item(text)
    peers.all.remove(mallory)
    confront(peers)
    peers.sync()
    assert alice.snapshots() == bob.snapshots()
    assert alice.party.refused() == bob.party.refused()
    carol = peers.add("carol")
    carol.take([false])
    with pytest.raises(UnknownItem):
        carol.party.item(text)


def test_a_genesis_that_names_the_id_of_another_model_begins_nothing(peers: Peers) -> None:
    alice, bob, mallory = peers.all
    text, one = branch(mallory, TEXT)
    _, false = branch(mallory, OBJECT, text)
    alice.take([one])
    bob.take([false])
    assert alice.party.item(text).model == ("antiphon/text", 1)
    with pytest.raises(UnknownItem):
        bob.party.item(text)
