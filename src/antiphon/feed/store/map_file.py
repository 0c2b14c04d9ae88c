"""`MapFile`: an LMDB file in its own folder, with one writing process, many readers, and a map that grows."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import lmdb

from antiphon.core.disk_room import disk_full, is_out_of_room
from antiphon.core.errors import DamagedStore, StoreClosed, StoreError
from antiphon.feed.store.disk import MACHINE, Disk
from antiphon.feed.store.gate import Gate
from antiphon.feed.store.lock import lock, lock_shared, sync_folder, without_readers
from antiphon.feed.store.map_check import map_fault
from antiphon.feed.store.private_files import make_file

MAP_SIZE_START = 64 << 20
MAP_SIZE_MAX = 16 << 40
READERS_MAX = 1024
_TICK_SECONDS = 0.1  # between two reports of a copy's progress
_LOCK_SIZE = 64 * READERS_MAX + 4096  # of LMDB's lock file, at least: a slot for each reader

Result = TypeVar("Result")
View = TypeVar("View")


class MapFile(ABC, Generic[View]):
    """Read and write transactions. Readers get a `View` of a transaction.

    No transaction is open while a caller's code runs, so that the map can grow: LMDB allows that only without any.
    """

    #: The name of the store in errors, and their advice if it is damaged or would grow too large.
    what: ClassVar[str]
    if_damaged: ClassVar[str]
    if_large: ClassVar[str]
    buffers: ClassVar[bool] = False  # True if transactions return memoryviews instead of bytes
    readahead: ClassVar[bool] = False

    def __init__(
        self,
        path: Path,
        tables: Sequence[str],
        *,
        readonly: bool = False,
        durable: bool = True,
        map_size: int,
        disk: Disk = MACHINE,
    ) -> None:
        self.path = path
        self.readonly = readonly
        self.durable = durable
        self._disk = disk
        self._names = tables
        self._gate = Gate()
        self._closed = False
        self._replaced = 0  # number of transactions in the files that `compact` replaced
        self._commits = 0  # number of write transactions of this process, failed ones included
        self._number: tuple[int, int] | None = None  # `_commits`, and the number of the last transaction then
        self._env: Any = None
        new = [folder for folder in (path, *path.parents) if not folder.exists()]
        self._lock = lock_shared(path) if readonly else lock(path)
        try:
            self._open(map_size)
            if not readonly and disk.waits:
                for folder in (path, *(made.parent for made in new)):
                    sync_folder(folder)
        except BaseException:
            if self._env is not None:
                self._env.close()
            os.close(self._lock)
            raise

    def _open(self, map_size: int) -> None:
        fault = map_fault(self.file)
        if fault:
            raise self._damaged(fault)
        new = not self.file.exists()
        try:
            self._make_lock_file()
            self._env = lmdb.open(
                str(self.path),
                map_size=map_size,
                readonly=self.readonly,
                create=not self.readonly,
                sync=self.durable and self._disk.waits,
                max_dbs=len(self._names),
                max_readers=READERS_MAX,
                mode=0o600,
                metasync=True,
                readahead=self.readahead,
            )
            self.tables = {name: self._env.open_db(name.encode(), create=not self.readonly) for name in self._names}
            if not self.readonly:
                self._env.reader_check()  # frees the slots of dead processes
        except (lmdb.Error, OSError) as error:
            if self._env is not None:
                self._env.close()
                self._env = None
            if new and not self.readonly:  # half a file would look like a damaged one
                self.file.unlink(missing_ok=True)
            if is_out_of_room(error, self.path):
                raise disk_full(f"the {self.what}", self.path) from error
            raise StoreError(
                f"the {self.what} at {self.path} cannot be opened: {error}. If it is new, let its writer open it "
                "first; a process opens one store once and shares it"
            ) from error

    def _make_lock_file(self) -> None:
        """Allocate LMDB's lock file, which is mapped: a page of it that finds no room on the disk kills the process.

        Readers make one, too, where they may write: else LMDB reads without.
        """
        if self.readonly and not self.file.exists():
            return
        try:
            handle = os.open(self.path / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if self.readonly and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                return
            raise
        try:
            os.posix_fallocate(handle, 0, _LOCK_SIZE)
        finally:
            os.close(handle)

    @property
    def file(self) -> Path:
        """The file that is mapped."""
        return self.path / "data.mdb"

    def check_structure(self) -> None:
        """Follow all trees of the file by hand; raise `DamagedStore` if one has changed. Values are not looked at."""
        reading = self.begin_reading()  # keeps the pages of its transaction from being used again
        fault = ""
        try:
            fault = map_fault(self.file, None, reading.id())
        finally:
            self.end_reading(reading, None)
        if fault:
            raise self._damaged(fault)

    def _damaged(self, fault: str) -> DamagedStore:
        return DamagedStore(
            f"the {self.what} at {self.path} is damaged: {self.file.name}: {fault}. {self.if_damaged}; check the disk",
            file=str(self.file),
        )

    @abstractmethod
    def _view(self, txn: Any) -> View:
        """Return what a reader works with."""

    def read(self) -> ReadTransaction[View]:
        """Return a context manager for a consistent view. Keep it short, and never open across a yield."""
        return ReadTransaction(self)

    def begin_reading(self) -> Any:
        """Enter the gate and begin a read transaction; `end_reading` ends both."""
        while True:
            self._gate.enter()
            try:
                self._check_open()
                return self._env.begin(buffers=self.buffers)
            except lmdb.MapResizedError:
                self._gate.leave()
            except BaseException:
                self._gate.leave()
                raise
            with self._gate.exclusive():
                self._check_open()
                self._env.set_mapsize(0)  # another process grew the map: take its size

    def end_reading(self, txn: Any, error: BaseException | None) -> None:
        txn.abort()
        self._gate.leave()
        if isinstance(error, lmdb.Error):
            raise StoreError(
                f"the {self.what} at {self.path} cannot be read: {error}. {self.if_damaged}; check the disk"
            ) from error

    @contextmanager
    def frozen(self) -> Iterator[FrozenMap]:
        """Hold the state of one moment. In this process the map cannot grow meanwhile, so a write may have to wait."""
        txn = self.begin_reading()
        try:
            yield FrozenMap(self.what, self._env, txn)
        finally:
            self.end_reading(txn, None)

    def transact(self, act: Callable[[Any], Result]) -> Result:
        """Run `act` in one transaction, durable on return. If the map has to grow, `act` runs again from the start."""
        self._check_open()
        if self.readonly:
            raise StoreError(f"the {self.what} at {self.path} was opened read-only here")
        while True:
            try:
                with self._gate.shared():
                    self._check_open()
                    try:
                        with self._env.begin(write=True, buffers=self.buffers) as txn:
                            result = act(txn)
                            self._disk.committing(self.path, durable=self.durable)
                    finally:
                        self._commits += 1  # no race: write transactions run one at a time
                    self._disk.committed(self.path, durable=self.durable)
                    return result
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                raise self._unwritable(error) from error

    def _unwritable(self, error: lmdb.Error) -> StoreError:
        if is_out_of_room(error, self.path):
            return disk_full(f"the {self.what}", self.path)
        return StoreError(
            f"the {self.what} at {self.path} could not be written: {error}. Nothing of this was acknowledged; "
            "check the disk's space and health"
        )

    def _grow(self) -> None:
        with self._gate.exclusive():
            self._check_open()
            self._env.reader_check()  # a dead reader keeps pages from being reused
            size = self._env.info()["map_size"] * 2
            if size > MAP_SIZE_MAX:
                raise StoreError(
                    f"the {self.what} at {self.path} would grow above {MAP_SIZE_MAX} bytes; {self.if_large}"
                )
            self._env.set_mapsize(size)

    def transaction(self) -> int:
        """Return the number of the last committed transaction. It rises with each commit, of any process.

        In the writing process the number is cached until its next commit, for no other process writes.
        """
        commits, known = self._commits, self._number
        if known is not None and known[0] == commits and not self._closed:
            return known[1]
        # Not from `info`: while a commit goes to the disk, that has its number, and readers do not see its data yet.
        reading = self.begin_reading()
        number: int = self._replaced + reading.id()
        self.end_reading(reading, None)
        if not self.readonly:
            self._number = commits, number
        return number

    def compact(self) -> int:
        """Rewrite the file without free pages and deleted data. Return its new size.

        A crash leaves the old file or the new one. No other process may have it open.
        """
        self._check_open()
        if self.readonly:
            raise StoreError(f"the {self.what} at {self.path} was opened read-only here")
        aside, file = self.path / "compact", self.file
        with self._gate.exclusive(), without_readers(self.path):
            self._check_open()
            info = self._env.info()
            map_size, number = info["map_size"], info["last_txnid"]
            try:
                self._copy(aside, map_size)
                self._close()
                try:
                    os.replace(aside / "data.mdb", file)
                    self._replaced += number
                    (self.path / "lock.mdb").unlink(missing_ok=True)  # it has the transaction numbers of the old file
                    sync_folder(self.path)
                finally:
                    self._open(map_size)
                    self._number = None
            except (lmdb.Error, OSError) as error:
                raise StoreError(
                    f"the {self.what} at {self.path} could not be rewritten: {error}. Nothing is lost; it takes as "
                    "much space again while it lasts"
                ) from error
            finally:
                shutil.rmtree(aside, ignore_errors=True)
            return file.stat().st_size

    def _copy(self, aside: Path, map_size: int) -> None:
        """Write the compacted file into a folder, and sync it."""
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=0o700)
        self._env.copy(str(aside), compact=True)
        made = aside / "data.mdb"
        with lmdb.open(str(aside), map_size=map_size, max_dbs=len(self._names), lock=False) as env:
            self._mark(env, made)
            env.sync(True)
        made.chmod(0o600)  # LMDB's copy has another mode

    def _mark(self, env: Any, made: Path) -> None:
        """Hook: write to the compacted file before it replaces the old one."""
        return

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the {self.what} at {self.path} is closed; open it again")

    def close(self) -> None:
        with self._gate.exclusive():
            if not self._closed:
                self._closed = True
                try:
                    if not self.readonly and self._disk.waits:
                        self._env.sync(True)
                except lmdb.Error as error:
                    raise self._unwritable(error) from error
                finally:
                    self._close()
                    os.close(self._lock)

    def _close(self) -> None:
        self._env.close()


class FrozenMap:
    """The state of an LMDB file after one transaction, whose `number` it has. Writers go on beside it."""

    def __init__(self, what: str, env: Any, txn: Any) -> None:
        self._what = what
        self._env = env
        self._txn = txn
        self.number: int = txn.id()

    def copy(self, path: Path, tick: Callable[[int, int], None] = lambda *_: None) -> None:
        """Write the state into a new file at `path`, without free pages and so without deleted data.

        The file is its owner's alone, and not synced. `tick` is called with the bytes that are written, and with how
        many there are at most.
        """
        total = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
        failed: list[BaseException] = []
        ended = threading.Event()
        with make_file(path).open("r+b") as file:
            thread = threading.Thread(target=self._copy, args=(file.fileno(), failed, ended), name="antiphon-copy")
            thread.start()
            try:
                while not ended.wait(_TICK_SECONDS):
                    tick(min(os.fstat(file.fileno()).st_size, total), total)
            finally:
                thread.join()  # it must not write to a closed file, also after an interrupt
        tick(total, total)
        for error in failed:
            if is_out_of_room(error, path):
                raise disk_full(f"a copy of the {self._what}", path) from error
            raise StoreError(f"the {self._what} could not be copied to {path}: {error}") from error

    def _copy(self, handle: int, failed: list[BaseException], ended: threading.Event) -> None:
        try:
            self._env.copyfd(handle, compact=True, txn=self._txn)
        except BaseException as error:  # for the thread that waits
            failed.append(error)
        finally:
            ended.set()


class ReadTransaction(Generic[View]):
    """A read transaction in a `with` block. A plain class, as it is faster than a generator and every read uses it."""

    __slots__ = ("_file", "_txn")

    def __init__(self, file: MapFile[View]) -> None:
        self._file = file

    def __enter__(self) -> View:
        self._txn = self._file.begin_reading()
        return self._file._view(self._txn)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._file.end_reading(self._txn, error)
