"""Queries of one shape share one statement, made and checked once: only the values for its question marks differ.

>>> from antiphon.query.filters import prop
>>> one, other = shape(Query(prop("age") == 7)), shape(Query(prop("age") == 8))
>>> one.key == other.key, one.values, other.values
(True, [7], [8])

A shape tells kinds of values apart, as the statement does: for 7 and "7" there are two. The very same query, asked
again, is not looked through again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any as AnyValue, NamedTuple

from antiphon.model.value import Reference
from antiphon.query import tokens
from antiphon.query.filters import All, Any, Compare, Contains, Filter, Has, Match, Not
from antiphon.query.index import sql
from antiphon.query.index.columns import Columns
from antiphon.query.query import Query, Step
from antiphon.query.validate import LIMIT_MAX, check, check_value
from antiphon.query.value_order import BYTES, CONTAINER, Column, column

SHAPES_MAX = 256
QUERIES_MAX = 1024
_LISTS = (All, Any)
_CHANGING = frozenset({CONTAINER, BYTES})  # lists, say, and bytearrays: other ones later, while the query is the same


class Shape(NamedTuple):
    key: Hashable
    values: list[Column]  # as they come in the query


class _Template(NamedTuple):
    text: str
    values: tuple[AnyValue, ...]  # holes, and what is the same for all
    slots: sql.Slots
    needs: sql.Needs


def shape(query: Query) -> Shape:
    """What a query is like but for its values, which are checked."""
    values: list[Column] = []
    where = _shape(query.where, values)
    steps = tuple([(step.way, _shape(step.where, values)) for step in query.steps])
    order = tuple([(each.path, each.descending) for each in query.order])
    return Shape((where, steps, order, query.limit is None, query.aggregate, query.deleted), values)


def _shape(part: Filter, values: list[Column]) -> Hashable:
    if isinstance(part, Compare):
        stored = _checked(part.value)
        values.append(stored)
        return part.path, part.op, _kind(stored)
    if isinstance(part, _LISTS):
        return type(part), tuple([_shape(each, values) for each in part.parts])
    if isinstance(part, Not):
        return Not, _shape(part.part, values)
    if isinstance(part, Match):
        check_value(part.text)
        values.append(tokens.fts_query(tokens.parse(part.text)))
        return Match
    if isinstance(part, Contains):
        values.append(_checked(part.value))
        return Contains, part.path
    if not isinstance(part, Has):
        raise TypeError(f"{part!r} is no filter")
    return Has, part.path


def _checked(value: AnyValue) -> Column:
    kind = type(value)
    if kind is bool or kind is Reference or (kind is str and value.isascii()):
        return column(value)  # of these all are right
    if not (kind is datetime and value.tzinfo is UTC):
        check_value(value)
    return column(value)


def _kind(stored: Column) -> int:
    if isinstance(stored, bytes):
        return stored[0]
    return -1 if isinstance(stored, str) else 0


class Prepared:
    """The statements of the shapes that were asked lately."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: dict[Hashable, _Template] = {}
        self._asked: dict[int, tuple[Query, _Template, sql.Sql]] = {}  # by the object's address, which it holds
        self.looked = 0  # how often a query was looked through

    def statement(self, query: Query) -> sql.Sql:
        """The statement for a query, with its values; what it needs is there then."""
        asked = self._asked.get(id(query))
        if asked is not None and asked[1].slots is self._columns.read():
            self._columns.use(asked[1].needs)
            return asked[2]
        found, values = self._template(query)
        filled = [values[each.number] if type(each) is sql.Hole else each for each in found.values]
        made = sql.Sql(found.text, tuple(filled) if query.limit is None else (*filled, query.limit))
        if _CHANGING.isdisjoint(map(_kind, values)):
            if len(self._asked) >= QUERIES_MAX:
                self._asked.clear()
            self._asked[id(query)] = (query, found, made)
        return made

    def _template(self, query: Query) -> tuple[_Template, list[Column]]:
        self.looked += 1
        try:
            key, values = shape(query)
            found = self._known.get(key)
        except (TypeError, AttributeError, RecursionError):  # it is no query; that says why
            check(query)
            raise
        if found is None or (query.limit is not None and query.limit > LIMIT_MAX):
            check(query)
        if found is None or found.slots is not self._columns.read():
            found = self._make(query, key, values)
        else:
            self._columns.use(found.needs)
        return found, values

    def _make(self, query: Query, key: Hashable, values: list[Column]) -> _Template:
        needs = sql.needs(query)
        slots = self._columns.ensure(needs)
        holes = iter([sql.Hole(number, _kind(value)) for number, value in enumerate(values)])
        where = _emptied(query.where, holes)
        steps = tuple([Step(step.way, _emptied(step.where, holes)) for step in query.steps])
        text, held = sql.statement(replace(query, where=where, steps=steps), slots)
        if len(self._known) >= SHAPES_MAX:
            self._known.clear()
        found = _Template(text, held if query.limit is None else held[:-1], slots, needs)
        self._known[key] = found
        return found


def _emptied(part: Filter, holes: Iterator[sql.Hole]) -> Filter:
    """A filter with holes where it had values."""
    if isinstance(part, All | Any):
        return replace(part, parts=tuple([_emptied(each, holes) for each in part.parts]))
    if isinstance(part, Not):
        return Not(_emptied(part.part, holes))
    if isinstance(part, Compare):
        return Compare(part.path, part.op, next(holes))
    if isinstance(part, Contains):
        return Contains(part.path, next(holes))
    return Match(next(holes)) if isinstance(part, Match) else part  # type: ignore[arg-type]
