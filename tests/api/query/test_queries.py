"""Queries of an application: by arguments or as a `Query`, aggregates, errors, and subscriptions."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest

import antiphon
from antiphon import Deleted, Fact, InvalidInput, Match, Object, OrderBy, Party, Query, Store, prop, sync
from antiphon.api.query.deltas import Delta
from antiphon.core.errors import PartyPaused


@antiphon.typed("ware")
@dataclass
class Ware:
    title: str
    price: int


@pytest.fixture
def shop(party: Party) -> Party:
    """Three wares, and a shelf that they are on."""
    shelf = party.object({"title": "Shelf"}, type="shelf", name="Left")
    for title, price in (("Salt", 1), ("Milk", 2), ("Oat milk", 3)):
        party.object({"title": title, "price": price, "maker": {"land": "DE"}}, type="ware", name=title, parent=shelf)
    return party


def titles(items: antiphon.Results) -> list[str]:
    return [item["title"] for item in items.of(Object)]


def test_a_query_is_said_in_its_parts(shop: Party) -> None:
    assert titles(shop.query(type="ware", where=prop("price") > 1)) == ["Milk", "Oat milk"]
    assert titles(shop.query(prop("price") > 1, where=prop("price") < 3)) == ["Milk"]
    assert titles(shop.query(match="mil*", order="-price")) == ["Oat milk", "Milk"]
    assert titles(shop.query(order=("-price", "title"), limit=2)) == ["Oat milk", "Milk"]
    assert titles(shop.query(type=Ware, order=OrderBy(("title",), True))) == ["Salt", "Oat milk", "Milk"]
    assert titles(shop.query(order=[Fact.NAME])) == ["Shelf", "Milk", "Oat milk", "Salt"]
    assert titles(shop.query(where=prop("maker", "land") == "DE", limit=1)) == ["Salt"]
    assert titles(shop.query(limit=0)) == []
    assert len(shop.query()) == len(shop.items()) == 4


def test_a_query_is_said_whole(shop: Party) -> None:
    shelves = Query(Fact.TYPE.is_("shelf"))
    assert titles(shop.query(shelves.children(prop("price") >= 2).order_by("price", descending=True))) == [
        "Oat milk",
        "Milk",
    ]
    assert titles(shop.query(Query(Match('"oat milk"')).parent())) == ["Shelf"]
    with pytest.raises(InvalidInput, match="not both"):
        shop.query(shelves, limit=1)
    with pytest.raises(TypeError, match="a query has no 'sort'; it has deleted, limit"):
        shop.query(sort="title")  # type: ignore[call-overload]


def test_deleted_items_are_shown_on_demand(shop: Party) -> None:
    shop.query(prop("title") == "Salt")[0].delete()
    assert titles(shop.query(type="ware", deleted=Deleted.ONLY)) == ["Salt"]
    assert titles(shop.query(type="ware", deleted=Deleted.SHOWN)) == ["Salt", "Milk", "Oat milk"]
    assert titles(shop.query(type="ware")) == ["Milk", "Oat milk"]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"where": prop("price")}, r"is no filter; one is made like"),
        ({"where": "price > 1"}, r"'price > 1' is no filter"),
        ({"where": prop("price") == {1}}, "a set is no value"),
        ({"match": "..."}, "there is no word to match"),
        ({"limit": -1}, "a number of items, not -1"),
        ({"limit": "3"}, "a number of items, not '3'"),
        ({"order": Fact.EMBEDS}, "embeds is a list"),
        ({"order": "a", "where": ~prop("a").exists() & prop("b").has(object())}, "a object is no value"),
        ({"type": int}, "neither a dataclass"),
    ],
)
def test_a_query_that_cannot_run_says_why(shop: Party, parts: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        shop.query(**parts)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match=reason):
        shop.subscribe(**parts)  # type: ignore[call-overload]


def test_totals(shop: Party) -> None:
    wares = Query(Fact.TYPE.is_("ware"))
    assert shop.aggregate(wares.count()) == 3
    assert shop.aggregate(wares.sum("price")) == 6
    assert shop.aggregate(wares.mean("price")) == 2.0
    assert shop.aggregate(wares.min("title")) == "Milk"
    assert shop.aggregate(wares.max("nothing")) is None
    assert shop.aggregate(Query().count(group=Fact.TYPE)) == [("shelf", 1), ("ware", 3)]
    assert dict(shop.aggregate(Query().sum("price", group=("maker", "land")))) == {"DE": 6}
    with pytest.raises(InvalidInput, match="counts or sums"):
        shop.aggregate(wares)
    with pytest.raises(InvalidInput, match="ask for its `aggregate`"):
        shop.query(wares.count())


# -- subscriptions


def test_a_callback_is_told_of_each_change(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    told: list[tuple[int, int, int]] = []

    def tell(delta: Delta) -> None:
        told.append((len(delta.added), len(delta.changed), len(delta.removed)))

    cheap = party.subscribe(prop("price") < 3, tell)
    milk = party.object({"title": "Milk", "price": 2})
    milk["title"] = "Oat milk"
    milk["price"] = 3
    party.object({"title": "Wine", "price": 9})
    theirs.object({"title": "Salt", "price": 1})
    sync(ada, bob)

    assert told == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
    assert [party.item(item, Object)["title"] for item in cheap.result.ids] == ["Salt"]
    cheap.close()
    milk["price"] = 1
    assert len(told) == 5


def test_a_subscription_is_said_like_a_query(shop: Party) -> None:
    dear = shop.subscribe(type=Ware, where=prop("price") > 1, order="-price", limit=1)
    assert [shop.item(item).name for item in dear.result.ids] == ["Oat milk"]
    shop.object({"title": "Wine", "price": 9}, type="ware", name="Wine")
    assert [shop.item(item).name for item in dear.result.ids] == ["Wine"]
    count = shop.subscribe(Query(Fact.TYPE.is_("ware")).count())
    assert count.result.value == 4


def test_a_subscription_about_a_reference_is_about_the_item(shop: Party) -> None:
    salt = shop.query(prop("title") == "Salt").of(Object)[0]
    basket = shop.subscribe(prop("best") == salt.reference)
    listing = shop.object({"best": salt})
    assert basket.result.ids == (bytes(listing.id),)


def test_a_subscription_without_a_callback_ends_when_nobody_holds_it(party: Party) -> None:
    held = party.subscribe(prop("n") == 1)
    left = weakref.ref(held)
    del held
    gc.collect()
    assert left() is None


def test_a_subscription_with_a_callback_lasts_until_it_is_closed(party: Party) -> None:
    told: list[Delta] = []
    left = weakref.ref(party.subscribe(prop("n") == 1, told.append))
    gc.collect()
    party.object({"n": 1})
    assert len(told) == 2

    subscription = left()
    assert subscription is not None
    subscription.close()
    party.object({"n": 1})
    assert len(told) == 2
    del subscription
    party.subscribe(prop("n") == 2, told.append)
    gc.collect()
    assert left() is None, "what is closed is let go of with the next one"


def test_a_callback_can_be_called(party: Party) -> None:
    with pytest.raises(InvalidInput, match="'told' cannot be called"):
        party.subscribe(prop("n") == 1, "told")  # type: ignore[call-overload]


def test_orders_by_paths_of_keys(party: Party) -> None:
    for n, land in enumerate(("FR", "DE", "IT")):
        party.object({"n": n, "maker": {"land": land}})

    def found(order: Any) -> list[int]:
        return [item["n"] for item in party.query(prop("n").exists(), order=order).of(Object)]

    assert found(prop("maker", "land")) == [1, 0, 2]
    assert found(OrderBy(("maker", "land"), descending=True)) == [2, 0, 1]
    assert found(("-n", prop("maker", "land"))) == found(["-n"]) == [2, 1, 0]
    for wrong in (5, ("n", 5), {"n"}, None):
        with pytest.raises(InvalidInput, match='is no order; one is "price"'):
            found(wrong)


def test_counting_and_totals_take_the_parts_of_a_query(party: Party) -> None:
    for n in range(4):
        party.object({"n": n}, type="even" if n % 2 == 0 else "odd")
    party.query(type="odd")[0].delete()
    assert party.count() == 3
    assert party.count(prop("n") > 0) == 2
    assert (
        party.count(type="odd", deleted=Deleted.SHOWN) == party.count(Query(Fact.TYPE.is_("even")).order_by("n")) == 2
    )
    sums = Query(prop("n") > 0).sum("n")
    assert party.aggregate(sums) == 5
    assert party.aggregate(sums, type="odd") == 3
    assert party.aggregate(sums, where=prop("n") < 3, deleted=Deleted.SHOWN) == 3
    assert party.aggregate(Query().children(prop("n") > 5).count(), type="odd") == 0
    with pytest.raises(InvalidInput, match="counts or sums already"):
        party.count(sums)
    assert [party.count(limit=limit) for limit in (0, 1, 3, 9)] == [0, 1, 3, 3]
    assert party.count(order="n", limit=2) == len(party.query(order="n", limit=2)) == 2
    for wrong in (-1, "2"):
        with pytest.raises(InvalidInput, match="limit"):
            party.count(limit=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no order and no limit"):
        party.aggregate(sums, order="n")
    with pytest.raises(InvalidInput, match="a query that counts or sums"):
        party.aggregate(prop("n") > 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a query has no 'tpye'"):
        party.aggregate(sums, tpye="odd")  # type: ignore[call-arg]


def test_what_a_batch_did_is_told_at_once(party: Party) -> None:
    told: list[int] = []
    numbers = party.subscribe(prop("n").exists(), lambda delta: told.append(len(delta.added)))
    with party.batch():
        for number in range(3):
            party.object({"n": number})
        assert told == [0]
    assert told == [0, 3]
    assert len(numbers.result.ids) == 3


def test_deltas_come_in_an_event_loop(party: Party) -> None:
    numbers = party.subscribe(prop("n").exists())
    seen: list[int] = []

    async def watch() -> None:
        async for delta in numbers:
            seen.append(len(delta.added))
            if sum(seen) == 2:
                return

    async def main() -> None:
        task = asyncio.create_task(watch())
        party.object({"n": 1})
        await asyncio.to_thread(party.object, {"n": 2})
        await asyncio.wait_for(task, 30)

    asyncio.run(main())
    assert sum(seen) == 2


def test_closing_the_store_ends_the_wait_with_an_error(party: Party) -> None:
    numbers = party.subscribe(prop("n").exists())
    failed: list[Exception] = []
    numbers.on(lambda delta: None, failed=failed.append)

    async def watch() -> None:
        async for _ in numbers:
            await asyncio.to_thread(party.store.close)

    with pytest.raises(PartyPaused, match="subscribe again"):
        asyncio.run(asyncio.wait_for(watch(), 30))
    assert isinstance(failed[0], PartyPaused)
