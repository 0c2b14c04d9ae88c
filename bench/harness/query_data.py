"""The rows of bench/query.py: projects with boards with tasks, as a party's items and as a plain SQLite table.

Some boards are quiet: nothing but what the benchmark itself writes and asks there has to do with their tasks, whose
owners, words and times are found nowhere else. All sizes have the same quiet boards.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from antiphon.api.party import Party
from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.feed.header import Kind
from antiphon.model.item_state import META
from antiphon.model.message import Genesis, wrap, write_genesis
from antiphon.model.object.model import ObjectModel
from antiphon.model.value import Reference
from harness.live_feeds import Scribe

OBJECT = ObjectModel()
TASKS = 100  # of a board
BOARDS = 50  # of a project
QUIET_BOARDS = 5
OWNED = 20  # tasks of one owner
PRIORITIES = 10
TITLE_WORDS = 5
START = datetime(2026, 1, 1, tzinfo=UTC)
QUIET_START = datetime(2020, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SYLLABLES = ("ka", "lo", "mi", "ne", "ru", "so", "ta", "vi", "be", "du", "fo", "gi")
WORDS = tuple(a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES)


class Task(NamedTuple):
    board: int
    title: str
    priority: int
    done: bool
    due: datetime
    owner: str
    after: int | None  # the task that it refers to


class World(NamedTuple):
    """Sizes of the generated data. Project 0 has the quiet boards."""

    boards: list[int]  # the project of each
    tasks: list[Task]
    links: list[tuple[int, int]]

    @property
    def projects(self) -> int:
        return 1 + self.boards[-1]

    @property
    def quiet(self) -> int:
        """The number of quiet tasks, which are the first ones."""
        return QUIET_BOARDS * TASKS

    @property
    def items(self) -> int:
        return self.projects + len(self.boards) + len(self.tasks) + len(self.links)


class Ids(NamedTuple):
    """The ids of the written items, in the order of generation."""

    projects: list[bytes]
    boards: list[bytes]
    tasks: list[bytes]
    links: list[bytes]


def make(tasks: int) -> World:
    chance = random.Random(tasks)
    boards = [0 if n < QUIET_BOARDS else 1 + (n - QUIET_BOARDS) // BOARDS for n in range(tasks // TASKS)]
    quiet = QUIET_BOARDS * TASKS
    made = [*_tasks(0, quiet, chance, quiet=True), *_tasks(quiet, tasks, chance, quiet=False)]
    links = {(chance.randrange(quiet, tasks), chance.randrange(quiet, tasks)) for _ in range(tasks // 50)}
    return World(boards, made, sorted(links))


def _tasks(low: int, high: int, chance: random.Random, *, quiet: bool) -> Iterator[Task]:
    places = list(range(high - low))
    chance.shuffle(places)
    for n, place in zip(range(low, high), places, strict=True):
        words = chance.choices(WORDS, k=TITLE_WORDS)
        yield Task(
            board=n // TASKS,
            title=" ".join(f"quiet{word}" for word in words) if quiet else " ".join(words),
            priority=chance.randrange(PRIORITIES),
            done=not quiet and chance.random() < 0.5,
            due=(QUIET_START if quiet else START) + place // 2 * MINUTE,  # two at a time
            owner=quiet_owner((n - low) // OWNED) if quiet else owner(place // OWNED),
            after=chance.randrange(low, n) if n > low and chance.random() < 0.25 else None,
        )


def owner(number: int) -> str:
    return f"Owner {number}"


def quiet_owner(number: int) -> str:
    return f"Quiet {number}"


# -- ours


class _Pen:
    """Writes items into the device's feed, in large appends: the messages that the API would have written."""

    def __init__(self, party: Party) -> None:
        self._scribe = Scribe(party.processor.store, party.processor.authority.writer())
        self._chance = random.Random(1)
        self._types: dict[str, bytes] = {}

    def item(
        self, kind: str, values: Mapping[Any, Any], parent: bytes = b"", link: tuple[bytes, bytes] | None = None
    ) -> bytes:
        scribe, nonce = self._scribe, self._chance.randbytes(NONCE_SIZE)
        message = write_genesis(Genesis(nonce, OBJECT.name, OBJECT.version, parent, link))
        item = ItemId.derive(scribe.stamp.lamport, party=scribe.party, feed=scribe.feed, genesis=message)
        scribe.add(Kind.GENESIS, item, message)
        scribe.add(Kind.METADATA, item, wrap(Kind.METADATA, META.set(META.initial(), "type", kind, feed=scribe.feed)))
        if values:
            scribe.mutate(item, OBJECT.update(OBJECT.initial(), values, feed=scribe.feed))
        return bytes(item)

    def flush(self) -> None:
        self._scribe.flush()


