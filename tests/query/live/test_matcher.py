"""The law of standing queries: after every change, each is what it would be if it were run afresh."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result, run
from antiphon.query.facts import Facts
from antiphon.query.filters import EVERYTHING, Fact, Match, prop
from antiphon.query.live.matcher import Matcher, StandingQuery
from antiphon.query.live.port import MemorySource
from antiphon.query.packed_json import pack
from antiphon.query.query import Deleted, Query
from antiphon.testing.query_strategies import IDS, derived, described, items, parties, queries

pytestmark = pytest.mark.slow

A, B, C, D = IDS[:4]


def facts(item: bytes, value: Any = None, **rest: Any) -> Facts:
    return Facts(item, "antiphon/object", 1, {} if value is None else value, **rest)


def as_bytes(item: Facts) -> str:
    """All that a query can ask for: of the claims, what follows from them."""
    return pack([getattr(item, name) for name in Facts.__slots__ if name != "claims"], canonical=True)


def whole(standing: StandingQuery) -> Any:
    return described(standing.result)


class Party:
    """Items, a matcher on them, and for each standing query the result that its deltas have made."""

    def __init__(self, found: list[Facts]) -> None:
        self.source = MemorySource(found)
        self.matcher = Matcher(self.source)
        self.results: dict[StandingQuery, Result] = {}

    def subscribe(self, query: Query) -> StandingQuery:
        standing = self.matcher.subscribe(query)
        self.results[standing] = standing.result
        assert whole(standing) == described(run(query, self.source.items.values()))
        return standing

    def become(self, found: list[Facts], more: set[bytes] = frozenset()) -> dict[StandingQuery, Delta]:  # type: ignore[assignment]
        """From now on these are all items; `more` are told of although nothing of them may have changed."""
        before, self.source.items = self.source.items, {each.id: each for each in found}
        after = self.source.items
        changed = {item for item in after if item not in before or as_bytes(before[item]) != as_bytes(after[item])}
        gone = [item for item in IDS if item not in after and (item in before or item in more)]
        told = changed | (more & after.keys())
        deltas = self.matcher.changed([after[item] for item in sorted(told)], gone)
        for standing, was in self.results.items():
            self._check(standing, was, deltas.get(standing), changed, told)
        return deltas

    def _check(
        self, standing: StandingQuery, was: Result, delta: Delta | None, changed: set[bytes], told: set[bytes]
    ) -> None:
        fresh = run(standing.query, self.source.items.values())
        assert whole(standing) == described(fresh)
        stays = set(was.ids) & set(fresh.ids)
        if delta is None:
            assert described(was) == described(fresh)
            assert not stays & changed
        else:
            assert delta
            assert described(delta.apply(was)) == described(fresh)
            assert set(delta.added) == set(fresh.ids) - set(was.ids)
            assert delta.removed == set(was.ids) - set(fresh.ids)
            assert stays & changed <= set(delta.changed) <= stays & told
            for part in (delta.added, delta.changed):
                assert all(fresh.ids[place] == item for item, place in part.items())
        self.results[standing] = fresh


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[bytes, Facts | None], set[bytes]]:
    """Items that come, change or go; and items that are told of for nothing."""
    touched = draw(st.sets(st.sampled_from(IDS), min_size=1, max_size=3))
    found = {item: draw(st.none() | items(item) | items(item)) for item in sorted(touched)}
    return found, draw(st.sets(st.sampled_from(IDS), max_size=1))


@given(parties(), st.lists(queries(), min_size=1, max_size=5), st.lists(changes(), min_size=1, max_size=5))
@settings(max_examples=100)
def test_after_every_change_each_result_is_what_the_query_gives_afresh(
    found: list[Facts], asked: list[Query], history: list[tuple[dict[bytes, Facts | None], set[bytes]]]
) -> None:
    party = Party(found)
    for query in asked:
        party.subscribe(query)
    now: dict[bytes, Facts | None] = dict(party.source.items)
    for touched, more in history:
        now = {**now, **touched}
        party.become(derived(each for each in now.values() if each is not None), more)
    for standing in party.results:
        party.matcher.unsubscribe(standing)
    check_nothing_is_left(party.matcher)


def check_nothing_is_left(matcher: Matcher) -> None:
    assert len(matcher) == 0
    assert len(matcher._register) == 0
    assert matcher._predicates._properties.prune(())
    assert not matcher._predicates._facts


@given(parties(), queries(), changes(), changes())
@settings(max_examples=30)
def test_a_change_told_twice_is_told_once(found: list[Facts], query: Query, one: Any, other: Any) -> None:
    party = Party(found)
    party.subscribe(query)
    for touched, _ in (one, other):
        now = {**party.source.items, **touched}
        party.become(derived(each for each in now.values() if each is not None))
        told = party.matcher.changed(party.source.items.values())  # its facts are known now, and nothing is new
        again = party.matcher.changed(party.source.items.values())
        assert not again
        assert all(not delta.added and not delta.removed for delta in told.values())


# -- one by one


def test_items_enter_change_and_leave() -> None:
    party = Party([facts(A, {"done": False}), facts(B, {"done": True})])
    standing = party.subscribe(Query(prop("done").is_(False)))
    other = party.subscribe(Query(prop("done") == 3))

    deltas = party.become([facts(A, {"done": False, "x": 1}), facts(B, {"done": False})])
    assert deltas == {standing: Delta({B: 1}, {A: 0})}

    deltas = party.become([facts(B, {"done": False})])
    assert deltas == {standing: Delta(removed=frozenset({A}))}
    assert other.result.ids == ()


def test_a_change_of_anything_that_a_query_can_ask_for_is_a_change() -> None:
    party = Party([facts(A, {"n": 1})])
    standing = party.subscribe(Query().order_by("n"))
    stamp = Stamp(1, b"f" * 32, 0)
    for item in (
        facts(A, {"n": True}),
        facts(A, {"n": 1.0}),
        facts(A, {"n": 1.0}, name="x"),
        facts(A, {"n": 1.0}, name="x", claims=((stamp, B),), parent=B),
    ):
        assert party.become([item]) == {standing: Delta(changed={A: 0})}


def test_what_is_pushed_out_of_the_first_few_is_removed() -> None:
    party = Party([facts(A, {"n": 1}), facts(B, {"n": 2}), facts(C, {"n": 3})])
    standing = party.subscribe(Query().order_by("n").take(2))

    deltas = party.become([facts(A, {"n": 1}), facts(B, {"n": 2}), facts(C, {"n": 0})])
    assert deltas == {standing: Delta({C: 0}, removed=frozenset({B}))}

    deltas = party.become([facts(B, {"n": 2}), facts(C, {"n": 0})])
    assert deltas == {standing: Delta({B: 1}, removed=frozenset({A}))}

    assert party.become([facts(B, {"n": 2}), facts(C, {"n": 0}), facts(D, {"n": 9})]) == {}
    assert len(standing) == 3


def test_many_at_once() -> None:
    many = [facts(number.to_bytes(16, "big"), {"n": number % 7}) for number in range(300)]
    source = MemorySource()
    matcher = Matcher(source)
    ordered, limited = matcher.subscribe(Query().order_by("n")), matcher.subscribe(Query().order_by("n").take(10))
    source.items = {each.id: each for each in many}
    deltas = matcher.changed(many)
    assert deltas[ordered].apply(Result()) == ordered.result == run(ordered.query, many)
    assert deltas[limited].apply(Result()) == limited.result == run(limited.query, many)


# -- steps


def test_an_item_that_is_reached_before_it_is_here() -> None:
    party = Party([facts(A, link=(B, C))])
    targets = party.subscribe(Query().target())

    assert party.become([facts(A, link=(B, C)), facts(C)]) == {targets: Delta({C: 0})}
    assert party.become([facts(A, link=(B, C))]) == {targets: Delta(removed=frozenset({C}))}


def test_the_last_way_to_an_item_counts() -> None:
    one, other, end = facts(A, {"n": 1}, embeds=(C,)), facts(B, {"n": 1}, embeds=(C,)), facts(C)
    party = Party([one, other, end])
    embedded = party.subscribe(Query(prop("n") == 1).embeds())

    assert party.become([replace(one, value={"n": 2}), other, end]) == {}
    deltas = party.become([replace(one, value={"n": 2}), replace(other, embeds=()), end])
    assert deltas == {embedded: Delta(removed=frozenset({C}))}


def test_children_of_what_enters_come_with_it() -> None:
    board, card = facts(A, {"open": False}), facts(B, parent=A)
    party = Party([board, card])
    cards = party.subscribe(Query(prop("open").is_(True)).children())
    assert cards.result.ids == ()

    board = facts(A, {"open": True})
    assert party.become([board, card]) == {cards: Delta({B: 0})}
    assert party.become([board, card, facts(C, parent=A)]) == {cards: Delta({C: 1})}
    assert party.become([board, replace(card, parent=C), facts(C, parent=A)]) == {cards: Delta(removed=frozenset({B}))}


def test_an_item_at_several_stages_that_reaches_itself() -> None:
    own = facts(A, link=(A, A))
    party = Party([own])
    standing = party.subscribe(Query().links().target().links(Match("x")))

    assert party.become([replace(own, name="x")]) == {standing: Delta({A: 0})}
    assert party.become([replace(own, name="x", deleted=True)]) == {standing: Delta(removed=frozenset({A}))}


# -- aggregates


def test_sums_are_exact_whatever_comes_and_goes() -> None:
    party = Party([facts(A, {"n": 1e16}), facts(B, {"n": 1}), facts(C, {"n": 0.1})])
    total = party.subscribe(Query().sum("n"))
    party.become([facts(B, {"n": 1}), facts(C, {"n": 0.1})])
    assert total.result.value == 1.1
    party.become([facts(B, {"n": 1}), facts(C, {"n": float("inf")})])
    assert total.result.value == float("inf")
    party.become([facts(B, {"n": 1})])
    assert total.result.value == 1


def test_a_sum_that_no_real_can_tell_apart_changes_all_the_same() -> None:
    party = Party([facts(A, {"n": 2**62}), facts(B, {"n": 2**62}), facts(C, {"n": 2**62}), facts(D, {"n": 1})])
    total = party.subscribe(Query().sum("n"))
    rest = [facts(A, {"n": 2**62}), facts(B, {"n": 2**62}), facts(C, {"n": 2**62})]
    assert party.become([*rest, facts(D, {"n": 2})]) == {total: Delta(aggregate=Result(value=3 * 2**62 + 2))}


def test_groups_come_and_go() -> None:
    party = Party([facts(A, {"of": "x", "n": 1}), facts(B, {"of": "x", "n": 2})])
    least = party.subscribe(Query().min("n", group="of"))

    deltas = party.become([facts(A, {"of": "y", "n": 1}), facts(B, {"of": "x", "n": 2})])
    assert deltas == {least: Delta(aggregate=Result(groups=(("x", 2), ("y", 1))))}
    assert party.become([facts(A, {"of": "y", "n": 1, "m": 1}), facts(B, {"of": "x", "n": 2})]) == {}
    assert party.become([facts(B, {"of": "x", "n": 2})]) == {least: Delta(aggregate=Result(groups=(("x", 2),)))}


# -- what cannot be


class Failing(MemorySource):
    def run(self, query: Query) -> Result:
        if query.steps:
            raise OSError("the disk failed")
        return super().run(query)


def test_a_query_that_cannot_be_filled_leaves_nothing_behind() -> None:
    matcher = Matcher(Failing([facts(A), facts(B, parent=A)]))
    with pytest.raises(OSError, match="the disk failed"):
        matcher.subscribe(Query(EVERYTHING).children())
    check_nothing_is_left(matcher)


def test_a_query_that_asks_for_what_is_not_is_refused() -> None:
    matcher = Matcher(MemorySource())
    with pytest.raises(InvalidInput, match="no word to match"):
        matcher.subscribe(Query(Match("!")))
    with pytest.raises(InvalidInput, match="is a list"):
        matcher.subscribe(Query(deleted=Deleted.SHOWN).order_by(Fact.EMBEDS))
    check_nothing_is_left(matcher)
