"""Queries on Spark find what `evaluate` says, in every party of the tables by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings, strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, BooleanType, LongType, StringType, StructField, StructType
from tests.budget import budget
from tests.pipeline.small import small_jobs

from antiphon.model.value import Value
from antiphon.pipeline.query.dataframe import results
from antiphon.pipeline.query.resolved_items import Seen
from antiphon.pipeline.tables import facts_column as column
from antiphon.pipeline.tables.item_rows import display_of
from antiphon.pipeline.tables.sort_key import KEY_SIZE_MAX, is_complete, key_of, truncate, value_of
from antiphon.query import evaluate
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts
from antiphon.query.filters import Contains, Fact, Match, prop
from antiphon.query.packed_json import pack
from antiphon.query.query import Query, Way
from antiphon.query.sums import Sum, mean_of, sum_of
from antiphon.query.value_order import canonical, sort_key
from antiphon.testing.query_strategies import IDS, derived, described, numbers, queries, told, values

T = TypeVar("T")
Parties = dict[bytes, list[Facts]]

SCHEMA = StructType(
    [
        StructField("party", BinaryType()),
        StructField("item", BinaryType()),
        StructField("model", StringType()),
        StructField("deleted", BooleanType()),
        StructField("created_ms", LongType()),
        StructField("type", StringType()),
        StructField("name", StringType()),
        StructField("state", StringType()),
        StructField("facts", column.SCHEMA),
    ]
)
LONG = "x" * KEY_SIZE_MAX
DEEP = ("a", "b", "c", "d", "e")


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """So many examples at once: for each job of Spark's there have to be many."""
    examples: list[T] = []

    @settings(max_examples=count, phases=[Phase.generate], database=None)
    @given(strategy)
    def take(example: T) -> None:
        examples.append(example)

    take()
    return examples


def nested(path: Sequence[str], value: Value) -> Value:
    return {path[0]: nested(path[1:], value)} if path else value


#: What keys do not hold whole, and what lies deeper than they go.
FAR = [
    Facts(IDS[0], "object", 1, {"a": LONG + "b", "b": 2**53}),
    Facts(IDS[1], "object", 1, {"a": LONG + "a", "b": 2.0**53}),
    Facts(IDS[2], "object", 1, {"a": LONG, "b": 2**53 + 1}, name=LONG + "c"),
    Facts(IDS[3], "object", 1, {"a": [LONG + "b"], "b": 2**80}),
    Facts(IDS[4], "object", 1, {"a": {LONG: 1}, "b": "ÿ"}),
    Facts(IDS[5], "object", 1, nested(DEEP, 3)),
    Facts(IDS[6], "object", 1, nested(DEEP, [3, "z"])),
]
#: Whole floats, alone and beside equal ints, which share their sort keys.
REALS = [
    Facts(IDS[0], "object", 1, {"a": 1.0, "b": 2, "c": "x", **nested(DEEP[1:], 1)}),
    Facts(IDS[1], "object", 1, {"a": 2.0, "b": 2.0, "c": "x"}),
    Facts(IDS[2], "object", 1, {"a": 1e16, "b": 2.0, "c": "y"}),
    Facts(IDS[3], "object", 1, {"a": 1, "b": 2, "c": "z", "text": "1.0"}),
    Facts(IDS[4], "object", 1, {"a": -0.0, "c": "0"}),
    Facts(IDS[5], "object", 1, nested(DEEP, 3.0)),
]
BATTERY = [
    *(Query(Fact.ID.in_(IDS[:3])).step(way) for way in Way),
    Query((prop("a") < LONG + "a") | (prop("a") == LONG + "b") | Contains(("a",), LONG + "b")),
    Query((prop("a") >= LONG + "a") & ~(prop("a") == {LONG: 1}) | prop("a").in_([LONG, LONG + "c"])),
    Query((prop(*DEEP) == 3) | Match("日*") | prop(*DEEP).exists() & ~prop(*DEEP).has("y")),
    Query().order_by("a").order_by("b", descending=True),
    Query().order_by(DEEP).order_by("a", descending=True).take(3).with_deleted(),
    Query().count(group="a"),
    Query().max("a", group=Fact.PARENT),
    Query().sum("b", group=Fact.TYPE),
    Query().mean(DEEP),
    Query().sum("b"),
    Query().min("b"),
    Query().max("b"),
    Query(prop("a").exists()).max("b", group="b"),
    Query().sum("a", group="c"),
    Query().min("a", group="c"),
    Query().max("a", group="c"),
]
PARTIES = 60
ASKED = budget(8, 200)


@pytest.fixture(scope="module")
def parties() -> Parties:
    every = [FAR, REALS, *filter(None, drawn(told(), PARTIES))]  # a party without items is in no table
    return {bytes([number]) * 32: told for number, told in enumerate(every)}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, parties: Parties) -> Iterator[Seen]:
    with small_jobs(spark):
        kept = Seen(table(spark, parties)).keep()
        yield kept
        kept.close()


def table(spark: SparkSession, parties: Parties) -> DataFrame:
    rows = [
        (party, each.id, each.model, each.deleted, each.created_ms, *spark_shown(each))
        for party, items in parties.items()
        for each in items
    ]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


def spark_shown(facts: Facts) -> tuple[object, ...]:
    *about, found = display_of(facts, known=True)
    return *about, {**found, "keys": dict(found["keys"]), "members": dict(found["members"])}


def check_all(tables: Seen, parties: Parties, asked: Iterable[Query]) -> None:
    for query in asked:
        told = results(query, tables)
        for party, items in parties.items():
            wanted = evaluate.run(query, derived(items))
            assert described(told.get(party, Result())) == described(wanted), (query, items)


def test_spark_finds_what_the_specification_says(tables: Seen, parties: Parties) -> None:
    check_all(tables, parties, BATTERY)


def test_spark_finds_what_the_specification_says_whatever_is_asked(tables: Seen, parties: Parties) -> None:
    check_all(tables, parties, drawn(queries(), ASKED))


@given(values | numbers, values | numbers)
def test_sort_keys_compare_as_values_do(one: Value, other: Value) -> None:
    keys, sorts = (key_of(one), key_of(other)), (sort_key(one), sort_key(other))

    assert (keys[0] < keys[1], keys[0] == keys[1]) == (sorts[0] < sorts[1], sorts[0] == sorts[1])
    assert pack(value_of(keys[0])) == pack(canonical(one))


@given(st.binary(min_size=KEY_SIZE_MAX - 2, max_size=KEY_SIZE_MAX + 3), st.data())
def test_the_beginning_of_a_key_compares_as_the_whole_does(key: bytes, data: st.DataObject) -> None:
    other = data.draw(st.binary(max_size=KEY_SIZE_MAX) | st.integers(0, KEY_SIZE_MAX).map(lambda size: key[:size]))

    assert (truncate(key) < other, truncate(key) == other) == (key < other, key == other)
    assert truncate(key) == key or not is_complete(truncate(key))


@given(st.lists(st.lists(numbers, max_size=4), max_size=3))
def test_sums_in_parts_are_sums_of_all(parts: list[list[int | float]]) -> None:
    whole = Sum()
    for part in parts:
        some = Sum()
        for number in part:
            some.add(number)
        whole.add_all(some)
    every = [number for part in parts for number in part]

    assert pack(whole.value()) == pack(sum_of(every))
    assert pack(whole.mean()) == pack(mean_of(every))
