"""The query that the arguments of `Party.query` stand for."""

from __future__ import annotations

from dataclasses import replace

from antiphon.api.options import By, Parts
from antiphon.core.errors import InvalidInput
from antiphon.model.value import Reference
from antiphon.query.filters import EVERYTHING, All, Any, Compare, Contains, Fact, Filter, Match, Not
from antiphon.query.query import Deleted, Order, Query, Step
from antiphon.schema.definition import Schema


def asked(query: Query | Filter | None, parts: Parts, party: bytes) -> Query:
    """A whole query, or one that is put together from its parts; as the party sees it."""
    unknown = parts.keys() - Parts.__annotations__.keys()
    if unknown:
        raise TypeError(f"a query has no {min(unknown)!r}; it has {', '.join(sorted(Parts.__annotations__))}")
    if not isinstance(query, Query):
        return _local(_assembled(query, parts), party)
    if parts:
        raise InvalidInput("pass a whole Query, or its parts, not both")
    return _local(query, party)


def _assembled(query: Filter | None, parts: Parts) -> Query:
    kind, match = parts.get("type"), parts.get("match")
    filters = [part for part in (query, parts.get("where")) if part is not None]
    if kind is not None:
        filters.append(Fact.TYPE.is_(kind if isinstance(kind, str) else Schema.of(kind).name))
    if match is not None:
        filters.append(Match(match))
    found: Filter = EVERYTHING
    for part in filters:
        if not isinstance(part, Filter):
            raise InvalidInput(
                f'{part!r} is no filter; one is made like `prop("price") > 1` or `Fact.TYPE.is_("task")`'
            )
        found = part if found == EVERYTHING else found & part
    order = parts.get("order", ())
    orders = (order,) if isinstance(order, By) else tuple(order)
    hidden = parts.get("deleted", Deleted.HIDDEN)
    return Query(found, order=tuple(map(_order, orders)), limit=parts.get("limit"), deleted=hidden)


def _order(by: By) -> Order:
    if isinstance(by, str):
        return Order((by.removeprefix("-"),), by.startswith("-"))
    return by if isinstance(by, Order) else Order(by)


def _local(query: Query, party: bytes) -> Query:
    """References to items of the party itself stand in it without its name, and so they must in a query."""
    steps = tuple(Step(step.way, _localised(step.where, party)) for step in query.steps)
    return replace(query, where=_localised(query.where, party), steps=steps)


def _localised(part: Filter, party: bytes) -> Filter:
    if isinstance(part, All | Any):
        return replace(part, parts=tuple(_localised(inner, party) for inner in part.parts))
    if isinstance(part, Not):
        return Not(_localised(part.part, party))
    value = part.value if isinstance(part, Compare | Contains) else None
    if isinstance(value, Reference) and value.party == party:
        return replace(part, value=Reference(value.item))  # type: ignore[type-var]
    return part
