"""`Prepared`: queries of one shape share one statement, compiled and checked once; only their values differ.

>>> from antiphon.query.filters import prop
>>> one, other = shape(Query(prop("age") == 7)), shape(Query(prop("age") == 8))
>>> one.key == other.key, one.values, other.values
(True, [7], [8])

A shape includes the kinds of values, as the statement does: 7 and "7" have two shapes. The same query object is not
examined again.
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
_CHANGING = frozenset({CONTAINER, BYTES})  # lists or bytearrays, for example, which may change inside the same query


class Shape(NamedTuple):
    """A query without its values, and its values."""

    key: Hashable
    values: list[Column]  # in the order of the query


class _Template(NamedTuple):
    text: str
    values: tuple[AnyValue, ...]  # holes, and values that all queries of the shape share
    slots: sql.Slots
    needs: sql.Needs


def shape(query: Query) -> Shape:
    """The shape of a query; its values are checked."""
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
        return column(value)  # always valid
    if not (kind is datetime and value.tzinfo is UTC):
        check_value(value)
    return column(value)


def _kind(stored: Column) -> int:
    if isinstance(stored, bytes):
        return stored[0]
    return -1 if isinstance(stored, str) else 0


class Prepared:
    """A cache of statements by shape, and by query object."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: dict[Hashable, _Template] = {}
        self._asked: dict[int, tuple[Query, _Template, sql.Sql]] = {}  # by the id() of the query, which it holds
        self.looked = 0  # the number of queries examined

    def statement(self, query: Query) -> sql.Sql:
        """The statement of a query with its values, after creating the columns that it requires."""
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
        except (TypeError, AttributeError, RecursionError):  # no valid query; `check` says why
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
    """A filter with holes instead of values."""
    if isinstance(part, All | Any):
        return replace(part, parts=tuple([_emptied(each, holes) for each in part.parts]))
    if isinstance(part, Not):
        return Not(_emptied(part.part, holes))
    if isinstance(part, Compare):
        return Compare(part.path, part.op, next(holes))
    if isinstance(part, Contains):
        return Contains(part.path, next(holes))
    return Match(next(holes)) if isinstance(part, Match) else part  # type: ignore[arg-type]
