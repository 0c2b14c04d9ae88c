"""Views: items whose id comes from an inception key, which signs for the party and the feed that they begin in."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import AntiphonError, BadEncoding
from antiphon.core.ids import ItemId
from antiphon.core.keys import KeyPair, verify
from antiphon.core.v1 import item_pb2, message_pb2
from antiphon.feed.encoder import Draft, Written
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import ItemState, fold
from antiphon.model.message import Genesis, Inception, Note, write_genesis
from antiphon.testing.peers import Peer, Peers

VIEW = KeyPair.from_seed(sha256(b"a view").digest())
OTHER = KeyPair.from_seed(sha256(b"another view").digest())


def genesis(party: bytes, feed: bytes, pair: KeyPair = VIEW, *, signer: KeyPair | None = None) -> bytes:
    proof = (signer or pair).sign(Inception.statement(party, feed))
    return write_genesis(Genesis(b"", "antiphon/object", 1, view=Inception(pair.key, proof)))


def first(peer: Peer) -> tuple[bytes, int]:
    """This device's feed, and the lamport of the block that it writes next."""
    (block,) = peer.forge(Draft(Kind.METADATA, bytes(16), b""))
    return block.feed, block.lamport + 1


def forged(peer: Peer, item: bytes, *messages: bytes) -> Written:
    return peer.forge(*(Draft(Kind.GENESIS, item, message) for message in messages), atomic=True)


def refusals(peer: Peer) -> list[str]:
    return [one.reason for one in peer.party.refused()]


def same(peers: Peers) -> None:
    peers.sync()
    for peer in peers.all[1:]:
        assert peer.snapshots() == peers.all[0].snapshots()
        assert peer.party.refused() == peers.all[0].party.refused()


# -- what a view is


def test_a_view_is_an_item_with_a_key(peers: Peers, alice: Peer, bob: Peer) -> None:
    view = alice.party.create("antiphon/object", inception=VIEW)
    view.edit("set", "title", "Plans")
    peers.sync()
    there = bob.party.item(view.id)
    proof = there.metadata["id_proof"]
    assert (there.value, there.metadata["view_key"]) == ({"title": "Plans"}, VIEW.key)
    assert verify(VIEW.key, Inception.statement(alice.party.key, view.history()[0].stamp.feed), proof)
    assert view.id == ItemId.of_view(view.id.lamport, party=alice.party.key, key=VIEW.key)
    same(peers)
    bob.restart()
    assert bob.party.item(view.id).metadata["view_key"] == VIEW.key
    bob.rebuild()
    same(peers)


def test_one_key_makes_many_views_at_different_times(lone: Peer) -> None:
    views = [lone.party.create("antiphon/object", inception=VIEW) for _ in range(3)]
    assert len({view.id for view in views}) == 3


def test_nobody_describes_a_view_as_another(lone: Peer) -> None:
    view = lone.party.create("antiphon/object", inception=VIEW)
    for key in ("view_key", "id_proof", "access", ("view_key", "x")):
        with pytest.raises(AntiphonError, match="is not set as metadata"):
            view.set_metadata(key, b"x" * 32)
    assert view.metadata["view_key"] == VIEW.key


# -- proofs


def test_a_proof_by_another_key_is_refused(peers: Peers, alice: Peer, bob: Peer) -> None:
    feed, lamport = first(bob)
    item = ItemId.of_view(lamport, party=bob.party.key, key=VIEW.key)
    forged(bob, item, genesis(bob.party.key, feed, signer=OTHER))
    same(peers)
    assert "did not sign for this party and feed" in refusals(alice)[-1]


@pytest.mark.parametrize("what", ["party", "feed"])
def test_a_proof_for_another_party_or_feed_is_refused(peers: Peers, alice: Peer, bob: Peer, what: str) -> None:
    """So nobody takes a view's genesis to where its key's holder did not begin it."""
    feed, lamport = first(bob)
    item = ItemId.of_view(lamport, party=bob.party.key, key=VIEW.key)
    party, feed = (b"p" * 32, feed) if what == "party" else (bob.party.key, b"f" * 32)
    forged(bob, item, genesis(party, feed))
    same(peers)
    assert "did not sign for this party and feed" in refusals(alice)[-1]
    assert alice.party.items() == []


def test_the_genesis_of_a_view_copied_into_another_feed_is_refused(peers: Peers, alice: Peer, bob: Peer) -> None:
    view = alice.party.create("antiphon/object", inception=VIEW)
    peers.sync()
    message = alice.party.engine.history(view.id)[0].message
    assert message is not None
    _, lamport = first(bob)
    item = ItemId.of_view(lamport, party=bob.party.key, key=VIEW.key)
    forged(bob, item, message)
    forged(bob, view.id, message)
    same(peers)
    assert alice.party.items() == [view.id]
    assert ["did not sign" in reason or "has its genesis already" in reason for reason in refusals(alice)[-2:]] == [
        True
    ] * 2


