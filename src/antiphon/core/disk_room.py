"""Tell a full disk from other errors, and name it: LMDB, SQLite, Arrow, Java and Python say so each in their own words.

>>> is_full(OSError(28, "No space left on device")), is_full(OSError(13, "Permission denied"))
(True, False)
"""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

from antiphon.core.errors import DiskFull

_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|\[Errno 28\]|\(os error 28\)|MDB_MAP_FULL"
    r"|database or disk is full|no space left"
)


_CUT_SHORT = re.compile(r"Input/output error|disk I/O error|unable to open database file|malformed")
_HARDLY_ANY = 1 << 20  # bytes


def is_full(error: BaseException) -> bool:
    """True if an error, or one that it wraps as text, says that a disk is full."""
    number = error.errno if isinstance(error, OSError) else None
    return number in (errno.ENOSPC, errno.EDQUOT) or bool(_FULL.search(str(error)))


def is_out_of_room(error: BaseException, path: Path) -> bool:
    """True if an error says that a disk is full, or that a write to a disk with hardly any room was cut short."""
    return is_full(error) or (bool(_CUT_SHORT.search(str(error))) and room_of(path) < _HARDLY_ANY)


def disk_full(what: str, path: Path) -> DiskFull:
    """Return the error for something that finds no room; `what` names it, `path` is where it would be."""
    return DiskFull(
        f"{what} could not be written: no space is left on the disk of {path} ({room_of(path):,} bytes are free). "
        "Nothing that was acknowledged is lost; free some space, and try again"
    )


def room_of(folder: Path) -> int:
    """Return the free bytes of the disk that has a folder, or would have it; 0 if that cannot be found."""
    for place in (folder, *folder.absolute().parents):
        if place.exists():
            return shutil.disk_usage(place).free
    return 0
