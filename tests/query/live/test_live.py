"""Live queries on whole peers: whatever is written, exchanged, taken back or cut, results are those of a fresh run."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from antiphon.core.errors import ItemForked, UnknownItem
from antiphon.model.message import Change
from antiphon.model.value import Reference
from antiphon.party.live.processor import PartyProcessor
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result, run
from antiphon.query.facts import Facts, facts_of
from antiphon.query.filters import EVERYTHING, Fact, Filter, Match, prop
from antiphon.query.forks import Fork
from antiphon.query.index.index import ItemIndex
from antiphon.query.live.live import LiveQueries
from antiphon.query.live.port import IndexedSource
from antiphon.query.live.subscription import Subscription
from antiphon.query.query import Deleted, Query, Way
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.query_strategies import derived

QUERIES = [
    Query(prop("n") >= 2),
    Query(Fact.TYPE.is_("task")).order_by("n", descending=True).take(3),
    Query(Match("mil*")),
    Query(Fact.TYPE.is_("task")).children(),
    Query().children().children(prop("n") < 3).order_by("n"),
    Query(prop("n") == 1).parent(),
    Query().links(prop("n") > 0).target(),
    Query(deleted=Deleted.SHOWN).backlinks().source().embeds(),
    Query(Fact.TYPE.is_("task")).embedders().referrers(),
    Query().references().count(),
    Query().sum("n", group=Fact.TYPE),
    Query(deleted=Deleted.ONLY).max("n"),
]


def everything(party: PartyProcessor) -> list[Facts]:
    """All facts, each item looked at alone, and what follows from all of them."""
    with party.locked() as engine:
        states = [engine.entry(item).item for item in party.items()]
    return derived(facts_of(state) for state in states if state is not None)


class Watcher:
    """Subscriptions to all queries, and the results that their deltas have made."""

    def __init__(
        self, party: PartyProcessor, index: IndexedSource | None, queries: Iterable[Query] = tuple(QUERIES)
    ) -> None:
        self._party = party
        self.live = LiveQueries(party, index)
        self._results: dict[Subscription, Result] = {}
        self.told = 0
        for query in queries:
            subscription = self.live.subscribe(query)
            self._results[subscription] = Result()
            subscription.on(self._take(subscription))

    def _take(self, subscription: Subscription) -> Callable[[Delta], None]:
        def take(delta: Delta) -> None:
            self.told += 1
            self._results[subscription] = delta.apply(self._results[subscription])

        return take

    def check(self) -> None:
        now = everything(self._party)
        for subscription, result in self._results.items():
            fresh = run(subscription.query, now)
            assert subscription.error is None
            assert subscription.result == fresh, subscription.query
            assert result == fresh, subscription.query


class Index:
    """The index of a party, as it is now."""

    def __init__(self, party: PartyProcessor) -> None:
        self._party = party
        self.asked = 0

    def _index(self) -> ItemIndex:
        self.asked += 1
        index = self._party.attach(ItemIndex)
        assert isinstance(index, ItemIndex)
        return index

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        return self._index().facts(ids)

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        return self._index().edges(way, item)

    def run(self, query: Query) -> Result:
        return self._index().run(query)

    def all_forks(self) -> list[Fork]:
        return self._index().all_forks()

    def namers(self, ends: Iterable[bytes]) -> set[bytes]:
        return self._index().namers(ends)


# -- anything that people do


def create(peer: Peer, chance: random.Random) -> None:
    ids = peer.party.items()
    with peer.party.batch():
        link = (chance.choice(ids), chance.choice(ids)) if ids and chance.random() < 0.3 else None
        item = peer.party.create("antiphon/object", parent=chance.choice([None, *ids]), link=link)
        item.edit("set", "n", chance.randrange(5))
        if chance.random() < 0.5:
            item.set_metadata("type", chance.choice(["task", "note"]))


def write(peer: Peer, chance: random.Random) -> None:
    ids = peer.party.items()
    if len(ids) < 2:
        return
    at, other = chance.sample(ids, 2)
    item = peer.party.item(at)
    act = chance.randrange(7)
    if act == 0:
        with suppress(ItemForked):
            item.edit("set", "n", chance.choice([0, 1, 2, 2.5, 2**62, "text", None]))
    elif act == 1:
        with suppress(ItemForked):
            item.edit("set", "of", Reference(other))
    elif act == 2:
        item.set_metadata("display_name", chance.choice(["Milk", "a mill", "beer"]))
    elif act == 3:
        item.embed(other)
    elif act == 4:
        _ = item.restore() if item.deleted else item.delete()
    elif act == 5:
        item.move(chance.choice([other, other, None]))
    else:
        with peer.party.batch() as batch:
            batch.change(at, Change(forked_to=other))


def fail(peer: Peer, chance: random.Random) -> None:
    def doomed() -> None:
        with peer.party.batch():
            for _ in range(3):
                write(peer, chance)
            raise KeyError("taken back")

    with pytest.raises(KeyError, match="taken back"):
        doomed()


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_results_follow_whatever_two_peers_do(tmp_path: Path, seed: int, indexed: bool) -> None:
    chance = random.Random(seed)
    with Peers(tmp_path, authority=False) as peers:
        pair = [peers.add("alice"), peers.add("bob")]
        for _ in range(4):
            create(pair[0], chance)
        watchers = [Watcher(peer.party, Index(peer.party) if indexed else None) for peer in pair]
        for _ in range(50):
            peer = chance.choice(pair)
            act = chance.choices([create, write, fail, None], [2, 8, 1, 2])[0]
            if act is not None:
                act(peer, chance)
            else:
                peers.pass_on(peer, pair[1 - pair.index(peer)])
            for watcher in watchers:
                watcher.check()
        peers.sync()
        for watcher in watchers:
            watcher.check()
            assert watcher.told > len(QUERIES)
            watcher.live.close()


@pytest.mark.parametrize("indexed", [False, True])
def test_very_many_items_that_come_at_once_are_told_at_once(tmp_path: Path, indexed: bool) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        board = alice.party.create("antiphon/object")
        peers.sync()
        watcher = Watcher(
            bob.party,
            Index(bob.party) if indexed else None,
            [*QUERIES[:2], Query().children(), Query(Fact.ID.is_(board.id))],
        )
        told = watcher.told
        with alice.party.batch():
            cards = [alice.party.create("antiphon/object", parent=board.id) for _ in range(1100)]
            for number, card in enumerate(cards):
                card.edit("set", "n", number)
            board.edit("set", "n", 1)
            board.move(cards[3].id)  # a circle
        peers.sync()
        watcher.check()
        assert told < watcher.told <= told + 4
        watcher.live.close()


def test_the_root_of_a_party_is_no_item_that_queries_find(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice = peers.add("alice")
        watcher = Watcher(alice.party, None, [Query(), Query(deleted=Deleted.SHOWN).parent(), Query().count()])
        told = watcher.told
        alice.party.root.edit("set", "n", 1)
        assert watcher.told == told
        alice.party.create("antiphon/object", parent=alice.party.root.id)
        watcher.check()
        watcher.live.close()


# -- what is taken back later


def test_items_that_are_void_after_all_leave(tmp_path: Path) -> None:
    """Carol hears of Bob's item before she hears that he had no right to make it."""
    with Peers(tmp_path) as peers:
        alice, bob, carol = peers.add("alice"), peers.add("bob"), peers.add("carol")
        note = alice.party.create("antiphon/object")
        note.edit("set", "n", 1)
        peers.sync()
        watcher = Watcher(carol.party, None, [Query(), Query(prop("n") == 2), Query().children(), Query().count()])
        assert alice.member is not None
        alice.member.revoke(bob.key)
        bob.party.item(note.id).edit("set", "n", 2)
        made = bob.party.create("antiphon/object", parent=note.id)
        peers.pass_on(bob, carol)
        watcher.check()
        assert carol.party.item(made.id).parent == note.id
        told = watcher.told
        peers.sync()
        with pytest.raises(UnknownItem):
            carol.party.item(made.id)
        watcher.check()
        assert watcher.told > told
        watcher.live.close()


