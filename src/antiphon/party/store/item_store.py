"""`ItemStore`: the item states of one party in a SQLite file. Derived from feeds, so it can always be rebuilt.

States and the positions of the feeds change in one transaction, so a restart continues from there. A damaged file, or
one of another version, is deleted and rebuilt; `why_rebuilt` has the reason. All pages of the file are compared with
their checksums (`page_check`) before anything is answered that no checksum of a row covers: queries, lists, a row that
is not there.
"""

from __future__ import annotations

import sqlite3
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from antiphon.core.cid import CID_SIZE
from antiphon.core.codec import Reader, u32, u64
from antiphon.core.disk_room import disk_full, is_out_of_room
from antiphon.core.errors import AntiphonError, BadEncoding, DamagedItems, StoreError
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.sightings import Sightings
from antiphon.party.engine.ports import AuthorRun, BaseMark, Index, ItemRow, LaneState, Posting, Refused, Save, Void
from antiphon.party.engine.postings import decode_postings
from antiphon.party.store.page_check import (
    AGAIN_AFTER_S,
    AT_ONCE_SIZE_MAX,
    WAIT_SIZE_MAX,
    PageCheck,
    check_closed,
    check_pages,
)
from antiphon.party.store.page_sums import PageSums
from antiphon.party.store.wal_checkpoints import LOG_SIZE, Checkpoints, connect, last_part

FORMAT = "antiphon.items.8"
_LOAD_AT_ONCE = 500
_COLUMNS = "id, model, version, parent, deleted, opaque, guarded"
_ROWS_A_STEP = 100  # each step of SQLite releases the GIL, and a computing thread takes it each time
LONG = 1 << 20  # bytes of a record that is written piece by piece
_PIECE = 1 << 16
_RENEW_ITEM = """
ON CONFLICT (id) DO UPDATE SET model = excluded.model,
  version = excluded.version, parent = excluded.parent, deleted = excluded.deleted, opaque = excluded.opaque,
  guarded = excluded.guarded, record = excluded.record
"""  # keeps the rowid; records are not in the index of ids, which stays small
_VOIDS_MAX = 1 << 20
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE feeds (number INTEGER PRIMARY KEY, feed BLOB NOT NULL UNIQUE, state BLOB NOT NULL);
CREATE TABLE items (
  id BLOB NOT NULL PRIMARY KEY, model TEXT NOT NULL, version INTEGER NOT NULL, parent BLOB NOT NULL,
  deleted INTEGER NOT NULL, opaque INTEGER NOT NULL, guarded INTEGER NOT NULL, record BLOB NOT NULL
);
CREATE INDEX items_opaque ON items (id) WHERE opaque;
CREATE INDEX items_deleted ON items (id) WHERE deleted;
CREATE INDEX items_guarded ON items (id) WHERE guarded;
CREATE TABLE postings (item BLOB NOT NULL, part INTEGER NOT NULL, runs BLOB NOT NULL, PRIMARY KEY (item, part))
  WITHOUT ROWID;
