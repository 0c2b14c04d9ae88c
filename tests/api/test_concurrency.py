"""Threads on one party: concurrent writes, queries and callbacks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import antiphon
from antiphon import Party, prop, sync
from antiphon.api.query.deltas import Delta
from antiphon.query.evaluate import Result
from antiphon.testing.copy_feeds import copy_feeds

pytestmark = pytest.mark.slow

WRITES = 25


def run_together(*works: Callable[[], None]) -> None:
    """Run each function in a thread of its own; raise the first exception here."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_two_threads_write_and_query_one_party(party: Party) -> None:
    shared, counter = party.list(), party.object()

    def write() -> None:
        for number in range(WRITES):
            party.object({"n": number})
            shared.append(number)
            counter.increment("total")

    def ask() -> None:
        known = 0
        for _ in range(WRITES):
            found = len(party.query(prop("n") >= 0))
            assert found >= known
            known = found

    run_together(write, write, ask)

    assert len(party.query(prop("n") >= 0)) == 2 * WRITES
    assert sorted(shared.value) == sorted([*range(WRITES), *range(WRITES)])
    assert counter["total"] == 2 * WRITES


def test_each_method_of_a_list_sees_one_moment(party: Party) -> None:
    jobs, taken = party.list(range(2 * WRITES)), list[int]()

    def work() -> None:
        for _ in range(WRITES):
            taken.append(jobs.pop(0))

    run_together(work, work)
    assert sorted(taken) == list(range(2 * WRITES))
    assert jobs.value == []


def test_one_of_two_threads_sets_the_default(party: Party) -> None:
    for number in range(5):
        task, seen = party.object(), list[int]()
        run_together(
            lambda task=task, seen=seen: seen.append(task.setdefault("n", 1)),  # type: ignore[misc]
            lambda task=task, seen=seen: seen.append(task.setdefault("n", 2)),  # type: ignore[misc]
        )
        assert len(set(seen)) == 1, number


def test_deltas_add_up_whichever_thread_writes(party: Party) -> None:
    seen, lock = [Result()], threading.Lock()

    def tell(delta: Delta) -> None:
        assert lock.acquire(blocking=False), "deltas come one at a time"
        try:
            seen[0] = delta.ids.apply(seen[0])
        finally:
            lock.release()

    def write() -> None:
        for number in range(WRITES):
            item = party.object({"n": number})
            if number % 3 == 0:
                item["n"] = -1

    subscription = party.subscribe(prop("n") > 0, tell, order="-n")
    run_together(write, write)
    party.object({"n": 100})

    assert seen[0].ids == subscription.result.ids == party.query(prop("n") > 0, order="-n").ids


def test_a_callback_may_write(party: Party) -> None:
    log = party.list()
    watched = party.subscribe(prop("n").exists(), lambda delta: log.extend([len(delta.added)] if delta.added else []))

    def write() -> None:
        party.object({"n": 1})

    run_together(write, write, write, write)
    assert sum(log) == len(watched.result.ids) == 4


def test_a_store_that_follows_takes_blocks_by_itself(tmp_path: Path) -> None:
    with (
        antiphon.open(tmp_path / "ada", name="Ada", live=True, unprotected=True) as ada,
        antiphon.open(tmp_path / "bob", name="Bob", live=True, unprotected=True) as bob,
    ):
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        sync(ada, bob)
        theirs = bob.party("Household")
        come = threading.Event()
        watched = theirs.subscribe(prop("n") == 5, lambda delta: come.set() if delta.added else None)
        party.object({"n": 5})
        copy_feeds(ada.manager.feeds, bob.manager.feeds, party.key)
        assert come.wait(30)
        assert len(watched.result.ids) == 1
