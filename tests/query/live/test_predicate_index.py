"""The index of predicates: it finds all that an item may pass, and looks at nothing that it cannot."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.query.evaluate import Result, passes, run
from antiphon.query.facts import Facts
from antiphon.query.filters import Any as AnyOf, Compare, Contains, Fact, Filter, Match, prop
from antiphon.query.live.interval_tree import Intervals, above, below
from antiphon.query.live.matcher import Matcher
from antiphon.query.live.port import MemorySource
from antiphon.query.live.predicate_index import PredicateIndex
from antiphon.query.live.probes import Between, Element, Equal, Present, Word, necessary
from antiphon.query.multimap import Multimap
from antiphon.query.query import Query
from antiphon.testing.query_strategies import IDS, items, where

A, B = IDS[:2]


def facts(value: Any, item: bytes = A, **rest: Any) -> Facts:
    return Facts(item, "antiphon/object", 1, value, **rest)


@pytest.mark.slow
@given(st.lists(where, min_size=1, max_size=20), st.lists(items(A), min_size=1, max_size=5), st.data())
@settings(max_examples=100)
def test_all_filters_that_an_item_passes_are_among_those_tried(
    filters: list[Filter], found: list[Facts], data: st.DataObject
) -> None:
    index: PredicateIndex[int] = PredicateIndex()
    for number, each in enumerate(filters):
        index.add(number, each)
    kept = set(range(len(filters)))
    for item in found:
        passed = {number for number in kept if passes(filters[number], item)}
        assert passed <= index.may_pass(item) <= kept
        out = data.draw(st.sampled_from(sorted(kept)))
        index.remove(out)
        kept -= {out}
        if not kept:
            break
    assert len(index) == len(kept)


@pytest.mark.parametrize(("least", "bound"), [(None, None), (b"", b""), (b"", b"x")])
def test_the_least_value_of_a_kind_is_in_its_ranges(least: Any, bound: Any) -> None:
    """Null and empty bytes were once left out of ranges without a lower bound."""
    index: PredicateIndex[int] = PredicateIndex()
    where = Compare(("a",), "<=", bound)
    index.add(0, where)
    assert passes(where, facts({"a": least}))
    assert index.may_pass(facts({"a": least})) == {0}


def test_the_part_that_lets_the_fewest_through_stands_for_the_rest() -> None:
    task = Fact.TYPE.is_("task")
    assert necessary(task & Fact.PARENT.is_(A) & (prop("n") > 3)) == necessary(Fact.PARENT.is_(A))
    assert necessary(task & (prop("n") == 3)) == (Equal(("n",), (0, 3)),)
    assert necessary(task & Match("hello wor*")) == (Word("hello", False),)
    assert necessary(~task & prop("n").exists()) == (Present(("n",)),)
    assert necessary(task & prop("done").is_(False)) == necessary(task)
    assert necessary(~task) is None
    assert necessary(task | ~task) is None
    assert necessary(AnyOf()) == ()
    assert necessary(prop("n") < [1]) == ()


def test_two_ends_of_a_range_are_one_probe() -> None:
    between = Between(("n",), above((0, 3), itself=True), below((0, 5)))
    assert necessary((prop("n") >= 3) & (prop("n") < 5)) == (between,)
    assert necessary(Fact.TYPE.is_("task") & (prop("n") >= 3) & (prop("n") < 5)) == (between,)


def test_equal_to_a_value_and_holding_it_are_two_things() -> None:
    either = Compare(("n",), "=", 1) | Contains(("n",), 1)
    assert necessary(either) == (Equal(("n",), (0, 1)), Element(("n",), (0, 1)))
    index: PredicateIndex[str] = PredicateIndex()
    index.add("either", either)
    assert index.may_pass(facts({"n": [1]})) == index.may_pass(facts({"n": 1})) == {"either"}
    assert index.may_pass(facts({"n": 2})) == set()


def test_beginnings_of_words() -> None:
    index: PredicateIndex[str] = PredicateIndex()
    for asked in ("wor*", "world*", "w*", "hello"):
        index.add(asked, Match(asked))
    assert index.may_pass(facts({"text": "The word"})) == {"wor*", "w*"}
    index.remove("w*")
    assert index.may_pass(facts({"text": ["Hello, world"]})) == {"wor*", "world*", "hello"}
    assert index.may_pass(facts({"hello": 1})) == set()


# -- what it costs

MANY = 10_000


@pytest.mark.slow
def test_ten_thousand_unrelated_subscriptions_are_not_tried() -> None:
    source = MemorySource()
    matcher = Matcher(source)
    for number in range(MANY):
        matcher.subscribe(Query((prop("owner") == f"person {number}") & prop("done").is_(False)))
        matcher.subscribe(Query((prop("at") >= number) & (prop("at") < number + 3)))
    for number in range(MANY // 10):
        matcher.subscribe(Query(Fact.PARENT.is_(number.to_bytes(16, "big"))))
        matcher.subscribe(Query(Match(f"word{number}")))
    mine = matcher.subscribe(Query(prop("owner") == "me"))

    item = facts({"owner": "me", "done": False, "at": 5000, "says": "word77 and more"})
    source.items[A] = item
    deltas = matcher.changed([item])

    assert len(deltas) == 1 + 3 + 1
    assert deltas[mine].added == {A: 0}
    assert matcher.tries == len(deltas)
    matcher.changed([], [A])
    assert matcher.tries == 2 * len(deltas)


class Counted(dict[str, Any]):
    """A map that counts what is looked up in it."""

    looked_up = 0

    def __contains__(self, key: object) -> bool:
        self.looked_up += 1
        return super().__contains__(key)


def test_ten_thousand_paths_are_not_looked_up() -> None:
    index: PredicateIndex[int] = PredicateIndex()
    for number in range(MANY):
        index.add(number, prop("a", f"property {number}") == 1)
    value = Counted({f"property {number}": 1 for number in (5, 7)})
    assert index.may_pass(facts({"a": value, "b": 2})) == {5, 7}
    assert value.looked_up == 0  # its own properties are gone through: they are fewer


class ById(MemorySource):
    """Runs a query by id on that item alone: a thousand runs over a thousand items would take a while."""

    def run(self, query: Query) -> Result:
        assert isinstance(query.where, Compare)
        return run(query, [self.items[query.where.value.item]])


def test_a_thousand_steps_from_elsewhere_are_not_tried() -> None:
    source = ById([facts({}, number.to_bytes(16, "big")) for number in range(1000)])
    matcher = Matcher(source)
    cards = [matcher.subscribe(Query(Fact.ID.is_(board)).children()) for board in source.items]

    card = facts({}, A, parent=(7).to_bytes(16, "big"))
    source.items[A] = card
    assert matcher.changed([card])[cards[7]].added == {A: 0}
    assert matcher.tries == 1


# -- what it is made of

bounds = st.none() | st.builds(above, st.integers(0, 20), itself=st.booleans())
ends = st.none() | st.builds(below, st.integers(0, 20), itself=st.booleans())


@given(st.lists(st.tuples(bounds, ends), max_size=60), st.data())
@settings(max_examples=100)
def test_intervals_are_found_as_if_all_were_gone_through(ranges: list[Any], data: st.DataObject) -> None:
    intervals: Intervals[int] = Intervals()
    tokens = [intervals.add(low, high, number) for number, (low, high) in enumerate(ranges)]
    kept = set(range(len(ranges)))
    for number in data.draw(st.lists(st.sampled_from(sorted(kept)), unique=True) if kept else st.just([])):
        intervals.remove(tokens[number])
        kept -= {number}
    assert len(intervals) == len(kept)
    for point in range(21):
        at = (0, point, 1)
        covering = {number for number in kept if _covers(ranges[number], at)}
        assert set(intervals.at(point)) == covering


def _covers(bounds: Any, at: Any) -> bool:
    low, high = bounds
    return (low is None or low < at) and (high is None or at < high)


@pytest.mark.slow
def test_finding_an_interval_looks_at_few_of_them() -> None:
    intervals: Intervals[int] = Intervals()
    for number in range(MANY):
        intervals.add(above(Compared(number), itself=True), below(Compared(number + 1)), number)
    Compared.count = 0
    assert list(intervals.at(Compared(5000))) == [5000]
    assert Compared.count < 500


class Compared:
    """A number that counts how often it is compared."""

    count = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return isinstance(other, Compared) and self.number == other.number

    def __lt__(self, other: Compared) -> bool:
        Compared.count += 1
        return self.number < other.number

    __hash__ = None  # type: ignore[assignment]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3))))
def test_a_multimap_is_a_set_of_pairs(acts: list[tuple[bool, int, int]]) -> None:
    multimap: Multimap[int, int] = Multimap()
    pairs: set[tuple[int, int]] = set()
    for adding, key, held in acts:
        (multimap.add if adding else multimap.discard)(key, held)
        (pairs.add if adding else pairs.discard)((key, held))
    assert {(key, held) for key in range(4) for held in multimap.get(key)} == pairs
    assert len(multimap) == len({key for key, _ in pairs})


def test_nobody_can_choose_ranges_that_make_one_long_branch() -> None:
    """Whoever knew the ranks that are drawn could: with those of a known seed, a thousand ranges were too deep."""
    chance = random.Random(0)
    drawn = [chance.random() for _ in range(3000)]
    places = {number: place for place, number in enumerate(sorted(range(3000), key=lambda at: -drawn[at]))}
    intervals: Intervals[int] = Intervals()
    for number in range(3000):
        intervals.add(above((0, places[number]), itself=True), None, number)
    assert sorted(intervals.at((0, 2999))) == list(range(3000))