CREATE TABLE refused (
  feed BLOB NOT NULL, seq INTEGER NOT NULL, item BLOB NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (feed, seq)
) WITHOUT ROWID;
CREATE INDEX refused_item ON refused (item);
CREATE INDEX refused_reason ON refused (reason, item);
"""


class ItemStore:
    """Item states in one file, or in memory for `None`. Not thread-safe: `PartyProcessor` holds a lock around it."""

    synchronous = "NORMAL"  # a transaction may be lost, and is then processed again; it is never torn

    def __init__(self, path: Path | None, party: bytes) -> None:
        self.path = path
        self._party = party
        self._forgotten: set[bytes] = set()  # hidden from reads; deleted by the transaction that saves them again
        self.why_rebuilt = ""
        self.ready_items: Set[bytes] | None = None
        self.index: Index | None = None
        self._moved: list[bytes] = []
        self._make_index: Callable[[sqlite3.Connection], Index] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._open()
        except (sqlite3.DatabaseError, AntiphonError, OSError, UnicodeError) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # a missing table or column: not our schema
            if path is None or isinstance(error, OSError) or (_is_operational(error) and code != sqlite3.SQLITE_ERROR):
                raise self._unwritable(error, "opened") from error
            self.why_rebuilt = str(error)
            delete_file(path)
            try:
                self._open()
            except (sqlite3.Error, OSError) as again:
                raise self._unwritable(again, "opened") from again

    def _unwritable(self, error: Exception, done: str) -> StoreError:
        if self.path is not None and is_out_of_room(error, self.path):
            return disk_full("the item store", self.path)
        return StoreError(f"the item store at {self.path} cannot be {done}: {error}")

    def _open(self) -> None:
        self._check: PageCheck | None = None
        self._check_at = 0.0
        if self.path is None:
            self._db, self._part = self._connect(), 1
            return
        sums = PageSums(self.path)
        try:
            sums.open()
            self.path.touch(0o600)  # SQLite gives its other files the same permissions
            known_good = sums.size <= AT_ONCE_SIZE_MAX
            if known_good:
                check_closed(self.path, sums)
            sums.begin()
            self._db = self._connect()
            try:
                part = last_part(self._db)
                self._check_times(part, sums)
            except BaseException:
                self._db.close()
                raise
        except BaseException:
            sums.close()
            raise
        self._part = 1 + part  # of the next transaction; orders postings
        self._sums, self._checkpoints = sums, Checkpoints(self.path, sums)
        # SQLite copies the log when a connection is closed, so the sums are taken before, also if nobody closes it.
        self._finalize = weakref.finalize(self, self._checkpoints.close, self._db)
        self._check_at, self._known_good = time.monotonic() + AGAIN_AFTER_S, known_good

    def _check_times(self, part: int, sums: PageSums) -> None:
        """Check that the file, its log and its sums are of one time: each may be an older copy."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'summed'").fetchone()
        if not (0 if row is None else row[0]) <= sums.part <= part:
            raise DamagedItems(f"{self.path}, its log and {sums.path.name} are of different times; it is built again")

    def _connect(self) -> sqlite3.Connection:
        db = connect(self.path)
        try:
            db.execute("PRAGMA page_size = 4096")
            db.execute(f"PRAGMA synchronous = {self.synchronous}")  # before the file is made
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA cache_size = -16384")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # see `Checkpoints`
            db.execute(f"PRAGMA journal_size_limit = {LOG_SIZE}")
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                db.executescript("BEGIN;" + _SCHEMA)
                db.execute("INSERT INTO meta VALUES ('format', ?), ('party', ?)", (FORMAT, self._party))
                db.execute("COMMIT")
            for table in ("feeds", "items", "postings", "refused"):
                db.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608
            found = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('format', 'party')"))
            if found != {"format": FORMAT, "party": self._party}:
                raise StoreError(f"it is of format {found.get('format')!r}, or of another party")
        except BaseException:
            db.close()
            raise
        return db

    # -- reading

    def lanes(self) -> list[LaneState]:
        """Load the states of all lanes, by number."""
        rows = self._read("SELECT number, feed, state FROM feeds ORDER BY number")
        with _typed("a feed's state"):
            return [
                decode_lane(number, feed, _unchecked(state, _lane_key(number, feed), "a feed's state"))
                for number, feed, state in rows
            ]

    def base(self) -> BaseMark | None:
        """Return the snapshot that the states are based on, or None."""
        row = self._read("SELECT value FROM meta WHERE key = 'base'")
        if not row:
            return None
        with _typed("the name of its snapshot"):
            data = _unchecked(row[0][0], b"base", "the name of its snapshot")
        reader = Reader(data, "the name of a snapshot")
        mark = BaseMark(reader.u64(), reader.take(CID_SIZE), bool(reader.u8()))
        reader.done()
        return mark

    def rest(self) -> bytes:
        """Return `Save.rest` of the last transaction; "" if it had none."""
        with _typed(what := "what its party rests on"):
            rows = self._read("SELECT value FROM meta WHERE key = 'rest'")
            data = _unchecked(rows[0][0], b"rest", what) if rows else b""
        return data[8:] if data[:8] == u64(self._part - 1) else b""

    def checked(self, *, wait: bool = False) -> None:
        """Compare all pages with their checksums, once after the store was opened. Raise `DamagedItems`.

        It is done again now and then, in the background: nobody waits for it, and `damage_found` tells the result. Nor
        is the first check of a very large file waited for, unless `wait` is set.
        """
        if self._checkpoints is None or self.path is None:
            return  # in memory, or a view, which was checked before
        if not self._known_good and self._check is None:
            if self._sums.size <= WAIT_SIZE_MAX:
                self._take(check_pages(self.path, self._sums))
            else:
                self._check = PageCheck(self.path, self._sums)
        elif self._check is None and time.monotonic() > self._check_at:
            self._check = PageCheck(self.path, self._sums)
        if self._check is not None and wait and not self._known_good:
            self._take(self._check.wait())

    def damage_found(self) -> str:
        """Return what a check or a checkpoint has found in the background since; "" for nothing.

        It is asked before a call begins, so that no call ends half-way because a check does.
        """
        if self._checkpoints is None:
            return ""
        if self._check is not None and not self._check.running:
            try:
                self._take(self._check.wait())
            except DamagedItems as error:
                return str(error)
        return self._checkpoints.damage

    def _take(self, damage: str) -> None:
        """Take the result of a check."""
        self._check = None
        if damage:
            raise DamagedItems(f"{damage}; it is built again")
        self._check_at, self._known_good = time.monotonic() + AGAIN_AFTER_S, True

    def _all(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        """Read rows that no checksum covers, or not their number."""
        self.checked()
        return self._read(question, values)

    def _read(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(question, values).fetchall()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR:  # no table, or no text
                raise DamagedItems(f"the item store at {self.path} is damaged: {error}; it is built again") from error
            raise StoreError(f"the item store at {self.path} cannot be read: {error}") from error
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise DamagedItems(f"the item store at {self.path} is damaged: {error}; it is built again") from error

    def load(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Load the records of items that are held; an empty record means messages without a genesis."""
        return {row[0]: record for row, record in self._rows(ids)}

    def rows(self, ids: Sequence[bytes]) -> list[ItemRow]:
        """Load the rows of items that are held, without their facts."""
        return [
            ItemRow(item, record or None, model, version, parent, bool(deleted), bool(opaque), bool(guarded))
            for (item, model, version, parent, deleted, opaque, guarded), record in self._rows(ids)
        ]

    def _rows(self, ids: Sequence[bytes]) -> Iterator[tuple[Any, bytes]]:
        if self._forgotten:
            ids = [item for item in ids if item not in self._forgotten]
        for start in range(0, len(ids), _LOAD_AT_ONCE):
            some = ids[start : start + _LOAD_AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._read(f"SELECT {_COLUMNS}, record FROM items WHERE id IN ({marks})", some)  # noqa: S608
            if len(rows) < len(some):
                self.checked()  # damage may hide a row
            with _typed("an item"):
                found = [(row[:-1], _unchecked(row[-1], row_key(row[:-1]), f"item {row[0].hex()}")) for row in rows]
            yield from found

    def postings(self, item: bytes) -> list[Posting]:
        """Load the saved postings of an item, in the order of their transactions."""
        if item in self._forgotten:
            return []
        rows = self._all("SELECT runs FROM postings WHERE item = ? ORDER BY part", (item,))
        with _typed("postings"):
            found = [decode_postings(_unchecked(runs, item, f"item {item.hex()}")) for (runs,) in rows]
        return [posting for postings in found for posting in postings]

    def ids(self, model: str | None = None) -> Iterator[bytes]:
        """Iterate over the ids of shown items, or of one model, ascending; without the system item."""
        where, value = ("model != ?", "") if model is None else ("model = ?", model)
        question = f"SELECT id FROM items WHERE {where} AND id != ? ORDER BY id"  # noqa: S608
        return iter([item for (item,) in self._all(question, (value, bytes(SYSTEM_ITEM)))])

    def opaque(self) -> list[tuple[bytes, str, int]]:
        """List items whose model was not registered when they were saved: id, model, version."""
        return self._read("SELECT id, model, version FROM items WHERE opaque")

    def orphans(self) -> list[bytes]:
        """List items with messages that are not shown: hidden, or without a genesis."""
        return [item for (item,) in self._all("SELECT id FROM items WHERE model = ''")]

    def models(self) -> list[tuple[str, int]]:
        """List the models of the items with their versions, ascending."""
        return self._all("SELECT DISTINCT model, version FROM items WHERE model != '' ORDER BY model, version")

    def deleted(self) -> list[bytes]:
        """List deleted items, ascending."""
        return [item for (item,) in self._all("SELECT id FROM items WHERE deleted ORDER BY id")]

    @contextmanager
    def view(self) -> Iterator[ItemStore]:
        """Open a read-only connection whose transaction begins now, so that it does not see later saves."""
        self.checked(wait=True)
        view = ItemStore.__new__(ItemStore)
        view.path, view._party, view._forgotten, view.why_rebuilt = self.path, self._party, set(), ""
        view.index, view._moved, view._make_index, view._part, view.ready_items = None, [], None, 0, self.ready_items
        view._db = connect(self.path)
        try:
            if self.path is None:
                self._db.backup(view._db)
            view._db.execute("BEGIN")
            view._all("SELECT 1 FROM meta")  # the transaction begins with its first query
            yield view
        finally:
            view.close()

    def empty(self) -> bool:
        """True if no item was ever saved, shown or not."""
        return not self._read("SELECT 1 FROM items LIMIT 1")

    def count(self) -> int:
        """Count the shown items, without the system item."""
        question = "SELECT count(*) FROM items WHERE model != '' AND id != ?"
        return int(self._all(question, (bytes(SYSTEM_ITEM),))[0][0])

    def guarded(self) -> list[bytes]:
        """List items with an access list, ascending."""
        return [item for (item,) in self._all("SELECT id FROM items WHERE guarded ORDER BY id")]

    def refused(self, limit: int = 1000) -> list[Refused]:
        """List refused messages by feed and seq, at most `limit`."""
        rows = self._all("SELECT feed, seq, item, reason FROM refused ORDER BY feed, seq LIMIT ?", (limit,))
        return [Refused(*row) for row in rows]

    def refused_count(self) -> int:
        """Count the refused messages."""
        return int(self._all("SELECT count(*) FROM refused")[0][0])

    def refused_for(self, reason: str, limit: int) -> list[Refused]:
        """List messages that were refused for exactly this reason, at most `limit`."""
        question = "SELECT feed, seq, item, reason FROM refused WHERE reason = ? LIMIT ?"
        return [Refused(*row) for row in self._read(question, (reason, limit))]

    # -- writing

    def forget(self, item: bytes) -> None:
        """Hide an item from `load`, `rows` and `postings`; the transaction that saves it anew deletes its old rows."""
        self._forgotten.add(item)

    @contextmanager
    def saving(self) -> Iterator[Callable[[Save], None]]:
        """Open a transaction and yield a function that puts changes. All are saved when it ends, or none."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._put
                self._settle()
                summed = 0 if self._checkpoints is None else self._sums.part
                marks = (self._part, summed)
                self._db.execute("INSERT OR REPLACE INTO meta VALUES ('part', ?), ('summed', ?)", marks)
                if self.index is not None:
                    self._db.execute("INSERT OR REPLACE INTO meta VALUES ('index', ?)", (self._part,))
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite ends it by itself on some errors, such as a full disk
                    self._db.execute("ROLLBACK")
                raise
            self._part += 1
            if self._checkpoints is not None:
                self._checkpoints.after_commit(self._db)
        except sqlite3.Error as error:
            raise self._unwritable(error, "written") from error

    def _put(self, save: Save) -> None:
        """Write a part of a transaction. Its rows are dropped as soon as they are written, since they may be long."""
        run = self._db.executemany
        # Only with the rows that replace them: a crash must not leave the store without an item.
        forgotten = self._forgotten.intersection(row.id for row in save.rows) if self._forgotten else set()
        self._forgotten -= forgotten
        if forgotten:
            run("DELETE FROM postings WHERE item = ?", [(item,) for item in forgotten])
            run("DELETE FROM refused WHERE item = ?", [(item,) for item in forgotten])
            run("DELETE FROM items WHERE id = ?", [(item,) for item in forgotten])
        columns = [
            (row.id, row.model, row.version, row.parent, row.deleted, row.opaque, row.guarded) for row in save.rows
        ]
        records = [row.record or b"" for row in save.rows]
        long = [(known, record) for known, record in zip(columns, records, strict=True) if len(record) > LONG]
        rows = [
            (*known, b"" if len(record) > LONG else _checked(record, row_key(known)))
            for known, record in zip(columns, records, strict=True)
        ]
        described = dict.fromkeys(forgotten) | {row.id: row.facts or None for row in save.rows}
        save.rows.clear()
        self._insert("items", rows, _RENEW_ITEM)
        del rows, columns, records  # the index takes memory of its own
        while long:
            self._write_long(*long.pop())
        if self.index is not None and described:
            self.index.put((item, facts) for item, facts in described.items() if item != SYSTEM_ITEM)
        self._insert("postings", [(item, self._part, _checked(runs, item)) for item, runs in save.postings])
        self._put_base(save)
        cleared = [(stamp.feed, stamp.seq) for stamp, _, reason in save.verdicts if not reason]
        run("DELETE FROM refused WHERE feed = ? AND seq = ?", cleared)
        refused = [(stamp.feed, stamp.seq, item, reason) for stamp, item, reason in save.verdicts if reason]
        run("INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?)", refused)
        run(
            "INSERT OR REPLACE INTO feeds VALUES (?, ?, ?)",
            [
                (lane.number, lane.feed, _checked(encode_lane(lane), _lane_key(lane.number, lane.feed)))
                for lane in save.lanes
            ],
        )

    def _write_long(self, known: tuple[Any, ...], record: bytes) -> None:
        """Write a long record piece by piece: SQLite copies a bound value twice, and the checksum would be a third."""
        item, size = known[0], len(record)
        self._db.execute("UPDATE items SET record = zeroblob(?) WHERE id = ?", (size + 4, item))
        ((place,),) = self._db.execute("SELECT rowid FROM items WHERE id = ?", (item,)).fetchall()
        with self._db.blobopen("items", "record", place) as blob, memoryview(record) as view:
            for start in range(0, size, _PIECE):
                blob.write(view[start : start + _PIECE])
            blob.write(_sum(record, row_key(known)))

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]], renew: str = "") -> None:
        for start in range(0, len(rows), _ROWS_A_STEP):
            some = rows[start : start + _ROWS_A_STEP]
            marks = ",".join(["(" + ",".join("?" * len(some[0])) + ")"] * len(some))
            self._db.execute(f"INSERT INTO {table} VALUES {marks} {renew}", list(chain.from_iterable(some)))  # noqa: S608

    def _put_base(self, save: Save) -> None:
        if save.gone:
            for table, column in (("items", "id"), ("postings", "item"), ("refused", "item")):
                question = f"DELETE FROM {table} WHERE {column} = ?"  # noqa: S608
                self._db.executemany(question, [(item,) for item in save.gone])
            if self.index is not None:
                self.index.put((item, None) for item in save.gone)
        if save.base is not None:
            data = u64(save.base.number) + save.base.snapshot + bytes((save.base.whole,))
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('base', ?)", (_checked(data, b"base"),))
        if save.rest:
            data = u64(self._part) + save.rest
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('rest', ?)", (_checked(data, b"rest"),))

    # -- the index

    def moved(self) -> list[bytes]:
        """Take the items whose parent has changed since the last call, by claims of other items."""
        self._settle()
        moved, self._moved = self._moved, []
        return moved

    def _settle(self) -> None:
        if self.index is not None:
            self._moved += self.index.settle()

    def attach(self, make: Callable[[sqlite3.Connection], Index], *, only_known: bool = False) -> bool:
        """Maintain an index from now on. True if it is current; else it is empty, or not attached with `only_known`."""
        found = dict(self._read("SELECT key, value FROM meta WHERE key IN ('part', 'index')"))
        current = "index" in found and found["index"] == found.get("part")
        if only_known and not current:
            return False
        self._make_index, self.index = make, make(self._db)
        if not current:
            self._renew_index()
        return current

    def _renew_index(self) -> None:
        assert self.index is not None
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self.index.clear()
                self.index.create()
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._unwritable(error, "written") from error

    def clear(self) -> None:
        """Delete everything, to rebuild it. The file is replaced, because it may be damaged."""
        self._forgotten = set()
        self._close(discard=True)
        if self.path is not None:
            delete_file(self.path)
        self._open()
        if self._make_index is not None:
            self.index = self._make_index(self._db)
            self._renew_index()

    def close(self) -> None:
        """Close the store."""
        self._close()

    def _close(self, *, discard: bool = False) -> None:
        if self._check is not None:
            self._check.stop()
        if self._checkpoints is None:
            self._db.close()
        elif self._finalize.detach() is not None:
            self._checkpoints.close(self._db, discard=discard)

    _check: PageCheck | None = None
    _checkpoints: Checkpoints | None = None  # None in memory, and for a view
    _check_at = 0.0  # when the next check is due
    _known_good = False  # a check since the store was opened found nothing


