"""`PartyWorks`: the work on all parties of a node, in a few threads; each party in one of them at a time, all in turns.

A commit wakes its own party alone, and only if another device that is connected shares it. A party that nobody works on
costs nothing here but its place in the lists of those who share it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial
from typing import Final

from antiphon.core.errors import StoreClosed
from antiphon.mesh.node.limits import CLOSE_TIMEOUT_S, LOOK_TIMEOUT_S, RETRY_MS, SHOWN_MAX, WORKERS
from antiphon.mesh.node.line import Line
from antiphon.mesh.node.party_work import PartyWork
from antiphon.mesh.node.ports import PartyHost, PartyView
from antiphon.mesh.node.watchers import Watchers
from antiphon.mesh.node.workers import Workers

_LOG = logging.getLogger("antiphon.mesh")
_LOOK: Final = "look"  # the key of the turn that looks at control feeds; parties are keys of bytes


class PartyWorks:
    """All `PartyWork`s of a node. Thread-safe.

    `viewed` gets the views that have changed, in a worker. `stepped` is notified when a device may hold more.
    """

    def __init__(
        self, host: PartyHost, now_ms: Callable[[], int], viewed: Callable[[Collection[PartyView]], None]
    ) -> None:
        self._host = host
        self._now_ms = now_ms
        self._viewed = viewed
        self._lock = threading.Lock()
        self.stepped = threading.Condition(self._lock)
        self.watchers = Watchers()  # called when `stepped` is notified
        self._works: dict[bytes, PartyWork] = {}
        self._lines: dict[bytes, dict[Line, bytes]] = {}  # by party: who shares it, with the digest of what they hold
        self._shown: dict[Line, dict[bytes, bytes]] = {}  # the last message of a device that was not admitted, by party
        self._dirty: set[bytes] | None = None  # parties to look at; None: all
        self._has_looked = threading.Event()
        self._now = threading.local()  # the party that this thread works on
        self._closed = False
        self._workers = Workers(WORKERS, "antiphon mesh", self._turn, now_ms)

    def _step(self) -> None:
        self.stepped.notify_all()
        self.watchers.call()

    def begin(self) -> None:
        """Look at all parties, and wait until that is done."""
        self._workers.wake(_LOOK)
        if not self._has_looked.wait(LOOK_TIMEOUT_S):
            _LOG.warning("mesh.slow_start: the parties of this store are still being looked at; they follow")

    # -- what happened, from any thread

    def committed(self, parties: Collection[bytes] | None) -> None:
        """Note that blocks were committed, in these parties, or with None in any."""
        if self._closed:
            return
        mine = getattr(self._now, "party", None)
        with self._lock:
            if parties is None or self._dirty is None:
                self._dirty = None
            else:
                self._dirty.update(parties)
            for party in self._lines.keys() if parties is None else parties:
                self._host.stale(party)
                lines = self._lines.get(party)
                if lines:
                    work = self._work(party)
                    if party != mine:
                        work.change()
                    for line in lines:
                        work.meet(line)
                    self._workers.wake(party)
            self._step()
        self._workers.wake(_LOOK)

    def followed(self, party: bytes) -> None:
        """Note that a party is followed, paused, resumed or left."""
        self.committed((bytes(party),))

    def match(self, line: Line, party: bytes, theirs: bytes) -> None:
        """Both ends of a line speak in a party, and `theirs` is the digest of what the other end holds.

        Work on the party if that is not the same here.
        """
        with self._lock:
            self._lines.setdefault(party, {})[line] = theirs
            if theirs != self._host.digest(party) or self._host.lacks(party):
                self._work(party).meet(line)
                self._workers.wake(party)
            self._step()

    def meet(self, line: Line, party: bytes) -> None:
        """Begin a session of a party."""
        with self._lock:
            self._work(party).meet(line)
            self._workers.wake(party)

    def receive(self, line: Line, party: bytes, message: bytes, *, shown: bool = False) -> None:
        """Take a message of a session. One that was `shown` is judged again when control feeds have grown."""
        with self._lock:
            if shown:
                known = self._shown.setdefault(line, {})
                known.pop(party, None)
                known[party] = message
                if len(known) > SHOWN_MAX:
                    del known[next(iter(known))]
            self._work(party).receive(line, message)
            self._workers.wake(party)

    def wake(self, party: bytes) -> None:
        """Give a party a turn: there is room for what it has to send."""
        with self._lock:
            if party in self._works:
                self._workers.wake(party)

    def leave(self, line: Line, parties: Iterable[bytes]) -> None:
        """Forget a line in these parties: it is closed, or its device is not admitted any more."""
        with self._lock:
            if line.is_closed:
                self._shown.pop(line, None)
            for party in parties:
                lines = self._lines.get(party)
                if lines is not None:
                    lines.pop(line, None)
                    if not lines:
                        del self._lines[party]
                if party in self._works:
                    self._works[party].leave(line)
                    self._workers.wake(party)
            self._step()

    def _work(self, party: bytes) -> PartyWork:
        work = self._works.get(party)
        if work is None:
            work = self._works[party] = PartyWork(party, self._host, self._now_ms, partial(self._shown_by, party))
        return work

    def _shown_by(self, party: bytes, line: Line) -> bytes | None:
        """Return what a device has shown about a party, if anything."""
        with self._lock:
            return self._shown.get(line, {}).get(party)

    def digest(self, party: bytes) -> bytes:
        """Return the digest of what is held of a party."""
        return self._host.digest(party)

    # -- how far others are

    @property
    def is_closed(self) -> bool:
        """True once `close` was called."""
        return self._closed

    def standing(self, party: bytes) -> dict[Line, bool]:
        """Return who shares a party, and whether it holds the same as this device. The caller has `stepped`."""
        mine = self._host.digest(party)
        return {line: theirs == mine for line, theirs in self._lines.get(party, {}).items()}

    def holdings(self, party: bytes) -> dict[bytes, dict[bytes, int]]:
        """Return how many blocks of each feed the devices have that a party is open for, by device and feed."""
        work = self._works.get(party)
        return {} if work is None else work.holdings()

    def error(self, party: bytes) -> str:
        """Return why a party could not be worked on; "" if it could."""
        work = self._works.get(party)
        return "" if work is None else work.error

    # -- in workers

    def _turn(self, key: Hashable) -> int | None:
        if not isinstance(key, bytes):
            return self._look()
        work = self._works.get(key)
        if work is None:
            return None
        self._now.party = key
        try:
            at_ms = work.turn()
        finally:
            self._now.party = None
        self._note(work)
        return at_ms

    def _note(self, work: PartyWork) -> None:
        """Forget the work on a party if it has nothing to do."""
        with self._lock:
            if work.is_idle and self._works.get(work.party) is work:
                del self._works[work.party]
            self._step()

    def _look(self) -> int | None:
        """Read the control feeds that have grown. Return when to try again, if that fails."""
        with self._lock:
            dirty, self._dirty = self._dirty, set()
        try:
            views = list(self._host.look(dirty))
        except StoreClosed:
            return None
        except Exception:
            _LOG.exception("mesh.look_failed: who may have which party could not be read; it is tried again")
            with self._lock:
                self._dirty = None
            return self._now_ms() + RETRY_MS
        if views:
            self._viewed(views)
            self._judge_again({view.party for view in views})
        self._has_looked.set()
        return None

    def _judge_again(self, parties: Collection[bytes]) -> None:
        """Look again at what devices have shown about these parties."""
        with self._lock:
            for line, shown in self._shown.items():
                for party in shown.keys() & parties:
                    line.came_again(len(shown[party]))
                    self._work(party).receive(line, shown[party])
                    self._workers.wake(party)

    # -- end

    def close(self) -> bool:
        """Let what is worked on end, and close all parties that the node has opened. False if a worker did not end."""
        self._closed = True
        ended = self._workers.stop(CLOSE_TIMEOUT_S)
        with self._lock:
            works, self._works = list(self._works.values()), {}
            self._lines.clear()
            self._step()
        for work in works if ended else ():
            work.close()
        return ended