def test_a_circle_that_falls_apart_moves_items_that_nobody_wrote_to(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, bob, carol = peers.add("alice"), peers.add("bob"), peers.add("carol")
        one, two = alice.party.create("antiphon/object"), alice.party.create("antiphon/object")
        peers.sync()
        watcher = Watcher(carol.party, None, [under(one.id), under(two.id), Query().children(), Query().parent()])
        under_two = watcher.live.subscribe(under(two.id))

        bob.party.item(two.id).move(one.id)
        for number in range(3):
            one.edit("set", "n", number)
        one.move(two.id)  # later than Bob's claim, so that this one would close the circle
        peers.pass_on(alice, carol)
        peers.pass_on(bob, carol)
        watcher.check()
        assert not under_two.result.ids

        assert alice.member is not None
        alice.member.revoke(bob.key)  # of whose claim she has not heard: it is void
        peers.pass_on(alice, carol)
        watcher.check()
        assert under_two.result.ids == (bytes(one.id),)
        watcher.live.close()


def under(item: bytes) -> Query:
    return Query(Fact.PARENT.is_(item))


@pytest.mark.parametrize("first", ["alice", "bob"])
def test_a_circle_that_two_peers_close_is_broken_alike(tmp_path: Path, first: str) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        one, two = alice.party.create("antiphon/object"), alice.party.create("antiphon/object")
        peers.sync()
        queries = [under(one.id), under(two.id), Query().children(), Query().parent()]
        watchers = [Watcher(peer.party, None, queries) for peer in (alice, bob)]
        alice.party.item(one.id).move(two.id)
        bob.party.item(two.id).move(one.id)
        for giver, taker in ((alice, bob), (bob, alice)) if first == "alice" else ((bob, alice), (alice, bob)):
            peers.pass_on(giver, taker)
            for watcher in watchers:
                watcher.check()
        assert alice.party.parents() == bob.party.parents()
        assert len(alice.party.parents()) == 1
        bob.party.item(two.id).move(None)
        peers.sync()
        for watcher in watchers:
            watcher.check()
            watcher.live.close()


def test_a_party_that_is_built_anew_tells_nothing_new(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice = peers.add("alice")
        for number in range(5):
            alice.party.create("antiphon/object").edit("set", "n", number)
        watcher = Watcher(alice.party, None, [query for query in QUERIES if query.order or query.steps])
        told = watcher.told
        alice.party.delete()
        alice.party.resume()
        assert watcher.told == told
        alice.party.create("antiphon/object").edit("set", "n", 4)
        watcher.check()
        watcher.live.close()


# -- threads


def test_many_threads_write_and_nothing_is_lost(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice = peers.add("alice")
        watcher = Watcher(alice.party, None, QUERIES[:5])

        def work(seed: int) -> None:
            chance = random.Random(seed)
            for _ in range(15):
                create(alice, chance)
                write(alice, chance)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        watcher.check()
        assert len(alice.party.items()) == 45
        watcher.live.close()


def test_a_party_that_follows_its_feeds_tells_from_its_own_thread(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        live = LiveQueries(bob.party)
        subscription, heard = live.subscribe(Query(prop("n") == 1)), threading.Event()
        threads: list[threading.Thread] = []

        def hear(delta: Delta) -> None:
            if delta.added:
                threads.append(threading.current_thread())
                heard.set()

        subscription.on(hear)
        bob.party.start()
        alice.party.create("antiphon/object").edit("set", "n", 1)
        for span in alice.ranges(bob.lengths()):
            bob.store.ingest_bytes(span.encode())
        assert heard.wait(60)
        assert threads[0] is not threading.current_thread()
        live.close()


# -- what it costs


def test_a_later_subscription_begins_with_what_was_just_written(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice = peers.add("alice")
        live = LiveQueries(alice.party, Index(alice.party))
        before = live.subscribe(Query(prop("n") == 1))
        item = alice.party.create("antiphon/object")  # not saved yet, so not in the index
        item.edit("set", "n", 1)
        after = live.subscribe(Query(prop("n") == 1))
        assert after.result.ids == before.result.ids == (bytes(item.id),)
        live.close()


def test_a_write_is_told_without_a_look_at_the_index(tmp_path: Path) -> None:
    plain: list[Filter] = [prop("n") == 1, Match("milk"), prop("n") > 0, EVERYTHING]
    with Peers(tmp_path, authority=False) as peers:
        alice = peers.add("alice")
        index = Index(alice.party)
        queries = [Query(where) for where in plain] + [Query().order_by("n").take(2), Query().count(), Query().parent()]
        watcher = Watcher(alice.party, index, queries)
        asked, told = index.asked, watcher.told
        board = alice.party.create("antiphon/object")
        item = alice.party.create("antiphon/object", parent=board.id)
        item.edit("set", "n", 1)
        item.set_metadata("display_name", "Milk")
        item.move(None)
        item.delete()
        assert index.asked == asked
        assert watcher.told > told + 10
        watcher.check()
        watcher.live.close()
