"""The engine on whole peers: what is known later changes what counted before, and every way gives the same bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from antiphon.core.errors import Equivocation, NotAuthorised, UnknownItem
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Role
from antiphon.model import fold as item_module, late_messages
from antiphon.model.factory import ModelFactory
from antiphon.model.message import Genesis, wrap, write_genesis
from antiphon.model.model import Feeding, Model
from antiphon.party.engine import cold_fold as bulk_module, engine as engine_module
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


class Story(Model[list[bytes]]):
    """ORDERED: words in the total order."""

    name = "test/story"
    feeding = Feeding.ORDERED
    commands = frozenset({"tell"})

    def initial(self) -> list[bytes]:
        return []

    def apply(self, state: list[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if not void:
            state.append(mutation)

    def snapshot(self, state: list[bytes]) -> bytes:
        return b" ".join(state)

    def restore(self, data: bytes) -> list[bytes]:
        return data.split(b" ") if data else []

    def value(self, state: list[bytes]) -> list[bytes]:
        return list(state)

    def tell(self, state: list[bytes], word: str, *, feed: bytes) -> bytes:
        return word.encode()


def factory(*more: type[Model[Any]]) -> ModelFactory:
    models = ModelFactory.standard()
    for model in more:
        models.register(model)
    return models


# -- rights that change later


def test_a_late_revocation_voids_what_was_applied_and_others_survive(peers: Peers, alice: Peer, bob: Peer) -> None:
    carol = peers.add("carol")
    note = alice.party.create("antiphon/object")
    note.edit("set", "title", "Milk")
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    bob.party.item(note.id).edit("set", "title", "Beer")
    made = bob.party.create("antiphon/text")
    peers.pass_on(bob, carol)  # Carol hears of Bob's edit before she hears of the revocation
    carol.party.item(note.id).edit("set", "colour", "red")
    assert carol.party.item(note.id).value == {"title": "Beer", "colour": "red"}
    peers.sync()
    for peer in peers.all:
        assert peer.party.item(note.id).value == {"title": "Milk", "colour": "red"}
        with pytest.raises(UnknownItem, match=r"no valid genesis|holds no item"):
            peer.party.item(made.id)
        assert {refused.item for refused in peer.party.refused()} == {note.id, made.id}
    assert carol.snapshots() == alice.snapshots() == bob.snapshots()
    with pytest.raises(NotAuthorised):
        bob.party.create("antiphon/object")


def test_a_revoked_revocation_brings_it_back(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Carol revokes Bob; then Alice revokes Carol, at a point before that: Bob's messages count again."""
    carol = peers.add("carol", Role.OWNER)
    dave = peers.add("dave")
    note = alice.party.create("antiphon/object")
    peers.sync()
    assert alice.member is not None
    assert carol.member is not None
    alice.member.revoke(carol.key)  # Alice holds nothing yet of what Carol says next
    carol.member.revoke(dave.key)
    dave.party.item(note.id).edit("set", "title", "Dave's")
    peers.pass_on(carol, bob)
    peers.pass_on(dave, bob)
    assert bob.party.item(note.id).value == {}
    assert "void" not in bob.party.refused()[0].reason
    peers.sync()
    assert bob.party.item(note.id).value == {"title": "Dave's"}
    assert bob.party.refused() == []
    assert bob.snapshots() == alice.snapshots() == dave.snapshots()


