"""Bad input: an error at the writer that says what to do, or an entry in the quarantine of everybody else.

In each case the party goes on working, and peers stay equal, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from antiphon.core.errors import InvalidInput, InvalidMutation, NotAuthorised, UnknownModel
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Role
from antiphon.model.message import Change, Genesis, content, wrap, write_change, write_genesis
from antiphon.party.live.item import Item
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


def text_of(peers: Peers) -> Item:
    """A text that both have, with something in it."""
    text = peers.all[0].party.create("antiphon/text")
    text.edit("insert", 0, "hello")
    peers.sync()
    return text


def check_works(peers: Peers) -> None:
    """Everybody can still write, everybody hears of it, and all have the same bytes and the same quarantine."""
    for peer in peers.all:
        try:
            note = peer.party.create("antiphon/object")
        except NotAuthorised:
            continue
        note.edit("set", "by", peer.name)
        text = peer.party.create("antiphon/text")
        text.edit("insert", 0, "still here")
    peers.sync()
    first = peers.all[0]
    for peer in peers.all:
        assert peer.snapshots() == first.snapshots()
        assert peer.party.refused() == first.party.refused()
        assert peer.party.status().blocked == ()
        assert peer.party.status().error == ""
    first.rebuild()
    assert first.snapshots() == peers.all[-1].snapshots()


def only_refusal(peers: Peers, stamp: Stamp) -> str:
    """The reason for the one message that is in every peer's quarantine."""
    peers.sync()
    for peer in peers.all:
        peer.party.process()
        assert [(refused.feed, refused.seq) for refused in peer.party.refused()] == [(stamp.feed, stamp.seq)]
    return peers.all[0].party.refused()[0].reason


def mutation(item: bytes, data: bytes) -> Draft:
    return Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, data))


# -- what is no message, or of no model


def test_an_unknown_model_is_an_error_at_the_writer_and_kept_by_others(peers: Peers, alice: Peer, bob: Peer) -> None:
    with pytest.raises(UnknownModel, match="no code for model example/go is here"):
        bob.party.create("example/go")
    nonce = b"n" * 16
    stamp = bob.forge(Draft(Kind.METADATA, b"x" * 16, b""))[0]
    genesis = write_genesis(Genesis(nonce, "example/go", 1))
    item = ItemId.derive(stamp.lamport + 1, party=bob.party.key, feed=stamp.feed, genesis=genesis)
    bob.forge(
        Draft(Kind.GENESIS, item, genesis),
        mutation(item, b"moves that nobody here understands"),
    )
    assert "no such item" in only_refusal(peers, stamp)
    assert alice.party.item(item).opaque
    with pytest.raises(UnknownModel, match="its messages are safe"):
        alice.party.item(item).edit("move")
    bob.party.item(item).delete()
    peers.sync()
    assert alice.party.item(item).deleted
    assert alice.party.items("example/go") == [item]


@pytest.mark.parametrize("model", ["antiphon/object", "antiphon/array", "antiphon/text", "antiphon/messenger"])
@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x08", bytes(200)])
def test_a_malformed_mutation(peers: Peers, alice: Peer, bob: Peer, model: str, data: bytes) -> None:
    item = alice.party.create(model)
    peers.sync()
    before = item.snapshot()
    with pytest.raises(InvalidMutation, match=rf"^item {item.id.hex()}: "):
        bob.party.item(item.id).mutate(data)
    (stamp,) = bob.forge(mutation(item.id, data))
    assert only_refusal(peers, stamp)
    assert item.snapshot() == before
    check_works(peers)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Kind.MUTATION, b""),
        (Kind.MUTATION, b"rubbish"),
        (Kind.MUTATION, write_change(Change(deleted=True))),
        (Kind.CHANGE, wrap(Kind.MUTATION, b"x")),
        (Kind.CHANGE, b""),
        (Kind.METADATA, b"\xff"),
        (Kind.METADATA, wrap(Kind.METADATA, b"\xff\xff")),
        (Kind.GENESIS, b""),
        (Kind.GENESIS, write_genesis(Genesis(b"n" * 16, "antiphon/object", 1))),
        (Kind.CREDENTIAL, b"a credential in a data feed"),
    ],
)
def test_a_body_that_is_not_what_its_header_says(
    peers: Peers, alice: Peer, bob: Peer, kind: Kind, message: bytes
) -> None:
    note = alice.party.create("antiphon/object")
    bob.party.create("antiphon/object")  # a feed that begins with a credential would be no data feed
    peers.sync()
    (stamp,) = bob.forge(Draft(kind, note.id, message))
    assert only_refusal(peers, stamp)
    assert (note.value, note.metadata, note.deleted) == ({}, {}, False)
    check_works(peers)


