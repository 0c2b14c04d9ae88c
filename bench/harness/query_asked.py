"""The queries of bench/query.py, each as an Antiphon query and as SQL written by hand for a plain table."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from time import perf_counter as now
from typing import Any, NamedTuple

from antiphon.api.party import Party
from antiphon.query.filters import Fact, Match, prop
from antiphon.query.query import Query
from harness.query_data import MINUTE, OWNED, START, Ids, World, owner, time_us

TASK = Fact.TYPE.is_("task")
_OPEN = prop("done").is_(False)


class Asked(NamedTuple):
    """One question, with several values for it."""

    name: str
    is_filter: bool  # the goal is about these
    sql: str
    pairs: Sequence[tuple[Query, tuple[Any, ...]]]  # ours, and the values for the SQL


class _Maker:
    def __init__(self, world: World, ids: Ids, values: int) -> None:
        self._world = world
        self._ids = ids
        self._values = values
        self._chance = random.Random(2)

    def make(self, name: str, sql: str, pair: Callable[[], tuple[Query, tuple[Any, ...]]], **more: Any) -> Asked:
        count = more.get("values", self._values)
        return Asked(name, more.get("is_filter", False), sql, [pair() for _ in range(count)])

    def filters(self) -> Iterator[Asked]:
        select = "SELECT id FROM items WHERE"
        yield self.make("owner is", f"{select} owner = ? ORDER BY id", self._owner, is_filter=True)
        yield self.make(
            "due from, in order, first 50",
            f"{select} due >= ? ORDER BY due, id LIMIT 50",
            self._due,
            is_filter=True,
        )
        yield self.make(
            "due between, by priority, first 20",
            f"{select} due >= ? AND due < ? ORDER BY priority DESC, id LIMIT 20",
            self._urgent,
            is_filter=True,
        )
        yield self.make(
            "owner is, and not done", f"{select} owner = ? AND done = 0 ORDER BY id", self._owned, is_filter=True
        )

    def aggregates(self) -> Iterator[Asked]:
        yield self.make(
            "count of tasks not done",
            "SELECT count(*) FROM items WHERE type = 'task' AND done = 0",
            lambda: (Query(TASK & _OPEN).count(), ()),
            values=1,
        )
        yield self.make(
            "count of tasks by priority",
            "SELECT priority, count(*) FROM items WHERE type = 'task' GROUP BY 1 ORDER BY 1",
            lambda: (Query(TASK).count(group="priority"), ()),
            values=1,
        )

    def words(self) -> Iterator[Asked]:
        sql = "SELECT id FROM titles JOIN items ON items.n = titles.rowid WHERE titles MATCH ? ORDER BY id"
        yield self.make("a word", sql, lambda: self._match(1))
        yield self.make("two words", sql, lambda: self._match(2))

    def ways(self) -> Iterator[Asked]:
        children = "SELECT id FROM items WHERE parent"
        yield self.make("tasks of a board", f"{children} = ? ORDER BY id", self._board)
        yield self.make(
            "project → boards → tasks not done",
            f"{children} IN (SELECT id FROM items WHERE parent = ?) AND done = 0 ORDER BY id",
            self._project,
            values=max(1, self._values // 10),
        )
        yield self.make("links of a task", "SELECT target FROM items WHERE source = ? ORDER BY target", self._links)
        yield self.make(
            "what a task refers to", "SELECT target FROM refs WHERE source = ? ORDER BY target", self._refers
        )
        yield self.make(
            "what refers to a task", "SELECT source FROM refs WHERE target = ? ORDER BY source", self._referred
        )

    # -- values

    def _loud(self) -> int:
        """Any task that is not quiet."""
        return self._chance.randrange(self._world.quiet, len(self._world.tasks))

    def _an_owner(self) -> str:
        return owner(self._chance.randrange((len(self._world.tasks) - self._world.quiet) // OWNED))

    def _owner(self) -> tuple[Query, tuple[Any, ...]]:
        who = self._an_owner()
        return Query(prop("owner") == who), (who,)

    def _owned(self) -> tuple[Query, tuple[Any, ...]]:
        who = self._an_owner()
        return Query((prop("owner") == who) & _OPEN), (who,)

    def _due(self) -> tuple[Query, tuple[Any, ...]]:
        due = self._world.tasks[self._loud()].due
        return Query(prop("due") >= due).order_by("due").take(50), (time_us(due),)

    def _urgent(self) -> tuple[Query, tuple[Any, ...]]:
        low = START + self._chance.randrange(len(self._world.tasks) // 4) * MINUTE
        high = low + 100 * MINUTE
        where = (prop("due") >= low) & (prop("due") < high)
        return Query(where).order_by("priority", descending=True).take(20), (time_us(low), time_us(high))

    def _match(self, count: int) -> tuple[Query, tuple[Any, ...]]:
        text = " ".join(self._world.tasks[self._loud()].title.split()[:count])
        return Query(Match(text)), (text,)

    def _board(self) -> tuple[Query, tuple[Any, ...]]:
        board = self._ids.boards[self._world.tasks[self._loud()].board]
        return Query(Fact.ID.is_(board)).children(), (board,)

    def _project(self) -> tuple[Query, tuple[Any, ...]]:
        project = self._ids.projects[self._chance.randrange(1, len(self._ids.projects))]
        return Query(Fact.ID.is_(project)).children().children(_OPEN), (project,)

    def _links(self) -> tuple[Query, tuple[Any, ...]]:
        task = self._ids.tasks[self._chance.choice(self._world.links)[0]]
        return Query(Fact.ID.is_(task)).links().target(), (task,)

    def _refers(self) -> tuple[Query, tuple[Any, ...]]:
        task = self._ids.tasks[self._loud()]
        return Query(Fact.ID.is_(task)).references(), (task,)

    def _referred(self) -> tuple[Query, tuple[Any, ...]]:
        task = self._ids.tasks[self._loud()]
        return Query(Fact.ID.is_(task)).referrers(), (task,)


def questions(world: World, ids: Ids, values: int) -> list[Asked]:
    maker = _Maker(world, ids, values)
    return [*maker.filters(), *maker.aggregates(), *maker.words(), *maker.ways()]


# -- answers


def answer(party: Party, query: Query) -> list[Any]:
    if query.aggregate is not None:
        found = party.aggregate(query)
        return [found] if query.aggregate.group is None else list(found)
    return list(party.query(query).ids)


def answer_bare(db: sqlite3.Connection, sql: str, values: tuple[Any, ...]) -> list[Any]:
    rows = db.execute(sql, values).fetchall()
    return [row[0] for row in rows] if rows and len(rows[0]) == 1 else rows


def agree(asked: Asked, party: Party, db: sqlite3.Connection) -> float:
    """Check that both sides give the same rows in the same order; return the average number of rows."""
    found = 0
    for query, values in asked.pairs:
        ours, theirs = answer(party, query), answer_bare(db, asked.sql, values)
        assert ours == theirs, f"{asked.name}: {len(ours)} rows, and bare {len(theirs)}"
        found += len(ours)
    return found / len(asked.pairs)


def seconds(asked: Asked, party: Party) -> float:
    """Seconds of one of our queries: the median, since other programs on the core would spoil a mean."""
    return median(_timed(partial(answer, party, query)) for query, _ in asked.pairs)


def seconds_bare(asked: Asked, db: sqlite3.Connection) -> float:
    return median(_timed(partial(answer_bare, db, asked.sql, values)) for _, values in asked.pairs)


def _timed(ask: Callable[[], object]) -> float:
    start = now()
    ask()
    return now() - start
