"""The index, and what waits to be saved: nothing is lost, whenever an index is made and whenever the machine stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.store.feed_store import FeedStore
from antiphon.model.factory import ModelFactory
from antiphon.model.model import Model
from antiphon.model.object.model import ObjectModel
from antiphon.party.engine.authority import OpenAuthority
from antiphon.party.live.processor import PartyProcessor
from antiphon.query.filters import Fact, prop
from antiphon.query.index.index import ItemIndex
from antiphon.query.live.live import LiveQueries
from antiphon.query.live.subscription import State, Subscription
from antiphon.query.query import Query
from antiphon.testing.peers import Peers

PARTY, WRITER = KeyPair.from_seed(b"p" * 32), KeyPair.from_seed(b"w" * 32)


class Tally(Model[list[int]]):
    name = "example/tally"

    def initial(self) -> list[int]:
        return [0]

    def apply(self, state: list[int], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        state[0] += 0 if void else mutation[0]

    def value(self, state: list[int]) -> int:
        return state[0]


def test_an_item_that_was_folded_again_survives_an_index_made_inside_a_batch_and_a_crash(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        note = bob.party.create("antiphon/object")
        peers.sync()
        for peer in (alice, bob):
            peer.party.save()
        bob.party.item(note.id).edit("set", "b", 1)
        alice.party.item(
            note.id
        ).restrict_writers()  # bob's word, which has not come, does not count: folded again when it does
        peers.sync()
        with bob.party.batch():
            index = bob.party.attach(ItemIndex)
            assert isinstance(index, ItemIndex)
        bob.restart(crash=True)
        assert bob.party.items() == alice.party.items()
        assert bob.party.snapshot(note.id) == alice.party.snapshot(note.id)


def test_observers_hear_of_items_whose_model_came_late_also_of_unsaved_ones(tmp_path: Path) -> None:
    late = ModelFactory(ObjectModel)
    with Peers(tmp_path, models=ModelFactory(ObjectModel, Tally)) as peers:
        alice, bob = peers.add("alice"), peers.add("bob", models=late)
        tally = alice.party.create("example/tally")
        tally.mutate(b"\x05")
        peers.sync()
        handle, heard = bob.party.item(tally.id), list[int]()
        stop = handle.observe(lambda item: heard.append(item.value))
        late.register(Tally)
        bob.party.process()
        assert heard == [5]
        stop()


def test_a_subscription_of_a_batch_that_is_taken_back_is_ready_after_it(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        party = peers.add("alice").party
        note = party.create("antiphon/object")
        note.edit("set", "a", 1)
        live = LiveQueries(party)
        told: list[int] = []
        held: list[Subscription] = []

        def subscribe_and_fail() -> None:
            with party.batch():
                held.append(live.subscribe(Query(prop("a") == 1)))
                held[0].on(lambda delta: told.append(len(delta.added)))
                assert held[0].state is State.PENDING
                raise RuntimeError("taken back")

        with pytest.raises(RuntimeError, match="taken back"):
            subscribe_and_fail()
        assert told == [1]
        assert held[0].result.ids == (note.id,)
        live.close()


def test_what_others_claims_move_is_told(tmp_path: Path) -> None:
    """A circle from before the first subscription falls apart: items move that no message was written to."""
    with Peers(tmp_path) as peers:
        party = peers.add("alice").party
        one, other, top = (party.create("antiphon/object") for _ in range(3))
        one.move(other.id)
        other.move(one.id)
        index = party.attach(ItemIndex)
        assert isinstance(index, ItemIndex)
        live = LiveQueries(party, index)
        under = live.subscribe(Query(Fact.PARENT.exists()))
        before = dict(party.parents())
        one.move(top.id)
        assert party.parents() != before
        assert set(under.result.ids) == set(party.parents())
        party.save()
        assert set(index.run(Query(Fact.PARENT.exists())).ids) == set(party.parents())
        live.close()


def test_an_index_is_kept_from_the_start_and_taken_up_again(tmp_path: Path) -> None:
    def opened() -> PartyProcessor:
        alone = OpenAuthority(feeds, PARTY.key, WRITER)
        return PartyProcessor(PARTY.key, feeds, alone, path=tmp_path / "items.db", index=ItemIndex)

    with FeedStore.open(tmp_path / "feeds") as feeds:
        with opened() as party:
            note = party.create("antiphon/object")
            note.edit("set", "a", 1)
        for _ in range(2):
            with opened() as party:
                index = party.engine.items.index
                assert isinstance(index, ItemIndex), "it was not current when the party was opened"
                assert index.run(Query(prop("a") == 1)).ids == (note.id,)


def test_an_index_that_is_behind_is_not_taken_up_but_made_when_asked_for(tmp_path: Path) -> None:
    with FeedStore.open(tmp_path / "feeds") as feeds:
        alone = OpenAuthority(feeds, PARTY.key, WRITER)
        path = tmp_path / "items.db"
        with PartyProcessor(PARTY.key, feeds, alone, path=path, index=ItemIndex) as party:
            first = party.create("antiphon/object")
        with PartyProcessor(PARTY.key, feeds, alone, path=path) as party:  # by a program that knows of no index
            second = party.create("antiphon/object")
        with PartyProcessor(PARTY.key, feeds, alone, path=path, index=ItemIndex) as party:
            assert party.engine.items.index is None
            index = party.attach(ItemIndex)
            assert isinstance(index, ItemIndex)
            assert index.run(Query()).ids == (first.id, second.id)
