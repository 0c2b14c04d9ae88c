"""File locks of a store's folder: one process writes, and a file that others read is not replaced."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from antiphon.core.errors import StoreError, StoreLocked


def lock(path: Path) -> int:
    """Take the writer's lock of a store; the kernel releases it when the process ends."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path / "writer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(handle)
        raise StoreLocked(
            f"the store at {path} is being written by process {holder}; stop that one, or open the store read-only"
        ) from None
    try:
        os.close(os.open(path / "readers.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    except BaseException:  # on a full disk, the next attempt in this process must not find the store locked
        os.close(handle)
        raise
    return handle


def sync_folder(path: Path) -> None:
    """Sync a folder: a new file is durable only when the entry in its folder is."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_shared(path: Path) -> int:
    """Take the readers' lock. A process holds it while it has the file open; `compact` refuses while one does."""
    made = os.O_CREAT if (path / "data.mdb").exists() else 0  # a lock file that somebody has deleted
    try:
        handle = os.open(path / "readers.lock", os.O_RDONLY | os.O_CLOEXEC | made, 0o600)
    except OSError as error:
        raise StoreError(
            f"the store at {path} cannot be opened: {error.strerror}. If it is new, let its writer open it first"
        ) from None
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


@contextmanager
def without_readers(path: Path) -> Iterator[None]:
    """Hold off readers: a process that has the file open would keep reading the old file."""
    handle = os.open(path / "readers.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StoreError(f"another process reads the store at {path}; stop it first") from None
    finally:
        os.close(handle)
