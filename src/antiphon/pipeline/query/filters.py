"""Filters of a query as Spark columns, over the items of stage `seen`.

Comparisons are byte comparisons of sort keys, so SQL evaluates them exactly. What SQL cannot evaluate is left to
`evaluate.passes`, in a Python UDF that gets the facts in Arrow batches: word matches, whole values, paths of more than
four keys, and comparisons with a value whose key is longer than `KEY_SIZE_MAX`.

Null counts as false: filters are combined by AND and OR, and NOT turns null into false first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any as AnyValue

import pyarrow as pa
from pyspark.sql import Column, functions as f
from pyspark.sql.pandas.functions import arrow_udf

from antiphon.pipeline.tables.facts_column import KEYS_MAX, name_of
from antiphon.pipeline.tables.sort_key import (
    CONTAINER_KIND,
    NO_ELEMENTS,
    NUMBER,
    REFERENCE_KIND,
    TEXT,
    is_complete,
    key_of,
)
from antiphon.query.codec.facts import decode_rest
from antiphon.query.evaluate import passes
from antiphon.query.facts import MISSING, Facts, Missing
from antiphon.query.filters import All, Any, Compare, Contains, Fact, Filter, Has, Match, Not, Path
from antiphon.query.packed_json import unpack

Function = Callable[..., AnyValue]
_WHOLE_FLOAT = r"[0-9](\.0|e\+)"  # 1.0 or 1e+16 in JSON, or in a text
_COLUMNS = {Fact.TYPE: "type", Fact.MODEL: "model", Fact.NAME: "name"}  # columns with Parquet statistics
_OPS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda found, wanted: found == wanted,
    "<": lambda found, wanted: found < wanted,
    "<=": lambda found, wanted: found <= wanted,
    ">": lambda found, wanted: found > wanted,
    ">=": lambda found, wanted: found >= wanted,
}


def condition(where: Filter) -> Column:
    """Return the condition that an item passes a filter."""
    if isinstance(where, All):
        return balanced([condition(part) for part in where.parts], lambda one, other: one & other, empty=True)
    if isinstance(where, Any):
        parts = [*_equalities(where.parts), *(condition(part) for part in where.parts if not _is_equality(part))]
        return balanced(parts, lambda one, other: one | other, empty=False)
    if isinstance(where, Not):
        return ~f.coalesce(condition(where.part), f.lit(False))
    if _needs_python(where):
        return _in_python(where)
    if isinstance(where, Has):
        return key(where.path).isNotNull()
    if isinstance(where, Contains):
        return f.array_contains(f.col("members")[name_of(where.path)], f.lit(key_of(where.value)))
    assert isinstance(where, Compare)
    return _compare(where)


def key(path: Path) -> Column:
    """Return the sort key of the value at a path, perhaps truncated; null if there is none."""
    if path is Fact.ID or path is Fact.PARENT:
        return f.concat(f.lit(bytes([REFERENCE_KIND])), f.col("item" if path is Fact.ID else "parent"))
    if path is Fact.MODEL:
        return f.concat(f.lit(bytes([TEXT])), f.col("model").cast("binary"))
    if _is_deep(path):
        return _deep_key(path)(*_udf_arguments())  # type: ignore[no-any-return]
    found = f.col("keys")[name_of(path)]
    return f.coalesce(found, f.lit(NO_ELEMENTS)) if path in (Fact.EMBEDS, Fact.REFERENCES) else found


def whole_key(path: Path) -> Column:
    """Return the complete sort key of the value at a path, to sort and group by."""
    if path is Fact.ID or path is Fact.PARENT or _is_deep(path):
        return key(path)
    return _complete_key(path)(key(path), *_udf_arguments())  # type: ignore[no-any-return]


def is_float(path: Path, keys: Column) -> Column:
    """True where the value at a path is a whole float. Its sort key is that of the equal int.

    Python reads the value only where a number is at the path and its JSON has a whole float anywhere.
    """
    if isinstance(path, Fact):
        return f.lit(False)

    def act(texts: pa.Array) -> pa.Array:
        found = [Facts(b"", "", 0, None if text is None else unpack(text)).get(path) for text in texts.to_pylist()]
        return pa.array([type(value) is float for value in found], pa.bool_())

    numbers = keys.isNotNull() & (f.substring(keys, 1, 1) == f.lit(bytes([NUMBER])))
    return in_arrow(act, "boolean")(f.when(numbers & f.col("value").rlike(_WHOLE_FLOAT), f.col("value")))  # type: ignore[no-any-return]


def needs_parents(where: Filter) -> bool:
    """True if a filter asks for the parent of an item."""
    if isinstance(where, All | Any):
        return any(needs_parents(part) for part in where.parts)
    if isinstance(where, Not):
        return needs_parents(where.part)
    return isinstance(where, Compare | Has | Contains) and where.path is Fact.PARENT


def balanced(parts: Sequence[Column], by: Callable[[Column, Column], Column], *, empty: bool) -> Column:
    """Combine conditions in a balanced tree: Spark walks expressions recursively, so a long chain is too deep."""
    if len(parts) < 2:
        return reduce(by, parts) if parts else f.lit(empty)
    middle = len(parts) // 2
    return by(balanced(parts[:middle], by, empty=empty), balanced(parts[middle:], by, empty=empty))


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


def _is_equality(where: Filter) -> bool:
    """True if this filter is an equality that SQL can evaluate."""
    return isinstance(where, Compare) and where.op == "=" and not _needs_python(where)


def _equalities(parts: Iterable[Filter]) -> list[Column]:
    """Combine the equalities of an OR by path, into one IN for each."""
    wanted: dict[Path, list[Compare]] = {}
    for part in parts:
        if isinstance(part, Compare) and _is_equality(part):
            wanted.setdefault(part.path, []).append(part)
    return [
        _compare(some[0]) if len(some) == 1 else key(path).isin([key_of(one.value) for one in some])
        for path, some in wanted.items()
    ]


def _needs_python(where: Filter) -> bool:
    """True if Spark SQL cannot evaluate this filter."""
    if isinstance(where, Match) or (isinstance(where, Compare | Has) and _is_deep(where.path)):
        return True
    if isinstance(where, Contains) and where.path and _is_deep(where.path):  # elements at `[]` are stored
        return True
    return isinstance(where, Compare | Contains) and not is_complete(key_of(where.value))


def _is_deep(path: Path) -> bool:
    """True if tables store no key for this path: it is longer than `KEYS_MAX`, or the whole value."""
    return not isinstance(path, Fact) and not 0 < len(path) <= KEYS_MAX


def _udf_arguments() -> tuple[Column, Column]:
    """Return the arguments of a Python UDF: the facts of an item without the value, and the value."""
    return f.col("facts"), f.col("value")


def _in_python(where: Filter) -> Column:
    """Evaluate a filter with `evaluate.passes`, in Python. The parent is not in these facts: its key is short."""

    def act(facts: pa.Array, values: pa.Array) -> pa.Array:
        rows = zip(facts.to_pylist(), values.to_pylist(), strict=True)
        return pa.array([data is not None and passes(where, decode_rest(data, value)) for data, value in rows])

    return in_arrow(act, "boolean")(*_udf_arguments())  # type: ignore[no-any-return]


def _complete_key(path: Path) -> Function:
    """Return a UDF that replaces truncated keys by complete ones, made from the facts."""

    def act(kept: pa.Array, facts: pa.Array, values: pa.Array) -> pa.Array:
        found = kept.to_pylist()
        for at, one in enumerate(found):
            if one is not None and not is_complete(one):
                found[at] = _key_in(facts[at].as_py(), values[at].as_py(), path)
        return pa.array(found, pa.binary())

    return in_arrow(act, "binary")


def _deep_key(path: Path) -> Function:
    """Return a UDF that makes the keys of a path that tables do not store."""

    def act(facts: pa.Array, values: pa.Array) -> pa.Array:
        rows = zip(facts.to_pylist(), values.to_pylist(), strict=True)
        return pa.array([_key_in(data, value, path) for data, value in rows], pa.binary())

    return in_arrow(act, "binary")


def in_arrow(act: Function, kind: str) -> Function:
    """Make a Spark UDF of a function from Arrow arrays to an array of the same length."""
    found: Function = arrow_udf(act, kind)  # type: ignore[call-overload]
    return found


def _key_in(data: bytes | None, value: str | None, path: Path) -> bytes | None:
    found = MISSING if data is None else decode_rest(data, value).get(path)
    return None if isinstance(found, Missing) else key_of(found)
