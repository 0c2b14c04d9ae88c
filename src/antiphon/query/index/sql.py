"""A query as one SQL statement over the tables of the item index.

Three-valued logic does no harm: filters are AND and OR over comparisons, for which NULL acts as false, and NOT is
written IS NOT TRUE. A comparison must stay within a kind, which SQLite does not know: so `> 3` becomes
`> 3 AND < ''`, since all text sorts after all numbers, and all blobs after all text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any as AnyValue, NamedTuple

from antiphon.query import tokens as words
from antiphon.query.filters import All, Any, Compare, Contains, Fact, Filter, Has, Match, Not, Path
from antiphon.query.index.tables import EDGES, EMBEDS, FIXED, REFERENCES
from antiphon.query.query import Aggregate, Deleted, OrderBy, Query, Way
from antiphon.query.validate import wheres
from antiphon.query.value_order import CONTAINER, column, kind_of, sort_key


class Sql(NamedTuple):
    """A piece of SQL with the values for its question marks."""

    text: str
    values: tuple[AnyValue, ...] = ()


class Hole:
    """A placeholder for a value in a statement: only its kind matters."""

    __slots__ = ("kind", "number")

    def __init__(self, number: int, kind: int) -> None:
        self.number = number
        self.kind = kind


class Slots(NamedTuple):
    """The columns and member lists that the index keeps for earlier queries."""

    columns: dict[Path, int] = {}  # noqa: RUF012
    members: dict[Path, int] = {}  # noqa: RUF012
    words: bool = False
    orders: frozenset[str] = frozenset()  # names of indexes


class Needs(NamedTuple):
    """The columns, member lists and word index that a query requires."""

    columns: set[Path]
    members: set[Path]
    words: bool = False
    first: OrderBy | None = None  # the order of a query with a limit, which an index spares to sort


_TRUE, _FALSE = Sql("1"), Sql("0")
_DELETED = {Deleted.HIDDEN: "{}.deleted = 0", Deleted.ONLY: "{}.deleted = 1", Deleted.SHOWN: "1"}
_LISTS = {Fact.EMBEDS: EMBEDS, Fact.REFERENCES: REFERENCES}
_ONWARD = {Way.PARENT: "parent", Way.SOURCE: "source", Way.TARGET: "target"}
_BACKWARD = {Way.CHILDREN: "parent", Way.LINKS: "source", Way.BACKLINKS: "target"}


# -- requirements


def needs(query: Query) -> Needs:
    """The requirements of a query."""
    columns = {order.path for order in query.order}
    found = Needs(columns, set())
    aggregate = query.aggregate
    if aggregate is not None and aggregate.function != "count":
        columns.add(aggregate.path)
    if aggregate is not None and aggregate.group is not None:
        columns.add(aggregate.group)
    for where in wheres(query):
        found = _needs(where, found)
    first = query.order[0] if query.order and query.limit is not None else None
    return Needs({path for path in columns if path not in FIXED}, found.members, found.words, first)


def _needs(where: Filter, found: Needs) -> Needs:
    if isinstance(where, All | Any):
        for part in where.parts:
            found = _needs(part, found)
    elif isinstance(where, Not):
        return _needs(where.part, found)
    elif isinstance(where, Compare | Has):
        found.columns.add(where.path)
    elif isinstance(where, Contains) and not isinstance(where.path, Fact):
        found.members.add(where.path)
    elif isinstance(where, Match):
        return found._replace(words=True)
    return found


# -- statements


def statement(query: Query, slots: Slots) -> Sql:
    """The statement of a query. Ids are sorted only for an order or a limit. For aggregates see `_aggregate`."""
    last = f"d{len(query.steps)}"
    where = _stage(query, len(query.steps), slots)
    if query.aggregate is not None:
        return _aggregate(query.aggregate, where, last, slots)
    text = f"SELECT substr({last}.id, 2) FROM docs {last} WHERE {where.text}"  # noqa: S608
    if not query.order and query.limit is None:
        return Sql(text, where.values)
    text += f" ORDER BY {', '.join([*(_order(order, last, slots) for order in query.order), f'{last}.id'])}"
    return Sql(text, where.values) if query.limit is None else Sql(text + " LIMIT ?", (*where.values, query.limit))


def _stage(query: Query, number: int, slots: Slots) -> Sql:
    """The condition on the items of a query after so many steps."""
    alias = f"d{number}"
    where = query.where if number == 0 else query.steps[number - 1].where
    parts = [condition(where, alias, slots), Sql(shown(query.deleted, alias))]
    if number:
        before, origin = _stage(query, number - 1, slots), f"d{number - 1}"
        parts.append(
            along(
                query.steps[number - 1].way,
                alias,
                lambda name: Sql(f"SELECT {origin}.{name} FROM docs {origin} WHERE {before.text}", before.values),  # noqa: S608
            )
        )
    return _joined([part for part in parts if part != _TRUE], "AND")


def shown(deleted: Deleted, alias: str) -> str:
    """The condition on the deletion of items."""
    return _DELETED[deleted].format(alias)


def along(way: Way, alias: str, origins: Callable[[str], Sql]) -> Sql:
    """The condition on items that a way leads to; `origins` gives the SQL for a column of its start items."""
    if way in _ONWARD:
        ends = origins(_ONWARD[way])
        return Sql(f"{alias}.id IN ({ends.text})", ends.values)
    if way in _BACKWARD:
        ids = origins("id")
        return Sql(f"{alias}.{_BACKWARD[way]} IN ({ids.text})", ids.values)
    if way in (Way.EMBEDS, Way.REFERENCES):
        numbers = origins("n")
        edges = f"SELECT target FROM edges WHERE kind = {EDGES[way]} AND source IN ({numbers.text})"  # noqa: S608
        return Sql(f"{alias}.id IN ({edges})", numbers.values)
    ids = origins("id")
    edges = f"SELECT source FROM edges WHERE kind = {EDGES[way]} AND target IN ({ids.text})"  # noqa: S608
    return Sql(f"{alias}.n IN ({edges})", ids.values)


def _order(order: OrderBy, alias: str, slots: Slots) -> str:
    name = _column(order.path, alias, slots)
    return f"{name} DESC" if order.descending else f"{name} NULLS LAST"  # NULL is the least anyway


def _aggregate(aggregate: Aggregate, where: Sql, alias: str, slots: Slots) -> Sql:
    """Rows of (value), or of (group, value); for sums and means a row for each number, in the order of groups.

    Of an equal int and float, SQLite's min and max may return either. A query returns the int.
    """
    function, value, tests = aggregate.function, "count(*)", [where.text]
    numbers, extreme = function in ("sum", "mean"), function in ("min", "max")
    name = "" if function == "count" else _column(aggregate.path, alias, slots)
    if name:
        value = name if numbers else f"{function}({name})"
        tests.append(f"{name} < ''" if numbers else f"{name} IS NOT NULL")
    if aggregate.group is None:
        rows = f"docs {alias} WHERE {' AND '.join(tests)}"
        text = f"SELECT {value} AS best FROM {rows}"  # noqa: S608
        if not extreme:
            return Sql(text, where.values)
        equal = f"SELECT {name} FROM {rows} AND {name} = best AND typeof({name}) = 'integer' LIMIT 1"  # noqa: S608
        chosen = f"CASE typeof(best) WHEN 'real' THEN coalesce(({equal}), best) ELSE best END"
        return Sql(f"SELECT {chosen} FROM ({text})", where.values * 2)  # noqa: S608
    if extreme:
        whole = f"{function}(CASE typeof({name}) WHEN 'integer' THEN {name} END)"
        value = f"CASE {value} WHEN {whole} THEN {whole} ELSE {value} END"
    group = _column(aggregate.group, alias, slots)
    tests.append(f"{group} IS NOT NULL")
    text = f"SELECT {group}, {value} FROM docs {alias} WHERE {' AND '.join(tests)}"  # noqa: S608
    return Sql(text + (" ORDER BY 1" if numbers else " GROUP BY 1 ORDER BY 1"), where.values)


# -- conditions


def condition(where: Filter, alias: str, slots: Slots) -> Sql:
    """A filter as a condition on a row of docs."""
    if isinstance(where, All):
        return _all(where.parts, alias, slots)
    if isinstance(where, Any):
        parts = [*_sets(where.parts, alias, slots), *(condition(part, alias, slots) for part in _rest(where.parts))]
        return _joined(parts, "OR") if parts else _FALSE
    if isinstance(where, Not):
        part = condition(where.part, alias, slots)
        return Sql(f"({part.text}) IS NOT TRUE", part.values)
    if isinstance(where, Compare):
        return _compare(where, alias, slots)
    if isinstance(where, Has):
        return Sql(f"{_column(where.path, alias, slots)} IS NOT NULL")
    if isinstance(where, Contains):
        return _contains(where, alias, slots)
    assert isinstance(where, Match)
    found = "SELECT rowid FROM words WHERE words MATCH ?"
    text: AnyValue = where.text
    return Sql(f"{alias}.n IN ({found})", (text if type(text) is Hole else words.fts_query(words.parse(text)),))


def _all(parts: Sequence[Filter], alias: str, slots: Slots) -> Sql:
    """All parts. A range with two bounds drops the bounds of its kind, which SQLite might search by instead."""
    ranges = [part for part in parts if isinstance(part, Compare) and part.op != "="]
    ends = {(part.path, _stored(part.value)[1], part.op[0]) for part in ranges}
    found = []
    for part in parts:
        if isinstance(part, Compare) and part.op != "=":
            other = (part.path, _stored(part.value)[1], "<" if part.op[0] == ">" else ">")
            found.append(_compare(part, alias, slots, open_=other not in ends))
        else:
            found.append(condition(part, alias, slots))
    return _joined(found, "AND")


def _stored(value: AnyValue) -> tuple[AnyValue, int]:
    """The stored form of a value, and its kind."""
    return (value, value.kind) if type(value) is Hole else (column(value), kind_of(sort_key(value)))


def column_name(path: Path, slots: Slots) -> str:
    """The column of docs for a path."""
    return FIXED[path] if isinstance(path, Fact) and path in FIXED else f"v{slots.columns[path]}"


def _column(path: Path, alias: str, slots: Slots) -> str:
    return f"{alias}.{column_name(path, slots)}"


def _compare(where: Compare, alias: str, slots: Slots, *, open_: bool = True) -> Sql:
    """A comparison; with `open_`, it adds the bound of the kind on the other side."""
    stored, kind = _stored(where.value)
    name = _column(where.path, alias, slots)
    if where.op == "=":
        return Sql(f"{name} = ?", (stored,))
    if kind == CONTAINER:
        return _FALSE
    low, high = _bounds(kind)
    other = (f"{name} < ?", high) if where.op in (">", ">=") else (f"{name} >= ?", low)
    if other[1] is None or not open_:
        return Sql(f"{name} {where.op} ?", (stored,))
    return Sql(f"({name} {where.op} ? AND {other[0]})", (stored, other[1]))


def _bounds(kind: int) -> tuple[str | bytes | None, str | bytes]:
    """The least bound of a kind, and its end, which is excluded."""
    if kind == 0:
        return None, ""
    return ("", b"") if kind < 0 else (bytes([kind]), bytes([kind + 1]))


def _sets(parts: Iterable[Filter], alias: str, slots: Slots) -> list[Sql]:
    """Alternative equalities, as one IN for each property."""
    values: dict[Path, list[AnyValue]] = {}
    for part in parts:
        if isinstance(part, Compare) and part.op == "=":
            values.setdefault(part.path, []).append(_stored(part.value)[0])
    return [
        Sql(f"{_column(path, alias, slots)} IN ({','.join('?' * len(found))})", tuple(found))
        for path, found in values.items()
    ]


def _rest(parts: Iterable[Filter]) -> list[Filter]:
    return [part for part in parts if not isinstance(part, Compare) or part.op != "="]


def _contains(where: Contains, alias: str, slots: Slots) -> Sql:
    stored, _ = _stored(where.value)
    if isinstance(where.path, Fact):
        if where.path not in _LISTS:
            return _FALSE
        edges = f"SELECT source FROM edges WHERE kind = {_LISTS[where.path]} AND target = ?"  # noqa: S608
        return Sql(f"{alias}.n IN ({edges})", (stored,))
    members = f"SELECT n FROM members WHERE slot = {slots.members[where.path]} AND value = ?"  # noqa: S608
    return Sql(f"{alias}.n IN ({members})", (stored,))


def _joined(parts: Sequence[Sql], by: str) -> Sql:
    """All parts joined as a balanced tree, since SQLite limits the depth of an expression."""
    if not parts:
        return _TRUE
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    left, right = _joined(parts[:middle], by), _joined(parts[middle:], by)
    return Sql(f"({left.text} {by} {right.text})", left.values + right.values)
