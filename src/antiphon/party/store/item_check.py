"""Check the file of an item store without changing it. `ItemStore` itself rebuilds a damaged one when it opens it."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from antiphon.core.codec import u64
from antiphon.party.store.item_store import FORMAT, row_key

_COLUMNS = "id, model, version, parent, deleted, opaque, guarded"


def item_store_fault(path: Path, party: bytes) -> str:
    """Return what is wrong with the file of an item store; "" if nothing is.

    A file of another version is not wrong: it is made again when the party is opened.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=10)) as db:
            db.execute("BEGIN")
            return _fault(db, party)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return str(error)


def _fault(db: sqlite3.Connection, party: bytes) -> str:
    problem = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if problem != "ok":
        return problem
    found = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('format', 'party')"))
    if found.get("format") != FORMAT:
        return "" if str(found.get("format", "")).startswith("antiphon.items.") else "it is no item store"
    if found.get("party") != party:
        return "it is of another party"
    for *columns, record in db.execute(f"SELECT {_COLUMNS}, record FROM items"):  # noqa: S608
        if not _intact(record, row_key(columns)):
            return f"item {columns[0].hex()} has changed on the disk"
    for item, runs in db.execute("SELECT item, runs FROM postings"):
        if not _intact(runs, item):
            return f"the list of messages of item {item.hex()} has changed on the disk"
    for number, feed, state in db.execute("SELECT number, feed, state FROM feeds"):
        if not _intact(state, u64(number) + feed):
            return f"the state of feed {feed.hex()[:8]} has changed on the disk"
    return ""


def _intact(data: bytes, key: bytes) -> bool:
    return len(data) >= 4 and zlib.crc32(data[:-4], zlib.crc32(key)) == int.from_bytes(data[-4:], "little")
