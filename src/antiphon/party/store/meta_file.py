"""`MetaFile`: the SQLite file of a `MetaStore`. It is created atomically, and verified on open and on every read.

SQLite has no page checksums, so each row carries a checksum. One kind of damage is not found: a changed byte in the
write-ahead log of a killed process looks like the end of the log.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from antiphon.core.codec import u32
from antiphon.core.disk_room import disk_full, is_out_of_room
from antiphon.core.errors import DamagedStore, StoreClosed, StoreError, StoreLocked
from antiphon.feed.store.private_files import make_file

APPLICATION_ID = int.from_bytes(b"APm1", "big")
VERSION = 1

#: Exactly as SQLite returns them; a file with any other schema is refused.
SCHEMA = {
    "parties": "CREATE TABLE parties (party BLOB PRIMARY KEY, genesis_feed BLOB, label TEXT NOT NULL, "
    "state TEXT NOT NULL, added_ms INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "feeds": "CREATE TABLE feeds (feed BLOB PRIMARY KEY, party BLOB NOT NULL, kind TEXT, device BLOB, "
    "written_here INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "feeds_by_party": "CREATE INDEX feeds_by_party ON feeds (party)",
    "preferences": "CREATE TABLE preferences (scope BLOB NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
    "crc INTEGER NOT NULL, PRIMARY KEY (scope, key)) STRICT, WITHOUT ROWID",
}
TABLES = ("parties", "feeds", "preferences")

Cell = bytes | str | int | None


class Rows:
    """Reads and writes inside one transaction. Rows are returned without their checksum, after it was verified."""

    __slots__ = ("_db", "_path")

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def select(self, table: str, **where: Cell) -> Iterator[tuple[Any, ...]]:
        """Yield the rows whose columns have these values, ascending by primary key."""
        condition, values = _condition(where)
        for row in self._db.execute(f"SELECT * FROM {table}{condition} ORDER BY 1, 2", values):  # noqa: S608
            if row[-1] != _crc(table, row[:-1]):
                raise damaged(self._path, f"a row of its table {table} has changed")
            yield row[:-1]

    def one(self, table: str, **where: Cell) -> tuple[Any, ...] | None:
        """Return the first such row, or None."""
        return next(self.select(table, **where), None)

    def count(self, table: str, **where: Cell) -> int:
        """Count such rows."""
        condition, values = _condition(where)
        found: int = self._db.execute(f"SELECT count(*) FROM {table}{condition}", values).fetchone()[0]  # noqa: S608
        return found

    def put(self, table: str, *row: Cell) -> None:
        """Add a row, or replace the one with the same primary key."""
        marks = ", ".join("?" * (len(row) + 1))
        self._db.execute(f"REPLACE INTO {table} VALUES ({marks})", (*row, _crc(table, row)))  # noqa: S608

    def drop(self, table: str, **where: Cell) -> int:
        """Delete rows. Return how many."""
        condition, values = _condition(where)
        return self._db.execute(f"DELETE FROM {table}{condition}", values).rowcount  # noqa: S608


class MetaFile:
    """Transactions over the file. Thread-safe; several processes may have it open."""

    def __init__(self, path: Path, busy_timeout_ms: int) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._closed = False
        with _errors(path):
            if not path.exists():
                _create(path)
            self._db = _connect(path, busy_timeout_ms)
        try:
            with _errors(path):
                self._db.execute("PRAGMA synchronous = FULL")
            self.verify()
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def read(self) -> Iterator[Rows]:
        """Open a read transaction."""
        with self._transaction("BEGIN") as db:
            yield Rows(db, self.path)

    @contextmanager
    def write(self) -> Iterator[Rows]:
        """Open a write transaction, durable on exit. It takes the write lock first, so no read in it can go stale."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield Rows(db, self.path)

    def verify(self) -> None:
        """Check identity, version and schema of the file, and read all rows."""
        with self._transaction("BEGIN") as db:
            kind, version = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
            if kind != APPLICATION_ID:
                raise StoreError(f"{self.path} is another database, no metadata store of Antiphon; name another")
            if version != VERSION:
                raise StoreError(
                    f"the metadata store {self.path} has version {version}, this program knows {VERSION}; "
                    "use the program that wrote it, or a newer one"
                )
            if dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")) != SCHEMA:
                raise damaged(self.path, "its tables are not those of this version")
            problem = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if problem != "ok":
                raise damaged(self.path, problem)
            rows = Rows(db, self.path)
            for table in TABLES:
                for _ in rows.select(table):
                    pass

    def copy(self, path: Path) -> None:
        """Write the state of this moment into a new file at `path`, which is its owner's alone, and not synced."""
        with self._lock, _errors(path):
            if self._closed:
                raise StoreClosed(f"the metadata store {self.path} is closed; open it again")
            with closing(sqlite3.connect(make_file(path))) as copy:
                self._db.backup(copy)

    def close(self) -> None:
        """Close the file. Closing again has no effect."""
        with self._lock, _errors(self.path):
            if not self._closed:
                self._closed = True
                self._db.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, _errors(self.path):
            if self._closed:
                raise StoreClosed(f"the metadata store {self.path} is closed; open it again")
            self._db.execute(begin)
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")


