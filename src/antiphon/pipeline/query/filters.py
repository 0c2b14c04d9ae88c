"""Filters of a query as columns of Spark, over items as stage `seen` has them.

Comparisons are of sort keys, as bytes, so SQL says them exactly. What it cannot say is left to `evaluate.passes`, in a
function of Python's that gets the facts in Arrow batches: words to match, whole values, paths of more than four keys,
and comparisons with a value whose key is longer than what is kept of keys.

Null is as good as false, for filters are made of AND and OR; only NOT has to look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any as AnyValue

import pyarrow as pa
from pyspark.sql import Column, functions as f
from pyspark.sql.pandas.functions import arrow_udf

from antiphon.pipeline.tables.facts_column import KEYS_MAX, name_of
from antiphon.pipeline.tables.sort_key import CONTAINER_KIND, NO_ELEMENTS, REFERENCE_KIND, TEXT, is_whole, key_of
from antiphon.query.codec.facts import decode_rest
from antiphon.query.evaluate import passes
from antiphon.query.facts import MISSING, Missing
from antiphon.query.filters import All, Any, Compare, Contains, Fact, Filter, Has, Match, Not, Path

Function = Callable[..., AnyValue]
_COLUMNS = {Fact.TYPE: "type", Fact.MODEL: "model", Fact.NAME: "name"}  # which Parquet can skip by
_OPS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda found, wanted: found == wanted,
    "<": lambda found, wanted: found < wanted,
    "<=": lambda found, wanted: found <= wanted,
    ">": lambda found, wanted: found > wanted,
    ">=": lambda found, wanted: found >= wanted,
}


def condition(where: Filter) -> Column:
    """Whether an item is as a filter wants it."""
    if isinstance(where, All):
        return joined([condition(part) for part in where.parts], lambda one, other: one & other, empty=True)
    if isinstance(where, Any):
        parts = [*_sets(where.parts), *(condition(part) for part in where.parts if not _is_plain(part))]
        return joined(parts, lambda one, other: one | other, empty=False)
    if isinstance(where, Not):
        return ~f.coalesce(condition(where.part), f.lit(False))
    if _is_beyond(where):
        return _in_python(where)
    if isinstance(where, Has):
        return key(where.path).isNotNull()
    if isinstance(where, Contains):
        return f.array_contains(f.col("members")[name_of(where.path)], f.lit(key_of(where.value)))
    assert isinstance(where, Compare)
    return _compare(where)


def key(path: Path) -> Column:
    """The sort key of what is at a path, or its beginning; null if nothing is."""
    if path is Fact.ID or path is Fact.PARENT:
        return f.concat(f.lit(bytes([REFERENCE_KIND])), f.col("item" if path is Fact.ID else "parent"))
    if path is Fact.MODEL:
        return f.concat(f.lit(bytes([TEXT])), f.col("model").cast("binary"))
    if _is_deep(path):
        return _made(path)(*_said())  # type: ignore[no-any-return]
    found = f.col("keys")[name_of(path)]
    return f.coalesce(found, f.lit(NO_ELEMENTS)) if path in (Fact.EMBEDS, Fact.REFERENCES) else found


def whole_key(path: Path) -> Column:
    """The whole of it, to sort and to group by."""
    if path is Fact.ID or path is Fact.PARENT or _is_deep(path):
        return key(path)
    return _completed(path)(key(path), *_said())  # type: ignore[no-any-return]


def needs_parents(where: Filter) -> bool:
    if isinstance(where, All | Any):
        return any(needs_parents(part) for part in where.parts)
    if isinstance(where, Not):
        return needs_parents(where.part)
    return isinstance(where, Compare | Has | Contains) and where.path is Fact.PARENT


def joined(parts: Sequence[Column], by: Callable[[Column, Column], Column], *, empty: bool) -> Column:
    """All parts, in a tree rather than in a row: Spark goes through an expression by recursion."""
    if len(parts) < 2:
        return reduce(by, parts) if parts else f.lit(empty)
    middle = len(parts) // 2
    return by(joined(parts[:middle], by, empty=empty), joined(parts[middle:], by, empty=empty))


# -- inside


def _compare(where: Compare) -> Column:
    wanted = key_of(where.value)
    kind = wanted[0]
    found, op = key(where.path), _OPS[where.op]
    if where.op == "=":
        name = _COLUMNS.get(where.path) if isinstance(where.path, Fact) else None
        if name is not None and isinstance(where.value, str):
            return f.col(name) == f.lit(str.__str__(where.value))
        return found == f.lit(wanted)
    if kind == CONTAINER_KIND:
        return f.lit(False)
    within = found < f.lit(bytes([kind + 1])) if where.op[0] == ">" else found >= f.lit(bytes([kind]))
    return op(found, f.lit(wanted)) & within


def _is_plain(where: Filter) -> bool:
    """Whether it is one of those equalities that are asked together."""
    return isinstance(where, Compare) and where.op == "=" and not _is_beyond(where)


def _sets(parts: Iterable[Filter]) -> list[Column]:
    """Equalities of which one must hold, by path."""
    wanted: dict[Path, list[Compare]] = {}
    for part in parts:
        if isinstance(part, Compare) and _is_plain(part):
            wanted.setdefault(part.path, []).append(part)
    return [
        _compare(some[0]) if len(some) == 1 else key(path).isin([key_of(one.value) for one in some])
        for path, some in wanted.items()
    ]


def _is_beyond(where: Filter) -> bool:
    """Whether it takes Python to say whether it holds."""
    if isinstance(where, Match) or (isinstance(where, Compare | Has) and _is_deep(where.path)):
        return True
    if isinstance(where, Contains) and where.path and _is_deep(where.path):  # elements of a whole value are kept
        return True
    return isinstance(where, Compare | Contains) and not is_whole(key_of(where.value))


def _is_deep(path: Path) -> bool:
    """Whether no key is kept of it; none is of a whole value, either, which hardly anybody compares."""
    return not isinstance(path, Fact) and not 0 < len(path) <= KEYS_MAX


def _said() -> tuple[Column, Column]:
    """The facts of an item, for functions of Python's: all but the value, and the value."""
    return f.col("facts"), f.col("value")


