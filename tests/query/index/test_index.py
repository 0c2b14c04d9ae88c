"""The item index finds what `evaluate` says, whatever was put into it, changed, and taken away."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.query import evaluate
from antiphon.query.codec.facts import encode_facts
from antiphon.query.evaluate import onward
from antiphon.query.facts import Facts
from antiphon.query.filters import Contains, Fact, Match
from antiphon.query.index.index import ItemIndex
from antiphon.query.query import Query, Way
from antiphon.testing.query_strategies import IDS, derived, described, items, queries, told

pytestmark = pytest.mark.slow

EXAMPLES = settings().max_examples  # each of them is many queries


def connect() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def index_of(facts: Sequence[Facts], db: sqlite3.Connection | None = None) -> ItemIndex:
    index = ItemIndex(connect() if db is None else db)
    index.create()
    index.put((each.id, encode_facts(each)) for each in facts)
    index.settle()
    return index


def encoded(facts: Facts) -> tuple[bytes, bytes]:
    """Facts to be compared: NaN is not even equal to itself."""
    return encode_facts(facts), facts.parent


@settings(max_examples=EXAMPLES)
@given(told(), st.lists(queries(), min_size=1, max_size=6))
def test_sql_finds_what_the_specification_says(facts: list[Facts], asked: list[Query]) -> None:
    index = index_of(facts)
    for query in asked:
        assert described(index.run(query)) == described(evaluate.run(query, derived(facts)))


#: About every table, so that each example looks at all of them.
BATTERY = [
    *(Query(Contains(path, value)) for path in (("a",), ("b",), ("c",)) for value in ("a", 1, None, True)),
    *(Query(Match(text)) for text in ("a", "b*", '"b a"', "日")),
    *(Query(Fact.EMBEDS.has(item)) for item in IDS[:2]),
    *(Query(Fact.ID.is_(item)).step(way) for item in IDS[:3] for way in Way),
    Query(Fact.REFERENCES.has(IDS[0])),
    Query().order_by("a").order_by("b", descending=True),
    Query().order_by("a", descending=True).take(3).with_deleted(),
    Query().count(group="c"),
    Query().count(group=Fact.PARENT),
]
changes = st.sampled_from(IDS).flatmap(lambda item: st.tuples(st.just(item), st.none() | items(item)))


@settings(max_examples=EXAMPLES // 3)
@given(
    told(),
    st.lists(queries(), max_size=3),
    st.lists(st.lists(changes, min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_it_is_kept_up(facts: list[Facts], asked: list[Query], rounds: list[list[tuple[bytes, Facts | None]]]) -> None:
    """Given columns that were made before, when items change, come and go, then it still finds the same.

    Each round is a transaction that puts its items one by one: what was put in parts is settled as what is put at once.
    """
    index = index_of(facts)
    for query in (*asked, *BATTERY):
        index.run(query)
    kept: dict[bytes, Facts | None] = {each.id: each for each in facts}
    here = {each.id: each for each in derived(facts)}
    for some in rounds:
        before = {each.id: encoded(each) for each in here.values()}
        latest = dict(some)
        for item, each in latest.items():
            index.put([(item, None if each is None else encode_facts(each))])
        moved = index.settle()
        kept |= latest
        here = {each.id: each for each in derived([each for each in kept.values() if each is not None])}
        changed = {item for item, each in here.items() if encoded(each) != before.get(item)}
        assert set(moved) >= changed - latest.keys()
        assert not set(moved) & latest.keys()
        assert moved == sorted(changed - latest.keys()) or any(each.forked_to for each in (*facts, *here.values()))
        assert {item: encoded(each) for item, each in index.facts(IDS).items()} == {
            item: encoded(each) for item, each in here.items()
        }
        for query in (*asked, *BATTERY):
            assert described(index.run(query)) == described(evaluate.run(query, here.values()))


@settings(max_examples=EXAMPLES // 3)
@given(told(), st.sampled_from(list(Way)))
def test_edges_are_where_a_way_leads_to(said: list[Facts], way: Way) -> None:
    index = index_of(said)
    facts = derived(said)
    for each in facts:
        found = evaluate.follow(way, [each], facts)
        assert index.edges(way, each.id) == sorted(end.id for end in found)
        assert index.claims(each.id) == each.claims
        assert index.children(each.id) == sorted(other.id for other in facts if onward(Way.PARENT, other) == (each.id,))
