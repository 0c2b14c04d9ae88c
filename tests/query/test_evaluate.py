"""Every filter, way, order and aggregate by example, in plain Python and on the item index."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf, isnan, nan

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.value import Reference, Value
from antiphon.query import evaluate
from antiphon.query.codec.facts import encode_facts
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts
from antiphon.query.filters import All, Any, Compare, Contains, Fact, Filter, Has, Match, Not, prop
from antiphon.query.index.index import ItemIndex
from antiphon.query.live.matcher import Matcher
from antiphon.query.live.port import MemorySource
from antiphon.query.query import Aggregate, Deleted, OrderBy, Query, Step
from antiphon.query.sums import mean_of, sum_of
from antiphon.testing.query_strategies import derived, described, numbers


def item(number: int) -> bytes:
    return bytes([number]) * 16


def at(lamport: int) -> Stamp:
    return Stamp(lamport, b"f" * 32, lamport)


def facts(number: int, value: Value = None, under: int = 0, **fields: object) -> Facts:
    claims = ((at(number), item(under)),) if under else ()
    return replace(Facts(item(number), "object", 1, value, claims=claims), **fields)  # type: ignore[arg-type]


#: A board (1) with two tasks (2, 3), one of them gone (4); a note (5) that embeds 2; a link (6) from 5 to 2.
PARTY = derived(
    [
        facts(1, {}, type="board", name="The Board", view_class="kanban", view_key=b"k"),
        facts(2, {"done": False, "size": 3, "tags": ["a", "b"], "who": {"name": "Ada"}}, under=1, type="task"),
        facts(3, {"done": True, "size": 1.5, "tags": ["b"], "due": None}, under=1, type="task", created_ms=1000),
        facts(4, {"done": True, "size": 9}, under=1, type="task", deleted=True),
        facts(5, "Write to Ada about the board", model="text", version=2, embeds=(item(2), item(99)), type="note"),
        facts(
            6,
            {"size": 2, "of": Reference(item(3)), "far": Reference(item(2), b"p" * 32)},
            link=(item(5), item(2)),
            references=(Reference(item(2), b"p" * 32), Reference(item(3))),
        ),
    ]
)


def run(query: Query) -> Result:
    """Both ways, which must agree."""
    index = ItemIndex(sqlite3.connect(":memory:", isolation_level=None))
    index.create()
    index.put((each.id, encode_facts(each)) for each in PARTY)
    found = index.run(query)
    assert described(found) == described(evaluate.run(query, PARTY))
    return found


def ids(query: Query) -> list[int]:
    return [found[0] for found in run(query).ids]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (All(), [1, 2, 3, 5, 6]),
        (Any(), []),
        (prop("done").is_(True), [3]),
        (~prop("done").is_(True), [1, 2, 5, 6]),
        (prop("size") > 1.5, [2, 6]),
        (prop("size") >= 1.5, [2, 3, 6]),
        (prop("size") < 2, [3]),
        (prop("size") <= 2.0, [3, 6]),
        (prop("size").in_([2, 3.0, "3"]), [2, 6]),
        (prop("who", "name") == "Ada", [2]),
        (prop("who") == {"name": "Ada"}, [2]),
        (prop("who") > {}, []),
        (prop("due").is_(None), [3]),
        (prop("due").exists(), [3]),
        (~prop("due").exists() & prop("size").exists(), [2, 6]),
        (prop("tags").has("a"), [2]),
        (prop("tags").has("b"), [2, 3]),
        (prop("tags") == ["b"], [3]),
        (prop("size").has(3), []),
        (prop() == "Write to Ada about the board", [5]),
        (prop("of") == Reference(item(3)), [6]),
        (Match("ada"), [2, 5]),
        (Match('"the board"'), [1, 5]),
        (Match("boar*") & ~Match("write"), [1]),
        (Fact.TYPE.is_("task"), [2, 3]),
        (Fact.TYPE.in_(["task", "note"]), [2, 3, 5]),
        (Fact.TYPE.exists(), [1, 2, 3, 5]),
        (Fact.MODEL.is_("text"), [5]),
        (Fact.VERSION.compare(">", 1), [5]),
        (Fact.NAME.is_("The Board"), [1]),
        (Fact.ID.is_(item(3)), [3]),
        (Fact.ID.compare(">", Reference(item(3))), [5, 6]),
        (Fact.CREATED.compare(">", datetime(1970, 1, 1, tzinfo=UTC)), [3]),
        (Fact.PARENT.is_(item(1)), [2, 3]),
        (Fact.SOURCE.is_(item(5)), [6]),
        (Fact.TARGET.is_(item(2)), [6]),
        (Fact.VIEW_CLASS.is_("kanban"), [1]),
        (Fact.VIEW_KEY.is_(b"k"), [1]),
        (Fact.EMBEDS.has(item(99)), [5]),
        (Fact.EMBEDS.is_([]), [1, 2, 3, 6]),
        (Fact.REFERENCES.has(Reference(item(2), b"p" * 32)), [6]),
        (Fact.REFERENCES.has(item(2)), []),
        (Fact.TYPE.has("task"), []),
    ],
)
def test_filters(where: Filter, found: list[int]) -> None:
    assert ids(Query(where)) == found
    assert ids(Query(~where)) == [number for number in (1, 2, 3, 5, 6) if number not in found]


BOARD, NOTE, LINK = (Query(Fact.ID.is_(item(number))) for number in (1, 5, 6))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (BOARD.children(), [2, 3]),
        (BOARD.children(prop("done").is_(True)), [3]),
        (BOARD.children().parent(), [1]),
        (Query().parent(), [1]),
        (NOTE.links(), [6]),
        (NOTE.links().target(), [2]),
        (BOARD.children().backlinks().source(), [5]),
        (NOTE.embeds(), [2]),
        (BOARD.children().embedders(), [5]),
        (LINK.references(), [3]),
        (BOARD.children().referrers(), [6]),
        (BOARD.children().referrers().target().parent(), [1]),
        (BOARD.children().with_deleted(), [2, 3, 4]),
        (BOARD.children().with_deleted(Deleted.ONLY), []),  # the board is not deleted, so nothing begins there
        (Query().with_deleted(Deleted.ONLY), [4]),
        (BOARD.children().filter(prop("size") > 2), [2]),
    ],
)
def test_steps(query: Query, found: list[int]) -> None:
    assert ids(query) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Query().order_by("size"), [3, 6, 2, 1, 5]),
        (Query().order_by("size", descending=True), [2, 6, 3, 1, 5]),
        (Query().order_by("size", descending=True).take(2), [2, 6]),
        (Query().order_by(Fact.CREATED, descending=True).take(2), [3, 1]),
        (Query().order_by(Fact.TYPE).order_by("size"), [1, 5, 3, 2, 6]),
        (Query().order_by(Fact.ID, descending=True), [6, 5, 3, 2, 1]),
        (Query().take(2), [1, 2]),
        (Query().take(0), []),
    ],
)
def test_order_and_limit(query: Query, found: list[int]) -> None:
    assert ids(query) == found


def test_aggregates() -> None:
    assert run(Query().count()).value == 5
    assert run(Query().sum("size")).value == 6.5
    assert run(Query(Fact.TYPE.is_("task")).mean("size")).value == 2.25
    assert run(Query().min("size")).value == 1.5
    assert run(Query().max(Fact.NAME)).value == "The Board"
    assert run(Query().max("due")).value is None
    assert run(Query().min("nothing")).value is None
    assert run(Query().mean("nothing")).value is None
    assert run(Query().sum("done")) == Result(value=0)
    assert run(Query().count(group=Fact.TYPE)).groups == (("board", 1), ("note", 1), ("task", 2))
    assert run(Query().sum("size", group="done")).groups == ((False, 3), (True, 1.5))
    assert run(Query().max("size", group="tags")).groups == ((["a", "b"], 3), (["b"], 1.5))
    assert run(Query().count(group=Fact.PARENT)).groups == ((Reference(item(1)), 2),)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (Query(Match("")), "no word to match in ''"),
        (Query().order_by(Fact.EMBEDS), "embeds is a list"),
        (Query().sum(Fact.REFERENCES), "references is a list"),
        (Query().count(group=Fact.EMBEDS), "embeds is a list"),
        (Query(aggregate=Aggregate("count", ("a",))), "a count is of items"),
        (Query(aggregate=Aggregate("median", ("a",))), "no aggregate 'median'"),  # type: ignore[arg-type]
        (Query(Compare(("a",), "!=", 1)), "no comparison '!='"),  # type: ignore[arg-type]
        (Query(Has(("a",) * 65)), "a path of 65 keys"),
        (Query(Has(("a", 1))), "a key of a path"),  # type: ignore[arg-type]
        (Query(Has("a")), "a path that is no fact"),  # type: ignore[arg-type]
        (Query(Compare(("a",), "=", object())), "object is no value"),
        (Query(Compare(("a",), "=", 1 << 64)), "64 bits"),
        (Query(Compare(("a",), "=", "\ud800")), "not valid Unicode"),
        (Query(Contains(("a",), datetime(2026, 1, 1))), "no time zone"),  # noqa: DTZ001
        (Query(All(tuple(Has((str(number),)) for number in range(65)))), "about 65 properties"),
        (Query(All((All(),) * 1000)), "more than 1000 filters"),
        (Query("done"), "is no filter"),  # type: ignore[arg-type]
        (Query(Not(None)), "is no filter"),  # type: ignore[arg-type]
        (Query(steps=(Step("up"),)), "the way of a step"),  # type: ignore[arg-type]
        (Query(order=(OrderBy(("a", "b"), True), ("c", True))), "an order is"),  # type: ignore[arg-type]
        (Query(deleted=True), "`deleted` is"),  # type: ignore[arg-type]
        (Query(limit=1 << 63), "above 2"),
    ],
)
def test_a_query_that_cannot_run_says_why(query: Query, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        evaluate.run(query, PARTY)
    with pytest.raises(InvalidInput, match=says):
        ItemIndex(sqlite3.connect(":memory:")).run(query)  # before any SQL: there is not even a table


def test_as_many_filters_as_may_be_run() -> None:
    assert ids(Query(Any(tuple(prop("size") > number for number in range(999))))) == [2, 3, 6]
    assert ids(Query(prop("size").in_(range(999)))) == [2, 6]
    assert ids(Query(All(tuple(Has((str(number),)) for number in range(63))))) == []


# -- sums


@given(st.lists(numbers | st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.randoms())
def test_sums_and_means_are_exact_and_rounded_once(found: list[int | float], chance: object) -> None:
    if any(abs(number) == inf for number in found):
        return
    whole = sum(map(Fraction, found), Fraction())
    chance.shuffle(found)  # type: ignore[attr-defined]
    assert sum_of(found) == (whole if all(type(number) is int for number in found) else rounded(whole))
    assert mean_of(found) == rounded(whole / len(found))


def rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf


@pytest.mark.parametrize("value", [True, False, None, 1, "a"])
def test_a_property_is_a_value_in_words_that_linters_take(value: Value) -> None:
    assert prop("done").is_(value) == Compare(("done",), "=", value)
    assert prop("done").in_([value]) == Any((prop("done").is_(value),))


NUMBERS: dict[str, list[int | float]] = {
    "ints": [3, 1, 2],
    "floats": [3.0, 1.0, 2.0],
    "both": [1, 1.0, 2.5, 3.0, 3],
    "great": [1e16, 1.0],
    "zeros": [-0.0, 0.0],
}


@pytest.mark.parametrize(
    ("numbers", "function", "wanted"),
    [
        ("ints", "sum", 6),
        ("floats", "sum", 6.0),
        ("both", "sum", 10.5),
        ("great", "sum", 1e16 + 1),
        ("zeros", "sum", 0.0),
        ("ints", "mean", 2.0),
        ("floats", "mean", 2.0),
        ("ints", "min", 1),
        ("floats", "min", 1.0),
        ("both", "min", 1),
        ("zeros", "min", 0.0),
        ("ints", "max", 3),
        ("floats", "max", 3.0),
        ("both", "max", 3),
        ("great", "max", 1e16),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_aggregates_keep_the_types_of_numbers(numbers: str, function: str, wanted: float, backwards: bool) -> None:
    """In the specification, in the index and in standing queries alike: a sum of floats is a float, of ints an int."""
    given = NUMBERS[numbers][::-1] if backwards else NUMBERS[numbers]
    party = [facts(at, {"n": number, "of": "x"}) for at, number in enumerate(given, 1)]
    index = ItemIndex(sqlite3.connect(":memory:", isolation_level=None))
    index.create()
    index.put((each.id, encode_facts(each)) for each in party)
    matcher = Matcher(MemorySource(party))
    alone: Query = getattr(Query(), function)("n")
    grouped: Query = getattr(Query(), function)("n", group="of")

    for query, result in ((alone, Result(value=wanted)), (grouped, Result(groups=(("x", wanted),)))):
        assert described(evaluate.run(query, party)) == described(result)
        assert described(index.run(query)) == described(result)
        assert described(matcher.subscribe(query).result) == described(result)


def test_an_aggregate_changes_when_an_int_becomes_an_equal_float() -> None:
    one, two = facts(1, {"n": 1}), facts(1, {"n": 1.0})
    index = ItemIndex(sqlite3.connect(":memory:", isolation_level=None))
    index.create()
    index.put([(one.id, encode_facts(one))])
    matcher = Matcher(MemorySource([one]))
    for query in (Query().sum("n"), Query().min("n")):
        standing = matcher.subscribe(query)
        assert described(index.run(query)) == described(standing.result) == described(Result(value=1))
        assert described(matcher.changed([two])[standing].apply(Result())) == described(Result(value=1.0))
        matcher.unsubscribe(standing)
    index.put([(two.id, encode_facts(two))])
    for query in (Query().sum("n"), Query().min("n")):
        assert described(index.run(query)) == described(Result(value=1.0))


def test_sums_of_infinities_and_beyond() -> None:
    assert sum_of([inf, 1, 1e308]) == inf
    assert isnan(sum_of([inf, -inf]))
    assert sum_of([1e308, 1e308, -1e308]) == 1e308
    assert sum_of([1e308, 1e308]) == inf
    assert sum_of([2**53, 1, 0.0]) == 2.0**53
    assert sum_of([2**80, 1]) == 2**80 + 1
    assert mean_of([]) is None
    assert nan not in (sum_of([]), sum_of([0.5]))