def _in_python(where: Filter) -> Column:
    """What `evaluate` says. Facts come without the parent here: it is a reference, and no long value is."""

    def act(facts: pa.Array, values: pa.Array) -> pa.Array:
        rows = zip(facts.to_pylist(), values.to_pylist(), strict=True)
        return pa.array([data is not None and passes(where, decode_rest(data, value)) for data, value in rows])

    return in_arrow(act, "boolean")(*_said())  # type: ignore[no-any-return]


def _completed(path: Path) -> Function:
    """Keys, and those of which only the beginning is kept made anew from the facts."""

    def act(kept: pa.Array, facts: pa.Array, values: pa.Array) -> pa.Array:
        found = kept.to_pylist()
        for at, one in enumerate(found):
            if one is not None and not is_whole(one):
                found[at] = _key_in(facts[at].as_py(), values[at].as_py(), path)
        return pa.array(found, pa.binary())

    return in_arrow(act, "binary")


def _made(path: Path) -> Function:
    """Keys of what lies too deep to be kept."""

    def act(facts: pa.Array, values: pa.Array) -> pa.Array:
        rows = zip(facts.to_pylist(), values.to_pylist(), strict=True)
        return pa.array([_key_in(data, value, path) for data, value in rows], pa.binary())

    return in_arrow(act, "binary")


def in_arrow(act: Function, kind: str) -> Function:
    """A function of arrays, which gives one of as many values, for columns of Spark."""
    found: Function = arrow_udf(act, kind)  # type: ignore[call-overload]
    return found


def _key_in(data: bytes | None, value: str | None, path: Path) -> bytes | None:
    found = MISSING if data is None else decode_rest(data, value).get(path)
    return None if isinstance(found, Missing) else key_of(found)
