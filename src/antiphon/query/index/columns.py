"""`Columns`: the columns that queries use, created and filled on first use, then updated; unused ones are reassigned.

A column whose path has not been used lately is reassigned to the new path, since dropping it would rewrite every row.
Elements of lists (for `Contains`) and words (for `Match`) are kept in the same way.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from functools import lru_cache

from antiphon.core.errors import DamagedItems
from antiphon.model.value import Value
from antiphon.query.codec.facts import decode_parts, decode_value
from antiphon.query.facts import Facts
from antiphon.query.filters import Fact, Path
from antiphon.query.index.forks import StoredForks
from antiphon.query.index.sql import Needs, Slots, column_name
from antiphon.query.index.tables import CREATE_WORDS, FORMAT, transaction
from antiphon.query.query import OrderBy
from antiphon.query.tokens import RULES, to_fts
from antiphon.query.validate import PATHS_MAX
from antiphon.query.value_order import Column, column

COLUMNS_MAX = PATHS_MAX  # of properties; and as many lists
_FILL_AT_ONCE = 1000
_LOOK_FROM = 1000  # items; with fewer, every plan is good
PUT_WORDS = "INSERT INTO words (rowid, text) VALUES (?, ?)"


class Columns:
    """The columns of an index. The tables are the record of them; only their last use is kept here."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._used: dict[tuple[str, Path], int] = {}
        self._clock = 0
        self._last: Needs | None = None
        self._rows: list[tuple[str, int, object]] = []
        self._slots = Slots()
        self._settled = False  # the slots read last are committed, and unchanged since
        self._grown = True  # there may be more items than at the last ANALYZE

    def changed(self) -> None:
        """Forget what was read: the tables may have changed, or there are more items."""
        self._settled, self._grown = False, True

    def read(self) -> Slots:
        """The slots, read from the tables, since a transaction that added some may have been rolled back."""
        if self._settled:
            return self._slots
        rows = self._db.execute("SELECT kind, slot, value FROM parts ORDER BY kind, slot").fetchall()
        if rows != self._rows:
            if ("format", 0, FORMAT) not in rows:
                raise DamagedItems("the item index is of another format; it is built again")
            found: dict[str, dict[Path, int]] = {"column": {}, "members": {}}
            for kind, slot, value in rows:
                if kind in found:
                    found[kind][_path_of(value)] = slot
            # Words by another version of Unicode, or of our rules, are created again.
            words = ("words", 0, RULES) in rows
            orders = frozenset(slot for kind, slot, _ in rows if kind == "order")
            self._slots = Slots(found["column"], found["members"], words, orders)
            self._rows = rows
        self._settled = not self._db.in_transaction
        return self._slots

    def for_writing(self) -> Slots:
        """The slots before a write. Words by other rules are no longer updated, so they are forgotten."""
        self.changed()
        slots = self.read()
        if not slots.words and any(kind == "words" for kind, _, _ in self._rows):
            self._db.execute("DELETE FROM parts WHERE kind = 'words'")
        return slots

    def ensure(self, needs: Needs) -> Slots:
        """The slots, after creating what a query requires."""
        slots = self.read()
        self.use(needs)
        missing = Needs(
            needs.columns - slots.columns.keys(),
            needs.members - slots.members.keys(),
            needs.words and not slots.words,
        )
        if any(missing):
            self._settled = False
            with transaction(self._db):
                self._make(missing, slots)
            slots = self.read()
        if needs.first is not None and not _has_order(needs.first, slots):
            self._settled = False
            with transaction(self._db):
                self._make_order(needs.first, slots)
            slots = self.read()
        return slots

    def use(self, needs: Needs) -> None:
        """Record that a query has used these columns."""
        if needs is self._last:  # the same query again, the usual case
            return
        self._last = needs
        self._clock += 1
        for path in needs.columns:
            self._used["column", path] = self._clock
        for path in needs.members:
            self._used["members", path] = self._clock

    def look(self) -> None:
        """Run ANALYZE each time that the number of items has doubled."""
        if not self._grown:
            return
        self._grown = self._db.in_transaction
        looked = next((value for kind, _, value in self._rows if kind == "looked"), 0)
        last = self._db.execute("SELECT max(n) FROM docs").fetchone()[0] or 0
        if isinstance(looked, int) and last < 2 * looked + _LOOK_FROM:
            return
        self._settled = False
        with transaction(self._db):
            self._db.execute("ANALYZE docs")
            self._db.execute("INSERT OR REPLACE INTO parts VALUES ('looked', 0, ?)", (last,))

    def _make(self, missing: Needs, slots: Slots) -> None:
        db = self._db
        columns = self._take("column", missing.columns, slots.columns)
        members = self._take("members", missing.members, slots.members)
        there = {name for _, name, *_ in db.execute("PRAGMA table_info(docs)")}
        for slot in columns.values():
            if f"v{slot}" in there:
                for name in (f"v{slot}", f"v{slot}_desc"):
                    db.execute(f"DROP INDEX IF EXISTS docs_{name}")
                    db.execute("DELETE FROM parts WHERE kind = 'order' AND slot = ?", (name,))
                db.execute(f"UPDATE docs SET v{slot} = NULL WHERE v{slot} IS NOT NULL")  # noqa: S608
            else:
                db.execute(f"ALTER TABLE docs ADD COLUMN v{slot}")
        for slot in members.values():
            db.execute("DELETE FROM members WHERE slot = ?", (slot,))
        if missing.words:
            db.execute("DROP TABLE IF EXISTS words")
            db.execute(CREATE_WORDS)
            db.execute("INSERT OR REPLACE INTO parts VALUES ('words', 0, ?)", (RULES,))
        _fill(db, Slots(columns, members, missing.words))
        for slot in columns.values():
            db.execute(f"CREATE INDEX docs_v{slot} ON docs (v{slot}, id, deleted)")
            db.execute(f"ANALYZE docs_v{slot}")

    def _make_order(self, order: OrderBy, slots: Slots) -> None:
        """Create an index for the first items of an order, with equal items by ascending id in both directions."""
        name, column = order_name(order, slots), column_name(order.path, slots)
        self._db.execute(
            f"CREATE INDEX docs_{name} ON docs ({column}{' DESC' if order.descending else ''}, id, deleted)"
        )
        self._db.execute(f"ANALYZE docs_{name}")
        self._db.execute("INSERT INTO parts VALUES ('order', ?, 0)", (name,))

    def _take(self, kind: str, paths: Iterable[Path], taken: dict[Path, int]) -> dict[Path, int]:
        """Assign a slot to each path: a free one, or the least recently used."""
        free = [slot for slot in range(COLUMNS_MAX) if slot not in set(taken.values())]
        by_use = sorted(taken, key=lambda path: (self._used.get((kind, path), 0), taken[path]))
        found: dict[Path, int] = {}
        for path in sorted(paths, key=_text_of):
            found[path] = free.pop(0) if free else taken[by_use.pop(0)]
            row = (kind, found[path], _text_of(path))
            self._db.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", row)
        return found


