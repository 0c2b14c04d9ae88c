"""`ItemIndex`: the SQLite index of the items of a party, in the file and the transactions of the item store.

>>> from antiphon.query.filters import prop
>>> index = ItemIndex(sqlite3.connect(":memory:", isolation_level=None))
>>> index.create()
>>> facts = [Facts(bytes([n]) * 16, "object", 1, {"size": n}) for n in (3, 1, 2)]
>>> index.put((each.id, encode_facts(each)) for each in facts)
>>> index.settle()
[]
>>> [found.hex()[:2] for found in index.run(Query(prop("size") >= 2)).ids]
['02', '03']
>>> index.run(Query().sum("size")).value
6
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, TypeVar

from antiphon.core.stamp import Stamp
from antiphon.model.item_state import ItemState
from antiphon.model.value import Value
from antiphon.query.codec.facts import decode_parts, encode_facts
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts, Missing, facts_of
from antiphon.query.forks import Fork
from antiphon.query.index import sql, tables, update
from antiphon.query.index.columns import Columns
from antiphon.query.index.forks import StoredForks
from antiphon.query.index.prepared import Prepared
from antiphon.query.query import Aggregate, Deleted, Query, Way
from antiphon.query.sums import mean_of, sum_of
from antiphon.query.value_order import canonical_of, value_of

_PUT_AT_ONCE = 1000
_READ_AT_ONCE = 500
_T = TypeVar("_T")


class ItemIndex:
    """An index of all items, with a column for each property that queries use. Not thread-safe: its processor is."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._columns = Columns(db)
        self._prepared = Prepared(self._columns)
        self._unsettled: set[bytes] = set()  # items whose parents are not written yet
        self._seen: set[bytes] = set()  # items that were put since parents were settled
        self._named: set[bytes] = set()  # items whose references changed with them

    # -- writing

    def create(self) -> None:
        """Create an empty index, unless it exists."""
        self._columns.changed()
        tables.create(self._db)

    def clear(self) -> None:
        """Drop the index."""
        self._columns.changed()
        tables.clear(self._db)

    def describe(self, item: ItemState) -> bytes:
        """The encoded facts of a live item, for `put`."""
        return encode_facts(facts_of(item))

    def put(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write items with their encoded facts, None for a removed one; in the caller's transaction, if there is one.

        Parents are right after the next `settle`, which belongs into the same transaction.
        """
        with tables.guarded():
            slots = self._columns.for_writing()
            for some in _chunks(rows, _PUT_AT_ONCE):
                latest = dict(some)
                self._seen.update(latest)
                self._named |= update.put(self._db, slots, latest, self._unsettled)

    def settle(self) -> list[bytes]:
        """Write the parents that follow from the claims of all items that were put since the last call.

        Returns the ids of other items whose parent or references changed with them.
        """
        seen, named, unsettled = self._seen, self._named, self._unsettled
        self._seen, self._named, self._unsettled = set(), set(), set()
        with tables.guarded():
            return sorted((update.settle_parents(self._db, unsettled) | named) - seen)

    # -- reading

    def run(self, query: Query) -> Result:
        """Run a query. The first one about a property takes longer, since it creates a column."""
        try:  # as `tables.guarded` does, without its cost
            text, values = self._prepared.statement(query)
            self._columns.look()
            rows = self._db.execute(text, values).fetchall()
            if query.aggregate is not None:
                return _aggregated(query.aggregate, rows)
            ids = tables.ids_of(rows)
        except Exception as error:
            tables.raise_ours(error)
            raise
        if not query.order and query.limit is None:
            ids.sort()  # not in SQL: with ORDER BY, SQLite might walk the index of all ids
        return Result(tuple(ids))

    def facts(self, ids: Iterable[bytes]) -> dict[bytes, Facts]:
        """The facts of the items that are here."""
        found: dict[bytes, Facts] = {}
        with tables.guarded():
            forks = StoredForks(self._db)
            for some in _chunks(ids, _READ_AT_ONCE):
                marks = ",".join("?" * len(some))
                rows = self._db.execute(
                    f"SELECT data, claims, parent FROM facts JOIN docs USING (n) WHERE id IN ({marks})",  # noqa: S608
                    [tables.ref(item) for item in some],
                )
                for data, claims, parent in rows.fetchall():
                    facts = forks.led(decode_parts(data, claims, tables.bare(parent)))
                    found[facts.id] = facts
        return found

    def everything(self) -> Iterator[Facts]:
        """The facts of all items, by ascending id."""
        with tables.guarded():
            ids = tables.ids_of(self._db.execute("SELECT substr(id, 2) FROM docs ORDER BY id").fetchall())
        for some in _chunks(ids, _READ_AT_ONCE):
            found = self.facts(some)
            yield from (found[item] for item in some if item in found)

    def children(self, item: bytes) -> list[bytes]:
        """The children of an item, deleted or not, by ascending id."""
        return self.edges(Way.CHILDREN, item)

    def edges(self, way: Way, item: bytes, deleted: Deleted = Deleted.SHOWN) -> list[bytes]:
        """The items that a way leads to from one item, which may be deleted, by ascending id."""
        where = sql.along(way, "docs", _one(tables.ref(item)))
        with tables.guarded():
            text = f"SELECT substr(docs.id, 2) FROM docs WHERE {where.text} AND {sql.shown(deleted, 'docs')}"  # noqa: S608
            return sorted(tables.ids_of(self._db.execute(text, where.values).fetchall()))

    def claims(self, item: bytes) -> Sequence[tuple[Stamp, bytes]]:
        """The claims of an item to parents, by ascending stamp, without resolving forks."""
        with tables.guarded():
            return update.claims_in(self._db, item)

    def parent(self, item: bytes) -> bytes:
        """The parent of an item; empty for none."""
        with tables.guarded():
            row = self._db.execute("SELECT parent FROM docs WHERE id = ?", (tables.ref(item),)).fetchone()
            return b"" if row is None else tables.bare(row[0])

    def above(self, item: bytes) -> list[bytes]:
        """The ancestors of an item, the nearest first."""
        found: list[bytes] = []
        while parent := self.parent(found[-1] if found else item):
            found.append(parent)
        return found

    # -- forks

    def forks(self, said: Mapping[bytes, Fork | None] | None = None) -> StoredForks:
        """The forks of the index; `said` overrides them for some items."""
        return StoredForks(self._db, said)

    def all_forks(self) -> list[Fork]:
        """The forks of all items."""
        with tables.guarded():
            rows = self._db.execute(
                "SELECT old, new, key, docs.id IS NOT NULL FROM forks LEFT JOIN docs ON docs.id = forks.new"
            ).fetchall()
            return [Fork(tables.bare(old), tables.bare(new), key, bool(here)) for old, new, key, here in rows]

    def namers(self, ends: Iterable[bytes]) -> set[bytes]:
        """The items that name one of these, along any way or by any claim; and those of these that are here."""
        with tables.guarded():
            return update.namers(self._db, ends)


def _one(stored: bytes) -> Callable[[str], sql.Sql]:
    """One item as the start of a way. If only its id is read, the item need not be here."""

    def origins(name: str) -> sql.Sql:
        return sql.Sql("?" if name == "id" else f"SELECT {name} FROM docs WHERE id = ?", (stored,))  # noqa: S608

    return origins


def _aggregated(aggregate: Aggregate, rows: Sequence[Any]) -> Result:
    function = aggregate.function
    if function in ("sum", "mean"):
        combine: Callable[[list[Any]], Value] = sum_of if function == "sum" else mean_of
        if aggregate.group is None:
            return Result(value=combine([value for (value,) in rows]))
        grouped = groupby(rows, key=lambda row: row[0])
        return Result(groups=tuple((canonical_of(group), combine([row[1] for row in some])) for group, some in grouped))
    if aggregate.group is not None:
        return Result(groups=tuple((canonical_of(group), value_of(value)) for group, value in rows))
    found = value_of(rows[0][0])
    return Result(value=None if isinstance(found, Missing) else found)


def _chunks(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
