"""Group commit: who comes while a commit is under way shares the next one, and one caller's error is its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from antiphon.core.errors import FeedRetired, InvalidInput, StoreClosed, UnknownFeed
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.encoder import Draft, Written
from antiphon.feed.header import Entry, Kind
from antiphon.feed.limits import LAMPORT_MAX
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.tables import Tables
from antiphon.testing.spans import SpanWriter, drafts, key_pair


class Held:
    """A commit under way that waits to be let go; meanwhile others come."""

    def __init__(self, store: FeedStore, pool: ThreadPoolExecutor) -> None:
        self._store = store
        self._pool = pool
        self._begun, self._go = threading.Event(), threading.Event()
        self.leader = pool.submit(store._change, self._wait)
        assert self._begun.wait(60)

    def _wait(self, _: Tables) -> None:
        self._begun.set()
        assert self._go.wait(60)

    def come(self, *calls: Callable[[], Written]) -> list[Future[Written]]:
        """Start the calls, and let the leader go when all of them wait for it."""
        futures = [self._pool.submit(call) for call in calls]
        condition = self._store._committer._condition
        while len(self._store._committer._waiting) < len(calls):
            with condition:
                condition.wait(0.001)
        self._go.set()
        return futures


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(64) as pool:
        yield pool


def test_appenders_that_come_together_share_a_commit(
    store: FeedStore, pool: ThreadPoolExecutor, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    for pair in (alice, bob):
        store.create(pair.key, party)
    before = store.commits
    held = Held(store, pool)

    futures = held.come(
        *[
            lambda at=at, pair=pair: store.append(pair, party, drafts(2, label=f"{at}:"))
            for at in range(12)
            for pair in (alice, bob)
        ]
    )

    stamps = [stamp for future in futures for stamp in future.result()]
    assert store.commits - before == 2  # the leader's own, and one for all the rest
    for pair in (alice, bob):
        assert sorted(stamp.seq for stamp in stamps if stamp.feed == pair.key) == list(range(24))
        assert [block.stamp for block in store.read(pair.key)] == sorted(s for s in stamps if s.feed == pair.key)
        assert store.verify(pair.key).length == 24
        assert len(list(store.spans(pair.key))) == 1


def test_each_append_stays_together(
    store: FeedStore, pool: ThreadPoolExecutor, alice: KeyPair, party: PublicKey
) -> None:
    store.create(alice.key, party)
    held = Held(store, pool)

    futures = held.come(
        *[lambda at=at: store.append(alice, party, drafts(3, label=f"{at}:"), atomic=True) for at in range(8)]
    )

    for at, future in enumerate(futures):
        stamps = future.result()
        assert [stamp.seq for stamp in stamps] == list(range(stamps[0].seq, stamps[0].seq + 3))
        assert len({stamp.lamport for stamp in stamps}) == 1
        blocks = [store.block(alice.key, stamp.seq) for stamp in stamps]
        assert [block.message for block in blocks] == [draft.message for draft in drafts(3, label=f"{at}:")]


def test_many_threads_lose_nothing(
    store: FeedStore, pool: ThreadPoolExecutor, alice: KeyPair, party: PublicKey
) -> None:
    store.create(alice.key, party)

    def work(name: int) -> list[int]:
        return [store.append(alice, party, drafts(1, label=f"{name}/{at} "))[0].seq for at in range(20)]

    seqs = [seq for result in pool.map(work, range(16)) for seq in result]

    assert sorted(seqs) == list(range(320))
    assert store.verify(alice.key).length == 320


def test_an_error_of_one_does_not_hurt_the_others(
    store: FeedStore, pool: ThreadPoolExecutor, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    """All of them reach the same commit; those that are wrong are found wrong inside it."""
    store.create(alice.key, party)
    store.create(bob.key, party)
    store.retire(bob.key)
    too_far = Entry(b"x" * 32, 1, LAMPORT_MAX + 9, bytes(32))
    held = Held(store, pool)

    good, party_wrong, lamport_wrong, retired, unknown, type_wrong, also_good = held.come(
        lambda: store.append(alice, party, drafts(1)),
        lambda: store.append(alice, bob.key, drafts(1)),
        lambda: store.append(alice, party, drafts(1), seen=[too_far]),
        lambda: store.append(bob, party, drafts(1)),
        lambda: store.append(key_pair("carol"), party, drafts(1)),
        lambda: store.append(alice, party, [Draft(Kind.MUTATION, bytes(16), "text")]),  # type: ignore[arg-type]
        lambda: store.append(alice, party, drafts(2)),
    )

    assert len(good.result()) + len(also_good.result()) == 3
    for future, error in [
        (party_wrong, InvalidInput),
        (lamport_wrong, InvalidInput),
        (retired, FeedRetired),
        (unknown, UnknownFeed),
        (type_wrong, TypeError),
    ]:
        with pytest.raises(error):
            future.result()
    assert store.verify(alice.key).length == 3
    assert store.verify(bob.key).length == 0


def test_a_change_that_fails_leaves_nothing_of_itself(
    store: FeedStore, pool: ThreadPoolExecutor, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    store.create(alice.key, party)
    span = SpanWriter(bob, party).write(2)
    held = Held(store, pool)

    def bad() -> Written:
        with store.batch() as batch:
            batch.append(alice, party, drafts(5))
            batch.ingest(span)
            batch.append(bob, party, drafts(1))
        raise AssertionError

    failed, fine = held.come(bad, lambda: store.append(alice, party, drafts(1)))

    with pytest.raises(FeedRetired):  # Bob's feed came from a peer
        failed.result()
    assert fine.result()[0].seq == 0
    assert store.bounds(alice.key).length == 1
    assert [record.feed for record in store.feeds()] == [alice.key]


def test_after_an_error_of_the_store_itself_others_go_on(
    store: FeedStore, pool: ThreadPoolExecutor, alice: KeyPair, party: PublicKey
) -> None:
    store.create(alice.key, party)

    def interrupted(_: Tables) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store._change(interrupted)

    assert store.append(alice, party, drafts(1))[0].seq == 0


def test_a_closed_store_says_so(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    store.create(alice.key, party)
    store.close()

    with pytest.raises(StoreClosed, match="open it again"):
        store.append(alice, party, drafts(1))
