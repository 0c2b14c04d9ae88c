"""Checks of queries. All code that runs, keeps or sends a query calls `check` first, so that no query fails half-way.

>>> from antiphon.query.filters import Fact, Match
>>> check(Query(Match("...")))
Traceback (most recent call last):
antiphon.core.errors.InvalidInput: there is no word to match in '...'
>>> check(Query().order_by(Fact.EMBEDS))
Traceback (most recent call last):
antiphon.core.errors.InvalidInput: embeds is a list, which nothing is ordered, grouped or summed by
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Value, to_proto
from antiphon.query import tokens
from antiphon.query.filters import All, Any, Compare, Contains, Fact, Filter, Has, Match, Not, Op, Path
from antiphon.query.query import Aggregate, Deleted, Function, OrderBy, Query, Step, Way

DEPTH_MAX = 16  # filters in filters
PARTS_MAX = 1000  # filters of a query, in its steps too
KEYS_MAX = 64  # in a path
PATHS_MAX = 64  # properties of one query
VALUE_DEPTH_MAX = 16
LIMIT_MAX = (1 << 63) - 1
LISTS = frozenset({Fact.EMBEDS, Fact.REFERENCES})

_OPS = frozenset(get_args(Op))
_FUNCTIONS = frozenset(get_args(Function))


def check(query: Query) -> None:
    """Raise `InvalidInput` if a query cannot run; the error says why."""
    _type(query, Query, "a query")
    _type(query.deleted, Deleted, "`deleted`")
    if query.limit is not None and query.limit > LIMIT_MAX:
        raise InvalidInput(f"the limit {query.limit} is above 2^63 - 1; leave it out")
    count = 0
    paths: set[Path] = set()
    for where in wheres(query):
        for part in _walk(where, 1):
            count += 1
            if count > PARTS_MAX:
                raise InvalidInput(f"a query of more than {PARTS_MAX} filters; split it")
            _check_part(part)
            if isinstance(part, Compare | Has | Contains):
                paths.add(part.path)
    for path in _ranked(query):
        check_path(path)
        if path in LISTS and isinstance(path, Fact):
            raise InvalidInput(f"{path.value} is a list, which nothing is ordered, grouped or summed by")
        paths.add(path)
    if len(paths) > PATHS_MAX:
        raise InvalidInput(f"a query about {len(paths)} properties; at most {PATHS_MAX}")


def check_filter(where: Filter) -> None:
    """Raise `InvalidInput` if a filter cannot be part of a query."""
    check(Query(where))


def wheres(query: Query) -> Iterator[Filter]:
    """The filters of a query and of its steps."""
    yield query.where
    for step in query.steps:
        _type(step, Step, "a step")
        _type(step.way, Way, "the way of a step")
        yield step.where


def check_path(path: Path) -> None:
    """Raise `InvalidInput` unless this is a fact, or a tuple of keys."""
    if isinstance(path, Fact):
        return
    _type(path, tuple, "a path that is no fact")
    if len(path) > KEYS_MAX:
        raise InvalidInput(f"a path of {len(path)} keys; at most {KEYS_MAX}")
    for key in path:
        _type(key, str, "a key of a path")
        to_proto(key)


def _ranked(query: Query) -> Iterator[Path]:
    """The paths that the query orders, groups or aggregates by."""
    for order in query.order:
        _type(order, OrderBy, "an order")
        yield order.path
    aggregate = query.aggregate
    if aggregate is None:
        return
    _type(aggregate, Aggregate, "an aggregate")
    if str(aggregate.function) not in _FUNCTIONS:
        raise InvalidInput(f"there is no aggregate {aggregate.function!r}; there are {', '.join(sorted(_FUNCTIONS))}")
    if aggregate.function != "count":
        yield aggregate.path
    elif aggregate.path != ():
        raise InvalidInput("a count is of items, not of a property; group by it, or filter for it")
    if aggregate.group is not None:
        yield aggregate.group


def _walk(part: Filter, depth: int) -> Iterator[Filter]:
    """A filter and all filters in it."""
    if depth > DEPTH_MAX:
        raise InvalidInput(f"filters nested more than {DEPTH_MAX} deep")
    yield part
    inner = part.parts if isinstance(part, All | Any) else (part.part,) if isinstance(part, Not) else ()
    _type(inner, tuple, "the parts of a filter")
    for each in inner:
        yield from _walk(each, depth + 1)


def _check_part(part: Filter) -> None:
    if isinstance(part, All | Any | Not):
        return
    if isinstance(part, Match):
        _type(part.text, str, "the words to match")
        to_proto(part.text)
        tokens.parse(part.text)
        return
    if not isinstance(part, Compare | Contains | Has):
        raise InvalidInput(f"{part!r} is no filter that this version knows")
    check_path(part.path)
    if isinstance(part, Compare) and str(part.op) not in _OPS:
        raise InvalidInput(f"there is no comparison {part.op!r}; there are {' '.join(sorted(_OPS))}")
    if isinstance(part, Compare | Contains):
        check_value(part.value)


def check_value(value: Value, depth: int = 0) -> None:
    """Raise `InvalidInput` if a filter cannot compare with this value."""
    if depth > VALUE_DEPTH_MAX:
        raise InvalidInput(f"a value nested more than {VALUE_DEPTH_MAX} deep")
    if isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            check_value(part, depth + 1)
    if depth == 0:
        to_proto(value)


def _type(value: object, kind: type, what: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} is a {kind.__name__}, not {value!r}")
