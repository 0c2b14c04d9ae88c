"""`Watchers`: functions that are called when something may have changed, in whatever thread it happened."""

from __future__ import annotations

import logging
from collections.abc import Callable

_LOG = logging.getLogger("antiphon.mesh")


class Watchers:
    """Calls functions that must be quick, and neither block nor raise: they wake a loop, or a worker."""

    def __init__(self) -> None:
        self._known: tuple[Callable[[], None], ...] = ()

    def add(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Add a function. Return the function that removes it."""
        self._known += (watcher,)

        def remove() -> None:
            self._known = tuple(known for known in self._known if known is not watcher)

        return remove

    def call(self) -> None:
        """Call all functions. An error is logged, and does not affect the others."""
        for watcher in self._known:
            try:
                watcher()
            except Exception:
                _LOG.exception("mesh.watcher_failed: a function that watches the network failed")
