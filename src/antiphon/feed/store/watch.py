"""`Watch`: reports which feeds have grown since the last call. It queues nothing, so a slow watcher costs nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from antiphon.core.errors import StoreClosed

_POLL_S = 0.05  # commits of another process are found by polling


class Watch:
    """Reports which feeds have grown. Create it before the append that it waits for, and it misses nothing.

    Use it as a context manager, or call `close`, so that the store releases it.
    """

    def __init__(
        self,
        lengths: Callable[[int, int], dict[bytes, int]],
        transaction: Callable[[], int],
        forget: Callable[[Watch], None],
        parties: Collection[bytes] = (),
        *,
        remote: bool,
    ) -> None:
        self._lengths = lengths
        self._transaction = transaction
        self._forget = forget
        self._parties = frozenset(map(bytes, parties))  # those whose commits wake it; empty: all
        self._remote = remote  # the writer is another process
        self._moved = threading.Event()
        self._seen_transaction = transaction()
        self._seen = lengths(-1, self._seen_transaction)
        self._woken = False
        self.closed = False

    @property
    def at(self) -> int:
        """The store's last transaction that was looked at."""
        return self._seen_transaction

    def poll(self) -> dict[bytes, int]:
        """Return the feeds that have grown since the last call, with their new lengths; empty if none has."""
        self._moved.clear()
        now = self._transaction()
        if now == self._seen_transaction:
            return {}
        lengths = self._lengths(self._seen_transaction, now)
        grown = {feed: length for feed, length in lengths.items() if length > self._seen.get(feed, 0)}
        self._seen_transaction = now
        self._seen.update(lengths)
        return grown

    def wait(self, timeout: float | None = None) -> dict[bytes, int]:
        """Like `poll`, but wait until a feed has grown, the watch is woken or closed, or the time is up."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                grown = self.poll()
            except StoreClosed:
                if self.closed:  # together with its store
                    return {}
                raise
            if grown or self.closed or self._woken:
                self._woken = False
                return grown
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return {}
            step = _POLL_S if self._remote else None
            self._moved.wait(left if step is None else step if left is None else min(step, left))

    def wake(self) -> None:
        """End the present `wait`, or the next one, though no feed has grown."""
        self._woken = True
        self._moved.set()

    def notify(self, parties: frozenset[bytes] | None = None) -> None:
        """Wake `wait`: the store has committed feeds of these parties; with None, of any."""
        if parties is None or not self._parties or not self._parties.isdisjoint(parties):
            self._moved.set()

    def close(self) -> None:
        """Close the watch, and wake a thread that is in `wait`."""
        self.closed = True
        self._moved.set()
        self._forget(self)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
