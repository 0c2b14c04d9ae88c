"""The past: all messages of an item, refused ones too, and the state at any earlier timeframe."""

from __future__ import annotations

import pytest

from antiphon.core.errors import UnknownItem
from antiphon.core.timeframe import Timeframe
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.model.message import wrap
from antiphon.testing.peers import Peer, Peers


def test_the_history_of_an_item_is_all_its_messages_in_the_total_order(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    alice.party.create("antiphon/object").edit("set", "other", 1)
    peers.sync()
    written = [note.edit("set", "a", 1), bob.party.item(note.id).edit("set", "b", 2), note.set_metadata("name", "N")]
    peers.sync()
    history = note.history()
    assert [event.stamp for event in history[1:]] == sorted(written)
    assert history[0].kind is Kind.GENESIS
    assert [event.refused for event in history] == [""] * 4
    assert history == bob.party.item(note.id).history()
    alice.restart()
    assert alice.party.item(note.id).history() == history


def test_refused_messages_are_shown_with_the_reason(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    bob.forge(
        Draft(Kind.MUTATION, note.id, wrap(Kind.MUTATION, b"\xff\xff")),
        Draft(Kind.CHANGE, note.id, b"no message at all"),
    )
    assert alice.member is not None
    peers.sync()
    alice.member.revoke(bob.key)
    bob.party.item(note.id).edit("set", "b", 1)
    peers.sync()
    genesis, malformed, none, void = note.history()
    assert genesis.refused == ""
    assert (malformed.mutation, none.mutation) == (b"\xff\xff", b"no message at all")
    assert all(event.refused for event in (malformed, none, void))
    assert [(refused.seq, refused.reason) for refused in alice.party.refused()] == [
        (event.stamp.seq, event.refused) for event in (malformed, none, void)
    ]


def test_an_item_as_it_was_at_every_timeframe(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/text")
    moments: list[tuple[Timeframe, str, bytes]] = []
    for at, (peer, text) in enumerate([(alice, "one "), (bob, "two "), (alice, "three ")]):
        peers.sync()
        peer.party.item(note.id).edit("insert", 0, text)
        peers.sync()
        assert len(note.value.split()) == at + 1
        moments.append((alice.party.timeframe, note.value, note.snapshot()))
    note.edit("delete", 0, 5)
    peers.sync()
    for frame, value, snapshot in moments:
        for peer in (alice, bob):
            past = peer.party.item(note.id).at(frame)
            assert (past.value, past.snapshot(), past.timeframe) == (value, snapshot, frame)
    assert note.at(alice.party.timeframe).snapshot() == note.snapshot()


def test_before_its_genesis_there_was_no_item(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    with pytest.raises(UnknownItem, match=rf"party {alice.party.key.short}: at that timeframe there was no item"):
        note.at(Timeframe())


def test_a_whole_party_as_it_was(peers: Peers, alice: Peer, bob: Peer) -> None:
    one = alice.party.create("antiphon/object")
    one.edit("set", "a", 1)
    then = alice.party.timeframe
    one.edit("set", "a", 2)
    other = alice.party.create("antiphon/object")
    peers.sync()
    past = bob.party.at(then)
    assert (past.items(), past.item(one.id).value, past.timeframe) == ([one.id], {"a": 1}, then)
    with pytest.raises(UnknownItem):
        past.item(other.id)
    assert bob.party.at(Timeframe()).items() == []
    assert set(bob.party.at(bob.party.timeframe).items()) == {one.id, other.id}


def test_the_past_is_judged_by_what_is_known_now(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    bob.party.item(note.id).edit("set", "b", 1)
    then = bob.party.timeframe
    assert bob.party.item(note.id).at(then).value == {"b": 1}
    peers.sync()
    assert bob.party.item(note.id).at(then).value == {}


def test_looking_back_changes_nothing(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    then = alice.party.timeframe
    note.edit("set", "a", 2)
    snapshot = note.snapshot()
    past = note.at(then)
    note.edit("set", "a", 3)
    assert past.value == {"a": 1}
    assert note.at(then).value == {"a": 1}
    assert note.snapshot() != snapshot
