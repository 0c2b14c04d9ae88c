"""`PageSums`: a CRC-32 of each page of an item store's SQLite file, in a file beside it, to find damage in any table.

SQLite has no checksums of pages. In WAL mode its file changes only in checkpoints, so the sums are taken from the
write-ahead log just before a checkpoint copies it (`take`), and are on the disk first. Hence the rule that `damaged`
checks: a page that is not in the log has the bytes of its sum. A crash at any point keeps the rule: until the whole log
is copied, it holds every page whose sum may differ from the file.

The file is `<name>.db-sums`: a header, then a sum for each page (`docs/design/formats.md`). It has no checksum of
its own: a changed sum is found as a changed page, a lost one as a page without a sum, a changed magic by itself. A
sum that changes to exactly `_HOLE` is not found, and its page is not checked from then on.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antiphon.core.errors import DamagedItems
from antiphon.feed.store.lock import sync_folder
from antiphon.party.store.wal_frames import PAGE_SIZE, Frames, read_frames

_MAGIC = b"APs1"
_HEADER = struct.Struct("<4sIQ")
_OPEN, _CLOSED = 0, 1
_HOLE = 0x484F4C45  # the sum of a page that was never written: SQLite reserved it, and freed it before it was saved
_PAGES_AT_ONCE = 16  # one CRC-32 of 64 KiB releases the GIL, one of a page does not
_SUMS_AT_ONCE = 1024  # sums that are written together if one of them changes
_ORDER = "<u4"

Sums = npt.NDArray[np.uint32]


class Header(NamedTuple):
    """The beginning of the file."""

    closed: bool  # the item store was closed, so there is no log
    part: int  # the number of the last transaction that the sums include


class PageSums:
    """The sums of one SQLite file. `take` runs in one thread at a time; `damaged` may run beside it."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + "-sums")
        self._database = database
        self._log = database.with_name(database.name + "-wal")
        self._file = self._pages = -1
        self.part = 0  # of the header

    def open(self) -> None:
        """Open the sums, or create them if there is no database. Raise `DamagedItems` if they cannot be right."""
        if self._database.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self._database))
        there = self._database.exists() and self._database.stat().st_size > 0
        self._open_files(os.O_RDWR if there else os.O_RDWR | os.O_CREAT | os.O_TRUNC, there=there)
        if not there:
            self._log.unlink(missing_ok=True)  # SQLite would drop it as well
            self.begin()
            return
        found = self.header()
        if found.closed and self.has_log:
            raise DamagedItems(f"{self._log} is not of {self._database.name}, which was closed; it is built again")
        self.part = found.part

    def open_to_read(self) -> None:
        """Open the sums and the database only to call `damaged`. Raise `DamagedItems` if there are no sums."""
        self._open_files(os.O_RDONLY, there=True)

    def _open_files(self, flags: int, *, there: bool) -> None:
        try:
            self._file = os.open(self.path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            raise DamagedItems(
                f"{self.path} is missing: {self._database.name} was written by an earlier version, or its checksums "
                "are lost; it is built again"
            ) from None
        if there:  # kept open until `close`: closing it would take away SQLite's locks, which belong to the process
            self._pages = os.open(self._database, os.O_RDONLY | os.O_CLOEXEC)

    def begin(self) -> None:
        """Note that the item store is in use, before SQLite opens the file.

        After a power loss the disk must not have a log beside a file that says that it was closed.
        """
        closed = os.fstat(self._file).st_size > 0 and self.header().closed
        self._write_header(closed=False, part=self.part)
        if closed:
            os.fsync(self._file)

    @property
    def has_log(self) -> bool:
        """True if there is a log with a committed transaction; SQLite drops any other."""
        return read_frames(self._log).frames > 0

    @property
    def in_use(self) -> bool:
        """True if a process has the database open, or was killed: SQLite's log and its shared memory are there."""
        return self._log.exists() and self._database.with_name(self._database.name + "-shm").exists()

    @property
    def size(self) -> int:
        """Size of the database file in bytes."""
        return os.fstat(self._pages).st_size if self._pages >= 0 else self._database.stat().st_size

    def take(self, part: int | None = None) -> Frames:
        """Sum the pages in the log, durably, before it is copied into the file. `part` is the last transaction's."""
        frames = read_frames(self._log)
        if not frames.frames:
            return frames
        sums = self._sums()
        if lost := self._unsummed(len(sums), frames):
            raise DamagedItems(f"{self.path} has lost the checksum of page {lost[0]}; the item store is built again")
        with self._log.open("rb") as log:
            os.fsync(log.fileno())  # else a power loss could leave sums of pages that the disk has nowhere
        sums = sums[: frames.pages]
        new = np.full(frames.pages, _HOLE, np.uint32)
        new[: len(sums)] = sums
        at = np.fromiter(frames.sums, np.int64) - 1
        within = at < frames.pages
        new[at[within]] = np.fromiter(frames.sums.values(), np.uint32)[within]
        changed = np.concatenate((at[within], np.arange(len(sums), frames.pages)))
        # Not `np.unique`: its first call imports `numpy.ma`, which fails if garbage collected meanwhile does that, too.
        for start in np.flatnonzero(np.bincount(changed // _SUMS_AT_ONCE)):
            some = new[start * _SUMS_AT_ONCE : (start + 1) * _SUMS_AT_ONCE]
            os.pwrite(self._file, some.astype(_ORDER).tobytes(), _HEADER.size + 4 * int(start) * _SUMS_AT_ONCE)
        os.ftruncate(self._file, _HEADER.size + 4 * frames.pages)
        self._write_header(closed=False, part=self.part if part is None else part)
        os.fsync(self._file)
        return frames

    def damaged(self, stop: Callable[[], bool] = bool) -> list[int]:
        """Return the numbers of damaged pages, of those that were read before `stop` was true.

        While the item store is used, the caller has a read transaction open. It keeps SQLite from beginning the log
        again and from copying later transactions: pages that are not in the log stay as they are.
        """
        sums = self._sums()  # before the log is read: pages that are summed later are in the log
        closed, frames = self.header().closed, read_frames(self._log)
        in_log = np.fromiter(frames.sums, np.int64) - 1
        sums[in_log[in_log < len(sums)]] = _HOLE
        missing = range(self._page_count() + 1, len(sums) + 1) if closed else ()  # all were copied before it was closed
        found = self._differences(sums, stop) if len(sums) else ()
        return sorted({*found, *self._unsummed(len(sums), frames), *missing})

    def _unsummed(self, count: int, frames: Frames) -> list[int]:
        """Return the pages of the file that have no sum, of which there are `count`, and are not in the log."""
        pages = self._page_count()
        if pages == 1:  # SQLite writes the first page of a new file before it has a log; it has no rows
            return []
        return [page for page in range(count + 1, pages + 1) if page not in frames.sums]

    def _page_count(self) -> int:
        return -(-self.size // PAGE_SIZE)

    def _differences(self, sums: Sums, stop: Callable[[], bool]) -> Iterator[int]:
        if self._pages < 0:
            self._pages = os.open(self._database, os.O_RDONLY | os.O_CLOEXEC)
        count = len(sums) // _PAGES_AT_ONCE
        groups = sums[: count * _PAGES_AT_ONCE].reshape(count, _PAGES_AT_ONCE)
        whole = (groups != _HOLE).all(axis=1).tolist()
        expected = _combined(groups).tolist()
        for group, start in enumerate(range(0, len(sums), _PAGES_AT_ONCE)):
            if stop():
                return
            data = os.pread(self._pages, _PAGES_AT_ONCE * PAGE_SIZE, start * PAGE_SIZE)
            if group < count and whole[group] and zlib.crc32(data) == expected[group]:
                continue
            view = memoryview(data)
            for at, wanted in enumerate(sums[start : start + _PAGES_AT_ONCE].tolist()):
                page = view[at * PAGE_SIZE : (at + 1) * PAGE_SIZE]
                if wanted != _HOLE and (len(page) < PAGE_SIZE or zlib.crc32(page) != wanted):
                    yield start + at + 1

    def close(self, *, clean: bool = False) -> None:
        """Close the files, after SQLite has closed its own. `clean` says that the log is empty.

        The log must be gone from the disk before the header says so: see `begin`.
        """
        if self._file >= 0:
            if clean:
                sync_folder(self.path.parent)
                self._write_header(closed=True, part=self.part)
            os.close(self._file)
        if self._pages >= 0:
            os.close(self._pages)
        self._file = self._pages = -1

    def header(self) -> Header:
        """Read the header. Raise `DamagedItems`."""
        return decode_sums(os.pread(self._file, _HEADER.size, 0), str(self.path))[0]

    def _write_header(self, *, closed: bool, part: int) -> None:
        os.pwrite(self._file, encode_sums(Header(closed, part)), 0)
        self.part = part

    def _sums(self) -> Sums:
        size = os.fstat(self._file).st_size
        data = os.pread(self._file, size, _HEADER.size)
        return np.frombuffer(data, _ORDER, len(data) // 4).astype(np.uint32)


def encode_sums(header: Header, sums: Sequence[int] = ()) -> bytes:
    """Encode the file of sums."""
    return _HEADER.pack(_MAGIC, _CLOSED if header.closed else _OPEN, header.part) + np.array(sums, _ORDER).tobytes()


def decode_sums(data: bytes, what: str = "a file of sums") -> tuple[Header, list[int]]:
    """Decode the file of sums. Raises `DamagedItems`."""
    magic, closed, part = _HEADER.unpack_from(data) if len(data) >= _HEADER.size else (b"", 0, 0)
    if magic != _MAGIC or closed not in (_OPEN, _CLOSED) or len(data) % 4:
        raise DamagedItems(f"{what} holds no checksums of pages; the item store is built again")
    return Header(closed == _CLOSED, part), np.frombuffer(data, _ORDER, offset=_HEADER.size).tolist()


def _combined(groups: Sums) -> Sums:
    """Return the CRC-32 of the pages of each group in a row, from the CRC-32 of each page."""
    found = np.zeros(len(groups), np.uint32)
    for sums in groups.T:
        shifted = _SHIFT[0][found & 255]
        for byte in (1, 2, 3):
            shifted = shifted ^ _SHIFT[byte][(found >> (8 * byte)) & 255]
        found = shifted ^ sums
    return found


def _shift_tables() -> list[Sums]:
    """Return tables, one for each byte, of what a CRC-32 before a page adds to the CRC-32 after it. It is linear."""
    page = bytes(PAGE_SIZE)
    bits = [zlib.crc32(page, 1 << bit) ^ zlib.crc32(page) for bit in range(32)]
    tables = []
    for byte in range(4):
        table = np.zeros(256, np.uint32)
        for bit in range(8):
            table[(np.arange(256) >> bit) & 1 == 1] ^= np.uint32(bits[8 * byte + bit])
        tables.append(table)
    return tables


_SHIFT = _shift_tables()
