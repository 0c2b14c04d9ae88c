"""`EpochWorker`: a thread that takes part in a party's epochs, beside the one that consumes its feeds.

It computes without the party's lock, so writers go on. What it has not finished when it is stopped is called off; what
it says is one block, so nothing is ever half-written.
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

PAUSE_S = 0.1  # between two looks, however much is written meanwhile
_RETRY_MS = 60_000


class EpochWorker:
    """Runs a driver after each change of the feeds, and when it wants to be woken, until stopped."""

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
        self._prune = prune  # let go of messages, too, as policy allows
        self._pruned = 0  # the epoch that was stood on then
        self._prune_ms = 0  # not before
        self._pause_s = pause_s
        self._watch = party.store.watch()
        self._stopping = threading.Event()
        self.error = ""  # the last that nobody foresaw
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"antiphon epochs {party.key.short}")
        self._thread.start()

    @property
    def thread(self) -> threading.Thread:
        return self._thread

    @property
    def status(self) -> str:
        """What it waits for, or what has gone wrong; empty if there is nothing to do."""
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
        """Let the driver work; returns for how long to wait if no block comes."""
        now_ms = self._party.clock.now_ms()
        try:
            wake_ms = self._driver.tick(now_ms)
            if self._prune and now_ms >= self._prune_ms:
                self._let_go(now_ms)
            self.error = ""
        except StoreClosed:
            raise
        except PartyPaused:
            wake_ms = now_ms + _RETRY_MS  # it may be resumed though no block comes
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
            wake_ms = now_ms + _RETRY_MS
        return None if wake_ms is None else max(0, wake_ms - self._party.clock.now_ms()) / 1_000

    def _let_go(self, now_ms: int) -> None:
        """Prune, once for each epoch. Where that is not here whole, it is looked for again, but not at every block."""
        number = self._epochs.number
        if number > self._pruned:
            try:
                self._epochs.prune()
            except MissingBlob:
                self._prune_ms = now_ms + _RETRY_MS
                return
            self._pruned = number

    def stop(self, *, wait: bool = True) -> None:
        """Call off what is under way, and let the thread end. Whoever holds what it may wait for does not wait."""
        self._stopping.set()
        self._epochs.call_off(for_good=True)
        self._watch.close()
        if wait and self._thread is not threading.current_thread() and not self._party.is_held():
            self._thread.join()
