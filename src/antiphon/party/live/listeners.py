"""`Listeners`: callbacks on changes. Observers of an item end with its handle; they are found by id, without a scan."""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

_LOG = logging.getLogger("antiphon")

Handle = TypeVar("Handle")


class Listeners:
    """The callbacks of one party. They run without its lock, after a change, in the thread that made or received it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._keys = itertools.count()
        self._all: dict[int, Callable[[frozenset[bytes]], None]] = {}
        self._notes: dict[int, Callable[[frozenset[bytes]], None]] = {}
        self._one: dict[bytes, dict[int, Callable[[], None]]] = {}
        # A handle may be garbage-collected at any moment, also while the lock is held: its entry is removed later.
        self._gone: deque[tuple[bytes, int]] = deque()

    def listen(
        self,
        callback: Callable[[frozenset[bytes]], None],
        note: Callable[[frozenset[bytes]], None] | None = None,
    ) -> Callable[[], None]:
        """Call back with the ids of changed items, until the returned function is called.

        `note` gets the same ids earlier, while the party is still locked, so in the order of the changes. It must be
        quick, and must not call the party.
        """
        key = next(self._keys)
        self._all[key] = callback
        if note is not None:
            self._notes[key] = note

        def stop() -> None:
            self._all.pop(key, None)
            self._notes.pop(key, None)

        return stop

    def note(self, items: frozenset[bytes]) -> None:
        """Pass on changed ids in the order of the changes. The caller holds the party's lock."""
        for note in list(self._notes.values()):
            note(items)

    def observe(self, handle: Handle, item: bytes, callback: Callable[[Handle], None]) -> Callable[[], None]:
        """Call back after changes of one item, until the returned function is called or the handle is gone."""
        held, item, key = weakref.ref(handle), bytes(item), next(self._keys)
        with self._lock:
            self._tidy()
            self._one.setdefault(item, {})[key] = partial(_call, held, callback)
        released = weakref.finalize(handle, self._gone.append, (item, key))
        released.atexit = False

        def stop() -> None:
            if released.detach() is not None:
                self._gone.append((item, key))
            with self._lock:
                self._tidy()

        return stop

    def _tidy(self) -> None:
        while self._gone:
            item, key = self._gone.popleft()
            known = self._one.get(item, {})
            known.pop(key, None)
            if not known:
                self._one.pop(item, None)

    @property
    def listening(self) -> bool:
        """True if there is any callback."""
        return bool(self._all or self._one)

    def __len__(self) -> int:
        """The number of observed items."""
        with self._lock:
            self._tidy()
            return len(self._one)

    def tell(self, items: frozenset[bytes]) -> str:
        """Run the callbacks. An error of one is logged and returned, and the others still run."""
        calls: list[Callable[[], object]] = [partial(callback, items) for callback in list(self._all.values())]
        with self._lock:
            self._tidy()
            observed = self._one.keys() & items if self._one else ()
            calls += [call for item in sorted(observed) for call in self._one[item].values()]
        failed: list[str] = []
        with ExitStack() as rest:  # runs them in reverse order, and all, even after a `KeyboardInterrupt`
            for call in reversed(calls):
                rest.callback(self._tell, call, failed)
        return failed[-1] if failed else ""

    def _tell(self, call: Callable[[], object], failed: list[str]) -> None:
        try:
            call()
        except Exception as error:
            failed.append(f"an observer failed: {error!r}")
            _LOG.exception("party %s: an observer failed", self._name)


def _call(held: weakref.ref[Handle], callback: Callable[[Handle], None]) -> None:
    handle = held()
    if handle is not None:
        callback(handle)
