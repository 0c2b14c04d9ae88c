"""One party, live: begun, paused, resumed and deleted at any time, by anybody, and independent of the others."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.core.errors import (
    DamagedItems,
    InvalidInput,
    NotAuthorised,
    PartyPaused,
    StoreError,
    UnknownItem,
    UnknownModel,
)
from antiphon.core.keys import KeyPair
from antiphon.core.timeframe import Timeframe
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.credentials.claims import Role
from antiphon.party.engine.authority import OpenAuthority
from antiphon.party.engine.engine import Engine
from antiphon.party.live.item import Item
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import ItemStore
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import key_pair

PATIENCE_S = 30.0


@pytest.fixture
def feeds(tmp_path: Path) -> Iterator[FeedStore]:
    with FeedStore.open(tmp_path / "feeds", durable=False) as store:
        yield store


def opened(store: FeedStore, name: str = "party", pair: KeyPair | None = None, **options: object) -> PartyProcessor:
    party = key_pair(name).key
    authority = OpenAuthority(store, party, pair or key_pair(f"feed of {name}"))
    return PartyProcessor(party, store, authority, **options)  # type: ignore[arg-type]


# -- life


def test_a_party_that_is_built_again_runs_so_that_nobody_opens_it_a_second_time(
    feeds: FeedStore, tmp_path: Path
) -> None:
    seen: list[bool] = []
    others: list[Engine] = []
    other = threading.Thread(target=lambda: others.append(party.engine))

    def open_items() -> ItemStore:
        if seen:
            other.start()
        seen.append(bool(seen) and party.running)
        return ItemStore(tmp_path / "items.db", key_pair("party").key)

    with opened(feeds, open_items=open_items) as party:
        note = party.create("antiphon/object")
        note.edit("set", "a", 1)
        party.begin_again()
        other.join(PATIENCE_S)
        assert (seen, others) == ([False, True], [party.engine])
        assert (party.running, note.value) == (True, {"a": 1})


def test_a_party_is_paused_and_resumed_where_it_stood(feeds: FeedStore, tmp_path: Path) -> None:
    with opened(feeds, path=tmp_path / "items.db") as party:
        note = party.create("antiphon/object")
        note.edit("set", "a", 1)
        party.pause()
        party.pause()
        assert (party.running, party.status().running, party.status().items) == (False, False, 0)
        for act in (lambda: note.value, lambda: note.edit("set", "a", 2), party.items, party.process, party.save):
            with pytest.raises(PartyPaused, match=rf"party {party.key.short} is paused, closed or deleted"):
                act()
        party.resume()
        party.resume()
        assert (note.value, party.running, party.why_rebuilt) == ({"a": 1}, True, "")


def test_without_a_path_it_is_built_again_at_each_start(feeds: FeedStore) -> None:
    with opened(feeds) as party:
        note = party.create("antiphon/object")
        note.edit("set", "a", 1)
        party.pause()
        party.resume()
        assert note.value == {"a": 1}


def test_a_deleted_party_leaves_its_feeds_and_can_be_created_again(feeds: FeedStore, tmp_path: Path) -> None:
    path = tmp_path / "items" / "party.db"
    party = opened(feeds, path=path)
    note = party.create("antiphon/object")
    note.edit("set", "a", 1)
    assert path.exists()
    party.delete()
    assert (list(path.parent.iterdir()), party.running) == ([], False)
    party.delete()
    with opened(feeds, path=path) as again:
        assert again.item(note.id).value == {"a": 1}
        assert again.why_rebuilt == ""


def test_a_damaged_item_store_is_built_again_and_says_so(feeds: FeedStore, tmp_path: Path) -> None:
    path = tmp_path / "items.db"
    with opened(feeds, path=path) as party:
        note = party.create("antiphon/object")
        note.edit("set", "a", 1)
    path.write_bytes(b"rubbish" * 1000)
    with opened(feeds, path=path) as party:
        assert "have changed since it was written" in party.why_rebuilt
        assert party.status().rebuilt == party.why_rebuilt
        assert party.item(note.id).value == {"a": 1}


def test_a_byte_that_changed_in_a_feeds_position_builds_it_again(feeds: FeedStore, tmp_path: Path) -> None:
    path = tmp_path / "items.db"
    with opened(feeds, path=path) as party:
        note = party.create("antiphon/object")
        party.save()
        party.engine.items._db.execute("UPDATE feeds SET state = zeroblob(70)")  # type: ignore[attr-defined]
    with opened(feeds, path=path) as party:
        assert "have changed" in party.why_rebuilt
        assert party.item(note.id).value == {}


@pytest.mark.parametrize("how", ["read", "received", "batch"])
def test_a_byte_that_changed_in_an_item_is_found_and_built_again(peers: Peers, how: str) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    peers.sync()
    bob.restart()
    bob.party.engine.items._db.execute("UPDATE items SET record = zeroblob(40)")  # type: ignore[attr-defined]
    if how == "read":
        with pytest.raises(DamagedItems, match="bytes in the item store have changed"):
            bob.party.item(note.id)
    elif how == "received":
        note.edit("set", "b", 2)
        peers.sync()  # what arrives is processed after the items are built again
    else:
        with pytest.raises(DamagedItems, match="bytes in the item store have changed"), bob.party.batch() as batch:
            batch.edit(note.id, "set", ("c", 3), {})
    assert bob.party.running
    assert "have changed" in bob.party.why_rebuilt
    peers.sync()
    assert bob.party.item(note.id).value == note.value
    assert bob.snapshots() == alice.snapshots()


def test_pausing_inside_a_batch_is_refused_and_the_batch_goes_on(feeds: FeedStore) -> None:
    with opened(feeds) as party:
        note = party.create("antiphon/object")
        with party.batch():
            note.edit("set", "a", 1)
            for stop in (party.pause, party.close, party.delete):
                with pytest.raises(InvalidInput, match=r"a batch is open; leave it first"):
                    stop()
        assert note.value == {"a": 1}


def test_pausing_inside_a_batch_does_not_wait_for_the_thread_that_waits_for_the_batch(feeds: FeedStore) -> None:
    """Trap 16: the watcher wants the lock that the batch holds, and pausing would wait for the watcher."""
    with opened(feeds) as party:
        party.start()
        with party.batch():
            party.create("antiphon/object")
            feeds.create(key_pair("somebody").key, party.key)  # wakes the watcher
            with pytest.raises(InvalidInput, match="a batch is open"):
                party.pause()


@pytest.mark.parametrize("how", ["pause", "delete"])
def test_a_listener_may_stop_the_party_that_calls_it(feeds: FeedStore, tmp_path: Path, how: str) -> None:
    party = opened(feeds, path=tmp_path / "items.db")
    note = party.create("antiphon/object")
    unlisten = party.listen(lambda _: getattr(party, how)())
    note.edit("set", "a", 1)
    assert not party.running
    unlisten()
    party.resume()
    assert note.value == {"a": 1}
    party.close()


@pytest.mark.parametrize("how", ["pause", "delete"])
def test_an_observer_may_stop_the_party_from_the_thread_that_follows(peers: Peers, how: str) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    note = alice.party.create("antiphon/object")
    peers.sync()
    handle, stopped = bob.party.item(note.id), threading.Event()

    def stop(_: Item) -> None:
        getattr(bob.party, how)()
        stopped.set()

    unobserve = handle.observe(stop)
    bob.party.start()
    assert bob.party._watcher is not None
    thread = bob.party._watcher.thread
    note.edit("set", "a", 1)
    for span in alice.ranges(bob.lengths()):
        bob.store.ingest(span)
    assert stopped.wait(PATIENCE_S)
    thread.join(PATIENCE_S)
    assert (thread.is_alive(), bob.party.running) == (False, False)
    unobserve()
    bob.party.resume()
    assert bob.party.item(note.id).value == {"a": 1}


def test_another_thread_may_stop_it_at_any_time(feeds: FeedStore, tmp_path: Path) -> None:
    party = opened(feeds, path=tmp_path / "items.db")
    note = party.create("antiphon/object")
    party.start()
    written = 0
    begun = threading.Event()

    def stop() -> None:
        begun.wait(PATIENCE_S)
        party.pause()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(PartyPaused):  # noqa: PT012
        for at in range(1_000_000):
            note.edit("set", "n", at)
            written = at
            begun.set()
    thread.join(PATIENCE_S)
    party.resume()
    assert note.value == {"n": written}
    party.close()


def test_a_read_that_stops_the_party_does_not_hang(feeds: FeedStore) -> None:
    party = opened(feeds)
    note = party.create("antiphon/object")
    party.start()
    note.read(lambda *_: party.pause())
    assert not party.running
    party.resume()
    party.start()
    assert note.value == {}
    party.close()


# -- following


def test_a_party_that_follows_needs_no_call(peers: Peers) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    bob.party.start()
    bob.party.start()
    note = alice.party.create("antiphon/object")
    stamp = note.edit("set", "a", 1)
    for span in alice.ranges(bob.lengths()):
        bob.store.ingest(span)
    assert bob.party.wait_for(Timeframe({stamp.feed: stamp.seq}), PATIENCE_S)
    assert bob.party.item(note.id).value == {"a": 1}


def test_waiting_ends_when_the_time_is_up_or_the_party_is_paused(feeds: FeedStore) -> None:
    party = opened(feeds)
    never = Timeframe({key_pair("nobody").key: 0})
    assert not party.wait_for(never, 0.0)
    waiting, ended = threading.Event(), []

    def wait() -> None:
        waiting.set()
        try:
            party.wait_for(never, PATIENCE_S)
        except PartyPaused as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait(PATIENCE_S)
    party.pause()
    thread.join(PATIENCE_S)
    assert len(ended) == 1


def test_a_watcher_that_failed_tries_again_with_the_next_block(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    note = alice.party.create("antiphon/object")
    failed = threading.Event()
    plain = bob.party._reset

    def reset(why: str) -> None:
        plain(why)
        failed.set()

    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(bob.party, "_reset", reset)
    bob.party.start()
    with monkeypatch.context() as patch:
        patch.setattr("antiphon.party.engine.engine.Engine._settle", fail)
        for span in alice.ranges(bob.lengths()):
            bob.store.ingest(span)
        assert failed.wait(PATIENCE_S)
    stamp = note.edit("set", "a", 1)
    for span in alice.ranges(bob.lengths()):
        bob.store.ingest(span)
    bob.party.resume()  # by hand or by the watcher, whichever is first
    assert bob.party.wait_for(Timeframe({stamp.feed: stamp.seq}), PATIENCE_S)
    assert bob.party.item(note.id).value == {"a": 1}


def test_an_error_half_way_drops_what_is_in_memory_and_nothing_else(
    peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    for span in alice.ranges(bob.lengths()):
        bob.store.ingest(span)

    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("antiphon.party.engine.engine.Engine.fold_in", fail)
        with pytest.raises(StoreError, match="the disk is full"):
            bob.party.process()
    assert not bob.party.running
    assert bob.party.status().error == "the disk is full"
    assert (bob.party.item(note.id).value, bob.party.status().error) == ({"a": 1}, "")


@pytest.mark.parametrize(
    ("error", "text"), [(StoreError("the disk is full"), "the disk is full"), (OSError(), "OSError")]
)
def test_a_party_that_stopped_says_why(
    peers: Peers, monkeypatch: pytest.MonkeyPatch, error: Exception, text: str
) -> None:
    """Whether the error came while it processed or while it saved, and if the error itself has no text."""
    alice = peers.add("alice")
    note = alice.party.create("antiphon/object")

    def fail(*_: object) -> None:
        raise error

    for call, broken in ((alice.party.process, "process"), (alice.party.save, "put_all")):
        alice.party.resume()
        note.edit("set", "a", broken)
        with monkeypatch.context() as patch:
            patch.setattr(f"antiphon.party.engine.engine.Engine.{broken}", fail)
            with pytest.raises(type(error)):
                call()
        assert not alice.party.running
        assert text in alice.party.status().error
        assert alice.party.item(note.id).value == {"a": broken}


# -- several parties, and what they say


def test_parties_of_one_store_are_independent(feeds: FeedStore, tmp_path: Path) -> None:
    with opened(feeds, "one", path=tmp_path / "1.db") as one, opened(feeds, "two", path=tmp_path / "2.db") as two:
        note = one.create("antiphon/object")
        assert (two.process(), two.items(), two.timeframe) == (0, [], Timeframe())
        one.pause()
        other = two.create("antiphon/object")
        assert two.items() == [other.id]
        one.resume()
        assert one.items() == [note.id]


def test_errors_name_the_party_or_the_item(alice: Peer) -> None:
    party = alice.party
    nowhere = b"x" * 16
    with pytest.raises(UnknownItem, match=rf"party {party.key.hex()[:8]} holds no item {nowhere.hex()}, or not yet"):
        party.item(nowhere)
    with pytest.raises(UnknownModel, match=r"no code for model example/go is here; installed: antiphon/array 1"):
        party.create("example/go")
    with pytest.raises(UnknownItem, match=rf"party {party.key.short} holds no message to item"):
        Item(party, nowhere).history()
    with pytest.raises(InvalidInput, match="an item id has 16 bytes"):
        Item(party, b"short")


def test_a_reader_is_told_that_it_may_not_write(peers: Peers, alice: Peer) -> None:
    reader = peers.add("reader", Role.READER)
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    peers.sync()
    assert reader.party.item(note.id).value == {"a": 1}
    with pytest.raises(NotAuthorised, match=rf"party {alice.party.key.short}: .*ask an owner"):
        reader.party.item(note.id).edit("set", "a", 2)
    stranger = peers.add("stranger", None)
    with pytest.raises(NotAuthorised, match=r"is no member .*; ask an owner to admit it"):
        stranger.party.create("antiphon/object")


def test_a_store_without_a_key_is_only_read(feeds: FeedStore) -> None:
    with opened(feeds) as party:
        note = party.create("antiphon/object")
    key = key_pair("party").key
    with PartyProcessor(key, feeds, OpenAuthority(feeds, key)) as party:
        assert party.item(note.id).value == {}
        with pytest.raises(NotAuthorised, match="no key was given to write with"):
            party.create("antiphon/object")


# -- memory


@pytest.mark.slow
def test_memory_follows_what_is_open_and_not_what_was_ever_touched(feeds: FeedStore, tmp_path: Path) -> None:
    with opened(feeds, path=tmp_path / "items.db", cache_items_max=100) as party:
        items = []
        for _ in range(5):
            with party.batch():
                items += [party.create("antiphon/object").id for _ in range(1000)]
        party.save()
        for item in items:
            assert party.item(item).value == {}
        gc.collect()
        assert party.status().items == 5000
        assert party.status().items_open <= 101
        assert len(party.engine.cache.dirty) == 0


def test_who_waits_is_woken_when_a_party_goes_on_after_an_error(
    peers: Peers, alice: Peer, bob: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine delivers and saves, then fails. The next one has nothing to deliver; the waiter slept for ever."""
    stamp = alice.party.create("antiphon/object").edit("set", "a", 1)
    wanted = Timeframe({stamp.feed: stamp.seq})
    process = Engine.process

    def fail_afterwards(engine: Engine) -> int:
        process(engine)
        engine.save()
        raise OSError("the disk is full")

    peers.pass_on(alice, bob)
    monkeypatch.setattr(Engine, "process", fail_afterwards)
    with pytest.raises(OSError, match="full"):
        bob.party.process()
    monkeypatch.undo()
    assert bob.party.failed
    assert bob.party.wait_for(wanted, timeout_s=30)
