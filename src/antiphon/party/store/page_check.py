"""Compare all pages of an item store with their checksums: `check_pages` at once, `PageCheck` in a thread.

It costs half a millisecond for each megabyte, and as much reading as the file is long.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from antiphon.core.errors import DamagedItems, StoreError
from antiphon.party.store.page_sums import PageSums
from antiphon.party.store.wal_checkpoints import connect

AT_ONCE_SIZE_MAX = 1 << 20  # up to this size a file is checked when it is opened, in a millisecond
WAIT_SIZE_MAX = 256 << 20  # up to this size the first query waits for the check, at most some tenths of a second
AGAIN_AFTER_S = 600.0  # a party in use is checked again after this time
_PAGES_NAMED_MAX = 1000


class PageCheck:
    """One check of a file in a thread, beside its use. `damage` is empty unless damage was found."""

    def __init__(self, path: Path, sums: PageSums) -> None:
        self._path = path
        self._sums = sums
        self._stopped = threading.Event()
        self.damage = ""
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"antiphon check {path}")
        self._thread.start()

    @property
    def running(self) -> bool:
        """True until the check has ended."""
        return self._thread.is_alive()

    def wait(self) -> str:
        """Wait for the end of the check, and return the damage."""
        self._thread.join()
        return self.damage

    def stop(self) -> None:
        """End the check early, and wait for its thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        self.damage = check_pages(self._path, self._sums, self._stopped.is_set)


def check_pages(path: Path, sums: PageSums, stop: Callable[[], bool] = bool) -> str:
    """Check a file that may be in use. Return what is damaged."""
    try:
        with closing(connect(path)) as pin:
            pin.execute("BEGIN")
            pin.execute("SELECT 1 FROM meta").fetchall()  # the transaction begins with its first query
            pages = sums.damaged(stop)
    except (DamagedItems, sqlite3.Error, OSError, UnicodeError) as error:
        return f"{path} cannot be read: {error}"
    return describe(path, pages)


def check_closed(path: Path, sums: PageSums) -> None:
    """Check a file before SQLite opens it. Raise `DamagedItems`."""
    if why := describe(path, sums.damaged()):
        raise DamagedItems(f"{why}; it is built again")


def describe(path: Path, pages: Sequence[int]) -> str:
    """Say which pages and tables are damaged; empty if there are none."""
    if not pages:
        return ""
    count = f"page {pages[0]} has" if len(pages) == 1 else f"{len(pages)} pages, the first of them {pages[0]}, have"
    names = _tables(path, pages[:_PAGES_NAMED_MAX])
    return f"{path}: {count} changed since it was written" + (f" ({', '.join(names)})" if names else "")


def _tables(path: Path, pages: Sequence[int]) -> list[str]:
    """Return the tables and indexes that pages belong to, if SQLite can tell."""
    marks = ",".join("?" * len(pages))
    try:
        with closing(connect_to_read(path)) as db:
            rows = db.execute(f"SELECT DISTINCT name FROM dbstat WHERE pageno IN ({marks})", pages)  # noqa: S608
            return sorted(name for (name,) in rows)
    except (sqlite3.Error, UnicodeError):  # no `dbstat` in this build, or the damage is in the way
        return []


def find_damage(path: Path) -> str:
    """Return what is damaged in the file of an item store, which another process may use; empty if nothing is.

    Nothing is written: the log of a killed process stays as it is. Raise `StoreError` if it could not be checked.
    """
    sums = PageSums(path)
    try:
        if not path.exists():
            return ""
        sums.open_to_read()
        return _find_damage(path, sums)
    except (DamagedItems, UnicodeError) as error:
        return str(error)
    except (sqlite3.Error, OSError) as error:
        if is_damage(error):
            return str(error)
        raise StoreError(f"{path} could not be checked: {error}") from error
    finally:
        sums.close()


def _find_damage(path: Path, sums: PageSums) -> str:
    while True:
        before = sums.header()
        foreign = before.closed and sums.has_log
        with ExitStack() as reading:
            in_use = not before.closed and sums.in_use
            if in_use:
                pin = reading.enter_context(closing(connect_to_read(path)))
                pin.execute("BEGIN")
                pin.execute("SELECT 1 FROM meta").fetchall()
            pages = sums.damaged()
        if (pages or foreign) and not in_use and (sums.header() != before or (not before.closed and sums.in_use)):
            continue  # a process opened it meanwhile, and may have changed what was being read
        return describe(path, pages) or (f"{path} was closed, and its log is not of it" if foreign else "")


def is_damage(error: Exception) -> bool:
    """True if an error of SQLite is about the bytes of the file; false if the file could not be opened or read."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    operational = (
        isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR
    )  # that one: no such table
    return isinstance(error, sqlite3.Error) and not operational


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a connection that copies no log when it is closed, and makes or deletes no log."""
    sums = PageSums(path)
    how = "mode=ro" if (sums.in_use or sums.has_log) and sums.size else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
