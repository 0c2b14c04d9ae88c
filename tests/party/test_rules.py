"""Rules 3, 5, 12, 14 and 15 of the design, each counterexample replayed on whole peers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import antiphon.model
from antiphon.core.errors import UnknownItem
from antiphon.core.ids import ItemId
from antiphon.core.reasons import Reason, code_of
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.model.message import Genesis, wrap, write_genesis
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import Forged, SpanWriter, key_pair


def genesis(nonce: bytes, model: str = "antiphon/object") -> bytes:
    return write_genesis(Genesis(nonce, model, 1))


def equal(*peers: Peer) -> None:
    first = peers[0]
    for peer in peers[1:]:
        assert peer.snapshots() == first.snapshots()
        assert peer.party.refused() == first.party.refused()


# -- rule 3


def test_rule_3_nothing_foreign_sorts_into_the_middle_of_a_batch(peers: Peers, alice: Peer, bob: Peer) -> None:
    """With a lamport for each block, Bob's concurrent post would stand between Alice's two."""
    log = alice.party.create("antiphon/messenger")
    peers.sync()
    for at in range(6):
        bob.party.item(log.id).edit("post", f"bob {at}")
    with alice.party.batch():
        for at in range(6):
            log.edit("post", f"alice {at}")
    peers.sync()
    said = [row["body"] for row in log.value]
    start = said.index("alice 0")
    assert said[start : start + 6] == [f"alice {at}" for at in range(6)]
    equal(alice, bob)


def test_rule_3_only_the_first_block_of_a_batch_advances(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    with bob.party.batch() as batch:
        for at in range(3):
            bob.party.item(note.id).edit("set", "n", at)
    blocks = list(bob.store.read(batch.feed))
    assert [bool(block.advance) for block in blocks] == [True, False, False]


def test_rule_3_a_fault_in_a_body_voids_that_message_alone_and_its_header_counts(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    model = bob.models.get("antiphon/object")
    good = wrap(Kind.MUTATION, model.set(model.initial(), "a", 1))  # type: ignore[attr-defined]
    written = bob.forge(
        Draft(Kind.MUTATION, note.id, b"\xff"), Draft(Kind.MUTATION, note.id, good), Draft(Kind.CHANGE, note.id, b"")
    )
    peers.sync()
    assert note.value == {"a": 1}
    assert [refused.seq for refused in alice.party.refused()] == [written[0].seq, written[2].seq]
    assert alice.party.timeframe[written[0].feed] == written[2].seq
    equal(alice, bob)


def test_rule_3_a_peer_without_the_body_agrees_on_all_the_rest(peers: Peers, alice: Peer, bob: Peer) -> None:
    partial = peers.add("partial")
    one, other = alice.party.create("antiphon/object"), alice.party.create("antiphon/object")
    peers.sync()
    one.edit("set", "a", 1)
    for span in alice.ranges(partial.lengths()):
        partial.store.ingest(span.without_bodies())
    other.edit("set", "b", 2)
    peers.sync()
    assert partial.party.item(one.id).value == {}
    assert "its body is not here" in partial.party.refused()[0].reason
    assert partial.party.snapshot(other.id) == alice.party.snapshot(other.id)
    assert partial.party.timeframe == alice.party.timeframe


def test_rule_3_a_fault_in_a_header_ends_the_feed_there(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        note = alice.party.create("antiphon/object")
        note.edit("set", "a", 1)
        peers.sync()
        feed = note.history()[0].stamp.feed
        writer = SpanWriter(key_pair("alice's feed"), alice.party.key)
        writer.record = alice.store.record(feed)
        bad = writer.forge(Forged(item=note.id, lamport=7), Forged(item=note.id))
        bob.store.ingest(bad)
        bob.party.process()
        assert bob.party.timeframe[feed] == 1
        assert bob.party.item(note.id).value == {"a": 1}
        bob.party.create("antiphon/object").edit("set", "still", "working")


# -- rule 5


def test_rule_5_an_item_id_cannot_be_taken(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob sees the id of Alice's item, and writes a genesis for it: with her nonce, or with a lower lamport."""
    note = alice.party.create("antiphon/object")
    note.edit("set", "by", "alice")
    peers.sync()
    bob.forge(Draft(Kind.GENESIS, note.id, genesis(b"n" * 16)))
    peers.sync()
    fresh = peers.add("fresh")
    for peer in (alice, bob, fresh):
        assert peer.party.item(note.id).value == {"by": "alice"}
        assert len(peer.party.refused()) == 1
    equal(alice, bob, fresh)


def test_rule_5_an_id_made_up_for_the_future_is_refused(peers: Peers, alice: Peer, bob: Peer) -> None:
    (first,) = bob.forge(Draft(Kind.METADATA, bytes(16), b""))
    for lamport, feed in ((first.lamport + 9, first.feed), (first.lamport + 1, b"x" * 32)):
        item = ItemId.derive(lamport, party=bob.party.key, feed=feed, genesis=genesis(b"n" * 16))
        bob.forge(Draft(Kind.GENESIS, item, genesis(b"n" * 16)))
        peers.sync()
        with pytest.raises(UnknownItem, match="no valid genesis"):
            alice.party.item(item)
    assert ["this id is not that of the genesis" in refused.reason for refused in alice.party.refused()][1:] == [
        True
    ] * 2
    assert alice.party.items() == []


