"""`SmallDisk`: a file system of a few MiB in memory, for tests of full disks."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = 4096


class SmallDisk:
    """A file system of a few MiB in memory. A file takes up the room that is to be missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._filler = folder / "filler"

    def leave(self, pages: int) -> None:
        """Take all room but a few pages."""
        handle = os.open(self._filler, os.O_CREAT | os.O_WRONLY)
        try:
            while os.write(handle, bytes(PAGE)) == PAGE:
                pass
        except OSError:
            os.ftruncate(handle, max(0, os.fstat(handle).st_size - pages * PAGE))
        finally:
            os.close(handle)

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)