def test_verdicts_that_changed_while_a_peer_was_away_are_taken_again(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = bob.party.create("antiphon/object")
    note.edit("set", "a", 1)
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    note.edit("set", "a", 2)
    alice.party.close()
    for span in bob.ranges(alice.lengths()):
        alice.store.ingest_bytes(span.encode())
    alice.restart()
    assert alice.party.item(note.id).value == {"a": 1}
    assert [refused.seq for refused in alice.party.refused()] == [2]


def test_refolding_many_items_is_one_transaction(
    peers: Peers, alice: Peer, bob: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "UNSAVED_ITEMS_MAX", 3)
    notes = [alice.party.create("antiphon/object") for _ in range(12)]
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    for note in notes:
        bob.party.item(note.id).edit("set", "a", 1)
    carol = peers.add("carol", None)
    peers.pass_on(bob, carol)
    assert all(carol.party.item(note.id).value == {"a": 1} for note in notes)
    peers.pass_on(alice, carol)
    carol.restart(crash=True)
    assert all(carol.party.item(note.id).value == {} for note in notes)
    assert len(carol.party.refused()) == 12


# -- forks


@pytest.mark.parametrize("atomic", [False, True])
def test_a_feed_that_forks_after_delivery_is_taken_back(peers: Peers, alice: Peer, bob: Peer, atomic: bool) -> None:
    carol = peers.add("carol")
    note = bob.party.create("antiphon/object")
    note.edit("set", "a", 1)
    peers.sync()
    twin = fork_of(bob)
    with bob.party.batch():
        note.edit("set", "a", 2)
        if atomic:
            bob.party.create("antiphon/text")
    peers.pass_on(bob, alice)
    carol.party.item(note.id).edit("set", "c", 3)
    assert alice.party.item(note.id).value == {"a": 2}
    for span in twin:
        with pytest.raises(Equivocation):
            alice.store.ingest(span)
    alice.party.process()
    assert alice.party.item(note.id).value == {"a": 1}
    assert alice.party.timeframe[twin[0].feed] == 1
    assert alice.member is not None
    alice.member.publish_forks()
    peers.sync()
    for peer in (alice, carol):
        assert peer.party.item(note.id).value == {"a": 1, "c": 3}
        assert peer.party.status().blocked == ()
    assert alice.snapshots() == carol.snapshots()
    alice.restart(crash=True)
    assert alice.snapshots() == carol.snapshots()


def test_what_has_seen_beyond_a_fork_is_delivered_by_everybody(peers: Peers, alice: Peer, bob: Peer) -> None:
    carol = peers.add("carol")
    note = bob.party.create("antiphon/object")
    peers.sync()
    twin = fork_of(bob)
    note.edit("set", "a", 2)
    peers.pass_on(bob, carol)
    carol.party.item(note.id).edit("set", "c", 3)  # has seen a branch that Alice will never hold
    for span in twin:
        alice.store.ingest(span)
    peers.pass_on(carol, alice)
    assert alice.party.item(note.id).value == {}
    assert "it has seen another block" in alice.party.status().blocked[0].reason
    with pytest.raises(Equivocation):
        alice.store.ingest(next(carol.store.spans(twin[0].feed, 1)))
    assert alice.member is not None
    alice.member.publish_forks()
    peers.sync()
    for peer in (alice, carol):
        assert peer.party.item(note.id).value == {"c": 3}
        assert peer.party.status().blocked == ()


def test_a_fork_inside_a_batch_takes_back_all_of_it_also_where_only_the_credential_came(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    """Both histories begin the batch alike. Who holds both sees where it begins; others are told the block only."""
    carol = peers.add("carol")
    note = bob.party.create("antiphon/object")
    peers.sync()
    assert bob.member is not None
    feed = bob.member.open_data_feed().feed
    model = bob.models.get("antiphon/object")
    first, second, other = (
        Draft(Kind.MUTATION, note.id, wrap(Kind.MUTATION, model.set(model.initial(), key, 1)))  # type: ignore[attr-defined]
        for key in ("first", "second", "other")
    )
    branches = []
    for last in (second, other):
        writer = SpanWriter(bob.keys.pair(feed), bob.party.key)
        writer.record = bob.store.record(feed)
        branches += writer.extend([first, last], atomic=True)
    assert branches[0].block(0) == branches[1].block(0)
    for peer in (alice, carol):
        peer.take([branches[0]])
        assert peer.party.item(note.id).value == {"first": 1, "second": 1}
    carol.party.item(note.id).edit("set", "carol", 1)
    with pytest.raises(Equivocation):
        alice.store.ingest(branches[1])
    assert alice.member is not None
    alice.member.publish_forks()
    peers.sync()
    for peer in (alice, carol):
        assert peer.party.item(note.id).value == {"carol": 1}
        assert peer.party.status().blocked == ()
        assert peer.party.timeframe[feed] == 0
    assert alice.snapshots() == carol.snapshots()


def fork_of(peer: Peer) -> list[Any]:
    """What the same device would write from here on, had it been copied: a second history of its data feed."""
    assert peer.member is not None
    feed = peer.member.open_data_feed().feed
    twin = SpanWriter(peer.keys.pair(feed), peer.party.key, seed=99)
    twin.record = peer.store.record(feed)
    return twin.extend([Draft(Kind.MUTATION, b"x" * 16, wrap(Kind.MUTATION, b"the other history"))])


# -- late messages


def test_a_message_far_too_late_folds_the_item_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_messages, "CHECKPOINT_EVERY", 4)
    with Peers(tmp_path, authority=False, models=factory(Story)) as peers:
        alice, bob, carol = (peers.add(name) for name in ("alice", "bob", "carol"))
        story = alice.party.create("test/story")
        peers.sync()
        bob.party.item(story.id).edit("tell", "first")
        carol.party.item(story.id).edit("tell", "second")
        for at in range(40):
            story.edit("tell", f"word{at}")
        peers.pass_on(bob, alice)
        peers.pass_on(carol, alice)  # late twice, with nothing saved in between
        words = alice.party.item(story.id).value
        assert len(words) == 42
        assert words.index(b"first") < 3
        assert len(story.history()) == 43
        peers.sync()
        carol.rebuild()
        assert alice.snapshots() == bob.snapshots() == carol.snapshots()
        with pytest.raises(ZeroDivisionError), alice.party.batch():  # noqa: PT012
            story.edit("tell", "unsaid")
            raise ZeroDivisionError
        assert alice.party.item(story.id).value == words


def test_messages_to_an_id_before_its_genesis_count_alike_in_every_order(tmp_path: Path) -> None:
    """Bob knows the nonce that Alice will use, and writes to her item before it is there."""
    with Peers(tmp_path, authority=False) as peers:
        alice, bob, carol, dave = (peers.add(name) for name in ("alice", "bob", "carol", "dave"))
        nonce = b"n" * 16
        feed = alice.forge(Draft(Kind.MUTATION, bytes(16), b"")).feed
        genesis = write_genesis(Genesis(nonce, "antiphon/object", 1))
        item = ItemId.derive(2, party=alice.party.key, feed=feed, genesis=genesis)
        state = alice.models.get("antiphon/object").initial()
        write = wrap(Kind.MUTATION, alice.models.get("antiphon/object").set(state, "by", "bob", feed=b""))  # type: ignore[attr-defined]
        bob.forge(*[Draft(Kind.MUTATION, item, write)] * 4)  # lamports 1 to 4: before and after the genesis
        alice.forge(Draft(Kind.GENESIS, item, genesis))
        peers.pass_on(alice, carol)
        peers.pass_on(bob, carol)
        peers.pass_on(bob, dave)
        dave.party.save()
        dave.restart()
        with pytest.raises(UnknownItem, match="no valid genesis"):
            dave.party.item(item)
        assert dave.party.items() == []
        peers.pass_on(alice, dave)
        assert carol.party.item(item).value == dave.party.item(item).value == {"by": "bob"}
        assert carol.snapshots() == dave.snapshots()
        assert carol.party.refused() == dave.party.refused()
        dave.rebuild()
        assert carol.snapshots() == dave.snapshots()


# -- one way or another


def busy(peer: Peer, seed: int, count: int = 60) -> None:
    chance = random.Random(seed)
    names = ("antiphon/object", "antiphon/array", "antiphon/text", "antiphon/messenger", "test/story")
    for _ in range(count):
        items = peer.party.items()
        if chance.random() < 0.4 or not items:
            peer.party.create(chance.choice(names))
            continue
        item = peer.party.item(chance.choice(items))
        if item.model[0] == "test/story":
            item.edit("tell", f"w{chance.randrange(99)}")
        else:
            with peer.party.batch() as batch:
                item.mutate(item.read(lambda model, state: model.rehearse(state, chance, batch.feed)))


@pytest.mark.slow
@pytest.mark.parametrize("cache", [2, 1000])
def test_the_way_for_many_items_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: int
) -> None:
    with Peers(tmp_path, models=factory(Story)) as peers:
        alice, bob, small, many = (peers.add(name) for name in ("alice", "bob", "small", "many"))
        for peer in (small, many):
            peer.party.engine.cache._limit = cache
        told: set[bytes] = set()
        many.party.listen(told.update)
        for turn in range(4):
            busy(alice, turn)
            peers.pass_on(alice, bob)
            peers.pass_on(bob, alice)
            busy(bob, 10 + turn)
            bob.forge(Draft(Kind.MUTATION, alice.party.items()[0], b"\xff"), Draft(Kind.GENESIS, b"x" * 16, b""))
            bob.party.process()
            monkeypatch.setattr(engine_module, "MANY", 1 << 30)
            peers.pass_on(bob, small)
            monkeypatch.setattr(engine_module, "MANY", 0)
            monkeypatch.setattr(bulk_module, "ROWS_AT_ONCE", 7)
            peers.pass_on(bob, many)
            assert many.snapshots() == small.snapshots() == bob.snapshots()
        assert many.party.refused() == small.party.refused() == bob.party.refused()
        assert told >= set(many.party.items())
        assert [many.party.item(item).history() for item in many.party.items()] == [
            small.party.item(item).history() for item in many.party.items()
        ]
        many.restart()
        assert many.snapshots() == small.snapshots()