def test_a_message_to_an_item_that_never_was(peers: Peers, alice: Peer, bob: Peer) -> None:
    (stamp,) = bob.forge(mutation(b"?" * 16, b"x"))
    assert "there is no such item" in only_refusal(peers, stamp)
    assert alice.party.items() == []
    check_works(peers)


# -- rule 14, on our text


def forged(bob: Peer, text: Item, **fields: object) -> Stamp:
    return bob.forge(mutation(text.id, text_pb2.TextMutation(**fields).SerializeToString()))[0]  # type: ignore[arg-type]


def test_nobody_can_speak_in_anothers_name(peers: Peers, alice: Peer, bob: Peer) -> None:
    """In Yjs eleven bytes in Alice's name mute her for ever. Here the block's feed is the author; none is named."""
    text = text_of(peers)
    alices = content(Kind.MUTATION, next(iter(alice.store.read(text.history()[1].stamp.feed, 1, 2))).message or b"")
    bob.forge(mutation(text.id, alices))  # her own bytes, said again by Bob: so they are Bob's
    peers.sync()
    assert text.value == "hellohello"
    text.edit("insert", 0, "I am not mute. ")
    peers.sync()
    assert bob.party.item(text.id).value == text.value == "I am not mute. hellohello"
    assert alice.party.refused() == []
    check_works(peers)


@pytest.mark.parametrize("lamport", [1 << 30, (1 << 43) - 1])
def test_deleting_the_future_mutes_nobody(peers: Peers, alice: Peer, bob: Peer, lamport: int) -> None:
    text = text_of(peers)
    feed = text.history()[0].stamp.feed
    stamp = forged(bob, text, feeds=[feed], deletes=[{"feed": 1, "lamport": lamport, "offset": 0, "span": 5}])
    assert "cannot have seen" in only_refusal(peers, stamp)
    text.edit("insert", 5, " world")
    peers.sync()
    assert bob.party.item(text.id).value == "hello world"
    check_works(peers)


def test_deleting_a_range_into_the_future_mutes_nobody(peers: Peers, alice: Peer, bob: Peer) -> None:
    text = text_of(peers)
    lamport, feed, _ = text.history()[1].stamp
    stamp = forged(bob, text, feeds=[feed], deletes=[{"feed": 1, "lamport": lamport, "span": 1 << 60}])
    assert "cannot have seen" in only_refusal(peers, stamp)
    assert text.value == "hello"
    check_works(peers)


def test_an_insertion_on_what_is_not_there_shows_at_one_place(peers: Peers, alice: Peer, bob: Peer) -> None:
    """An origin in the future is refused; what was typed beside one that never comes has one place everywhere."""
    text = text_of(peers)
    nobody = b"\x01" * 32
    stamp = forged(bob, text, feeds=[nobody], inserts=[{"feed": 1, "lamport": 1 << 40, "text": "x"}])
    assert "cannot have seen" in only_refusal(peers, stamp)
    forged(bob, text, feeds=[nobody], inserts=[{"feed": 1, "lamport": 1, "offset": 3, "text": "orphan"}])
    peers.sync()
    assert text.value == bob.party.item(text.id).value == "orphanhello"
    text.edit("insert", 11, "!")
    peers.sync()
    assert text.value == bob.party.item(text.id).value == "orphanhello!"
    check_works(peers)