def damaged(path: Path, why: str) -> DamagedStore:
    """Make the error for a damaged file, with advice."""
    return DamagedStore(
        f"the metadata store {path} is damaged: {why}. Move it away and subscribe to your parties again, or put back "
        "a copy; feeds and keys are kept elsewhere. Check the disk",
        file=str(path),
    )


def _create(path: Path) -> None:
    """Create a temporary file and link it into place, so that no process opens half a file or replaces another's."""
    folders = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as aside:
        made = Path(aside) / "new"
        made.touch(0o600)
        db = sqlite3.connect(made, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            for statement in (
                f"PRAGMA application_id = {APPLICATION_ID}",
                f"PRAGMA user_version = {VERSION}",
                *SCHEMA.values(),
            ):
                db.execute(statement)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # closing does it as well, and hides a full disk
        finally:
            db.close()  # which writes the log back, so that the file is complete by itself
        _sync(made)
        with suppress(FileExistsError):  # another process was first
            os.link(made, path)
    for changed in (path.parent, *(made.parent for made in folders)):  # a name is durable once its folder is synced
        _sync(changed)


def _connect(path: Path, busy_timeout_ms: int) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=busy_timeout_ms / 1000,
        isolation_level=None,  # transactions are explicit
        check_same_thread=False,
    )


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and of the system to `StoreError`s that name the file and what to do."""
    try:
        yield
    except UnicodeError as error:  # Python cannot decode the message of SQLite, which quotes damaged bytes
        raise damaged(path, f"{error.reason if isinstance(error, UnicodeDecodeError) else error}") from error
    except (sqlite3.Error, OSError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF  # the rest is a detail
        if code == sqlite3.SQLITE_BUSY:
            raise StoreLocked(
                f"the metadata store {path} is being changed by another process for too long; stop that, or try again"
            ) from error
        if is_out_of_room(error, path):
            raise disk_full("the metadata store", path) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise DamagedStore(
                f"{path} is no metadata store of Antiphon; name another file. If it was one, it is damaged: put "
                "a copy back, or make it anew from the feeds (docs/recovering.md)",
                file=str(path),
            ) from error
        if code == sqlite3.SQLITE_CORRUPT or not (
            code or isinstance(error, OSError)
        ):  # no code: text that is not UTF-8
            raise damaged(path, str(error)) from error
        raise StoreError(
            f"the metadata store {path} cannot be used: {error}; check that it is a file that you may read and write, "
            "and that the disk has space"
        ) from error


def _condition(where: dict[str, Cell]) -> tuple[str, tuple[Cell, ...]]:
    text = " AND ".join(f"{column} = ?" for column in where)
    return f" WHERE {text}" if text else "", tuple(where.values())


def _crc(table: str, row: tuple[Cell, ...]) -> int:
    """Checksum over the table name and the cells. A column has one type, so the types are not covered."""
    crc = zlib.crc32(table.encode())
    for cell in row:
        data = cell if isinstance(cell, bytes) else str(cell).encode()
        crc = zlib.crc32(u32(len(data)) + data, crc)
    return crc
