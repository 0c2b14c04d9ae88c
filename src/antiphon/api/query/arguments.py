"""Build a `Query` from the arguments of `Party.query`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from antiphon.api.options import By, QueryArguments
from antiphon.core.errors import InvalidInput
from antiphon.model.object.model import ObjectModel
from antiphon.model.value import Reference
from antiphon.query.filters import EVERYTHING, All, Any, Compare, Contains, Fact, Filter, Match, Not, Prop
from antiphon.query.query import Deleted, OrderBy, Query, Step
from antiphon.schema.definition import Schema

Lead = Callable[[bytes], bytes]  # returns the id that an id leads to, through forks


def query_from(query: Query | Filter | None, parts: QueryArguments, party: bytes, lead: Lead) -> Query:
    """Return a complete query, or one that is built from a filter and keyword arguments.

    References in it are adapted to the party.
    """
    _check_names(parts)
    if not isinstance(query, Query):
        return _localise(_assemble(query, parts), party, lead)
    if parts:
        raise InvalidInput("pass a whole Query, or its parts, not both")
    return _localise(query, party, lead)


def narrow(query: Query, parts: QueryArguments, party: bytes, lead: Lead) -> Query:
    """Return an aggregate query, restricted by keyword arguments."""
    _check_names(parts)
    if not isinstance(query, Query):
        raise InvalidInput('an aggregate needs a query that counts or sums: `Query().sum("price")`')
    more = _assemble(None, parts)
    if more.order or more.limit is not None:
        raise InvalidInput("an aggregate is of all items; it goes with no order and no limit")
    found = query if more.where == EVERYTHING else query.filter(more.where)
    return _localise(replace(found, deleted=more.deleted) if "deleted" in parts else found, party, lead)


def _check_names(parts: QueryArguments) -> None:
    unknown = parts.keys() - QueryArguments.__annotations__.keys() if parts else None
    if unknown:
        raise TypeError(f"a query has no {min(unknown)!r}; it has {', '.join(sorted(QueryArguments.__annotations__))}")


def _assemble(query: Filter | None, parts: QueryArguments) -> Query:
    """Build a query from a filter and keyword arguments."""
    kind, match = parts.get("type"), parts.get("match")
    filters = [part for part in (query, parts.get("where")) if part is not None]
    if kind is not None:
        filters.append(Fact.TYPE.is_(kind) if isinstance(kind, str) else _of_record(kind))
    if match is not None:
        filters.append(Match(match))
    found: Filter = EVERYTHING
    for part in filters:
        if not isinstance(part, Filter):
            raise InvalidInput(
                f'{part!r} is no filter; one is made like `prop("price") > 1` or `Fact.TYPE.is_("task")`'
            )
        found = part if found == EVERYTHING else found & part
    hidden = parts.get("deleted", Deleted.HIDDEN)
    return Query(found, order=tuple(_orders(parts.get("order", ()))), limit=parts.get("limit"), deleted=hidden)


def _of_record(record: type) -> Filter:
    """A filter for objects with the schema of a class. A list or text with the same type does not match."""
    return Fact.TYPE.is_(Schema.of(record).name) & Fact.MODEL.is_(ObjectModel.name)


def record_class(parts: QueryArguments) -> type | None:
    """Return the class that the found objects read as, if `type` is a class; else None."""
    kind = parts.get("type")
    return kind if isinstance(kind, type) else None


def _orders(order: By | list[By] | tuple[By, ...]) -> Iterator[OrderBy]:
    """Yield the sort orders. A list or tuple is several orders; a path of keys is a `prop`."""
    several = order if isinstance(order, list | tuple) else [order]
    for by in several:
        if isinstance(by, str):
            yield OrderBy((by.removeprefix("-"),), by.startswith("-"))
        elif isinstance(by, Prop | Fact):
            yield OrderBy(by.path if isinstance(by, Prop) else by)
        elif isinstance(by, OrderBy):
            yield by
        else:
            raise InvalidInput(
                f'{by!r:.80} is no order; one is "price", "-price", Fact.NAME, prop("maker", "land"), or '
                'OrderBy(("maker", "land"), descending=True)'
            )


def _localise(query: Query, party: bytes, lead: Lead) -> Query:
    """Adapt the references in a query to the form that the party stores.

    A reference inside one party does not name the party, and is stored with the id that it leads to through forks.
    """
    where = _localise_filter(query.where, party, lead)
    steps = tuple([Step(step.way, _localise_filter(step.where, party, lead)) for step in query.steps])
    same = where is query.where and all(new.where is old.where for new, old in zip(steps, query.steps, strict=True))
    return query if same else replace(query, where=where, steps=steps)


def _localise_filter(part: Filter, party: bytes, lead: Lead) -> Filter:
    """Adapt the references in a filter; return the same filter if nothing changes."""
    if isinstance(part, All | Any):
        parts = tuple([_localise_filter(inner, party, lead) for inner in part.parts])
        same = all(new is old for new, old in zip(parts, part.parts, strict=True))
        return part if same else replace(part, parts=parts)
    if isinstance(part, Not):
        inner = _localise_filter(part.part, party, lead)
        return part if inner is part.part else Not(inner)
    if not isinstance(part, Compare | Contains) or not isinstance(part.value, Reference):
        return part
    found = part.value
    if found.party in (b"", party):
        found = Reference(found.item if part.path is Fact.ID else lead(found.item))
    return part if found == part.value else replace(part, value=found)
