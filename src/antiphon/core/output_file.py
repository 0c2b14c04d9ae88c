"""`output_file`: write a file that appears whole or not at all, and that no other user of the machine can read.

>>> from pathlib import Path
>>> with output_file(Path("letter.txt")) as stream:
...     _ = stream.write(b"Dear Ada")
>>> Path("letter.txt").read_bytes()
b'Dear Ada'
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from antiphon.core.disk_room import disk_full, is_full
from antiphon.core.errors import InvalidInput, StoreError

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # of file systems without hard links


@contextmanager
def output_file(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Open a new file with a random name beside `path`; if the block ends without an error, sync it and move it there.

    An existing file, or a symbolic link, at the path is refused, or replaced with `replace`; a link is never followed.
    The new file is readable by its owner alone (0600). After an error nothing of it remains.
    """
    try:
        if not replace and os.path.lexists(path):
            raise _exists(path)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".antiphon-", suffix=".partial")
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _move(name, path, replace)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        Path(name).unlink(missing_ok=True)


def _move(name: str, path: Path, replace: bool) -> None:
    """Give the file its name. Without `replace`, it fails if somebody has made a file of that name meanwhile."""
    if not replace:
        try:
            os.link(name, path)
            return
        except FileExistsError:
            raise _exists(path) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _claim(path)
    os.replace(name, path)


def _claim(path: Path) -> None:
    """Create an empty file at the path, which the whole one then replaces: where there are no hard links."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        raise _exists(path) from None


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} exists; name another path, or ask for it to be replaced (`replace=True`)")


def _unwritable(path: Path, error: OSError) -> StoreError:
    if is_full(error):
        return disk_full(str(path), path)
    return StoreError(f"{path} cannot be written: {error.strerror or error}; name another path")