def delete_file(path: Path) -> None:
    """Delete the file of an item store, with its checksums, and the log and the shared memory of SQLite."""
    for suffix in ("", "-wal", "-shm", "-sums"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _checked(data: bytes, key: bytes) -> bytes:
    """Append a checksum over the data and its key, so that data under a wrong key is found as well."""
    return data + _sum(data, key)


def _sum(data: bytes, key: bytes) -> bytes:
    return u32(zlib.crc32(data, zlib.crc32(key)))


def row_key(columns: Sequence[Any]) -> bytes:
    """Encode the columns that the checksum of an item row covers besides the record."""
    item, model, version, parent, deleted, opaque, guarded = columns
    return b"%b%b|%d|%b|%d%d%d" % (item, model.encode(), version, parent, deleted, opaque, guarded)


@contextmanager
def _typed(what: str) -> Iterator[None]:
    """Raise `DamagedItems` where a cell is not of its type."""
    try:
        yield
    except (TypeError, AttributeError, UnicodeError) as error:
        raise DamagedItems(f"{what}: its cells in the item store have changed ({error}); it is built again") from error


def _is_operational(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError)


def _lane_key(number: int, feed: bytes) -> bytes:
    return u64(number) + feed


def _unchecked(data: bytes, key: bytes, what: str) -> bytes:
    if len(data) < 4 or u32(zlib.crc32(data[:-4], zlib.crc32(key))) != data[-4:]:
        raise DamagedItems(f"{what}: its bytes in the item store have changed; it is built again from the feeds")
    return data[:-4]


# -- formats


def encode_lane(lane: LaneState) -> bytes:
    """Encode the saved state of a lane, without feed and number."""
    fault = lane.fault.encode()
    parts = [u64(lane.position), u64(lane.lamport), lane.hash, u64(lane.base), u64(lane.base_lamport)]
    parts += [u32(len(fault)), fault, lane.segments.encode(), u32(len(lane.voids))]
    for void in lane.voids:
        reason = void.reason.encode()
        parts += [u64(void.start), u64(void.stop), u32(len(reason)), reason]
    parts.append(u32(len(lane.authors)))
    for run in lane.authors:
        parts += [u64(run.start), u64(run.stop), u32(len(run.digest)), run.digest]
    return b"".join(parts)


def decode_lane(number: int, feed: bytes, data: bytes) -> LaneState:
    """Decode the saved state of a lane. Raises `BadEncoding`."""
    reader = Reader(data, f"the state of feed {feed.hex()[:8]}")
    position, lamport, last = reader.u64(), reader.u64(), reader.take(32)
    base, base_lamport = reader.u64(), reader.u64()
    fault = _text(reader.take(reader.u32()))
    segments = Sightings.decode(reader)
    voids = [Void(reader.u64(), reader.u64(), _text(reader.take(reader.u32()))) for _ in range(_bounded(reader.u32()))]
    authors = [AuthorRun(reader.u64(), reader.u64(), reader.take(reader.u32())) for _ in range(_bounded(reader.u32()))]
    reader.done()
    return LaneState(feed, number, position, lamport, last, fault, segments, voids, base, base_lamport, authors)


def _bounded(count: int) -> int:
    if count > _VOIDS_MAX:
        raise BadEncoding(f"a feed's state: {count} parts are too many")
    return count


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadEncoding(f"a feed's state: {error}") from None
