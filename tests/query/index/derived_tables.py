"""Everything that an item store and its index hold, in a form that does not depend on how it came about."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from antiphon.model import item_codec
from antiphon.party.engine.engine import Engine
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import ItemStore
from antiphon.query.filters import Match, prop
from antiphon.query.index.index import ItemIndex
from antiphon.query.index.tables import FIXED
from antiphon.query.query import Query

#: Queries that make a column, a list, an order and the words, so that the index keeps them.
QUERIES = (
    Query(prop("a") == 1),
    Query(prop("b").has(1)),
    Query(prop("b").has("x")).order_by("a", descending=True).take(3),
    Query(Match("a")),
)
_SHADOWS = ("words_", "sqlite_")  # parts of other tables, and statistics

Rows = set[Any]


def derived(party: PartyProcessor) -> dict[str, Rows]:
    """Return the rows of every table. A table that is not known here is an error: it needs a law of its own."""
    index = party.attach(ItemIndex)
    assert isinstance(index, ItemIndex)
    party.items()  # all of the snapshot
    for query in QUERIES:
        index.run(query)
    with party.locked() as engine:
        engine.save()
        items = engine.items
        assert isinstance(items, ItemStore)
        db = items._db
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert {name for name in names if not name.startswith(_SHADOWS)} == _TABLES.keys()
        return {name: rows(engine, db) for name, rows in _TABLES.items()}


def _meta(engine: Engine, db: sqlite3.Connection) -> Rows:
    return set(db.execute("SELECT key, value FROM meta WHERE key IN ('format', 'party')")) | {engine.items.base()}


def _feeds(engine: Engine, db: sqlite3.Connection) -> Rows:
    return {
        (lane.feed, lane.position, lane.lamport, lane.hash, lane.base, lane.base_lamport, lane.fault, *lane.voids)
        for lane in engine.items.lanes()
        if lane.position
    }


def _items(engine: Engine, db: sqlite3.Connection) -> Rows:
    """The canonical bytes of each item. Its record also tells which of them are of the base, so records may differ."""
    rows = db.execute("SELECT id, model, version, parent, deleted, opaque, guarded FROM items").fetchall()
    records = engine.items.load([row[0] for row in rows])
    states = {item: item_codec.decode(record, engine.models) for item, record in records.items() if record}
    return {(*row, item_codec.snapshot(states[row[0]]) if row[0] in states else b"") for row in rows}


def _postings(engine: Engine, db: sqlite3.Connection) -> Rows:
    """The messages of each item beyond the base."""
    lanes = {lane.number: lane for lane in engine.items.lanes()}
    found: Rows = set()
    for (item,) in db.execute("SELECT DISTINCT item FROM postings").fetchall():
        for number, start, stop in engine.items.postings(item):
            lane = lanes[number]
            found.update((item, lane.feed, seq) for seq in range(max(start, lane.base), stop))
    return found


def _refused(engine: Engine, db: sqlite3.Connection) -> Rows:
    """The refused messages beyond the base. A store that begins at a snapshot does not read those before it."""
    bases = {lane.feed: lane.base for lane in engine.items.lanes()}
    return {row for row in db.execute("SELECT feed, seq, item, reason FROM refused") if row[1] >= bases[row[0]]}


def _docs(engine: Engine, db: sqlite3.Connection) -> Rows:
    slots = sorted((path, f"v{slot}") for slot, path in _parts(db, "column"))
    names = ", ".join(["deleted", *FIXED.values(), *(name for _, name in slots)])
    return {tuple(path for path, _ in slots), *db.execute(f"SELECT {names} FROM docs")}


def _parts(db: sqlite3.Connection, kind: str) -> list[tuple[Any, str]]:
    return db.execute("SELECT slot, value FROM parts WHERE kind = ?", (kind,)).fetchall()


def _members(engine: Engine, db: sqlite3.Connection) -> Rows:
    paths = dict(_parts(db, "members"))
    rows = db.execute("SELECT slot, value, id FROM members LEFT JOIN docs USING (n)")
    return {(paths[slot], value, item) for slot, value, item in rows}


def _words(engine: Engine, db: sqlite3.Connection) -> Rows:
    db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, instance)")
    return set(db.execute("SELECT term, offset, id FROM temp.vocabulary LEFT JOIN docs ON docs.n = doc"))


def _kept(engine: Engine, db: sqlite3.Connection) -> Rows:
    """Which columns, lists and orders exist; not in which slot."""
    names = {f"v{slot}": path for slot, path in _parts(db, "column")}
    orders = {
        json.dumps([names.get(slot.partition("_")[0]), slot.partition("_")[2]]) for slot, _ in _parts(db, "order")
    }
    return (
        orders | {("list", path) for _, path in _parts(db, "members")} | {*_parts(db, "words"), *_parts(db, "format")}
    )


def _plain(question: str) -> Callable[[Engine, sqlite3.Connection], Rows]:
    return lambda _, db: set(db.execute(question))


_TABLES: dict[str, Callable[[Engine, sqlite3.Connection], Rows]] = {
    "meta": _meta,
    "feeds": _feeds,
    "items": _items,
    "postings": _postings,
    "refused": _refused,
    "docs": _docs,
    "facts": _plain("SELECT id, data, claims FROM facts LEFT JOIN docs USING (n)"),
    "edges": _plain("SELECT kind, id, edges.target FROM edges LEFT JOIN docs ON docs.n = edges.source"),
    "claims": _plain("SELECT parent, child FROM claims"),
    "forks": _plain("SELECT old, new, key FROM forks"),
    "members": _members,
    "words": _words,
    "parts": _kept,
}