def test_rule_5_of_two_geneses_of_one_id_the_least_stamp_holds(peers: Peers, alice: Peer, bob: Peer) -> None:
    (first,) = bob.forge(Draft(Kind.METADATA, bytes(16), b""))
    message = genesis(b"n" * 16, "antiphon/object")
    item = ItemId.derive(first.lamport + 1, party=bob.party.key, feed=first.feed, genesis=message)
    bob.forge(
        Draft(Kind.GENESIS, item, genesis(b"n" * 16, "antiphon/text")),
        Draft(Kind.GENESIS, item, message),
        Draft(Kind.GENESIS, item, message),
        atomic=True,
    )
    peers.sync()
    bob.party.process()
    for peer in (alice, bob):
        assert peer.party.item(item).model == ("antiphon/object", 1)
        assert [code_of(row.reason) for row in peer.party.refused() if row.item == item] == [Reason.ITEM_GENESIS] * 2
    equal(alice, bob)


def test_rule_5_ids_of_one_party_are_not_those_of_another(lone: Peer) -> None:
    nonce, other = b"n" * 16, b"o" * 32
    (first,) = lone.forge(Draft(Kind.METADATA, bytes(16), b""))
    item = ItemId.derive(first.lamport + 1, party=other, feed=first.feed, genesis=genesis(nonce))
    lone.forge(Draft(Kind.GENESIS, item, genesis(nonce)))
    lone.party.process()
    assert lone.party.items() == []


# -- rule 12


def test_rule_12_a_librarys_bytes_are_no_format() -> None:
    """pycrdt's export differs between its versions; no model's code touches it, only the import and export of Yjs."""
    folder = Path(antiphon.model.__file__).parent
    users = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.split(".")[0] == "pycrdt" for name in names):
                users.add(path.name)
    assert users <= {"yjs.py"}


def test_rule_12_a_texts_bytes_do_not_depend_on_the_way_it_came(peers: Peers, alice: Peer, bob: Peer) -> None:
    """pycrdt's export also differed between author and receiver; ours is the same, and the same after a restart."""
    text = alice.party.create("antiphon/text")
    peers.sync()
    for at in range(12):
        text.edit("insert", len(text.value) // 2, f"a{at}")
        bob.party.item(text.id).edit("insert", 0, f"b{at}")
        if at % 3 == 0:
            text.edit("delete", 0, 1)
        if at % 4 == 0:
            peers.sync()
    peers.sync()
    wanted = text.snapshot()
    assert bob.party.snapshot(text.id) == wanted
    bob.restart()
    assert bob.party.snapshot(text.id) == wanted
    bob.rebuild()
    assert bob.party.snapshot(text.id) == wanted


# -- rule 14


def test_rule_14_a_hostile_update_leaves_no_trace_and_mutes_nobody(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Delete the future, use an id twice, hang on what is to come: refused by all, and the text goes on."""
    text = alice.party.create("antiphon/text")
    text.edit("insert", 0, "hello")
    peers.sync()
    lamport, feed, _ = text.history()[1].stamp
    before = text.snapshot()
    hostile = [
        text_pb2.TextMutation(feeds=[feed], deletes=[text_pb2.TextDelete(feed=1, lamport=lamport + 50)]),
        text_pb2.TextMutation(feeds=[feed], inserts=[text_pb2.TextInsert(feed=1, lamport=lamport + 50, text="x")]),
        text_pb2.TextMutation(
            feeds=[feed],
            marks=[
                text_pb2.TextMark(
                    name="bold",
                    start=text_pb2.TextAnchor(feed=1, lamport=lamport + 50),
                    end=text_pb2.TextAnchor(edge=True, after=True),
                )
            ],
        ),
    ]
    bob.forge(*(Draft(Kind.MUTATION, text.id, wrap(Kind.MUTATION, one.SerializeToString())) for one in hostile))
    peers.sync()
    assert len(alice.party.refused()) == 3
    assert text.snapshot() == before
    for at in range(60):  # past the lamports that were spoken about
        text.edit("insert", 5, str(at % 10))
    peers.sync()
    assert bob.party.item(text.id).value == text.value
    assert len(text.value) == 65
    equal(alice, bob)


# -- rule 15


def test_rule_15_a_voided_message_keeps_its_place(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Carol writes into the middle of what Bob wrote; Bob's turns out to be void. Hers stays, where it was."""
    carol = peers.add("carol")
    text = alice.party.create("antiphon/text")
    text.edit("insert", 0, "[]")
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    bob.party.item(text.id).edit("insert", 1, "bobbob")
    peers.pass_on(bob, carol)
    carol.party.item(text.id).edit("insert", 4, "CAROL")
    carol.party.item(text.id).edit("delete", 1, 2)
    assert carol.party.item(text.id).value == "[bCAROLbob]"
    peers.sync()
    for peer in peers.all:
        assert peer.party.item(text.id).value == "[CAROL]"
    equal(*peers.all)
    carol.party.item(text.id).edit("insert", 6, "!")
    peers.sync()
    assert text.value == "[CAROL!]"


def test_rule_26_a_void_genesis_takes_nothing_from_those_who_built_on_it(peers: Peers, alice: Peer, bob: Peer) -> None:
    carol = peers.add("carol")
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    note = bob.party.create("antiphon/object")
    peers.pass_on(bob, carol)
    stamps: list[Stamp] = [carol.party.item(note.id).edit("set", "a", 1), carol.party.item(note.id).delete()]
    alone = bob.party.create("antiphon/object")
    peers.sync()
    for peer in peers.all:
        assert (peer.party.item(note.id).value, peer.party.item(note.id).deleted) == ({"a": 1}, True)
        with pytest.raises(UnknownItem):
            peer.party.item(alone.id)
        refused = {(entry.feed, entry.seq) for entry in peer.party.refused()}
        assert refused.isdisjoint((stamp.feed, stamp.seq) for stamp in stamps)
        assert len(refused) == 2
        assert peer.party.items() == [note.id]
    equal(*peers.all)
    carol.restart()
    carol.party.create("antiphon/object").edit("set", "still", "working")
    peers.sync()
    equal(*peers.all)
