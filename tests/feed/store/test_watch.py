"""Watching: made before the append, it sees it; in the same process, in another, and when the store is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from antiphon.core.errors import StoreClosed
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.watch import Watch
from antiphon.testing.spans import SpanWriter, drafts

OpenStore = Callable[..., FeedStore]
Start = Callable[..., Callable[[str], str]]


@pytest.fixture
def own(store: FeedStore, alice: KeyPair, party: PublicKey) -> FeedStore:
    store.create(alice.key, party)
    return store


def test_a_watch_made_before_the_append_sees_it(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    with own.watch() as watch:
        assert watch.poll() == {}
        own.append(alice, party, drafts(2))

        assert watch.wait() == {alice.key: 2}
        assert watch.poll() == {}


def test_growth_between_two_looks_is_one_answer(
    own: FeedStore, writer: SpanWriter, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    with own.watch() as watch:
        own.append(alice, party, drafts(2))
        own.append(alice, party, drafts(3))
        own.ingest(SpanWriter(bob, party).write(4))

        assert watch.poll() == {alice.key: 5, bob.key: 4}


def test_what_does_not_grow_is_not_told(own: FeedStore, alice: KeyPair, bob: KeyPair, party: PublicKey) -> None:
    own.append(alice, party, drafts(3))

    with own.watch() as watch:
        own.create(bob.key, party)
        own.erase(alice.key, 1)
        own.prune(alice.key, 1)

        assert watch.poll() == {}
        assert watch.wait(0) == {}


def test_each_watch_has_its_own_place(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    first = own.watch()
    own.append(alice, party, drafts(1))
    second = own.watch()
    own.append(alice, party, drafts(1))

    assert first.poll() == second.poll() == {alice.key: 2}
    own.append(alice, party, drafts(1))
    assert first.poll() == {alice.key: 3}


def test_a_waiter_is_woken(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    with ThreadPoolExecutor(1) as pool, own.watch() as watch:
        waiting = pool.submit(watch.wait, 60)
        own.append(alice, party, drafts(1))

        assert waiting.result() == {alice.key: 1}


def test_no_append_is_missed_by_many_watchers(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    """Watches are made and closed by several threads at once; each must be woken by what comes after it."""

    def follow() -> list[int]:
        seen = []
        for _ in range(40):
            with own.watch() as watch:
                seen.append(watch.wait(60).get(alice.key, 0))
        return seen

    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            own.append(alice, party, drafts(1))

    with ThreadPoolExecutor(5) as pool:
        writing = pool.submit(write)
        followers = [pool.submit(follow) for _ in range(4)]
        try:
            results = [follower.result() for follower in followers]
        finally:
            done.set()
        writing.result()

    for seen in results:
        assert all(seen)
        assert seen == sorted(seen)
    assert own._watches == frozenset()


def test_closing_a_watch_ends_the_wait(own: FeedStore) -> None:
    watch = own.watch()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(watch.wait)
        watch.close()

        assert waiting.result() == {}


def test_closing_the_store_ends_every_wait(own: FeedStore) -> None:
    watches: list[Watch] = [own.watch() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(watch.wait) for watch in watches]
        own.close()

        assert [future.result() for future in waiting] == [{}] * 8
    with pytest.raises(StoreClosed):
        watches[0].poll()


def test_a_watch_sees_what_another_process_appends(
    child: Start, open_store: OpenStore, tmp_path: Path, alice: KeyPair
) -> None:
    write = child("writer", tmp_path / "store")
    reading = open_store(readonly=True)

    with reading.watch() as watch:
        assert write("3 10") == "3"
        assert watch.wait(60) == {alice.key: 3}
        assert write("2 10") == "5"
        assert watch.wait(60) == {alice.key: 5}


def test_a_watch_in_another_process_sees_what_is_appended_here(
    own: FeedStore, child: Start, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    ask = child("reader", tmp_path / "store")
    assert ask("watch") == "watching"

    own.append(alice, party, drafts(4))

    assert ask("wait") == "4"


def test_a_listener_gets_the_parties_of_each_commit(
    own: FeedStore, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    told: list[frozenset[bytes] | None] = []
    other = KeyPair.from_seed(b"o" * 32).key
    own.append(alice, party, drafts(1))
    undo = own.listen(told.append)

    own.append(alice, party, drafts(1))
    with own.batch() as batch:
        batch.append(alice, party, drafts(1))
        batch.ingest(SpanWriter(bob, other).write(1))
    undo()
    own.append(alice, party, drafts(1))

    assert told == [frozenset({bytes(party)}), frozenset({bytes(party), bytes(other)})]


def test_a_commit_can_be_read_when_a_listener_is_told_of_it(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    lengths: list[int] = []
    own.listen(lambda _: lengths.append(own.record(alice.key).length))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: own.append(alice, party, drafts(1)), range(32)))

    assert max(lengths) == 32


def test_a_watch_of_a_party_sleeps_while_others_grow(
    own: FeedStore, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    other = KeyPair.from_seed(b"o" * 32).key
    with own.watch() as every, own.watch([other]) as watch:
        own.append(alice, party, drafts(1))
        every.wait()
        own.append(alice, party, drafts(1))  # the first commit after a pause may be of any party
        watch.poll()
        own.append(alice, party, drafts(1))
        assert not watch._moved.is_set()
        own.ingest(SpanWriter(bob, other).write(1))
        assert watch.wait() == {alice.key: 3, bob.key: 1}
