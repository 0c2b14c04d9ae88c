"""`Disk`: hooks around the commits of a store. The default is the machine's disk; a simulation passes its own."""

from __future__ import annotations

from pathlib import Path


class Disk:
    """The machine's disk: commits wait for it; the hooks do nothing. `folder` is the folder of the store's file."""

    waits = True  # True if commits and flushes sync to the real disk

    def committing(self, folder: Path, *, durable: bool) -> None:
        """Called before a transaction is committed. An exception here aborts it."""

    def committed(self, folder: Path, *, durable: bool) -> None:
        """Called after a commit. If `durable`, the commit survives a power cut."""

    def flushed(self, folder: Path) -> None:
        """Called after a flush: all commits before it survive a power cut."""


MACHINE = Disk()
