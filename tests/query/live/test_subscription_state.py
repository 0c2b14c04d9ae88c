"""How subscriptions stand: pending, ready or failed, and never empty before they are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from tests.query.live.test_subscription import OPEN, TakenBack, take, task

from antiphon.core.errors import DamagedItems, InvalidInput, PartyPaused, StoreError
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result
from antiphon.query.filters import Match
from antiphon.query.forks import Fork
from antiphon.query.live.live import LiveQueries
from antiphon.query.live.port import MemorySource
from antiphon.query.live.subscription import State, Subscription
from antiphon.query.query import Query
from antiphon.testing.peers import Peer


def test_in_a_batch_it_is_pending_and_answers_nothing(alice: Peer, live: LiveQueries) -> None:
    told: list[Delta] = []
    with alice.party.batch():
        item = task(alice, done=False)
        subscription = live.subscribe(OPEN)
        subscription.on(told.append)
        assert str(subscription.state) == str(State.PENDING)
        with pytest.raises(StoreError, match="pending"):
            _ = subscription.result
        assert told == []
    assert told == [Delta({item.id: 0})]
    assert subscription.state is State.READY


def test_what_a_batch_has_taken_back_was_never_there(alice: Peer, live: LiveQueries) -> None:
    found: list[Subscription] = []
    with suppress(TakenBack), alice.party.batch():
        task(alice, done=False)
        found.append(live.subscribe(OPEN))
        raise TakenBack
    assert found[0].state is State.READY
    assert found[0].result == Result()


def test_a_pending_one_that_is_closed_is_never_filled(alice: Peer, live: LiveQueries) -> None:
    with alice.party.batch():
        subscription = live.subscribe(OPEN)
        subscription.close()
        task(alice, done=False)
    assert subscription.state is State.PENDING
    assert len(live) == 0


def test_on_a_closed_party_it_fails(alice: Peer, live: LiveQueries) -> None:
    alice.party.close()
    errors: list[Exception] = []
    subscription = live.subscribe(OPEN)
    subscription.on(lambda delta: None, failed=errors.append)
    assert subscription.state is State.FAILED
    assert isinstance(subscription.error, PartyPaused)
    assert errors == [subscription.error]
    with pytest.raises(PartyPaused):
        _ = subscription.result
    with pytest.raises(PartyPaused):
        asyncio.run(take(subscription, 1))


def test_those_who_wait_learn_that_it_is_over(alice: Peer, live: LiveQueries) -> None:
    subscription, errors = live.subscribe(OPEN), list[Exception]()
    subscription.on(lambda delta: None, failed=errors.append)
    with pytest.raises(PartyPaused, match="subscribe again"):
        asyncio.run(take(subscription, 2, live.close))
    assert errors == [subscription.error]
    assert live.subscribe(OPEN).state is State.FAILED
    assert task(alice, done=False).value == {"done": False}


class Damaged(MemorySource):
    """An index whose bytes have changed."""

    damaged = False
    asked = 0

    def all_forks(self) -> list[Fork]:
        return []

    def namers(self, ends: Iterable[bytes]) -> set[bytes]:
        return set()

    def run(self, query: Query) -> Result:
        if self.damaged:
            self.asked += 1
            raise DamagedItems("the index is damaged")
        return super().run(query)

    def edges(self, way: Any, item: bytes) -> Any:
        self.asked += 1
        raise DamagedItems("the index is damaged")


def test_a_source_that_fails_fails_all_and_new_ones_begin_anew(alice: Peer) -> None:
    index = Damaged()
    live = LiveQueries(alice.party, index)
    plain, stepping = live.subscribe(OPEN), live.subscribe(OPEN.children())
    before: list[Delta] = []
    plain.on(before.append)
    task(alice, done=False)
    assert plain.state is stepping.state is State.FAILED
    assert before == [Delta()]  # the party is built anew, and tells of all its items: to nobody
    assert index.asked == 1
    with pytest.raises(DamagedItems):
        asyncio.run(take(stepping, 1))

    again, told = live.subscribe(OPEN), list[Delta]()
    again.on(told.append)
    item = task(alice, done=False)
    assert told[1:] == [Delta({item.id: 0})]
    index.damaged = True
    assert live.subscribe(OPEN).state is State.FAILED
    assert index.asked == 2
    live.close()


def test_a_paused_party_goes_on_where_it_was(alice: Peer, live: LiveQueries) -> None:
    item = task(alice, done=False)
    subscription, told = live.subscribe(OPEN), list[Delta]()
    subscription.on(told.append)
    alice.party.pause()
    assert subscription.result.ids == (bytes(item.id),)
    alice.party.resume()
    item.edit("set", "done", True)
    assert told[1:] == [Delta(removed=frozenset({item.id}))]


def test_a_query_that_is_none_is_refused_at_once(live: LiveQueries) -> None:
    with pytest.raises(InvalidInput, match="no word"):
        live.subscribe(Query(Match("...")))
    assert len(live) == 0
