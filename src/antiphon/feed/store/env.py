"""`Env`: the LMDB environment of a `FeedStore`, with its tables and file space allocated ahead."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from antiphon.feed.store import rest_marks
from antiphon.feed.store.disk import MACHINE, Disk
from antiphon.feed.store.map_file import MAP_SIZE_START, MapFile
from antiphon.feed.store.tables import TABLES, DecodedCache, Tables, checked

_ROOM_MIN, _ROOM_MAX = 256 << 10, 4 << 20  # bytes written ahead of need
_ZEROS = bytes(64 << 10)
_GET_GENERATION = 0x80087601  # FS_IOC_GETVERSION

TOUCHED_MAX = 1 << 16  # feeds in the notes of the last commits

Result = TypeVar("Result")


class Env(MapFile[Tables]):
    """The tables of a feed store."""

    what = "store"
    if_damaged = "Put a copy back, or begin a new home with the recovery phrase, and sync (docs/recovering.md)"
    if_large = "prune or split it"
    buffers = True
    readahead = True

    def __init__(
        self,
        path: Path,
        *,
        readonly: bool = False,
        durable: bool = True,
        map_size: int = MAP_SIZE_START,
        disk: Disk = MACHINE,
    ) -> None:
        self._cache = DecodedCache()
        self._notes: dict[int, dict[bytes, bytes]] = {}  # by the number of a commit: the feeds it wrote, with parties
        self._noted = 0
        self._resting: set[bytes] | None = None  # the parties whose marks are in the file; None: not read yet
        super().__init__(path, TABLES, readonly=readonly, durable=durable, map_size=map_size, disk=disk)

    def _open(self, map_size: int) -> None:
        super()._open(map_size)
        if not self.readonly:
            self._page_size = self._env.stat()["psize"]
            self._file = os.open(self.path / "data.mdb", os.O_RDWR | os.O_CLOEXEC)
            self._room = os.fstat(self._file).st_size  # bytes of the file that are allocated

    def _view(self, txn: Any, touched: dict[bytes, bytes] | None = None, changed: set[bytes] | None = None) -> Tables:
        return Tables(txn, self.tables, self._cache, touched, changed)

    def write(self, act: Callable[[Tables, Callable[[Callable[[Tables], Any]], Any]], Result]) -> Result:
        """Run `act` in one transaction, durable on return. If the map has to grow, `act` runs again from the start.

        `act` receives the tables, and a function that runs a part of the work in a nested transaction.
        """

        def run(txn: Any) -> Result:
            self._make_room()
            touched: dict[bytes, bytes] = {}
            changed: set[bytes] = set()
            tables = self._view(txn, touched, changed)
            result = act(tables, lambda part: self._nested(txn, part, touched, changed))
            roused.clear()
            if marked := self._marked(tables):
                roused.update(rest_marks.drop(tables, marked, touched, changed))
            self._note(self._replaced + txn.id(), touched)  # before the commit: no reader sees that without its note
            return result

        roused: set[bytes] = set()
        result = self.transact(run)
        if roused and self._resting:
            self._resting -= roused
        return result

    def _marked(self, tables: Tables) -> set[bytes]:
        """Return the parties that have a mark in the file. Only this process writes there."""
        if self._resting is None:
            self._resting = rest_marks.parties(tables)
        return self._resting

    def put_rest(self, party: bytes, mark: bytes, number: int) -> bool:
        """Mark a party as being at rest since a transaction. False if there was another one since."""

        def put(txn: Any) -> bool:
            if self._replaced + txn.id() != number + 1:
                return False
            tables = self._view(txn)
            self._marked(tables)
            rest_marks.put(tables, party, mark)
            self._note(number + 1, {})
            return True

        done = self.transact(put)
        if done and self._resting is not None:
            self._resting.add(party)
        return done

    def _note(self, number: int, touched: dict[bytes, bytes]) -> None:
        """Note the feeds that a commit may have changed. If it fails, the next one has the same number."""
        self._notes[number] = self._notes.get(number, {}) | touched
        self._noted += 1 + len(touched)
        while self._noted > TOUCHED_MAX and len(self._notes) > 1:
            self._noted -= 1 + len(self._notes.pop(next(iter(self._notes))))

    def touched(self, after: int, upto: int) -> dict[bytes, bytes] | None:
        """Return the feeds whose records the commits `after` … `upto` may have changed, each with its party.

        None if that is not known: another process made some of them, or they were too long ago.
        """
        found: dict[bytes, bytes] = {}
        for number in range(after + 1, upto + 1):
            noted = self._notes.get(number)
            if noted is None:
                return None
            found |= noted
        return found

    def _make_room(self) -> None:
        """Write zeros behind the last page ahead of need. Called inside a transaction, so no other one writes.

        A commit that extends the file also syncs the file system's journal: measured, a quarter of its time.
        """
        used = (self._env.info()["last_pgno"] + 1) * self._page_size
        if used + _ROOM_MIN // 4 <= self._room:
            return
        size = os.fstat(self._file).st_size
        room = max(size, used) + min(_ROOM_MAX, max(_ROOM_MIN, used // 8))
        self._room = size + -(-(room - size) // len(_ZEROS)) * len(_ZEROS)
        try:
            for start in range(size, self._room, len(_ZEROS)):
                os.pwrite(self._file, _ZEROS, start)
        except OSError:  # LMDB reports a full disk when a page does not fit
            self._room = used + _ROOM_MIN

    def _nested(
        self, parent: Any, part: Callable[[Tables], Any], touched: dict[bytes, bytes], changed: set[bytes]
    ) -> Any:
        with self._env.begin(write=True, buffers=True, parent=parent) as txn:
            return part(self._view(txn, touched, changed))

    def flush(self) -> None:
        """Sync all commits to the disk, also those of other processes."""
        if not self.readonly:
            with self._gate.shared():
                self._check_open()
                if self._disk.waits:
                    self._env.sync(True)
                self._disk.flushed(self.path)
            return
        self._check_open()
        self.sync_file()

    def sync_file(self) -> None:
        """Sync what is committed, without a transaction of its own."""
        handle = os.open(self.path / "data.mdb", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(handle)
        finally:
            os.close(handle)

    def _mark(self, env: Any, made: Path) -> None:
        """Write the identity of a compacted file, or it would look like a restored backup."""
        meta = env.open_db(b"meta")
        with env.begin(write=True) as txn:
            txn.put(b"file", checked(identity_of(made)), db=meta)

    def file_identity(self) -> bytes:
        return identity_of(self.path / "data.mdb")

    def map_size(self) -> int:
        with self._gate.shared():
            self._check_open()
            size: int = self._env.info()["map_size"]
            return size

    def _close(self) -> None:
        super()._close()
        if not self.readonly:
            os.close(self._file)


def identity_of(file: Path) -> bytes:
    """Return bytes that differ between a file and a copy of it: inode number and generation, as numbers are reused."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        generation = fcntl.ioctl(handle, _GET_GENERATION, bytes(8))
    except OSError:  # not every file system has it
        generation = bytes(8)
    finally:
        inode = os.fstat(handle).st_ino
        os.close(handle)
    return inode.to_bytes(8, "little") + generation