def write(party: Party, world: World) -> Ids:
    """Make a party of the generated data, without an index."""
    pen = _Pen(party)
    projects = [pen.item("project", {"title": f"Project {n}"}) for n in range(world.projects)]
    boards = [pen.item("board", {"title": f"Board {n}"}, projects[at]) for n, at in enumerate(world.boards)]
    tasks: list[bytes] = []
    for task in world.tasks:
        values = {name: getattr(task, name) for name in ("title", "priority", "done", "due", "owner")}
        if task.after is not None:
            values["after"] = Reference(tasks[task.after])
        tasks.append(pen.item("task", values, boards[task.board]))
    links = [pen.item("link", {}, link=(tasks[source], tasks[target])) for source, target in world.links]
    pen.flush()
    party.refresh()
    return Ids(projects, boards, tasks, links)


# -- bare SQLite

_COLUMNS = ("type", "parent", "source", "target", "priority", "done", "due", "owner")
_SCHEMA = (
    "PRAGMA page_size = 4096",
    "PRAGMA journal_mode = WAL",
    "PRAGMA cache_size = -16384",
    "CREATE TABLE items (n INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, type TEXT, parent BLOB, source BLOB, "
    "target BLOB, title TEXT, priority INTEGER, done INTEGER, due INTEGER, owner TEXT)",
    *(f"CREATE INDEX items_{name} ON items ({name}, id)" for name in _COLUMNS),
    "CREATE TABLE refs (source BLOB, target BLOB, PRIMARY KEY (source, target)) WITHOUT ROWID",
    "CREATE INDEX refs_target ON refs (target, source)",
    "CREATE VIRTUAL TABLE titles USING fts5(title, content = '', tokenize = 'unicode61')",
)


def bare(path: Path, world: World, ids: Ids) -> sqlite3.Connection:
    """The same rows in a table with real columns, and the same indexes."""
    db = sqlite3.connect(path, isolation_level=None)
    for line in _SCHEMA:
        db.execute(line)
    db.execute("BEGIN")
    rows = sorted(_rows(world, ids))
    db.executemany("INSERT INTO items VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.execute("INSERT INTO titles (rowid, title) SELECT n, title FROM items WHERE title IS NOT NULL")
    refs = [(ids.tasks[n], ids.tasks[task.after]) for n, task in enumerate(world.tasks) if task.after is not None]
    db.executemany("INSERT INTO refs VALUES (?, ?)", refs)
    db.execute("COMMIT")
    db.execute("ANALYZE")
    return db


def _rows(world: World, ids: Ids) -> Iterator[tuple[Any, ...]]:
    for n, item in enumerate(ids.projects):
        yield item, "project", None, None, None, f"Project {n}", None, None, None, None
    for n, item in enumerate(ids.boards):
        yield item, "board", ids.projects[world.boards[n]], None, None, f"Board {n}", None, None, None, None
    for item, task in zip(ids.tasks, world.tasks, strict=True):
        parent, done = ids.boards[task.board], int(task.done)
        yield item, "task", parent, None, None, task.title, task.priority, done, time_us(task.due), task.owner
    for item, (source, target) in zip(ids.links, world.links, strict=True):
        yield item, "link", None, ids.tasks[source], ids.tasks[target], None, None, None, None, None


def time_us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)
