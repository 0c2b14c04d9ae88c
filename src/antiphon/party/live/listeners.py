"""Who wants to know what changed. Observers of an item are released with its handle; nothing is matched by scanning."""

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

Held = TypeVar("Held")


class Listeners:
    """Callbacks of one party. They run without its lock, after the change, in the thread that made or received it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._keys = itertools.count()
        self._all: dict[int, Callable[[frozenset[bytes]], None]] = {}
        self._one: dict[bytes, dict[int, Callable[[], None]]] = {}
        # Handles are collected at any moment, also while the lock is held: what they leave is tidied up later.
        self._gone: deque[tuple[bytes, int]] = deque()

    def listen(self, callback: Callable[[frozenset[bytes]], None]) -> Callable[[], None]:
        """Call back with the ids of all items that changed; returns how to stop it."""
        key = next(self._keys)
        self._all[key] = callback

        def stop() -> None:
            self._all.pop(key, None)

        return stop

    def observe(self, handle: Held, item: bytes, callback: Callable[[Held], None]) -> Callable[[], None]:
        """Call back after changes of one item, until stopped or until its handle is gone."""
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
        """Whether anybody wants to know anything."""
        return bool(self._all or self._one)

    def __len__(self) -> int:
        """How many items are observed."""
        with self._lock:
            self._tidy()
            return len(self._one)

    def tell(self, items: frozenset[bytes]) -> str:
        """Call those who listen. The error of one is logged, returned, and does not keep the news from the others."""
        calls: list[Callable[[], object]] = [partial(callback, items) for callback in list(self._all.values())]
        with self._lock:
            self._tidy()
            observed = self._one.keys() & items if self._one else ()
            calls += [call for item in sorted(observed) for call in self._one[item].values()]
        failed: list[str] = []
        with ExitStack() as rest:  # calls the last first, and all of them, also after a `KeyboardInterrupt` of one
            for call in reversed(calls):
                rest.callback(self._tell, call, failed)
        return failed[-1] if failed else ""

    def _tell(self, call: Callable[[], object], failed: list[str]) -> None:
        try:
            call()
        except Exception as error:
            failed.append(f"an observer failed: {error!r}")
            _LOG.exception("party %s: an observer failed", self._name)


def _call(held: weakref.ref[Held], callback: Callable[[Held], None]) -> None:
    handle = held()
    if handle is not None:
        callback(handle)
