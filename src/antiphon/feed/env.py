"""The LMDB environment under a `FeedStore`: one writing process, many readers, a map that grows by itself."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from antiphon.core.errors import StoreClosed, StoreError
from antiphon.feed.gate import Gate
from antiphon.feed.lock import lock, lock_shared, sync_folder, without_readers
from antiphon.feed.tables import TABLES, Memory, Tables, checked

MAP_SIZE_START = 64 << 20
MAP_SIZE_MAX = 16 << 40
READERS_MAX = 1024
_ROOM_MIN, _ROOM_MAX = 256 << 10, 4 << 20  # bytes written ahead of need
_ZEROS = bytes(64 << 10)
_GET_GENERATION = 0x80087601  # FS_IOC_GETVERSION

Result = TypeVar("Result")


class Env:
    """Read and write transactions over the tables of a store.

    No transaction is held while a caller's code runs, so that the map can grow (LMDB asks for none at that moment).
    """

    def __init__(
        self, path: Path, *, readonly: bool = False, sync: bool = True, map_size: int = MAP_SIZE_START
    ) -> None:
        self.path = path
        self.readonly = readonly
        self.sync_on_commit = sync
        self._gate = Gate()
        self._memory = Memory()
        self._closed = False
        new = [folder for folder in (path, *path.parents) if not folder.exists()]
        self._lock: int | None = lock_shared(path) if readonly else lock(path)
        try:
            self._open(map_size)
            if not readonly:
                for folder in (path, *(made.parent for made in new)):
                    sync_folder(folder)
        except BaseException:
            self._unlock()
            raise

    def _open(self, map_size: int) -> None:
        try:
            self._env = lmdb.open(
                str(self.path),
                map_size=map_size,
                readonly=self.readonly,
                create=not self.readonly,
                sync=self.sync_on_commit,
                max_dbs=len(TABLES),
                max_readers=READERS_MAX,
                mode=0o600,
                metasync=True,
                readahead=True,
            )
            self._tables = {name: self._env.open_db(name.encode(), create=not self.readonly) for name in TABLES}
            if not self.readonly:
                self._env.reader_check()  # slots of processes that died
                self._page_size = self._env.stat()["psize"]
                self._file = os.open(self.path / "data.mdb", os.O_RDWR | os.O_CLOEXEC)
                self._room = os.fstat(self._file).st_size  # so far the file is written
        except lmdb.Error as error:
            raise StoreError(
                f"the store at {self.path} cannot be opened: {error}. If it is new, let its writer open it first; "
                "a process opens one store once and shares it"
            ) from error

    @contextmanager
    def read(self) -> Iterator[Tables]:
        """A consistent view; short-lived, and never held across a yield to a caller."""
        while True:
            with self._gate.shared():
                self._check_open()
                try:
                    txn = self._env.begin(buffers=True)
                except lmdb.MapResizedError:
                    txn = None
                if txn is not None:
                    try:
                        yield Tables(txn, self._tables, self._memory)
                    except lmdb.Error as error:
                        raise StoreError(
                            f"the store at {self.path} cannot be read: {error}. Restore it from peers; check the disk"
                        ) from error
                    finally:
                        txn.abort()
                    return
            with self._gate.exclusive():
                self._env.set_mapsize(0)  # another process grew the map: take its size

    def write(self, act: Callable[[Tables, Callable[[Callable[[Tables], Any]], Any]], Result]) -> Result:
        """Run `act` in one transaction, durable on return; run again from the start where the map had to grow.

        `act` gets the tables, and a function that runs a part of it all-or-nothing inside the same transaction.
        """
        self._check_open()
        if self.readonly:
            raise StoreError(f"the store at {self.path} was opened read-only here")
        while True:
            try:
                with self._gate.shared(), self._env.begin(write=True, buffers=True) as txn:
                    self._make_room()
                    return act(Tables(txn, self._tables, self._memory), lambda part: self._nested(txn, part))
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                raise StoreError(
                    f"the store at {self.path} could not be written: {error}. Nothing of this was acknowledged; "
                    "check the disk's space and health"
                ) from error

    def _make_room(self) -> None:
        """Keep written zeros behind the last page, inside a transaction, so that no other one is writing.

        A commit that makes the file longer also syncs the file system's own journal: a quarter of its time, measured.
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
        except OSError:  # a full disk is met again, and reported, where a page does not fit
            self._room = used + _ROOM_MIN

    def _nested(self, parent: Any, part: Callable[[Tables], Any]) -> Any:
        with self._env.begin(write=True, buffers=True, parent=parent) as txn:
            return part(Tables(txn, self._tables, self._memory))

    def _grow(self) -> None:
        with self._gate.exclusive():
            self._env.reader_check()  # a reader that died holds pages that could be used again
            size = self._env.info()["map_size"] * 2
            if size > MAP_SIZE_MAX:
                raise StoreError(f"the store at {self.path} would grow above {MAP_SIZE_MAX} bytes; prune or split it")
            self._env.set_mapsize(size)

    def flush(self) -> None:
        """Put everything that was committed on the disk, whoever committed it."""
        if not self.readonly:
            with self._gate.shared():
                self._check_open()
                self._env.sync(True)
            return
        self._check_open()
        handle = os.open(self.path / "data.mdb", os.O_RDONLY)
        try:
            os.fdatasync(handle)
        finally:
            os.close(handle)

    def compact(self) -> int:
        """Rewrite the file without what is free or was taken away; returns its new size.

        The new file is marked as this store's own before it takes the old one's place, so that a crash leaves one or
        the other, and neither looks like a restored backup.
        """
        aside = self.path / "compact"
        with self._gate.exclusive(), without_readers(self.path):
            self._check_open()
            map_size = self._env.info()["map_size"]
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(mode=0o700)
            self._env.copy(str(aside), compact=True)
            made = aside / "data.mdb"
            with lmdb.open(str(aside), map_size=map_size, max_dbs=len(TABLES), lock=False) as env:
                meta = env.open_db(b"meta")
                with env.begin(write=True) as txn:
                    txn.put(b"file", checked(identity_of(made)), db=meta)
                env.sync(True)
            made.chmod(0o600)  # LMDB's copy has a mode of its own
            self._close()
            os.replace(made, self.path / "data.mdb")
            (self.path / "lock.mdb").unlink(missing_ok=True)  # it counts transactions of the old file
            shutil.rmtree(aside)
            sync_folder(self.path)
            self._open(map_size)
            return (self.path / "data.mdb").stat().st_size

    def transaction(self) -> int:
        """The number of the last committed transaction: it moves when anything changed, in any process."""
        with self._gate.shared():  # the map must not move meanwhile
            self._check_open()
            number: int = self._env.info()["last_txnid"]
            return number

    def file_identity(self) -> bytes:
        return identity_of(self.path / "data.mdb")

    def map_size(self) -> int:
        with self._gate.shared():
            self._check_open()
            size: int = self._env.info()["map_size"]
            return size

    def close(self) -> None:
        with self._gate.exclusive():
            if not self._closed:
                self._closed = True
                if not self.readonly:
                    self._env.sync(True)
                self._close()
                self._unlock()

    def _close(self) -> None:
        self._env.close()
        if not self.readonly:
            os.close(self._file)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store at {self.path} is closed; open it again")


def identity_of(file: Path) -> bytes:
    """What tells a file from a copy of it. Inode numbers are used again, so the inode's generation is in it."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        generation = fcntl.ioctl(handle, _GET_GENERATION, bytes(8))
    except OSError:  # not every file system has it
        generation = bytes(8)
    finally:
        inode = os.fstat(handle).st_ino
        os.close(handle)
    return inode.to_bytes(8, "little") + generation
