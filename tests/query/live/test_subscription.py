"""Subscriptions on live parties: who is told what, when, and in which thread."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from antiphon.core.errors import StoreClosed
from antiphon.party.live.item import Item
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result
from antiphon.query.filters import Fact, prop
from antiphon.query.live.live import LiveQueries
from antiphon.query.live.matcher import Matcher
from antiphon.query.live.subscription import State, Subscription
from antiphon.query.query import Query
from antiphon.testing.peers import Peer, Peers


class TakenBack(Exception):
    """Ends a batch so that nothing of it has happened."""


OPEN = Query(prop("done").is_(False))


def task(peer: Peer, **values: Any) -> Item:
    """An item that comes with its values in one batch."""
    with peer.party.batch():
        item = peer.party.create("antiphon/object")
        for key, value in values.items():
            item.edit("set", key, value)
    return item


def counts(delta: Delta) -> tuple[int, int, int]:
    return len(delta.added), len(delta.changed), len(delta.removed)


# -- callbacks


def test_the_first_delta_has_everything_and_each_change_follows(alice: Peer, live: LiveQueries) -> None:
    one = task(alice, done=False)
    subscription = live.subscribe(OPEN)
    told: list[Delta] = []
    subscription.on(told.append)
    two = task(alice, done=False)
    one.edit("set", "title", "Milk")
    one.edit("set", "title", "Milk")  # written, but nothing has changed
    two.edit("set", "done", True)
    task(alice, done=True)
    two.delete()

    assert subscription.state is State.READY
    assert told == [
        Delta({one.id: 0}),
        Delta({two.id: 1}),
        Delta(changed={one.id: 0}),
        Delta(removed=frozenset({two.id})),
    ]
    assert subscription.result == Result((bytes(one.id),))


def test_an_empty_result_is_told_once_it_is_known_to_be_empty(alice: Peer, live: LiveQueries) -> None:
    told: list[Delta] = []
    subscription = live.subscribe(OPEN)
    subscription.on(told.append)
    assert told == [Delta()]
    assert subscription.result == Result()


def test_what_comes_from_others_is_told(peers: Peers, alice: Peer) -> None:
    bob = peers.add("bob")
    live = LiveQueries(bob.party)
    subscription = live.subscribe(OPEN)
    told: list[Delta] = []
    subscription.on(told.append)

    item = task(alice, done=False)
    peers.sync()
    item.delete()
    peers.sync()

    assert told == [Delta(), Delta({item.id: 0}), Delta(removed=frozenset({item.id}))]
    live.close()


def test_a_batch_is_told_at_once_and_one_that_is_taken_back_never(alice: Peer, live: LiveQueries) -> None:
    subscription = live.subscribe(OPEN)
    told: list[Delta] = []
    subscription.on(told.append)
    with alice.party.batch():
        items = [task(alice, done=False) for _ in range(3)]
    with suppress(TakenBack), alice.party.batch():
        items[0].edit("set", "done", True)
        task(alice, done=False)
        raise TakenBack

    assert [counts(delta) for delta in told] == [(0, 0, 0), (3, 0, 0)]
    assert subscription.result.ids == tuple(sorted(bytes(item.id) for item in items))


def test_an_observer_may_write_and_is_told_after_it_is_done(alice: Peer, live: LiveQueries) -> None:
    subscription = live.subscribe(OPEN)
    acts: list[Any] = []

    def finish(delta: Delta) -> None:
        acts.append(("begin", counts(delta)))
        for item in delta.added:
            alice.party.item(item).edit("set", "done", True)
        acts.append("end")

    subscription.on(finish)
    task(alice, done=False)
    nothing, one, gone = (0, 0, 0), (1, 0, 0), (0, 0, 1)
    assert acts == [("begin", nothing), "end", ("begin", one), "end", ("begin", gone), "end"]
    assert subscription.result.ids == ()


def test_an_observer_that_fails_keeps_nothing_from_the_others(
    alice: Peer, live: LiveQueries, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(delta: Delta) -> None:
        raise ValueError("a fault of an observer")

    subscription, told = live.subscribe(OPEN), list[Delta]()
    with caplog.at_level(logging.ERROR, logger="antiphon"):
        subscription.on(fail)
        subscription.on(told.append)
        task(alice, done=False)
        task(alice, done=False)
    assert [counts(delta) for delta in told] == [(0, 0, 0), (1, 0, 0), (1, 0, 0)]
    assert caplog.text.count("a fault of an observer") >= 3
    assert subscription.state is State.READY


def test_an_interrupt_keeps_nothing_from_the_others(alice: Peer, live: LiveQueries) -> None:
    def interrupt(delta: Delta) -> None:
        if delta.added:
            raise KeyboardInterrupt

    subscription, told = live.subscribe(OPEN), list[Delta]()
    subscription.on(interrupt)
    subscription.on(told.append)
    with pytest.raises(KeyboardInterrupt):
        task(alice, done=False)
    assert [counts(delta) for delta in told] == [(0, 0, 0), (1, 0, 0)]
    with pytest.raises(KeyboardInterrupt):
        task(alice, done=False)
    assert [counts(delta) for delta in told] == [(0, 0, 0), (1, 0, 0), (1, 0, 0)]


def test_an_interrupt_of_one_subscription_keeps_nothing_from_the_other_ones(alice: Peer, live: LiveQueries) -> None:
    def interrupt(delta: Delta) -> None:
        if delta.added:
            raise KeyboardInterrupt

    subscriptions = [live.subscribe(OPEN) for _ in range(3)]
    told: list[list[Delta]] = [[], [], []]
    for subscription, heard in zip(subscriptions, told, strict=True):
        subscription.on(heard.append)
        subscription.on(interrupt)
    late, heard_late = list[Subscription](), list[Delta]()

    def write() -> None:
        with alice.party.batch():
            late.append(live.subscribe(OPEN))  # filled when the batch is over
            late[0].on(heard_late.append)
            task(alice, done=False)

    with pytest.raises(KeyboardInterrupt):
        write()
    assert [[counts(delta) for delta in heard] for heard in told] == [[(0, 0, 0), (1, 0, 0)]] * 3
    assert [counts(delta) for delta in heard_late] == [(1, 0, 0)]


def test_an_interrupt_of_the_matching_is_told_as_a_failure(
    alice: Peer, live: LiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    subscription, failures = live.subscribe(OPEN), list[Exception]()
    subscription.on(lambda _: None, failed=failures.append)
    with monkeypatch.context() as patch:
        patch.setattr(Matcher, "changed", interrupt)
        with pytest.raises(KeyboardInterrupt):
            task(alice, done=False)
    assert (subscription.state, failures) == (State.FAILED, [subscription.error])
    assert len(live.subscribe(OPEN).result.ids) == 1


def test_an_observer_that_was_stopped_is_not_called(alice: Peer, live: LiveQueries) -> None:
    subscription, told = live.subscribe(OPEN), list[Delta]()
    stop = subscription.on(told.append)
    stop()
    stop()
    task(alice, done=False)
    assert told == [Delta()]


def test_closing_inside_a_callback_ends_it_for_all(alice: Peer, live: LiveQueries) -> None:
    subscription, told = live.subscribe(OPEN), list[Delta]()

    def close(delta: Delta) -> None:
        told.append(delta)
        if delta:
            subscription.close()

    subscription.on(close)
    subscription.on(told.append)
    task(alice, done=False)
    task(alice, done=False)
    assert [counts(delta) for delta in told] == [(0, 0, 0), (0, 0, 0), (1, 0, 0)]
    assert len(live) == 0
    with pytest.raises(StoreClosed, match="subscribe again"):
        _ = subscription.result


def test_a_busy_observer_gets_what_happened_meanwhile_as_one_delta(alice: Peer, live: LiveQueries) -> None:
    subscription, told = live.subscribe(OPEN), list[Delta]()
    busy, free = threading.Event(), threading.Event()
    stays, goes = task(alice, done=False), task(alice, done=False)

    def slow(delta: Delta) -> None:
        told.append(delta)
        if delta.changed and not busy.is_set():
            busy.set()
            assert free.wait(60)

    before = subscription.result
    subscription.on(slow)
    writer = threading.Thread(target=lambda: stays.edit("set", "n", 1))
    writer.start()
    assert busy.wait(60)
    comes, passes = task(alice, done=False), task(alice, done=False)
    for number in range(5):
        comes.edit("set", "n", number)
        stays.edit("set", "n", number)
    passes.delete()
    goes.delete()
    stays.edit("set", "done", True)
    stays.edit("set", "done", False)
    assert len(told) == 2
    free.set()
    writer.join(60)

    assert told[2:] == [Delta({comes.id: 1}, {stays.id: 0}, frozenset({goes.id}))]
    assert told[2].apply(before) == subscription.result == Result((bytes(stays.id), bytes(comes.id)))


# -- async iterators


async def take(subscription: Subscription, count: int, begin: Callable[[], object] = lambda: None) -> list[Delta]:
    found: list[Delta] = []
    async with asyncio.timeout(60):
        async for delta in subscription:
            found.append(delta)
            if len(found) == 1:
                begin()
            if len(found) == count:
                break
    return found


def test_an_iterator_gives_the_deltas_of_other_threads(alice: Peer, live: LiveQueries) -> None:
    subscription, items = live.subscribe(OPEN), list[Item]()
    writer = threading.Thread(target=lambda: items.append(task(alice, done=False)))
    found = asyncio.run(take(subscription, 2, writer.start))
    writer.join(60)
    assert found == [Delta(), Delta({items[0].id: 0})]


def test_two_iterators_are_told_each_for_itself(alice: Peer, live: LiveQueries) -> None:
    subscription = live.subscribe(OPEN)

    async def both() -> list[list[Delta]]:
        begun = asyncio.Event()

        async def write() -> None:
            await begun.wait()
            await asyncio.to_thread(task, alice, done=False)

        one, other, _ = await asyncio.gather(take(subscription, 2), take(subscription, 2, begun.set), write())
        return [one, other]

    one, other = asyncio.run(both())
    assert one == other
    assert [counts(delta) for delta in one] == [(0, 0, 0), (1, 0, 0)]


def test_a_slow_consumer_gets_one_exact_delta(alice: Peer, live: LiveQueries) -> None:
    subscription = live.subscribe(Query(prop("n") >= 0).order_by("n", descending=True).take(3))

    async def consume() -> None:
        deltas = aiter(subscription)
        first = await anext(deltas)
        result = first.apply(Result())
        items = [task(alice, n=number) for number in range(50)]  # this task is busy: nothing is taken
        items[49].delete()
        items[7].edit("set", "n", 100)
        result = (await anext(deltas)).apply(result)
        assert result == subscription.result
        assert result.ids == tuple(bytes(items[number].id) for number in (7, 48, 47))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await anext(deltas)

    asyncio.run(asyncio.wait_for(consume(), 60))


def test_what_comes_before_the_first_delta_is_in_it_and_in_no_other(alice: Peer, live: LiveQueries) -> None:
    subscription = live.subscribe(OPEN)

    async def consume() -> list[Delta]:
        deltas = aiter(subscription)
        one = await asyncio.to_thread(task, alice, done=False)
        found = [await anext(deltas)]
        two = await asyncio.to_thread(task, alice, done=False)
        found.append(await anext(deltas))
        assert found == [Delta({one.id: 0}), Delta({two.id: 1})]
        return found

    assert len(asyncio.run(asyncio.wait_for(consume(), 60))) == 2


def test_an_iterator_ends_when_the_subscription_is_closed(alice: Peer, live: LiveQueries) -> None:
    subscription = live.subscribe(OPEN)

    async def consume() -> list[Delta]:
        asyncio.get_running_loop().call_soon(lambda: threading.Thread(target=subscription.close).start())
        return [delta async for delta in subscription]

    assert asyncio.run(asyncio.wait_for(consume(), 60)) == [Delta()]


def test_a_loop_that_is_gone_is_no_harm(alice: Peer, live: LiveQueries) -> None:
    subscription = live.subscribe(OPEN)
    deltas = aiter(subscription)

    async def once() -> Delta:
        return await anext(deltas)

    assert asyncio.run(once()) == Delta()
    task(alice, done=False)
    assert len(subscription.result.ids) == 1


# -- what is let go of


def test_a_subscription_that_nobody_holds_is_released(alice: Peer, live: LiveQueries) -> None:
    told: list[Delta] = []
    subscription = live.subscribe(OPEN)
    subscription.on(told.append)
    gone = weakref.ref(subscription)
    assert len(live) == 1
    del subscription
    gc.collect()
    assert gone() is None
    task(alice, done=False)
    assert told == [Delta()]
    assert len(live) == 0


def test_an_iterator_holds_its_subscription_and_lets_go_of_it(alice: Peer, live: LiveQueries) -> None:
    deltas = aiter(live.subscribe(OPEN))
    gc.collect()
    task(alice, done=False)
    assert len(live) == 1
    del deltas
    gc.collect()
    assert len(live) == 0


def test_as_a_context_it_is_closed_at_the_end(alice: Peer, live: LiveQueries) -> None:
    with live.subscribe(Query(Fact.MODEL.is_("antiphon/object"))) as subscription:
        item = task(alice, done=False)
        assert subscription.result.ids == (bytes(item.id),)
    assert subscription.closed
    assert len(live) == 0
