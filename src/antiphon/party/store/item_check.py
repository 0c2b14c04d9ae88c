"""`item_store_fault`: check the file of an item store without opening its party, also while a process uses it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from antiphon.core.errors import StoreError
from antiphon.party.store.item_store import FORMAT
from antiphon.party.store.page_check import connect_to_read, find_damage, is_damage


def item_store_fault(path: Path, party: bytes) -> str:
    """Return what is wrong with the file of an item store; "" if nothing is.

    A file of another version is not wrong: it is made again when the party is opened. Raise `StoreError` if the file
    could not be checked.
    """
    try:
        with closing(connect_to_read(path)) as db:
            found = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('format', 'party')"))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        fault = find_damage(path)
        if not fault and not is_damage(error):
            raise StoreError(f"{path} could not be checked: {error}") from error
        return fault or str(error)
    if found.get("format") != FORMAT and str(found.get("format", "")).startswith("antiphon.items."):
        return ""
    return find_damage(path) or ("" if found == {"format": FORMAT, "party": party} else "it is of another party")
