"""When blobs may be let go: not while some are being put that nothing refers to yet, and never those just put.

A file's chunks are put before the item that names them is written, an epoch's nodes before its genesis. Whoever does
such a thing says so with `putting`; a collection ends at once where that begins, and does not begin while it lasts.

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
    """One collection: what is put since it began is kept."""

    def __init__(self, lock: threading.Lock, stopped: str) -> None:
        self._lock = lock
        self._fresh: set[Cid] = set()
        self.stopped = stopped  # why it ended before its time; empty if it did not

    def add(self, cids: Iterable[Cid]) -> None:
        self._fresh.update(cids)
        if len(self._fresh) > FRESH_MAX:
            self.stopped = self.stopped or TOO_MANY

    def sweep(
        self,
        cids: Collection[Cid],
        keep: Callable[[Cid], bool],
        delete: Callable[[list[Cid]], tuple[int, int]],
    ) -> tuple[int, int]:
        """Delete those of some blobs that are not kept; nobody puts one meanwhile."""
        with self._lock:
            doomed = [] if self.stopped else [cid for cid in cids if cid not in self._fresh and not keep(cid)]
            return delete(doomed) if doomed else (0, 0)


class BlobCollector:
    """What a store of blobs has of this. Nothing here waits for anything but a moment's deletion."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scopes = 0
        self._adding: list[Collection[Cid]] = []
        self._running: BlobCollection | None = None

    @contextmanager
    def putting(self) -> Iterator[None]:
        """While blobs are put that nothing refers to yet."""
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
        """While these are put, also if they are here already: a collection that begins meanwhile knows them too."""
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
