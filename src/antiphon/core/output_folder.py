"""`output_folder`: make a folder that appears whole or not at all, and that no other user of the machine can read.

>>> from pathlib import Path
>>> with output_folder(Path("letters")) as folder:
...     _ = (folder / "first.txt").write_text("Dear Ada")
>>> Path("letters", "first.txt").read_text()
'Dear Ada'
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from antiphon.core.disk_room import disk_full, is_full
from antiphon.core.errors import InvalidInput, StoreError

_PARTIAL = re.compile(r"\.antiphon-[0-9a-f]{32}\.partial")


@contextmanager
def output_folder(path: Path) -> Iterator[Path]:
    """Make a folder with a random name beside `path`; if the block ends without an error, sync it and move it there.

    Missing parents are made. A path that exists is refused, unless it is an empty folder. The new folder is its
    owner's alone (0700). After an error nothing of it remains; a killed program leaves a folder that the next call
    deletes.
    """
    try:
        refuse_existing(path)
        _make_parents(path)
        _delete_leftovers(path.parent)
        partial, handle = _make(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield partial
        _sync_tree(partial)
        _move(partial, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # it is not there any more if it was moved
        os.close(handle)


def refuse_existing(path: Path) -> None:
    """Raise `InvalidInput` if there is anything at a path but an empty folder, or if that is the current one."""
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise InvalidInput(f"{path} is there already, and is not written over; name a folder that does not exist")
    if path.exists() and path.samefile(os.curdir):
        raise InvalidInput(f"{path} is the current folder, which cannot be replaced; name it from the folder above it")


def _make_parents(path: Path) -> None:
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync(folder.parent)


def _make(parent: Path) -> tuple[Path, int]:
    """Make a folder, and lock it, so that nobody takes it for the leftover of a killed program."""
    while True:
        partial = parent / f".antiphon-{uuid.uuid4().hex}.partial"
        partial.mkdir(mode=0o700)
        try:
            handle = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # taken for a leftover before it was locked
            continue
        with suppress(OSError):  # file systems without locks: leftovers are not deleted there
            fcntl.flock(handle, fcntl.LOCK_SH)
        if partial.exists():
            return partial, handle
        os.close(handle)


def _delete_leftovers(parent: Path) -> None:
    """Delete the folders of killed programs: those that nobody has locked."""
    for left in [path for path in parent.iterdir() if _PARTIAL.fullmatch(path.name)]:
        with suppress(OSError):
            handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(handle)


def _sync_tree(folder: Path) -> None:
    for name, _, files in os.walk(folder, topdown=False):
        for file in files:
            _sync(Path(name, file))
        _sync(Path(name))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _move(partial: Path, path: Path) -> None:
    """Give the folder its name. Renaming a folder never replaces anything but an empty folder."""
    try:
        partial.rename(path)
    except OSError:
        refuse_existing(path)  # somebody may have made it meanwhile
        raise
    _sync(path.parent)


def _unwritable(path: Path, error: OSError) -> StoreError:
    if is_full(error):
        return disk_full(str(path), path)
    return StoreError(f"{path} cannot be written: {error.strerror or error}; name another path")
