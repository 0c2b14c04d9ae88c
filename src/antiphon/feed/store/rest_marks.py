"""Marks of parties at rest, in the table `meta`: "rest" ‖ party → mark ‖ CRC-32.

The first change of any feed of a party deletes its mark, in the same transaction. A mark is random, so no other history
of the file has it: neither a restored copy that has changed since, nor the file that the copy was made of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from antiphon.feed.store.tables import Tables, checked, unchecked

_REST = b"rest"


def find(tables: Tables, party: bytes) -> bytes | None:
    """Return the mark of a party; None if it has none."""
    txn, db = tables.raw("meta")
    data = txn.get(_REST + party, db=db)
    return None if data is None else unchecked(bytes(data))


def put(tables: Tables, party: bytes, mark: bytes) -> None:
    """Put the mark of a party."""
    txn, db = tables.raw("meta")
    txn.put(_REST + party, checked(mark), db=db)


def parties(tables: Tables) -> set[bytes]:
    """Return the parties that have a mark."""
    txn, db = tables.raw("meta")
    found: set[bytes] = set()
    with txn.cursor(db) as cursor:
        at = cursor.set_range(_REST)
        while at and bytes(cursor.key()).startswith(_REST):
            found.add(bytes(cursor.key())[len(_REST) :])
            at = cursor.next()
    return found


def drop(tables: Tables, marked: set[bytes], touched: Mapping[bytes, bytes], changed: Collection[bytes]) -> set[bytes]:
    """Delete the marks of the parties whose feeds a transaction has changed, and return these parties.

    `touched` has the feeds whose records were written, with their parties; `changed` those of which anything else was.
    """
    found = set(touched.values())
    for feed in changed:
        if feed not in touched:
            record = tables.find(feed)
            found.add(b"" if record is None else record.party)
    found = marked.copy() if b"" in found else found & marked  # of a feed of no known party: all
    txn, db = tables.raw("meta")
    for party in found:
        txn.delete(_REST + party, db=db)
    return found
