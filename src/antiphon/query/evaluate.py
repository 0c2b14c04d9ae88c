"""The meaning of queries, in plain Python and without optimisation: SQL, Spark and live queries are tested against it.

>>> from antiphon.query.filters import prop
>>> items = [Facts(bytes([n]) * 16, "object", 1, {"size": n}) for n in (3, 1, 2)]
>>> [found.hex()[:2] for found in run(Query(prop("size") >= 2).order_by("size", descending=True), items).ids]
['03', '02']
>>> run(Query().mean("size"), items).value
2.0
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from antiphon.model.value import Value
from antiphon.query import tokens
from antiphon.query.facts import Facts, Missing
from antiphon.query.filters import All, Any, Compare, Contains, Filter, Has, Match, Not
from antiphon.query.query import Aggregate, Deleted, OrderBy, Query, Way
from antiphon.query.sums import mean_of, sum_of
from antiphon.query.validate import check
from antiphon.query.value_order import canonical, column, compare, extreme_key, sort_key, value_of


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query: item ids in order; or the value of an aggregate, or one value for each group.

    A sum is a float if any of its numbers is one, else an int; a mean is a float. A minimum or maximum has the type of
    the value that it is. A minimum, maximum or mean of no values is None, and a group without values is left out.
    Groups are in the form of `value_order.canonical`.
    """

    ids: tuple[bytes, ...] = ()
    value: Value = None
    groups: tuple[tuple[Value, Value], ...] = ()  # by ascending group


def passes(where: Filter, facts: Facts) -> bool:
    """True if an item passes a filter."""
    if isinstance(where, All):
        return all(passes(part, facts) for part in where.parts)
    if isinstance(where, Any):
        return any(passes(part, facts) for part in where.parts)
    if isinstance(where, Not):
        return not passes(where.part, facts)
    if isinstance(where, Match):
        return tokens.matches(tokens.parse(where.text), facts.word_text())
    assert isinstance(where, Compare | Has | Contains)
    found = facts.get(where.path)
    if isinstance(found, Missing):
        return False
    if isinstance(where, Compare):
        return compare(where.op, found, where.value)
    if isinstance(where, Contains):
        return isinstance(found, list | tuple) and any(compare("=", element, where.value) for element in found)
    return True


def shows(deleted: Deleted, facts: Facts) -> bool:
    """True if a query considers an item, deleted or not as `deleted` says."""
    return deleted is Deleted.SHOWN or facts.deleted is (deleted is Deleted.ONLY)


def run(query: Query, items: Iterable[Facts]) -> Result:
    """The result of a query over all items of a party."""
    check(query)
    seen = [facts for facts in items if shows(query.deleted, facts)]
    found = [facts for facts in seen if passes(query.where, facts)]
    for step in query.steps:
        found = [facts for facts in follow(step.way, found, seen) if passes(step.where, facts)]
    if query.aggregate is not None:
        return _aggregate(query.aggregate, found)
    found = sorted(found, key=lambda facts: facts.id)
    for order in reversed(query.order):
        found = _ordered(order, found)
    return Result(tuple(facts.id for facts in found[: query.limit]))


def follow(way: Way, origins: Iterable[Facts], items: Iterable[Facts]) -> list[Facts]:
    """The items that a way leads to from any of the origins."""
    starts = list(origins)
    ids = {facts.id for facts in starts}
    ends = {end for facts in starts for end in onward(way, facts)}
    return [facts for facts in items if facts.id in ends or not ids.isdisjoint(backward(way, facts))]


def onward(way: Way, facts: Facts) -> tuple[bytes, ...]:
    """The ends of a way that the item at its start names: a link names its target, a parent not its children."""
    if way is Way.PARENT:
        return (facts.parent,) if facts.parent else ()
    if way is Way.SOURCE or way is Way.TARGET:
        return () if facts.link is None else (facts.link[0 if way is Way.SOURCE else 1],)
    if way is Way.EMBEDS:
        return facts.embeds
    if way is Way.REFERENCES:
        return tuple(reference.item for reference in facts.references if not reference.party)
    return ()


_BACK = {
    Way.CHILDREN: Way.PARENT,
    Way.LINKS: Way.SOURCE,
    Way.BACKLINKS: Way.TARGET,
    Way.EMBEDDERS: Way.EMBEDS,
    Way.REFERRERS: Way.REFERENCES,
}


def backward(way: Way, facts: Facts) -> tuple[bytes, ...]:
    """The origins of a way that the item at its end names: a child names its parent."""
    back = _BACK.get(way)
    return () if back is None else onward(back, facts)


def _ordered(order: OrderBy, items: list[Facts]) -> list[Facts]:
    """Sort stably by one order; items without the property come last."""
    there = [facts for facts in items if not isinstance(facts.get(order.path), Missing)]
    lacking = [facts for facts in items if isinstance(facts.get(order.path), Missing)]
    return sorted(there, key=lambda facts: sort_key(facts.get(order.path)), reverse=order.descending) + lacking


def _aggregate(aggregate: Aggregate, items: list[Facts]) -> Result:
    if aggregate.group is None:
        return Result(value=_total(aggregate, items))
    groups: dict[object, list[Facts]] = {}
    for facts in items:
        group = facts.get(aggregate.group)
        if not isinstance(group, Missing) and _measured(aggregate, facts):
            groups.setdefault(sort_key(group), []).append(facts)
    rows = [(groups[key][0].get(aggregate.group), _total(aggregate, groups[key])) for key in sorted(groups)]  # type: ignore[type-var]
    return Result(groups=tuple((canonical(group), value) for group, value in rows))


def _measured(aggregate: Aggregate, facts: Facts) -> bool:
    """True if an item has a value that the aggregate takes."""
    found = facts.get(aggregate.path)
    if aggregate.function in ("sum", "mean"):
        return not isinstance(found, Missing) and sort_key(found)[0] == 0
    return aggregate.function == "count" or not isinstance(found, Missing)


def _total(aggregate: Aggregate, items: list[Facts]) -> Value:
    if aggregate.function == "count":
        return len(items)
    found: list[int | float] = [value_of(column(it.get(aggregate.path))) for it in items if _measured(aggregate, it)]  # type: ignore[misc]
    if aggregate.function == "sum":
        return sum_of(found)
    if aggregate.function == "mean":
        return mean_of(found)
    greatest = aggregate.function == "max"
    return (max if greatest else min)(found, key=partial(extreme_key, greatest=greatest), default=None)
