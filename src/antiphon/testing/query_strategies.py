"""Hypothesis strategies for queries: items that share values, and queries about these values.

from antiphon.testing.query_strategies import parties, queries

@given(parties(), queries())
def test_something(items: list[Facts], query: Query) -> None: ...
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import derive
from antiphon.model.value import Reference
from antiphon.query import filters as f
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts
from antiphon.query.forks import forks_of
from antiphon.query.packed_json import pack
from antiphon.query.query import Aggregate, Deleted, OrderBy, Query, Step, Way
from antiphon.query.validate import LISTS

IDS = [bytes([number]) * 16 for number in range(1, 9)]
OTHER_PARTY = b"p" * 32
_NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)

texts = st.sampled_from(["", "a", "b", "ab", "Ab c", "b a c", "日本 語", "\U0001f600", "z" * 70, "a\0b", "x y"])
numbers = st.sampled_from([0, 1, -1, 2, 1.0, -0.0, 0.5, 1e300, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63), 2.0**63]) | (
    st.integers(-3, 3) | st.floats(allow_nan=False)
)
references = st.builds(Reference, st.sampled_from(IDS), st.sampled_from([b"", b"", OTHER_PARTY]))
times = st.sampled_from([_NOON, _NOON + timedelta(days=1), datetime(1969, 1, 1, tzinfo=UTC)])
plain = st.one_of(
    st.none(), st.booleans(), numbers, texts, st.just(float("nan")), st.sampled_from([b"", b"a", b"\xff"]), times
)
leaves = plain | references
keys = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
_few = st.sampled_from(["a", 1, 1.0, None, True, "b a"])
documents = st.one_of(
    st.dictionaries(keys, values, max_size=3),
    st.dictionaries(keys, _few | st.lists(_few, max_size=2), max_size=3),
    values,
)
paths = st.sampled_from([("a",), ("a",), ("b",), ("b", "a"), ("c",), (), ("none",)])
facts_paths = st.sampled_from(list(f.Fact))
stamps = st.builds(Stamp, st.integers(1, 40), st.sampled_from([b"f" * 32, b"g" * 32]), st.integers(0, 3))
claims = st.dictionaries(stamps, st.sampled_from([*IDS, b""]), max_size=3).map(
    lambda found: tuple(sorted(found.items()))
)


@st.composite
def items(draw: st.DrawFn, item: bytes) -> Facts:
    """One item, without its parent, which depends on all items."""
    own = draw(claims)
    return Facts(
        id=item,
        model=draw(st.sampled_from(["object", "text"])),
        version=draw(st.integers(1, 2)),
        value=draw(documents),
        type=draw(st.sampled_from(["", "task", "note"])),
        name=draw(texts),
        deleted=draw(st.sampled_from([False, False, True])),
        created_ms=draw(st.sampled_from([0, 1000, 1_767_355_200_000, 1 << 62])),
        claims=tuple((stamp, parent) for stamp, parent in own if parent != item),
        link=draw(st.none() | st.tuples(st.sampled_from(IDS), st.sampled_from(IDS))),
        view_class=draw(st.sampled_from(["", "board"])),
        view_key=draw(st.sampled_from([b"", b"k"])),
        embeds=tuple(sorted(draw(st.sets(st.sampled_from(IDS), max_size=2)))),
        references=tuple(sorted(draw(st.sets(references, max_size=2)))),
        forked_to=draw(st.sampled_from([b"", b"", b"", *(other for other in IDS if other != item)])),
    )


@st.composite
def told(draw: st.DrawFn) -> list[Facts]:
    """All items of a party, with their own claims only."""
    found = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=len(IDS)))
    return [draw(items(item)) for item in found]


def parties() -> st.SearchStrategy[list[Facts]]:
    """All items of a party, as queries see them."""
    return told().map(derived)


def derived(found: Iterable[Facts]) -> list[Facts]:
    """Items with the parents derived from the claims of all items, and with their references resolved."""
    every = list(found)
    forks = forks_of(every)
    claims = [(stamp, facts.id, parent) for facts in every for stamp, parent in forks.led_claims(facts.claims)]
    tree = derive(claims)
    return [replace(forks.led(facts), parent=tree.get(facts.id, b"")) for facts in every]


wanted = st.sampled_from(["a", "b", "AB", "a*", '"a c"', '"b a"', "b a", "日", "日本", "z" * 65, "z*", "x", '"b a c"*'])
_ops: st.SearchStrategy[Any] = st.sampled_from(["=", "=", "<", "<=", ">", ">="])
_facts_values = st.sampled_from(["task", "note", "object", "board", 1, 2, b"k", *map(Reference, IDS)]) | times
atoms: st.SearchStrategy[f.Filter] = st.one_of(
    st.builds(f.Compare, paths, _ops, values),
    st.builds(f.Compare, paths, _ops, numbers),
    st.builds(f.Compare, facts_paths, _ops, _facts_values | st.lists(references, max_size=1)),
    st.builds(f.Has, paths | facts_paths),
    st.builds(f.Contains, paths | facts_paths, leaves | _few),
    st.builds(f.Compare, paths, _ops, _few),
    st.builds(f.Match, wanted),
)
where: st.SearchStrategy[f.Filter] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(f.All, st.lists(inner, max_size=3).map(tuple)),
        st.builds(f.Any, st.lists(inner, max_size=3).map(tuple)),
        st.builds(f.Not, inner),
    ),
    max_leaves=5,
)
_single_facts = st.sampled_from([fact for fact in f.Fact if fact not in LISTS])
orders = st.builds(OrderBy, paths | _single_facts, st.booleans())
steps = st.builds(Step, st.sampled_from(list(Way)), st.just(f.EVERYTHING) | where)
_groups = st.none() | paths | _single_facts
aggregates = st.builds(Aggregate, st.just("count"), st.just(()), _groups) | st.builds(
    Aggregate, st.sampled_from(["sum", "mean", "min", "max"]), paths | _single_facts, _groups
)
_deleted = st.sampled_from([Deleted.HIDDEN, Deleted.HIDDEN, Deleted.SHOWN, Deleted.ONLY])
_where = st.just(f.EVERYTHING) | where
_steps = st.lists(steps, max_size=3).map(tuple)


def queries() -> st.SearchStrategy[Query]:
    """Queries of all kinds."""
    listed = st.builds(
        Query,
        _where,
        steps=_steps,
        order=st.lists(orders, max_size=3).map(tuple),
        limit=st.none() | st.integers(0, 5) | st.just((1 << 63) - 1),
        deleted=_deleted,
    )
    return listed | st.builds(Query, _where, steps=_steps, aggregate=aggregates, deleted=_deleted)


def described(result: Result) -> tuple[object, ...]:
    """A result in a form to compare: NaN equals NaN, and 3 differs from 3.0."""
    return result.ids, pack(result.value), [(pack(group), pack(value)) for group, value in result.groups]
