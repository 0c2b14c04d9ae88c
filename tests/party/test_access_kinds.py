"""Access lists with all kinds of models, batches, histories, undo and ways of folding, on whole peers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.party.helpers import all_of, equal, reasons, sent, setting
from tests.party.histories import Jottings, Moves, edit

from antiphon.core.errors import InvalidMutation
from antiphon.feed.header import Kind
from antiphon.model.access import EVERYONE, NOT_NAMED, Access
from antiphon.model.factory import ModelFactory
from antiphon.model.message import Change, wrap
from antiphon.model.object.model import ObjectModel
from antiphon.party.engine import cold_fold, engine
from antiphon.party.live.undo import UndoStack
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


@pytest.fixture
def carol(peers: Peers, bob: Peer) -> Peer:
    return peers.add("carol")


def test_a_fork_is_guarded_like_the_item_that_it_replaces(tmp_path: Path) -> None:
    class Newer(ObjectModel):
        version = 2

        def migrate(self, version: int, snapshot: bytes, feed: bytes) -> list[bytes]:
            return [self.set(self.initial(), "from", version, feed=feed)]

    models = ModelFactory.standard()
    models.register(Newer)
    with Peers(tmp_path, models=models) as peers:
        alice, bob, carol = (peers.add(name) for name in ("alice", "bob", "carol"))
        note = bob.party.create("antiphon/object", version=1)
        note.restrict_writers(carol.key)
        peers.sync()
        fork = carol.party.item(note.id).fork()
        equal(peers)
        assert alice.party.item(fork.id).value == {"from": 1}
        assert fork.writers == note.writers == tuple(sorted([bob.key, carol.key]))


# -- models of all kinds


@pytest.mark.parametrize(
    "model", ["antiphon/text", "antiphon/array", "antiphon/messenger", "test/moves", "test/jottings"]
)
def test_a_void_mutation_of_any_model(tmp_path: Path, model: str) -> None:
    """Written by one who is out, and built upon by one who did not know: the same on all, live and from the feeds."""
    with Peers(tmp_path, models=all_models()) as peers:
        alice, bob, carol = (peers.add(name) for name in ("alice", "bob", "carol"))
        item = alice.party.create(model)
        item.restrict_writers(bob.key, carol.key)
        peers.sync()
        item.restrict_writers(carol.key)
        chance = random.Random(5)
        for _ in range(6):
            edit(bob, item.id, chance)
            peers.pass_on(bob, carol)
            edit(carol, item.id, chance)
        equal(peers)
        feed = bob.party.own_lane(bob.party.authority.writer()).feed
        assert [one.feed for one in alice.party.refused()].count(feed) == 6


def test_rule_15_a_void_insert_keeps_its_place(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    text = alice.party.create("antiphon/text")
    text.edit("insert", 0, "[]")
    text.restrict_writers(bob.key, carol.key)
    peers.sync()
    text.restrict_writers(carol.key)
    bob.party.item(text.id).edit("insert", 1, "bobbob")
    peers.pass_on(bob, carol)
    carol.party.item(text.id).edit("insert", 4, "CAROL")
    carol.party.item(text.id).edit("delete", 1, 2)
    assert carol.party.item(text.id).value == "[bCAROLbob]"
    equal(peers)
    assert carol.party.item(text.id).value == "[CAROL]"


def test_an_item_whose_model_is_unknown_is_guarded_alike(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice = peers.add("alice", models=all_models())
        bob = peers.add("bob")
        jottings = alice.party.create("test/jottings")
        jottings.restrict_writers()
        peers.sync()
        assert bob.party.item(jottings.id).opaque
        assert bob.party.item(jottings.id).writers == (alice.key,)
        void = sent(bob, jottings, (Kind.MUTATION, wrap(Kind.MUTATION, b"?")), seen=all_of(bob))
        peers.sync()
        assert reasons(alice, *void) == reasons(bob, *void) == [NOT_NAMED]
        bob.models.register(Jottings)
        bob.party.process()
        assert bob.party.snapshot(jottings.id) == jottings.snapshot()
        assert bob.party.refused() == alice.party.refused()


def all_models() -> ModelFactory:
    models = ModelFactory.standard()
    models.register(Moves)
    models.register(Jottings)
    return models


# -- batches, the past, undo


def test_a_list_and_messages_in_one_batch(peers: Peers, alice: Peer, bob: Peer) -> None:
    with alice.party.batch():
        note = alice.party.create("antiphon/object")
        note.edit("set", "a", 1)
        note.restrict_writers()
        note.edit("set", "b", 2)
        note.restrict_writers(bob.key)
        note.set_metadata("name", "N")
    equal(peers)
    bob.party.item(note.id).edit("set", "c", 3)
    equal(peers)
    assert note.value == {"a": 1, "b": 2, "c": 3}


def test_a_batch_that_locks_its_writer_out_is_refused_whole(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = bob.party.create("antiphon/object")
    before = note.snapshot()

    def lock_out() -> None:
        with bob.party.batch() as batch:
            note.edit("set", "a", 1)
            batch.guard(note.id, [alice.key], [EVERYONE, bob.key])
            note.edit("set", "b", 2)

    with pytest.raises(InvalidMutation, match="does not name"):
        lock_out()
    assert note.snapshot() == before
    note.edit("set", "c", 3)
    equal(peers)


def test_a_change_that_would_undo_what_is_here_is_not_written_by_the_program(lone: Peer) -> None:
    note = lone.party.create("antiphon/object")
    note.edit("set", "a", 1)
    with pytest.raises(InvalidMutation, match="name how far each feed counts"), lone.party.batch() as batch:
        batch.change(note.id, Change(access=Access((), (EVERYONE,))))
    assert note.writers is None
    assert note.value == {"a": 1}


def test_history_and_the_past_know_the_list(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    bob.party.item(note.id).edit("set", "by", "bob")
    peers.sync()
    open_ = alice.party.timeframe
    note.restrict_writers()
    (void,) = sent(bob, note, (Kind.MUTATION, setting("by", "bob, late")))
    equal(peers)
    for peer in peers.all:
        item = peer.party.item(note.id)
        assert {event.stamp: event.refused for event in item.history() if event.refused} == {void: NOT_NAMED}
        assert item.at(open_).state.access is None
        assert item.at(peer.party.timeframe).snapshot() == item.snapshot()


def test_undo_of_one_who_may_write_no_more(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    undo = UndoStack(bob.party)
    bob.party.item(note.id).edit("set", "by", "bob")
    peers.sync()
    note.restrict_writers()
    peers.sync()
    with pytest.raises(InvalidMutation, match="does not name"):
        undo.undo()
    assert note.value == {"by": "bob"}
    equal(peers)


def test_undo_of_one_who_may(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.restrict_writers(bob.key)
    peers.sync()
    undo = UndoStack(bob.party)
    bob.party.item(note.id).edit("set", "by", "bob")
    assert undo.undo()
    equal(peers)
    assert note.value == {}


# -- the store


@pytest.mark.parametrize("items", [1, 40])
def test_the_way_for_many_items_knows_lists_too(
    peers: Peers, alice: Peer, bob: Peer, monkeypatch: pytest.MonkeyPatch, items: int
) -> None:
    """As in a cold rebuild: through the item store, and in a second process."""
    monkeypatch.setattr(engine, "MANY", 0)
    monkeypatch.setattr(cold_fold, "SECOND_ITEMS_MIN", 1)
    made = [alice.party.create("antiphon/object") for _ in range(items)]
    for note in made:
        note.restrict_writers()
        sent(bob, note, (Kind.MUTATION, setting("by", "bob")))
    for note in made[::2]:
        note.edit("set", "by", "alice")
        note.restrict_writers(bob.key)
    peers.sync()
    for note in made[::2]:
        bob.party.item(note.id).edit("set", "and", "bob")
    equal(peers)
    assert made[0].value == {"by": "alice", "and": "bob"}


def test_the_system_items_list_is_the_owners(peers: Peers, alice: Peer, bob: Peer) -> None:
    bob.party.root.edit("set", "motto", "open")
    peers.sync()
    with pytest.raises(InvalidMutation, match="by owners and by those it names"):
        bob.party.root.restrict_writers()
    alice.party.root.restrict_writers()
    peers.sync()
    with pytest.raises(InvalidMutation, match="does not name"):
        bob.party.root.edit("set", "motto", "mine")
    equal(peers)
    assert alice.party.root.value == {"motto": "open"}
    for what in (bob.party.root.delete, lambda: alice.party.root.move(None)):
        with pytest.raises(InvalidMutation):
            what()
    equal(peers)