def order_name(order: OrderBy, slots: Slots) -> str:
    return column_name(order.path, slots) + ("_desc" if order.descending else "_asc")


def _has_order(order: OrderBy, slots: Slots) -> bool:
    there = order.path is Fact.ID or (not order.descending and order.path in {*slots.columns, Fact.TYPE, Fact.MODEL})
    return there or order_name(order, slots) in slots.orders


def _fill(db: sqlite3.Connection, slots: Slots) -> None:
    """Fill new slots in one pass over all items, in chunks."""
    forks = StoredForks(db)
    whole = bool(forks) or slots.words or any(isinstance(path, Fact) for path in slots.columns)
    sets = ", ".join(f"v{slot} = ?" for slot in slots.columns.values())
    for rows in _chunks(db):
        found = [(n, forks.led(decode_parts(data)) if whole else _of_value(data)) for n, data in rows]
        if slots.columns:
            values = [(*(column(item.get(path)) for path in slots.columns), n) for n, item in found]
            some = [row for row in values if any(value is not None for value in row[:-1])]
            db.executemany(f"UPDATE docs SET {sets} WHERE n = ?", some)  # noqa: S608
        for path, slot in slots.members.items():
            members = [(slot, value, n) for n, item in found for value in elements(item.get(path))]
            db.executemany("INSERT INTO members VALUES (?, ?, ?)", members)
        if slots.words:
            texts = [(n, to_fts(item.texts())) for n, item in found]
            db.executemany(PUT_WORDS, [row for row in texts if row[1]])


def _of_value(data: bytes) -> Facts:
    """Facts with the value alone, where nothing else is read."""
    return Facts(b"", "", 0, decode_value(data))


def _chunks(db: sqlite3.Connection) -> Iterator[list[tuple[int, bytes]]]:
    last = 0
    while rows := db.execute(
        "SELECT n, data FROM facts WHERE n > ? ORDER BY n LIMIT ?", (last, _FILL_AT_ONCE)
    ).fetchall():
        yield rows
        last = rows[-1][0]


def elements(value: Value) -> set[Column]:
    """The elements of a list, as columns."""
    return {column(element) for element in value} if isinstance(value, list | tuple) else set()


def _text_of(path: Path) -> str:
    return path.value if isinstance(path, Fact) else json.dumps(path)


@lru_cache(maxsize=1024)
def _path_of(text: str) -> Path:
    try:
        return tuple(json.loads(text)) if text.startswith("[") else Fact(text)
    except (ValueError, AttributeError, TypeError) as error:
        raise DamagedItems(f"the item index is damaged: {text!r} is no path; it is built again") from error
