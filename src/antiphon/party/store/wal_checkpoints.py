"""Moves what was committed from SQLite's log into the item store's file, beside whoever writes.

A checkpoint waits for the disk twice. SQLite makes it inside the commit that fills the log, and a writer would see that
as a pause; here it is made by a thread of its own, with a connection of its own.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

LOG_SIZE = 4 << 20  # from here on a checkpoint is made
LOG_SIZE_MAX = 64 << 20  # from here on the committer makes it, and waits


class Checkpoints:
    """Of one file. Not thread-safe: its item store is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._thread: threading.Thread | None = None
        self._failed = False

    def after_commit(self, db: sqlite3.Connection) -> None:
        """Make one if the log has grown, unless one is being made."""
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:
            return
        if self._failed or size >= LOG_SIZE_MAX:  # here, so that an error reaches somebody
            self._failed = False
            _checkpoint(db, at_once=True)
        elif size > LOG_SIZE:  # a log that begins again is cut down to it
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
        """Wait for the one that is being made."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _checkpoint(db: sqlite3.Connection, *, at_once: bool = False) -> None:
    """With `at_once`, the log is cut off, too, unless somebody reads in it. Who commits next would do it otherwise, and
    to let go of a hundred megabytes takes 30 ms, in which a writer waits who has no part in it."""
    if not at_once:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return
    (waits_ms,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout = 0")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute(f"PRAGMA busy_timeout = {waits_ms}")
