"""The tables of the item index, in the item store's SQLite file. Derived from the items, so they can be built again.

docs      a row for each item, with the columns that queries ask for: facts, and properties (v0, v1, …) on first use
facts     the same items whole, apart from docs so that its rows stay small
edges     what embeds or refers to what
claims    which items ever claimed to be under which; `docs.parent` is what follows from all claims
forks     what items were forked into, and the inception keys of views among them
members   the elements of lists that queries look into, on first use
words     a full-text index (FTS5), on first use
parts     which of these there are, and the format

No column has a type, so that SQLite converts nothing, but the numbers of items: compared with each other they must be
alike, or no index is used. They hold what `value_order.column` gives, and item ids stand in docs
and edges as references, which makes all comparisons alike.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.core.errors import BadEncoding, DamagedItems, StoreClosed, StoreError
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.query.filters import Fact
from antiphon.query.query import Way
from antiphon.query.value_order import REFERENCE

FORMAT = "antiphon.index.4"
EMBEDS, REFERENCES = 1, 2  # kinds of edges
EDGES = {
    Way.EMBEDS: EMBEDS,
    Way.EMBEDDERS: EMBEDS,
    Way.REFERENCES: REFERENCES,
    Way.REFERRERS: REFERENCES,
}
#: Facts with a column of their own; the other ones are lists.
FIXED = {
    fact: fact.value
    for fact in (
        Fact.ID,
        Fact.MODEL,
        Fact.VERSION,
        Fact.TYPE,
        Fact.NAME,
        Fact.CREATED,
        Fact.SOURCE,
        Fact.TARGET,
        Fact.VIEW_CLASS,
        Fact.VIEW_KEY,
        Fact.PARENT,
    )
}
_INDEXED = ("type", "model")
_SPARSE = ("parent", "source", "target", "view_class", "view_key")  # most items have none
_TABLES = ("docs", "facts", "edges", "claims", "forks", "members", "parts", "words")

_SCHEMA = [
    f"CREATE TABLE docs (n INTEGER PRIMARY KEY, deleted, {', '.join(FIXED.values())}, UNIQUE (id))",
    *(f"CREATE INDEX docs_{name} ON docs ({name}, id, deleted)" for name in _INDEXED),
    *(f"CREATE INDEX docs_{name} ON docs ({name}, id, deleted) WHERE {name} IS NOT NULL" for name in _SPARSE),
    "CREATE TABLE facts (n INTEGER PRIMARY KEY, data BLOB NOT NULL, claims BLOB NOT NULL)",
    "CREATE TABLE edges (kind, source INTEGER, target, PRIMARY KEY (kind, source, target)) WITHOUT ROWID",
    "CREATE INDEX edges_target ON edges (kind, target, source)",
    "CREATE TABLE claims (parent, child, PRIMARY KEY (parent, child)) WITHOUT ROWID",
    "CREATE TABLE forks (old, new, key, PRIMARY KEY (old)) WITHOUT ROWID",
    "CREATE INDEX forks_new ON forks (new, old)",
    "CREATE TABLE members (slot, value, n, PRIMARY KEY (slot, value, n)) WITHOUT ROWID",
    "CREATE TABLE parts (kind, slot, value, PRIMARY KEY (kind, slot)) WITHOUT ROWID",
]
CREATE_WORDS = "CREATE VIRTUAL TABLE words USING fts5(text, content = '', columnsize = 0, tokenize = 'ascii')"


def create(db: sqlite3.Connection) -> None:
    """Make the tables, unless they are there."""
    with guarded(), transaction(db):
        if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'parts'").fetchone() is None:
            for line in _SCHEMA:
                db.execute(line)
            db.execute("INSERT INTO parts VALUES ('format', 0, ?)", (FORMAT,))


def clear(db: sqlite3.Connection) -> None:
    """Take all tables away, with the columns that queries have added."""
    with guarded(), transaction(db):
        for name in _TABLES:
            db.execute(f"DROP TABLE IF EXISTS {name}")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, in the caller's transaction or in one of its own."""
    begin, end, undo = ("SAVEPOINT parts", "RELEASE parts", "ROLLBACK TO parts; RELEASE parts")
    if not db.in_transaction:
        begin, end, undo = ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
    db.execute(begin)
    try:
        yield
        db.execute(end)
    except BaseException:
        if db.in_transaction:  # SQLite may have ended it by itself, when the disk was full say
            for line in undo.split("; "):
                db.execute(line)
        raise


class guarded:  # noqa: N801 - half the price of a generator, for every query
    """SQLite's errors as ours."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if error is not None:
            raise_ours(error)


def raise_ours(error: BaseException) -> None:
    ours = _ours(error)
    if ours is not error:
        raise ours from error


def _ours(error: BaseException) -> BaseException:
    if isinstance(error, sqlite3.ProgrammingError):
        return StoreClosed(f"the item index cannot be read: {error}")
    # SQLITE_ERROR: the tables are not ours.
    if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
        return StoreError(f"the item index cannot be read or written: {error}")
    if isinstance(error, sqlite3.Error | UnicodeError | OverflowError):
        return _damaged(error)
    return _damaged(error) if isinstance(error, BadEncoding) and not isinstance(error, DamagedItems) else error


def _damaged(error: BaseException) -> DamagedItems:
    return DamagedItems(f"the item index is damaged: {error}; it is built again")


def ref(item: bytes) -> bytes:
    """An item id as docs and edges hold it."""
    return _REFERENCE + item


def bare(stored: object) -> bytes:
    """The item id in such a column; empty for none."""
    if stored is None:
        return b""
    if not isinstance(stored, bytes) or len(stored) != 1 + ITEM_ID_SIZE:
        raise DamagedItems(f"the item index is damaged: {stored!r} is no item id; it is built again")
    return stored[1:]


_REFERENCE = bytes([REFERENCE])


def ids_of(rows: list[tuple[object]]) -> list[bytes]:
    """The ids in rows of them, without the tag."""
    found = [row[0] for row in rows]
    try:
        whole = b"".join(found)  # type: ignore[arg-type]
    except TypeError as error:
        raise _damaged(error) from None
    if len(whole) != ITEM_ID_SIZE * len(found):
        raise DamagedItems("the item index is damaged: an id that is none; it is built again")
    return found  # type: ignore[return-value]