def test_a_small_cache_shows_in_nothing(tmp_path: Path) -> None:
    """More items are touched at once than the cache holds, some of them open already."""
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        bob.party.engine.cache._limit = 5
        items = [alice.party.create("antiphon/object") for _ in range(40)]
        peers.sync()
        bob.party.save()
        for item in items[-5:]:
            assert bob.party.item(item.id).value == {}
        for item in items:
            item.edit("set", "a", 1)
        peers.sync()
        assert [bob.party.item(item.id).value for item in items] == [{"a": 1}] * 40
        assert bob.party.refused() == []


# -- restarts


def test_a_restart_folds_nothing_again(alice: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [alice.party.create("antiphon/object") for _ in range(20)]
    for note in notes:
        note.edit("set", "a", 1)
    folded: list[int] = []
    plain = item_module.fold

    def counting(party: bytes, item_id: bytes, item: Any, notes: Any, *rest: Any, **options: Any) -> Any:
        folded.append(len(notes))
        return plain(party, item_id, item, notes, *rest, **options)

    monkeypatch.setattr(engine_module, "fold", counting)
    alice.restart()
    assert alice.party.item(notes[3].id).value == {"a": 1}
    assert sum(folded) == 0
    alice.party.item(notes[3].id).edit("set", "a", 2)
    alice.restart(crash=True)
    assert alice.party.item(notes[3].id).value == {"a": 2}
    assert sum(folded) == 1, "only what was not saved"


def test_feeds_that_were_restored_without_the_item_store_are_folded_anew(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    alice.party.save()
    with alice.party.locked() as engine:
        lane = next(lane for lane in engine.delivery.lanes.values() if lane.state.position)
        lane.state.hash = b"another history".ljust(32)
        engine._unsaved = 1
    alice.restart()
    assert alice.party.why_rebuilt == "the feeds are not those that it was made from"
    assert alice.party.item(note.id).value == {"a": 1}
