"""A disk that becomes full at a chosen write, or a process that is killed there: `full_disk.c`, preloaded.

The disk stays full until it is emptied. Creating a file or a folder counts as a write, too. Deleting works always.
"""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("full_disk.c")


class FullDisk:
    """The count of writes into one folder, shared with all programs that are started with `environment`."""

    def __init__(self, folder: Path, count: Path) -> None:
        self.folder, self._count = folder, count
        if not count.exists():
            count.write_bytes(struct.pack("qq", 0, -1))
        with count.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 16)

    def environment(self, place: Path, *, kill: bool = False) -> dict[str, str]:
        """Compile the library into the folder `place`; return the environment that programs are started with.

        With `kill`, a program is killed at the write at which the disk would be full.
        """
        library = place / "full_disk.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
        about = {"FULL_DISK_FOLDER": str(self.folder), "FULL_DISK_COUNT": str(self._count)}
        about |= {"FULL_DISK_KILL": "1"} if kill else {}
        return {**os.environ, **about, "LD_PRELOAD": str(library)}

    @property
    def writes(self) -> int:
        """The number of writes since the disk was filled or emptied."""
        number: int = struct.unpack("qq", self._shared[:])[0]
        return number

    def fill(self, after: int) -> None:
        """Let the disk be full after so many more writes."""
        self._shared[:] = struct.pack("qq", 0, after)

    def empty(self) -> None:
        """Let the disk have room for everything."""
        self._shared[:] = struct.pack("qq", 0, -1)
