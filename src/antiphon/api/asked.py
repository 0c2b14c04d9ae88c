"""The query that the arguments of `Party.query` stand for."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.errors import InvalidInput
from antiphon.query.filters import EVERYTHING, Fact, Filter, Match
from antiphon.query.query import Deleted, Order, Query
from antiphon.schema.definition import Schema


def asked(
    query: Query | Filter | None,
    kind: str | type | None,
    where: Filter | None,
    match: str | None,
    order: str | Iterable[str],
    limit: int | None,
    deleted: Deleted,
) -> Query:
    """A whole query as it is, or one that is put together from its parts."""
    orders = (order,) if isinstance(order, str) else tuple(order)
    if isinstance(query, Query):
        if (kind, where, match, limit) != (None, None, None, None) or orders or deleted is not Deleted.HIDDEN:
            raise InvalidInput("pass a whole Query, or its parts, not both")
        return query
    parts = [part for part in (query, where) if part is not None]
    if kind is not None:
        parts.append(Fact.TYPE.is_(kind if isinstance(kind, str) else Schema.of(kind).name))
    if match is not None:
        parts.append(Match(match))
    found: Filter = EVERYTHING
    for part in parts:
        found = part if found == EVERYTHING else found & part
    return Query(found, order=tuple(_order(path) for path in orders), limit=limit, deleted=deleted)


def _order(path: str) -> Order:
    return Order((path.removeprefix("-"),), path.startswith("-"))