def test_an_id_of_another_key_party_or_time_is_refused(peers: Peers, alice: Peer, bob: Peer) -> None:
    feed, lamport = first(bob)
    party = bob.party.key
    wrong = [
        ItemId.of_view(lamport, party=party, key=OTHER.key),
        ItemId.of_view(lamport, party=b"p" * 32, key=VIEW.key),
        ItemId.of_view(lamport + 5, party=party, key=VIEW.key),
        ItemId.derive(lamport, party=party, feed=feed, genesis=bytes(16)),
    ]
    bob.forge(*(Draft(Kind.GENESIS, item, genesis(party, feed)) for item in wrong), atomic=True)
    same(peers)
    assert alice.party.items() == []
    assert [True for reason in refusals(alice) if "this id is not that of the genesis" in reason] == [True] * 4


@pytest.mark.parametrize("key", [0, 31, 33])
@pytest.mark.parametrize("proof", [0, 63, 65])
def test_keys_and_proofs_have_their_lengths(lone: Peer, key: int, proof: int) -> None:
    with pytest.raises(AntiphonError, match="has an inception key, its signature, and no nonce"):
        write_genesis(Genesis(b"", "antiphon/object", 1, view=Inception(b"k" * key, b"s" * proof)))


def test_a_view_has_no_nonce() -> None:
    with pytest.raises(AntiphonError, match="no nonce"):
        write_genesis(Genesis(b"n" * 16, "antiphon/object", 1, view=Inception(b"k" * 32, b"s" * 64)))


# -- two geneses of one id


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_geneses_of_one_view_the_least_stamp_holds(tmp_path: Path, order: tuple[int, int]) -> None:
    """The key's holder begins it in two feeds at the same lamport: whichever comes first, all see the same one."""
    with Peers(tmp_path, authority=False) as peers:
        writers = [peers.add("alice"), peers.add("bob")]
        party = writers[0].party.key
        places = [first(peer) for peer in writers]
        assert places[0][1] == places[1][1]
        item = ItemId.of_view(places[0][1], party=party, key=VIEW.key)
        for peer, (feed, _) in zip(writers, places, strict=True):
            forged(peer, item, genesis(party, feed))
            peer.party.process()
            peer.party.item(item).edit("set", "by", peer.name)
        reader = peers.add("reader")
        for nth in order:
            peers.pass_on(writers[nth], reader)
            assert reader.party.item(item).value["by"] == writers[nth].name or nth == order[1]
        same(peers)
        state = reader.party.engine.entry(item).item
        assert state is not None
        assert state.genesis.feed == min(feed for feed, _ in places)
        reader.rebuild()
        same(peers)
        assert len(set(refusals(reader))) == 2  # the other genesis, and the forged metadata at the beginning


# -- bytes


def made() -> ItemState:
    party, feed = b"p" * 32, b"f" * 32
    note = Note(Kind.GENESIS, 3, feed, 0, 5, genesis(party, feed))
    item = fold(party, ItemId.of_view(3, party=party, key=VIEW.key), None, [note], ModelFactory.standard()).item
    assert item is not None
    return item


def test_a_snapshot_keeps_the_view() -> None:
    models, data = ModelFactory.standard(), item_codec.snapshot(made())
    back = item_codec.restore(data, models)
    assert back.view == made().view
    assert item_codec.snapshot(back) == data
    assert item_codec.decode(item_codec.encode(made()), models).view == made().view


@given(at=st.integers(0, 400), bit=st.integers(0, 7))
def test_a_spoilt_snapshot_is_refused_or_another_one(at: int, bit: int) -> None:
    models = ModelFactory.standard()
    data = bytearray(item_codec.snapshot(made()))
    data[at % len(data)] ^= 1 << bit
    try:
        item = item_codec.restore(bytes(data), models)
    except AntiphonError:
        return
    assert item.model is None or item_codec.snapshot(item) == bytes(data)


@pytest.mark.parametrize(
    "view", [message_pb2.View(), message_pb2.View(key=b"k" * 32), message_pb2.View(proof=b"s" * 64)]
)
def test_a_snapshot_with_half_a_view_is_refused(view: message_pb2.View) -> None:
    proto = item_pb2.ItemSnapshot.FromString(item_codec.snapshot(made()))
    proto.view.CopyFrom(view)
    with pytest.raises(BadEncoding, match="a view has an inception key and its signature"):
        item_codec.restore(proto.SerializeToString(deterministic=True), ModelFactory.standard())
