"""Files that only their owner may read: mode 0600, in folders of mode 0700. Existing folders keep their mode."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from antiphon.feed.store.lock import sync_folder


def make_folder(path: Path) -> Path:
    """Create a folder and its missing parents, and return its path."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)  # another worker may create it at the same time
    return path


def make_file(path: Path) -> Path:
    """Create an empty file, for a library that opens files by path, and return its path. It must not exist."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    return path


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically and durably. If that fails, the old file stays, and nothing else is left."""
    written = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with make_file(written).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        written.replace(path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
