"""One id, two models: an equivocator begins an item as a text on one branch of its feed, as an object on the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.party.epochs.epoch_acts import agree_on, epoch, join, member, same
from tests.party.forked import confront, view_branches

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


def two_histories(peers: Peers) -> tuple[bytes, bytes]:
    """Mallory shows Alice a text and Bob an object, with one nonce and one lamport. Both write to what they see."""
    alice, bob, mallory = peers.all
    text, one = branch(mallory, TEXT)
    thing, other = branch(mallory, OBJECT)
    assert text != thing
    alice.take([one])
    bob.take([other])
    with pytest.raises(UnknownItem):
        bob.party.item(text)
    alice.party.item(text).edit("insert", 0, "Alice wrote")
    bob.party.item(thing).edit("set", "by", "Bob")
    peers.all.remove(mallory)
    return text, thing


def check_both(peers: Peers, text: bytes, thing: bytes) -> None:
    """All peers have both items, byte for byte; so does one that restarts, and one that is built from its feeds."""
    wanted = peers.all[0].snapshots()
    for peer in peers.all:
        assert not peer.party.status().blocked, peer.name
        assert (peer.party.item(text).value, peer.party.item(thing).value) == ("Alice wrote", {"by": "Bob"}), peer.name
        assert peer.snapshots() == wanted, peer.name
        assert peer.party.refused() == peers.all[0].party.refused(), peer.name
    bob = peers.all[1]
    bob.restart(crash=True)
    assert bob.snapshots() == wanted
    bob.rebuild()
    assert bob.snapshots() == wanted


def test_an_id_never_has_two_models_and_what_others_built_on_each_stays(peers: Peers) -> None:
    text, thing = two_histories(peers)
    confront(peers)
    check_both(peers, text, thing)
    peers.all[0].party.item(thing).edit("set", "also", "Alice")
    peers.all[1].party.item(text).edit("insert", 0, "Bob and ")
    peers.sync()
    for peer in peers.all:
        assert peer.party.item(text).value == "Bob and Alice wrote"
        assert peer.party.item(thing).value == {"by": "Bob", "also": "Alice"}
    assert peers.all[0].snapshots() == peers.all[1].snapshots()


def test_joiners_have_both_from_the_snapshot_and_from_the_feeds(peers: Peers) -> None:
    text, thing = two_histories(peers)
    confront(peers)
    carol = peers.add("carol")
    confront(peers)
    check_both(peers, text, thing)
    epoch(peers)
    same(*peers.all)
    check_both(peers, text, thing)
    assert carol.epochs.number == 1
    same(*peers.all, join(peers, "dora"))


def test_a_genesis_beyond_a_fork_that_nobody_built_on_is_not_there(peers: Peers) -> None:
    alice, bob, mallory = peers.all
    text, one = branch(mallory, TEXT)
    thing, other = branch(mallory, OBJECT)
    alice.take([one])
    bob.take([other])
    peers.all.remove(mallory)
    confront(peers)
    for peer in peers.all:
        for item in (text, thing):
            with pytest.raises(UnknownItem):
                peer.party.item(item)
    assert alice.snapshots() == bob.snapshots() == {}


def test_a_genesis_that_names_the_id_of_another_model_begins_nothing(peers: Peers) -> None:
    alice, bob, mallory = peers.all
    text, one = branch(mallory, TEXT)
    _, false = branch(mallory, OBJECT, text)
    alice.take([one])
    bob.take([false])
    assert alice.party.item(text).model == ("antiphon/text", 1)
    with pytest.raises(UnknownItem):
        bob.party.item(text)


# -- views: the id follows from a key, so one id can have two geneses


@pytest.mark.parametrize("models", [("antiphon/text", "antiphon/object"), ("antiphon/object", "antiphon/text")])
def test_of_a_view_with_two_geneses_all_have_the_same_one(peers: Peers, models: tuple[str, str]) -> None:
    """Who holds the key vouches for what it names. What was written to the other genesis is refused, for all alike."""
    alice, bob, mallory = peers.all
    view, spans = view_branches(mallory, *models)
    for peer, span, model in zip((alice, bob), spans, models, strict=True):
        peer.take([span])
        peer.party.item(view).edit(*(("insert", 0, "words") if model == "antiphon/text" else ("set", "by", peer.name)))
    peers.all.remove(mallory)
    confront(peers)
    (chosen,) = {peer.party.item(view).model for peer in peers.all}
    assert chosen[0] in models
    shown = alice.party.item(view).value
    assert shown == ("words" if chosen[0] == "antiphon/text" else {"by": ("alice", "bob")[models.index(chosen[0])]})
    agree_on(peers, alice)
    for number in range(2):
        wanted = alice.snapshots(), alice.party.refused()
        for peer in peers.all:
            assert peer.party.item(view).value == shown
            assert (peer.snapshots(), peer.party.refused()) == wanted, (number, peer.name)
            peer.restart(crash=True)
            assert peer.party.item(view).value == shown
            peer.rebuild()
            assert peer.party.item(view).value == shown
        epoch(peers)
    same(*peers.all, join(peers, "dora"))


@pytest.mark.parametrize("models", [("antiphon/text", "antiphon/object"), ("antiphon/object", "antiphon/text")])
def test_who_builds_on_a_view_later_changes_nothing(peers: Peers, models: tuple[str, str]) -> None:
    """Bob had seen the other genesis. He writes to the view only after Alice did, to what he sees then."""
    alice, bob, mallory = peers.all
    view, spans = view_branches(mallory, *models)
    alice.take([spans[0]])
    bob.take([spans[1]])
    bob.party.create("antiphon/object")  # his feed has seen the other genesis from here on
    edits = (
        [("insert", 0, "a"), ("insert", 1, "b")] if models[0] == "antiphon/text" else [("set", "a", 1), ("set", "b", 2)]
    )
    alice.party.item(view).edit(*edits[0])
    peers.all.remove(mallory)
    confront(peers)
    bob.party.item(view).edit(*edits[1])
    peers.sync()
    for peer in peers.all:
        assert peer.party.item(view).value == ("ab" if models[0] == "antiphon/text" else {"a": 1, "b": 2})
        peer.rebuild()
        assert peer.party.item(view).value == ("ab" if models[0] == "antiphon/text" else {"a": 1, "b": 2})
    assert alice.snapshots() == bob.snapshots()


def test_what_all_wrote_to_a_view_with_two_geneses_of_one_model_stays(peers: Peers) -> None:
    alice, bob, mallory = peers.all
    view, spans = view_branches(mallory, "antiphon/object", "antiphon/object")
    for peer, span in zip((alice, bob), spans, strict=True):
        peer.take([span])
        peer.party.item(view).edit("set", peer.name, True)
    peers.all.remove(mallory)
    confront(peers)
    for peer in peers.all:
        assert peer.party.item(view).value == {"alice": True, "bob": True}
    assert alice.snapshots() == bob.snapshots()
