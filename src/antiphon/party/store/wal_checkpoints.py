"""`Checkpoints`: copy SQLite's write-ahead log into the file of the item store, in a background thread.

A checkpoint syncs the disk twice. SQLite would run it inside the commit that fills the log, and a writer would wait for
it. Here a background thread runs it on its own connection.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

LOG_SIZE = 4 << 20  # from this size on, the thread runs a checkpoint
LOG_SIZE_MAX = 64 << 20  # from this size on, the committer runs it, and waits


class Checkpoints:
    """Checkpoints of one file. Not thread-safe: calls come from the item store, under the party's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._thread: threading.Thread | None = None
        self._failed = False

    def after_commit(self, db: sqlite3.Connection) -> None:
        """Start a checkpoint if the log is large, unless one is running."""
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:
            return
        if self._failed or size >= LOG_SIZE_MAX:  # in the caller's thread, so that an error is raised
            self._failed = False
            _checkpoint(db, at_once=True)
        elif size > LOG_SIZE:  # not equal: `journal_size_limit` truncates the log to this size
            self._thread = threading.Thread(target=self._run, daemon=True, name=f"antiphon checkpoint {self._path}")
            self._thread.start()

    def _run(self) -> None:
        try:
            db = sqlite3.connect(self._path, isolation_level=None, timeout=10)
            try:
                _checkpoint(db)
            finally:
                db.close()
        except sqlite3.Error:
            self._failed = True

    def finish(self) -> None:
        """Wait for a running checkpoint."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _checkpoint(db: sqlite3.Connection, *, at_once: bool = False) -> None:
    """Run a checkpoint. With `at_once`, also truncate the log, unless it is being read.

    Otherwise the next commit would truncate it: for a hundred megabytes that takes 30 ms, in which its writer waits.
    """
    if not at_once:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return
    (waits_ms,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout = 0")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute(f"PRAGMA busy_timeout = {waits_ms}")
