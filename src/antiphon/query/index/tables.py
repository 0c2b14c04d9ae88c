"""The tables of the item index, in the item store's SQLite file. Derived from the items, so they can be built again.

docs      a row for each item, with the columns that queries ask for: facts, and properties (v0, v1, …) on first use
facts     the complete facts of each item, apart from docs so that the rows of docs stay small
edges     which item embeds or refers to which
claims    which item ever claimed which parent; `docs.parent` follows from all claims
forks     the item that each forked item was forked into, and the inception keys of views among them
members   the elements of lists that queries search, from first use
words     a full-text index (FTS5), from first use
parts     which columns, lists and indexes exist, and the format

No column but the numbers of items has a type, so that SQLite converts nothing. Columns that are compared with each
other must have equal types, or SQLite uses no index. Columns hold the results of `value_order.column`; item ids in docs
and edges are stored as references, so that all comparisons are alike.
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
#: Facts with a column each; the others are lists.
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
    """Create the tables, unless they exist."""
    with guarded(), transaction(db):
        if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'parts'").fetchone() is None:
            for line in _SCHEMA:
                db.execute(line)
            db.execute("INSERT INTO parts VALUES ('format', 0, ?)", (FORMAT,))


def clear(db: sqlite3.Connection) -> None:
    """Drop all tables, with the columns that queries have added."""
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
        if db.in_transaction:  # SQLite may have ended it, for example when the disk was full
            for line in undo.split("; "):
                db.execute(line)
        raise


class guarded:  # noqa: N801 - half the cost of a generator, on every query
    """Raise the errors of SQLite as our own."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if error is not None:
            raise_ours(error)


def raise_ours(error: BaseException) -> None:
    """Raise our error for an error of SQLite; return if the error is our own already."""
    ours = _ours(error)
    if ours is not error:
        raise ours from error


def _ours(error: BaseException) -> BaseException:
    if isinstance(error, sqlite3.ProgrammingError):
        return StoreClosed(f"the item index cannot be read: {error}")
    # SQLITE_ERROR: the tables are not ours. An error without a code is of Python: a text that is not UTF-8.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
        return StoreError(f"the item index cannot be read or written: {error}")
    if isinstance(error, sqlite3.Error | UnicodeError | OverflowError):
        return _damaged(error)
    return _damaged(error) if isinstance(error, BadEncoding) and not isinstance(error, DamagedItems) else error


def _damaged(error: BaseException) -> DamagedItems:
    return DamagedItems(f"the item index is damaged: {error}; it is built again")


def ref(item: bytes) -> bytes:
    """An item id as docs and edges store it."""
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
    """The ids in rows of one column."""
    found = [row[0] for row in rows]
    try:
        whole = b"".join(found)  # type: ignore[arg-type]
    except TypeError as error:
        raise _damaged(error) from None
    if len(whole) != ITEM_ID_SIZE * len(found):
        raise DamagedItems("the item index is damaged: an id that is none; it is built again")
    return found  # type: ignore[return-value]