def test_an_id_is_not_used_twice(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Two messages of a batch share a lamport; the second takes the ids of the first, which would split texts."""
    text = text_of(peers)
    insert = text_pb2.TextMutation(inserts=[{"place": 3, "text": "abc"}]).SerializeToString()
    other = text_pb2.TextMutation(inserts=[{"place": 3, "text": "XYZ"}]).SerializeToString()
    written = bob.forge(mutation(text.id, insert), mutation(text.id, other), atomic=True)
    assert "under ids that its feed has used" in only_refusal(peers, written[1])
    assert "XYZ" not in text.value
    assert "abc" in text.value
    check_works(peers)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"inserts": [{"text": "x", "feed": 9}]},
        {"inserts": [{"place": 2, "text": "x"}]},
        {"inserts": [{"place": 3}]},
        {"inserts": [{"place": 3, "text": "x", "item": b"short"}]},
        {"inserts": [{"place": 3, "text": "x"}], "offset": 1 << 21},
        {"feeds": [b"short"], "inserts": [{"place": 3, "text": "x"}]},
        {"marks": [{"name": "", "start": {"edge": True}, "end": {"edge": True, "after": True}}]},
        {"marks": [{"name": "bold", "value": {}, "start": {"edge": True}, "end": {"edge": True, "after": True}}]},
    ],
)
def test_other_hostile_mutations_of_a_text(peers: Peers, alice: Peer, bob: Peer, fields: dict[str, object]) -> None:
    text = text_of(peers)
    stamp = forged(bob, text, **fields)
    assert only_refusal(peers, stamp)
    assert text.value == "hello"
    check_works(peers)


# -- wrong types at the writer


@pytest.mark.parametrize(
    ("model", "act"),
    [
        ("antiphon/object", lambda item: item.edit("set", "a", object())),
        ("antiphon/object", lambda item: item.edit("set", "a", 1 << 64)),
        ("antiphon/object", lambda item: item.edit("set", 5, 1)),
        ("antiphon/object", lambda item: item.edit("increment", "a", "x")),
        ("antiphon/object", lambda item: item.edit("fly", "a")),
        ("antiphon/array", lambda item: item.edit("insert", 7, [1])),
        ("antiphon/array", lambda item: item.edit("append", {1, 2})),
        ("antiphon/text", lambda item: item.edit("insert", 99, "x")),
        ("antiphon/text", lambda item: item.edit("insert", 0, "\ud800")),
        ("antiphon/text", lambda item: item.edit("delete", 0, 1)),
        ("antiphon/messenger", lambda item: item.edit("post", object())),
        ("antiphon/object", lambda item: item.set_metadata("name", object())),
        ("antiphon/object", lambda item: item.move(b"short")),
        ("antiphon/object", lambda item: item.move(item.id)),
    ],
)
def test_a_wrong_type_or_place_is_an_error_and_nothing_is_written(
    alice: Peer, model: str, act: Callable[[Item], object]
) -> None:
    item = alice.party.create(model)
    before, frame = item.snapshot(), alice.party.timeframe
    with pytest.raises((InvalidInput, TypeError)) as caught:
        act(item)
    assert str(caught.value)
    assert (item.snapshot(), alice.party.timeframe, alice.party.refused()) == (before, frame, [])


# -- rights


def test_a_write_by_a_reader(peers: Peers, alice: Peer, bob: Peer) -> None:
    reader = peers.add("reader", Role.READER)
    note = alice.party.create("antiphon/object")
    peers.sync()
    with pytest.raises(NotAuthorised, match=rf"party {alice.party.key.short}: .*ask an owner"):
        reader.party.item(note.id).edit("set", "a", 1)
    model = reader.models.get("antiphon/object")
    (stamp,) = reader.forge(mutation(note.id, model.set(model.initial(), "a", 1)))  # type: ignore[attr-defined]
    assert only_refusal(peers, stamp)
    assert note.value == {}
    check_works(peers)


def test_a_write_by_a_revoked_member(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    bobs = bob.party.create("antiphon/object")
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    peers.sync()
    with pytest.raises(NotAuthorised, match=rf"party {alice.party.key.short}: "):
        bob.party.item(note.id).edit("set", "a", 1)
    assert bob.member is not None
    model = bob.models.get("antiphon/object")
    writer = bob.member.data
    assert writer is not None
    stamp = writer.append(Kind.MUTATION, note.id, wrap(Kind.MUTATION, model.set(model.initial(), "a", 1)))  # type: ignore[attr-defined]
    assert only_refusal(peers, stamp)
    assert (note.value, alice.party.item(bobs.id).value) == ({}, {}), "what was right when it was written stays"
    check_works(peers)


def test_a_write_by_a_demoted_member(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    bob.party.create("antiphon/object")
    peers.sync()
    assert alice.member is not None
    alice.member.demote(bob.key, [Role.READER])
    peers.sync()
    with pytest.raises(NotAuthorised):
        bob.party.item(note.id).edit("set", "a", 1)
    alice.member.admit(bob.key, [Role.EDITOR])
    peers.sync()
    assert alice.party.refused() == []
