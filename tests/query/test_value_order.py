"""One order and one equality: Python's and SQLite's are the same, and neither leaves a kind."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding
from antiphon.core.ids import ItemId
from antiphon.model.value import Reference
from antiphon.query.facts import MISSING
from antiphon.query.filters import Compare
from antiphon.query.index import sql
from antiphon.query.value_order import canonical, column, compare, kind_of, sort_key, value_of
from antiphon.testing.query_strategies import values

anything = (
    values
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec="utf-8"))
    | st.binary()
    | st.integers(-(2**70), 2**70)
)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@given(st.lists(anything, max_size=12))
def test_sqlite_sorts_as_python_does(found: list[Any]) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (at, v)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(at, column(value)) for at, value in enumerate(found)])

    order = [at for (at,) in db.execute("SELECT at FROM t ORDER BY v, at")]
    assert order == sorted(range(len(found)), key=lambda at: sort_key(found[at]))
    db.execute("CREATE INDEX i ON t (v, at)")
    assert [at for (at,) in db.execute("SELECT at FROM t INDEXED BY i ORDER BY v, at")] == order


@given(st.lists(anything, min_size=1, max_size=8), anything, st.sampled_from(["=", "<", "<=", ">", ">="]))
def test_sqlite_compares_as_python_does(found: list[Any], wanted: Any, op: Any) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE d (n, v0)")
    db.executemany("INSERT INTO d VALUES (?, ?)", [(at, column(value)) for at, value in enumerate(found)])
    path = ("a",)

    text, values = sql.condition(Compare(path, op, wanted), "d", sql.Slots({path: 0}))

    passing = [at for (at,) in db.execute(f"SELECT n FROM d WHERE {text} ORDER BY n", values)]
    assert passing == [at for at, value in enumerate(found) if compare(op, value, wanted)]


@given(anything)
def test_a_column_gives_the_canonical_value_back(value: Any) -> None:
    assert repr(column(value_of(column(value)))) == repr(column(value))
    assert sort_key(canonical(value)) == sort_key(value)
    assert compare("=", value, value)


def test_numbers_are_compared_exactly_and_bools_are_none() -> None:
    assert compare("<", 2**53, 2**53 + 1)
    assert compare("<", 2.0**53, 2**53 + 1)
    assert compare("=", 1, 1.0)
    assert compare("=", -0.0, 0)
    assert not compare("=", 1, True)
    assert not compare("<=", False, 1)
    assert compare("<", 10**400, float("inf")) is False  # it stands for the nearest real


def test_equal_numbers_have_one_form() -> None:
    assert [repr(canonical(number)) for number in (2, 2.0, -0.0, 2.5, 2.0**63, 2**63)] == [
        "2",
        "2",
        "0",
        "2.5",
        "9.223372036854776e+18",
        "9.223372036854776e+18",
    ]


def test_each_kind_is_compared_with_itself_only() -> None:
    kinds = [1, "a", None, True, float("nan"), b"a", NOON, Reference(b"i" * 16), [1]]
    for left in kinds:
        for right in kinds:
            assert (kind_of(sort_key(left)) == kind_of(sort_key(right))) is (left is right)
            for op in ("<", ">", "<=", ">="):
                same = left is right and not isinstance(left, list) and op in ("<=", ">=")
                assert compare(op, left, right) is same


def test_the_order_of_kinds() -> None:
    ordered = [-1, 0.5, 3, "", "a", None, False, True, float("nan"), b"", b"a", NOON, Reference(b"i" * 16), [], {}]
    keys = [sort_key(value) for value in ordered]
    assert keys == sorted(keys)


def test_times_sort_across_1970_and_zones() -> None:
    before = datetime(1969, 12, 31, tzinfo=UTC)
    assert compare("<", before, NOON)
    assert compare("=", NOON, NOON.astimezone(timezone(timedelta(hours=5))))
    assert canonical(before) == before


def test_an_item_stands_for_a_reference_to_it_and_maps_have_no_order_of_keys() -> None:
    assert compare("=", Reference(b"i" * 16), ItemId(b"i" * 16))
    assert compare("=", {"a": 1, "b": [b"x"]}, {"b": [b"x"], "a": 1})
    assert not compare("=", [1], [1.0])


def test_nothing_is_null_and_what_is_no_column_is_refused() -> None:
    assert column(MISSING) is None
    assert value_of(None) is MISSING
    for stored in (b"", b"\xff", b"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x06short", b"\x07{", b"\x07\xff"):
        with pytest.raises(BadEncoding):
            value_of(stored)
