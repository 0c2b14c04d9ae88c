"""`EpochWorker`: the one thread that takes part in the epochs of all open parties of a store.

It looks at a party when blocks of it, or of its parent, have come, and at the time that the party's driver asks for.
It computes without the party's lock, so writers are not blocked. Removing a party cancels its unfinished work. Each
vote is one block, so none is ever half-written. An error of one party delays that party; one of the store is logged and
told as the status of all parties, and the thread tries again a minute later, or when a party is added.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlob, PartyPaused, StoreClosed, UnknownFeed
from antiphon.party.epochs.driver import EpochDriver

if TYPE_CHECKING:
    from antiphon.feed.store.feed_store import FeedStore
    from antiphon.halo.member.membership import Membership
    from antiphon.party.epochs.epochs import Epochs
    from antiphon.party.live.processor import PartyProcessor

_LOG = logging.getLogger("antiphon")

PAUSE_S = 0.1  # at least this long between two rounds, however much is written meanwhile
_RETRY_MS = 60_000


@dataclass(slots=True, eq=False)
class WorkedParty:
    """A party of the worker: its driver, and when to look at it again."""

    party: PartyProcessor
    member: Membership
    epochs: Epochs
    driver: EpochDriver
    wake_ms: int | None = 0  # None: when blocks come
    error: str = ""  # the last unexpected error
    pruned: int = 0  # the number of the last epoch that was pruned to
    prune_ms: int = 0  # the earliest time to prune
    looked: int = -1  # the store's last transaction that `status` knows

    @property
    def status(self) -> str:
        """The last error, or what this device waits for; "" if there is nothing to do."""
        return self.error or self.driver.status

    def tick(self, *, prune: bool) -> None:
        """Run the driver once, and note when to do it again."""
        now_ms = self.party.clock.now_ms()
        try:
            self.wake_ms = self.driver.tick(now_ms)
            if prune and now_ms >= self.prune_ms:
                self._prune(now_ms)
            self.error = ""
        except StoreClosed:
            raise
        except PartyPaused:
            self.wake_ms = now_ms + _RETRY_MS  # it may be resumed without any new block
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
            self.wake_ms = now_ms + _RETRY_MS

    def _prune(self, now_ms: int) -> None:
        """Prune once for each epoch. If its snapshot is not whole here, try again a minute later."""
        number = self.epochs.number
        if number > self.pruned:
            try:
                self.epochs.prune()
            except MissingBlob:
                self.prune_ms = now_ms + _RETRY_MS
                return
            self.pruned = number

    def is_of(self, parties: Set[bytes]) -> bool:
        """True if it, or the party above it, is one of these."""
        above = self.member.parent
        return bytes(self.party.key) in parties or (above is not None and bytes(above.party) in parties)

    def left_ms(self) -> int | None:
        """Return how long it may be left alone if no block comes; None: for ever."""
        return None if self.wake_ms is None else max(0, self.wake_ms - self.party.clock.now_ms())


class EpochWorker:
    """Runs the drivers of all parties that were added, one after the other, in a thread that begins with the first."""

    def __init__(
        self,
        store: FeedStore,
        *,
        prune: bool = False,
        pause_s: float = PAUSE_S,
        retry_s: float = _RETRY_MS / 1_000,
    ) -> None:
        self._store = store
        self._retry_s = retry_s  # the pause after an error of the store
        self._nudged = threading.Event()  # ends that pause
        self.error = ""  # the last error of the store that nobody foresaw, until a look at the store succeeds
        self._prune = prune  # also prune messages, as policy allows
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._parties: dict[bytes, WorkedParty] = {}
        self._now: WorkedParty | None = None  # the one that is worked on
        self._stopping = threading.Event()
        self._watch = store.watch()
        self.thread = threading.Thread(target=self._run, daemon=True, name="antiphon epochs")

    def add(self, party: PartyProcessor, member: Membership, epochs: Epochs) -> None:
        """Take part in the epochs of a party from now on."""
        known = WorkedParty(party, member, epochs, EpochDriver(party, member, epochs))
        rest = party.rest()
        if rest is not None and rest.is_idle and not self._prune:
            known.wake_ms = None  # nothing was left to do when the party was closed
        with self._lock:
            self._parties[bytes(party.key)] = known
            if not self.thread.ident:
                self.thread.start()
        self._watch.wake()
        self._nudged.set()

    def status(self, party: bytes) -> str:
        """The last error with a party, or what this device waits for; "" for nothing, or if blocks came since."""
        known = self._parties.get(party)
        if known is not None and self.error:
            return self.error
        return known.status if known is not None and known.looked == self._store.transaction else ""

    def is_idle(self, party: bytes) -> bool:
        """True if a party has nothing to do until blocks come."""
        known = self._parties.get(party)
        if known is None or known.wake_ms is not None or known.looked != self._store.transaction:
            return False
        return not known.status and self._now is not known

    def remove(self, party: bytes, *, wait: bool = True) -> None:
        """Cancel the work on a party, and forget it. A caller that holds the party's lock does not wait for the end."""
        with self._lock:
            known = self._parties.pop(party, None)
            if known is None:
                return
            known.epochs.cancel(for_good=True)
            if wait and self.thread is not threading.current_thread() and not known.party.is_held():
                self._idle.wait_for(lambda: self._now is not known)

    def stop(self) -> None:
        """Remove all parties, and end the thread. A caller that holds the lock of one does not wait for the end."""
        self._stopping.set()
        self._nudged.set()
        known = list(self._parties.items())
        held = any(one.party.is_held() for _, one in known)
        for party, _ in known:
            self.remove(party)
        self._watch.close()
        if self.thread.ident and self.thread is not threading.current_thread() and not held:
            self.thread.join()

    # -- in the thread

    def _run(self) -> None:
        with self._watch:
            while not self._stopping.is_set() and not self._watch.closed:
                try:
                    self._turn()
                except StoreClosed:
                    return
                except Exception as error:
                    self._fail(error)
                self._stopping.wait(self._pause_s)

    def _turn(self) -> None:
        """Work on each party whose time has come, and wait until blocks come or a time has come."""
        self._round()
        if self.error:
            self._note(self._watch.poll())
            self.error = ""  # the store can be read again
        with self._lock:
            left = [ms for known in self._parties.values() if (ms := known.left_ms()) is not None]
        self._note(self._watch.wait(min(left) / 1_000 if left else None))

    def _fail(self, error: Exception) -> None:
        """Tell of an error outside the work on one party, and wait. What has come meanwhile may not have been noted."""
        _LOG.error("epochs: the thread of the store failed, and will try again", exc_info=error)
        self.error = f"{type(error).__name__}: {error}"  # whoever reads it finds the log written
        with self._lock:
            for known in self._parties.values():
                known.wake_ms = 0
        self._nudged.wait(self._retry_s)
        self._nudged.clear()

    def _round(self) -> None:
        """Look at each party whose time has come."""
        for key, known in list(self._parties.items()):
            with self._lock:
                if self._stopping.is_set() or self._parties.get(key) is not known or known.left_ms() != 0:
                    continue
                self._now = known
            try:
                known.tick(prune=self._prune)
                known.looked = self._store.transaction
            finally:
                with self._lock:
                    self._now = None
                    self._idle.notify_all()

    def _note(self, grown: Iterable[bytes]) -> None:
        """Note the parties that have new blocks."""
        moved = set[bytes]()
        for feed in grown:
            try:
                moved.add(bytes(self._store.record(feed).party))
            except UnknownFeed:
                continue  # deleted meanwhile
        with self._lock:
            for known in self._parties.values():
                if known.is_of(moved):
                    known.wake_ms = 0
                else:
                    known.looked = self._watch.at
