"""`FeedWatcher`: a thread that sleeps until the feeds grow, and then lets the party process new blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable

from antiphon.feed.store.watch import Watch


class FeedWatcher:
    """Runs `step` after each change of the feeds, until stopped, or until `step` returns False."""

    def __init__(self, watch: Watch, name: str, step: Callable[[], bool]) -> None:
        self._watch = watch
        self._step = step
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()

    @property
    def thread(self) -> threading.Thread:
        """The thread that runs `step`."""
        return self._thread

    def _run(self) -> None:
        with self._watch:
            while not self._stopping.is_set() and self._step():
                if not self._watch.wait() and self._watch.closed:
                    return

    def stop(self, *, wait: bool) -> None:
        """End the thread. A caller that holds a lock which the thread may wait for must not `wait`: it ends later."""
        self._stopping.set()
        self._watch.close()
        if wait and self._thread is not threading.current_thread():
            self._thread.join()
