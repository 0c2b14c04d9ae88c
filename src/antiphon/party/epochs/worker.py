"""`EpochWorker`: the thread that takes part in a party's epochs, next to the thread that consumes its feeds.

It computes without the party's lock, so writers are not blocked. Stopping it cancels unfinished work. Each vote is one
block, so none is ever half-written.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlob, PartyPaused, StoreClosed
from antiphon.party.epochs.driver import EpochDriver

if TYPE_CHECKING:
    from antiphon.halo.member.membership import Membership
    from antiphon.party.epochs.epochs import Epochs
    from antiphon.party.live.processor import PartyProcessor

PAUSE_S = 0.1  # at least this long between two ticks, however much is written meanwhile
_RETRY_MS = 60_000


class EpochWorker:
    """Runs an `EpochDriver` after each change of the feeds, and at the time the driver asks for, until stopped."""

    def __init__(
        self,
        party: PartyProcessor,
        member: Membership,
        epochs: Epochs,
        *,
        prune: bool = False,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._party = party
        self._epochs = epochs
        self._driver = EpochDriver(party, member, epochs)
        self._prune = prune  # also prune messages, as policy allows
        self._pruned = 0  # the number of the last epoch that was pruned to
        self._prune_ms = 0  # the earliest time to prune
        self._pause_s = pause_s
        self._watch = party.store.watch()
        self._stopping = threading.Event()
        self.error = ""  # the last unexpected error
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"antiphon epochs {party.key.short}")
        self._thread.start()

    @property
    def thread(self) -> threading.Thread:
        """The thread that runs the driver."""
        return self._thread

    @property
    def status(self) -> str:
        """The last error, or what the device waits for; "" if there is nothing to do."""
        return self.error or self._driver.status

    def _run(self) -> None:
        with self._watch:
            while not self._stopping.is_set():
                try:
                    wait_s = self._tick()
                    if not self._watch.wait(wait_s) and self._watch.closed:
                        return
                except StoreClosed:
                    return
                self._stopping.wait(self._pause_s)

    def _tick(self) -> float | None:
        """Run the driver once. Returns how many seconds to wait if no block arrives; None: for ever."""
        now_ms = self._party.clock.now_ms()
        try:
            wake_ms = self._driver.tick(now_ms)
            if self._prune and now_ms >= self._prune_ms:
                self._prune_once(now_ms)
            self.error = ""
        except StoreClosed:
            raise
        except PartyPaused:
            wake_ms = now_ms + _RETRY_MS  # it may be resumed without any new block
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
            wake_ms = now_ms + _RETRY_MS
        return None if wake_ms is None else max(0, wake_ms - self._party.clock.now_ms()) / 1_000

    def _prune_once(self, now_ms: int) -> None:
        """Prune once for each epoch. If its snapshot is not whole here, try again a minute later."""
        number = self._epochs.number
        if number > self._pruned:
            try:
                self._epochs.prune()
            except MissingBlob:
                self._prune_ms = now_ms + _RETRY_MS
                return
            self._pruned = number

    def stop(self, *, wait: bool = True) -> None:
        """Cancel the work under way, and end the thread. A caller that holds the party's lock does not wait for it."""
        self._stopping.set()
        self._epochs.cancel(for_good=True)
        self._watch.close()
        if wait and self._thread is not threading.current_thread() and not self._party.is_held():
            self._thread.join()
