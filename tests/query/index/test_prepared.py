"""Queries of one shape share a statement, and still each finds its own."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Reference
from antiphon.query.codec.facts import encode_facts
from antiphon.query.evaluate import run
from antiphon.query.facts import Facts
from antiphon.query.filters import Compare, Fact, Filter, Match, prop
from antiphon.query.index import sql
from antiphon.query.index.index import ItemIndex
from antiphon.query.index.prepared import QUERIES_MAX, SHAPES_MAX, shape
from antiphon.query.query import Query, Way

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def item(n: int, value: Any, **more: Any) -> Facts:
    return Facts(bytes([n]) * 16, "antiphon/object", 1, value, **more)


def index(*items: Facts) -> ItemIndex:
    made = ItemIndex(sqlite3.connect(":memory:", isolation_level=None))
    made.create()
    made.put((each.id, encode_facts(each)) for each in items)
    return made


def test_values_that_python_takes_for_equal_stay_apart() -> None:
    items = [item(n, {"a": value}) for n, value in enumerate((1, True, 1.0, "1", b"1", None, False, 0), start=1)]
    found = index(*items)

    for value in (1, True, "1", b"1", None, False, 0, 1.0, True):
        query = Query(prop("a") == value)
        assert found.run(query) == run(query, items)


def test_values_come_in_the_order_of_the_query() -> None:
    items = [item(n, {"a": n % 3, "b": n % 2}, parent=b"") for n in range(1, 13)]
    found = index(*items)

    for a in range(3):
        for b in range(2):
            either = Query((prop("b") == b) | (prop("a") > a) | (prop("b") == 7)).children(prop("a") == a).take(b)
            both = Query((prop("a") >= a) & ~(prop("b") == b)).order_by("b").take(a)
            for query in (either, both):
                assert found.run(query) == run(query, items)


def test_a_shape_outlives_new_columns_and_new_items() -> None:
    items = [item(n, {"a": n, "b": n}) for n in range(1, 5)]
    found = index(*items[:2])
    query = Query(prop("a") >= 2)
    assert len(found.run(query).ids) == 1

    found.run(Query(prop("b") == 1))
    found.put((each.id, encode_facts(each)) for each in items[2:])

    assert found.run(query) == run(query, items)
    found.clear()
    found.create()
    assert not found.run(query).ids


def test_there_are_not_more_shapes_than_are_kept() -> None:
    items = [item(1, {"a": 1})]
    found = index(*items)

    for count in range(1, SHAPES_MAX + 10):
        query = Query(prop("a").in_(range(count)))
        assert found.run(query) == run(query, items)


def test_the_same_query_is_looked_through_once() -> None:
    items = [item(n, {"a": n, "b": n % 2}) for n in range(1, 9)]
    found = index(*items)
    queries = [Query((prop("a") > n) & (prop("b") == 1)).order_by("a").take(n) for n in range(4)]
    for query in queries:
        found.run(query)
    looked = found._prepared.looked

    for query in queries:
        assert found.run(query) == run(query, items)
    assert found._prepared.looked == looked

    found.run(Query(prop("c") == 1))  # a column more: statements are made anew
    found.put([(items[0].id, encode_facts(item(1, {"a": 9, "b": 1, "c": 1})))])
    items[0] = item(1, {"a": 9, "b": 1, "c": 1})
    for query in queries:
        assert found.run(query) == run(query, items)
    assert found._prepared.looked > looked


@pytest.mark.parametrize("held", [[1, 2], bytearray(b"12")])
def test_a_value_that_is_changed_is_asked_as_it_is(held: Any) -> None:
    items = [item(1, {"a": held.copy()}), item(2, {"a": [*held, 3] if isinstance(held, list) else b"12\3"})]
    found = index(*items)
    query = Query(prop("a") == held)
    assert found.run(query).ids == (items[0].id,)
    held.append(3)
    assert found.run(query).ids == (items[1].id,)


def test_no_more_queries_are_kept_than_so_many() -> None:
    found = index(item(1, {"a": 1}))
    kept = [Query(prop("a") == number) for number in range(QUERIES_MAX + 10)]
    for query in kept:
        found.run(query)
    assert len(found._prepared._asked) <= QUERIES_MAX
    assert [len(found.run(query).ids) for query in kept[:3]] == [0, 1, 0]


@pytest.mark.parametrize(
    "where",
    [
        prop("a") == "\ud800",
        prop("a") == 1 << 70,
        prop("a") == NOON.replace(tzinfo=None),
        prop("a") == object(),
        Compare(["a"], "=", 1),  # type: ignore[arg-type]
        Compare(("a",), "~", 1),  # type: ignore[arg-type]
        Match("..."),
        Match("\ud800"),
        Filter(),
        "a = 1",
    ],
)
def test_what_is_no_query_is_refused_whatever_was_asked_before(where: Any) -> None:
    found = index(item(1, {"a": 1}))
    for right in ("a", 1, NOON):
        found.run(Query(prop("a") == right))
    found.run(Query(Match("a")))

    with pytest.raises(InvalidInput):
        found.run(Query(where))
    with pytest.raises(InvalidInput):
        found.run(Query(prop("a") == 1).children(where))


def test_limits_are_values() -> None:
    found = index(*(item(n, {}) for n in range(1, 5)))

    assert [len(found.run(Query().take(limit)).ids) for limit in (0, 3, 1)] == [0, 3, 1]
    with pytest.raises(InvalidInput):
        found.run(Query().take(1 << 63))
    assert shape(Query().take(1)).key != shape(Query()).key


def test_a_range_with_two_ends_has_no_others() -> None:
    # Of four, SQLite may take the two that are those of the kind, and walk through all of it.
    items = [item(n, {"at": NOON + timedelta(days=n)}) for n in range(1, 9)] + [item(9, {"at": "x"}), item(10, {})]
    found = index(*items)
    two, six = NOON + timedelta(days=2), NOON + timedelta(days=6)

    for where in (
        (prop("at") >= two) & (prop("at") < six),
        (prop("at") > two) & (prop("at") <= six) & (prop("at") < "y"),
        (prop("at") > two) & (prop("at") > six),
        ~((prop("at") > two) & (prop("at") < six)),
    ):
        assert found.run(Query(where)) == run(Query(where), items)
    text = sql.statement(Query((prop("at") >= two) & (prop("at") < six)), sql.Slots({("at",): 0})).text
    assert text.count("d0.v0") == 2


def test_ways_along_edges_use_their_index() -> None:
    other = Reference(b"\x02" * 16)
    items = [item(1, {"a": other}, references=(other,)), item(2, {})]
    db = sqlite3.connect(":memory:", isolation_level=None)
    found = ItemIndex(db)
    found.create()
    found.put((each.id, encode_facts(each)) for each in items)
    query = Query(Fact.ID.is_(items[0].id)).references()

    assert found.run(query) == run(query, items)
    assert found.edges(Way.REFERENCES, items[0].id) == [items[1].id]
    text, values = sql.statement(query, sql.Slots())
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    assert any("kind=? AND source=?" in line for line in plan), plan
