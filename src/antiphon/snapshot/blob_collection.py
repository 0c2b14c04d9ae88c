"""Garbage collection of blobs: when blobs may be deleted.

The chunks of a file are put before the item that refers to them is written, and an epoch's nodes before its genesis.
Code that does so runs inside `putting`: it stops a running collection, and no collection begins meanwhile. Blobs that
are put during a collection are never deleted by it.

>>> collecting = BlobCollector()
>>> with collecting.putting(), collecting.begin() as collection:
...     collection.stopped
'blobs are being put for a file or an epoch'
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput

FRESH_MAX = 1_000_000
BUSY = "blobs are being put for a file or an epoch"
TOO_MANY = f"more than {FRESH_MAX} blobs came meanwhile"


class BlobCollection:
    """One collection. Blobs that were put since it began are kept."""

    def __init__(self, lock: threading.Lock, stopped: str) -> None:
        self._lock = lock
        self._fresh: set[Cid] = set()
        self.stopped = stopped  # why it was stopped; empty if it was not

    def add(self, cids: Iterable[Cid]) -> None:
        """Keep these blobs; too many of them stop the collection."""
        self._fresh.update(cids)
        if len(self._fresh) > FRESH_MAX:
            self.stopped = self.stopped or TOO_MANY

    def sweep(
        self,
        cids: Collection[Cid],
        keep: Callable[[Cid], bool],
        delete: Callable[[list[Cid]], tuple[int, int]],
    ) -> tuple[int, int]:
        """Delete the blobs that `keep` does not accept, while no other thread puts blobs. Return count and bytes."""
        with self._lock:
            doomed = [] if self.stopped else [cid for cid in cids if cid not in self._fresh and not keep(cid)]
            return delete(doomed) if doomed else (0, 0)


class BlobCollector:
    """The garbage collector of one blob store. A put waits at most for one call of `sweep`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scopes = 0
        self._adding: list[Collection[Cid]] = []
        self._running: BlobCollection | None = None

    @contextmanager
    def putting(self) -> Iterator[None]:
        """Hold off collections while blobs are put that nothing refers to yet."""
        with self._lock:
            self._scopes += 1
            if self._running is not None:
                self._running.stopped = BUSY
        try:
            yield
        finally:
            with self._lock:
                self._scopes -= 1

    @contextmanager
    def adding(self, cids: Collection[Cid]) -> Iterator[None]:
        """Keep these blobs from a running collection, or one that begins meanwhile, also if they were held before."""
        with self._lock:
            self._adding.append(cids)
            if self._running is not None:
                self._running.add(cids)
        try:
            yield
        finally:
            with self._lock:
                self._adding = [others for others in self._adding if others is not cids]

    @contextmanager
    def begin(self) -> Iterator[BlobCollection]:
        """Begin a collection; only one runs at a time."""
        with self._lock:
            if self._running is not None:
                raise InvalidInput("this store's garbage is being collected already")
            self._running = BlobCollection(self._lock, BUSY if self._scopes else "")
            running = self._running
            for cids in self._adding:
                running.add(cids)
        try:
            yield running
        finally:
            with self._lock:
                self._running = None
