"""`Disk`: what the commits of a store's file meet. The machine's own by default; a simulation hands in another."""

from __future__ import annotations

from pathlib import Path


class Disk:
    """The machine's disk: commits wait for it, and nothing else happens. Each call names the folder of the file."""

    waits = True  # whether commits and flushes reach for the real disk

    def committing(self, folder: Path, *, durable: bool) -> None:
        """A transaction is about to be committed. To raise here is to lose it."""

    def committed(self, folder: Path, *, durable: bool) -> None:
        """It is committed, and if `durable`, it will survive."""

    def flushed(self, folder: Path) -> None:
        """All that was committed will survive."""


MACHINE = Disk()
