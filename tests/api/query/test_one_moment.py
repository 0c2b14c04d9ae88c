"""Standing results are of one moment: every state that a subscriber sees is one that existed."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.api.test_forks import Second

from antiphon import InvalidInput, ItemForked, Object, Party, prop
from antiphon.api.query.deltas import Delta
from antiphon.query.delta import Delta as IdDelta
from antiphon.query.evaluate import Result

MANY = 1_900  # more than are matched in one part
WRITERS, BATCHES = 3, 60


@contextmanager
def switching_often() -> Iterator[None]:
    """Let threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def looking(look: Callable[[], None]) -> Iterator[None]:
    """Call a function in a thread of its own, again and again, while the block runs; raise its exception here."""
    ended, errors = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not ended.is_set():
                look()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(60)
    if errors:
        raise errors[0]


def run_together(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)


def test_another_thread_sees_all_of_a_batch_or_nothing(party: Party) -> None:
    standing = party.subscribe(prop("n") >= 0)
    seen: set[int] = {len(standing.result.ids)}
    with switching_often(), looking(lambda: seen.add(len(standing.result.ids))), party.batch():
        for n in range(MANY):
            party.object({"n": n})
    assert len(standing.result.ids) == MANY
    assert seen <= {0, MANY}


def test_each_state_that_a_subscriber_sees_existed(party: Party) -> None:
    """Three threads pass a token from item to item; a fourth looks. Somebody has it, and nobody else, at any moment."""
    items = [party.object({"token": n == 0}) for n in range(12)]
    standing = party.subscribe(prop("token") == True)  # noqa: E712
    deltas: list[IdDelta] = []
    stop = standing.on(lambda delta: deltas.append(delta.ids))
    sizes: set[int] = set()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(BATCHES):
            with party.batch():
                holder = next(item for item in items if item["token"])
                holder["token"] = False
                chance.choice(items)["token"] = True

    with switching_often(), looking(lambda: sizes.add(len(standing.result.ids))):
        run_together([lambda seed=seed: write(seed) for seed in range(WRITERS)])  # type: ignore[misc]
    stop()
    assert sizes == {1}
    result = Result(())
    for delta in deltas:
        result = delta.apply(result)
        assert len(result.ids) == 1
    assert result == standing.result == Result(tuple(item.id for item in party.query(prop("token") == True)))  # noqa: E712


def test_values_are_of_the_moment_of_their_delta(party: Party) -> None:
    """Three threads move money between accounts and number each state; each that is seen is the one of its number."""
    accounts = [party.object({"money": 10, "of": 0}, type="account") for _ in range(6)]
    states: dict[int, dict[bytes, int]] = {0: {bytes(account.id): 10 for account in accounts}}
    standing = party.subscribe(type="account", values=True)
    mirror: dict[bytes, Any] = {}
    wrong: list[object] = []

    def check(values: dict[bytes, Any]) -> None:
        number = max(value["of"] for value in values.values())
        money = {item: value["money"] for item, value in values.items()}
        if money != states[number]:
            wrong.append((number, money))

    def told(delta: Delta) -> None:
        assert delta.values.keys() == set(delta.added.ids) | set(delta.changed.ids)
        mirror.update(delta.values)
        check(mirror)

    def write(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(BATCHES):
            with party.batch():
                one, other = chance.sample(accounts, 2)
                number = len(states)
                for account, more in ((one, -1), (other, 1)):
                    account["money"] += more
                    account["of"] = number
                states[number] = {bytes(account.id): account["money"] for account in accounts}

    stop = standing.on(told)
    with switching_often(), looking(lambda: check(standing.values)):
        run_together([lambda seed=seed: write(seed) for seed in range(WRITERS)])  # type: ignore[misc]
    stop()
    assert not wrong
    assert {item: value["money"] for item, value in mirror.items()} == states[len(states) - 1]


def test_values_follow_a_limit(party: Party) -> None:
    items = [party.object({"n": n}) for n in range(5)]
    standing = party.subscribe(prop("n") >= 0, order="n", limit=2, values=True)
    assert list(standing.values.values()) == [{"n": 0}, {"n": 1}]
    items[0]["n"] = 9
    assert list(standing.values.values()) == [{"n": 1}, {"n": 2}]
    items[1].delete()
    items[2]["n"] = 2.5
    assert list(standing.values.values()) == [{"n": 2.5}, {"n": 3}]


# -- forks


@pytest.fixture
def item(party: Party) -> Object:
    made = party.object({"n": 1})
    party.store.models.register(Second)
    return made


def test_a_standing_query_follows_a_fork_of_an_item_that_it_names(party: Party, item: Object) -> None:
    holder, other = party.object({"ref": item}), party.object({"ref": None})
    standing, count = party.subscribe(prop("ref") == item), party.subscribe(prop("ref") == item)
    deltas: list[IdDelta] = []
    stop = standing.on(lambda delta: deltas.append(delta.ids))
    made = item.fork(version=2)
    assert party.query(prop("ref") == item) == [holder]
    assert standing.result.ids == count.result.ids == (holder.id,)
    other["ref"] = made
    assert set(standing.result.ids) == {holder.id, other.id}
    result = Result(())
    for delta in deltas:
        result = delta.apply(result)
    assert result == standing.result
    stop()


def test_a_query_about_a_fork_that_came_while_nobody_listened_is_resolved(party: Party, item: Object) -> None:
    holder = party.object({"ref": item})
    party.subscribe(prop("ref") == item).close()
    made = item.fork(version=2)
    assert party.subscribe(prop("ref") == item).result.ids == (holder.id,)
    assert party.subscribe(prop("ref") == made).result.ids == (holder.id,)


def test_an_edit_of_a_forked_item_says_where_it_leads(party: Party, item: Object) -> None:
    made = item.fork(version=2)
    with pytest.raises(ItemForked, match=made.id.hex()) as caught:
        item["n"] = 2
    assert caught.value.to == made.id
    assert party.item(caught.value.to, Object)["n"] == 1


# -- batches and tasks


def test_a_batch_that_is_held_open_across_an_await_takes_in_no_writes_of_other_tasks(party: Party) -> None:
    one, other = party.object({"n": 0}), party.object({"n": 0})
    refused: list[str] = []

    async def hold() -> None:
        with party.batch():
            one["n"] = 1
            await asyncio.sleep(0)
            raise ZeroDivisionError

    async def write() -> None:
        try:
            other["n"] = 1
        except InvalidInput as error:
            refused.append(str(error))

    async def both() -> None:
        held = asyncio.create_task(hold())
        await asyncio.create_task(write())
        with pytest.raises(ZeroDivisionError):
            await held
        await write()  # the batch is over

    asyncio.run(both())
    assert (one["n"], other["n"]) == (0, 1)
    assert len(refused) == 1
    assert "await" in refused[0]


def test_a_task_may_hold_its_own_batch_open_across_an_await(party: Party) -> None:
    one = party.object({"n": 0})

    async def write() -> None:
        with party.batch():
            one["n"] = 1
            await asyncio.sleep(0)
            one["n"] += 1

    asyncio.run(write())
    with party.batch():
        asyncio.run(write())  # inside a batch of the thread
    assert one["n"] == 2
