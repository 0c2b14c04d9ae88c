"""`SimDisk`: the disk of a peer. It can be full, and a crash loses unsynced writes.

Stores do not wait for the real disk. The simulated disk records which commits requested a sync. It keeps a copy of the
file from before the first unsynced commit, and only until the next sync, so that code that syncs pays nothing.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb

from antiphon.feed.store.disk import Disk
from antiphon.party.engine.ports import Save
from antiphon.party.store.item_store import ItemStore

_DATA, _COPY = "data.mdb", "synced.mdb"


class Crashed(BaseException):
    """Raised where a peer crashes. Only the simulation may catch it."""


class SimDisk(Disk):
    """The disk of one peer."""

    waits = False

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.full = False
        self.crash_in: int | None = None  # crash within the commit that is so many from now
        self._unsynced: set[Path] = set()

    # -- called by stores

    def committing(self, folder: Path, *, durable: bool) -> None:
        if self.full:
            raise lmdb.DiskError("no space left on the simulated disk")
        self._count(before=True)
        if not durable and folder not in self._unsynced:
            shutil.copyfile(folder / _DATA, folder / _COPY)
            self._unsynced.add(folder)

    def committed(self, folder: Path, *, durable: bool) -> None:
        if durable:
            self.flushed(folder)
        self._count(before=False)

    def flushed(self, folder: Path) -> None:
        if folder in self._unsynced:
            self._unsynced.discard(folder)
            (folder / _COPY).unlink()

    def saving(self) -> None:
        """Called before the item store commits."""
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        self._count(before=True)

    def _count(self, *, before: bool) -> None:
        """Count a commit. A crash happens before the commit, or after it and before the caller gets the result."""
        if self.crash_in is None:
            return
        if before:
            self.crash_in -= 1
        if self.crash_in <= 0 and (not before or self._chance.random() < 0.5):
            self.crash_in = None
            raise Crashed

    # -- a crash

    def lose(self, close: Callable[[], None], items: Path) -> None:
        """Close the stores of a peer as a crash would: unsynced writes are lost."""
        log, sums = (items.with_name(items.name + suffix) for suffix in ("-wal", "-sums"))
        kept = {path: path.read_bytes() for path in (items, log, sums) if path.exists()}
        close()
        for path in (log, items.with_name(items.name + "-shm")):
            path.unlink(missing_ok=True)
        for path, data in kept.items():
            path.write_bytes(self._torn(data) if path == log else data)
        for folder in sorted(self._unsynced):
            (folder / _COPY).replace(folder / _DATA)
        self._unsynced.clear()
        self.crash_in = None

    def _torn(self, log: bytes) -> bytes:
        """SQLite's write-ahead log with its end lost, or partly overwritten with random bytes."""
        chance = self._chance
        if chance.random() < 0.4:
            return log
        end = chance.randint(0, len(log))
        if chance.random() < 0.5:
            return log[:end]
        rest = len(log) - end
        return log[:end] + chance.randbytes(min(rest, 512)) + bytes(max(0, rest - 512))


class SimItems(ItemStore):
    """An item store on a simulated disk."""

    synchronous = "OFF"

    def __init__(self, path: Path, party: bytes, disk: SimDisk) -> None:
        self._disk = disk
        super().__init__(path, party)

    @contextmanager
    def saving(self) -> Iterator[Callable[[Save], None]]:
        with super().saving() as put:
            yield put
            self._disk.saving()
