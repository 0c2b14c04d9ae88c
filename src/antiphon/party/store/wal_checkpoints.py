"""`Checkpoints`: copy SQLite's write-ahead log into the file of the item store, in a background thread.

A checkpoint syncs the disk twice. SQLite would run it inside the commit that fills the log, and a writer would wait for
it. Here a background thread runs it on its own connection. Before each checkpoint, the checksums of the pages in the
log are written (`page_sums`), so no checkpoint may run elsewhere: `close` runs the last one, before SQLite would.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

from antiphon.core.errors import DamagedItems
from antiphon.party.store.page_sums import PageSums

LOG_SIZE = 4 << 20  # from this size on, the thread runs a checkpoint
LOG_SIZE_MAX = 64 << 20  # from this size on, the committer runs it, and waits


class Checkpoints:
    """Checkpoints of one file. Not thread-safe: calls come from the item store, under the party's lock."""

    def __init__(self, path: Path, sums: PageSums) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._sums = sums
        self._thread: threading.Thread | None = None
        self._failed = False
        self._process = os.getpid()
        self.damage = ""  # the log was found damaged; set in the background

    def after_commit(self, db: sqlite3.Connection) -> None:
        """Start a checkpoint if the log is large, unless one is running."""
        if self._thread is not None and self._thread.is_alive():
            return
        size = self._log_size()
        if self._failed or size >= LOG_SIZE_MAX:  # in the caller's thread, so that an error is raised
            self._failed = False
            self._copy(db, db, at_once=True)
        elif size > LOG_SIZE:  # not equal: `journal_size_limit` truncates the log to this size
            self._thread = threading.Thread(target=self._run, daemon=True, name=f"antiphon checkpoint {self._path}")
            self._thread.start()

    def _run(self) -> None:
        try:
            with closing(connect(self._path)) as pin, closing(connect(self._path)) as db:
                pin.execute("BEGIN")  # no transaction after this one is copied, since its pages are not summed
                self._copy(pin, db)
        except DamagedItems as error:
            self.damage = str(error)
        except sqlite3.Error:
            self._failed = True

    def _copy(self, reader: sqlite3.Connection, db: sqlite3.Connection, *, at_once: bool = False) -> bool:
        """Write the sums of the pages in the log, then copy it into the file. True if the log is empty afterwards."""
        part = last_part(reader)
        try:
            summed = self._sums.take(part).frames
        except OSError as error:
            raise sqlite3.OperationalError(f"{self._sums.path}: {error}") from error
        copied = _checkpoint(db)
        if copied > summed:
            raise DamagedItems(f"{self._log}: frame {summed + 1} has changed since it was written; it is built again")
        return at_once and _truncate(db)

    def finish(self) -> None:
        """Wait for a running checkpoint."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def close(self, db: sqlite3.Connection, *, discard: bool = False) -> None:
        """Run a last checkpoint, and close the connection and the sums. With `discard` the file is deleted anyway."""
        if os.getpid() != self._process:  # a forked copy: the files belong to the other process
            return
        self.finish()
        clean = discard
        try:
            # An error is met again when the file is opened: the log is still there, or the sums do not fit.
            with suppress(sqlite3.Error, OSError, DamagedItems):
                if not discard and db.in_transaction:  # of another thread, when the process ends
                    self._sums.take()  # SQLite copies the log when it closes
                elif not discard:
                    clean = not self._log_size() or self._copy(db, db, at_once=True)
        finally:
            db.close()
            self._sums.close(clean=clean)

    def _log_size(self) -> int:
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0


def connect(path: Path | None) -> sqlite3.Connection:
    """Open another connection to the file of an item store."""
    return sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None, timeout=10)


def last_part(db: sqlite3.Connection) -> int:
    """Return the number of the last transaction; 0 if there was none."""
    row = db.execute("SELECT value FROM meta WHERE key = 'part'").fetchone()
    if row is not None and not isinstance(row[0], int):
        raise DamagedItems(f"the item store: {row[0]!r} is no number of a transaction; it is built again")
    return 0 if row is None else row[0]


def _checkpoint(db: sqlite3.Connection) -> int:
    """Copy the log into the file as far as no reader needs it. Return how many of its frames are copied."""
    copied: int = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[2]
    return copied


def _truncate(db: sqlite3.Connection) -> bool:
    """Truncate the log, unless it is being read. True if it was.

    Otherwise the next commit would truncate it: for a hundred megabytes that takes 30 ms, in which its writer waits.
    """
    (waits_ms,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout = 0")
    try:
        return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        db.execute(f"PRAGMA busy_timeout = {waits_ms}")
