"""`PartyWork`: the sessions of one party with all connected devices, and the work on what they bring.

Messages and events are put in from any thread; `turn` is called by one worker at a time. The party is opened when there
is something to do for it, and closed again after it has been quiet, unless the application holds it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from antiphon.core.errors import AntiphonError, InvalidInput, RefusedBlocks, StoreClosed
from antiphon.mesh.node.limits import ANSWERED_MS, IDLE_MS, RETRY_MS, TELL_MS, TURN_SIZE
from antiphon.mesh.node.line import Line
from antiphon.mesh.node.ports import PartyEnd, PartyHost
from antiphon.mesh.replication.session import Session

_LOG = logging.getLogger("antiphon.mesh")


class PartyWork:
    """One party of a node."""

    def __init__(
        self, party: bytes, host: PartyHost, now_ms: Callable[[], int], shown: Callable[[Line], bytes | None]
    ) -> None:
        self.party = party
        self.error = ""  # why the party could not be worked on
        self._host = host
        self._now_ms = now_ms
        self._shown = shown  # what a device has shown before
        self._lock = threading.Lock()
        self._inbox: dict[Line, deque[bytes]] = {}
        self._meeting: set[Line] = set()  # sessions to begin
        self._left: set[Line] = set()  # lines that are closed, or not admitted any more
        self._changed = False
        self._retry_ms = 0
        # Only the worker that has the turn uses what follows.
        self._end: PartyEnd | None = None
        self._sessions: dict[Line, Session] = {}
        self._began_ms: dict[Line, int] = {}
        self._terms: dict[Line, int] = {}
        self._told: dict[Line, bytes] = {}  # the digest of what is held, as each end was told last
        self._met: set[Line] = set()
        self._quiet_ms = 0  # when something last happened

    # -- in any thread

    def receive(self, line: Line, message: bytes) -> None:
        """Take a message for the session with a line."""
        with self._lock:
            self._inbox.setdefault(line, deque()).append(message)

    def meet(self, line: Line) -> None:
        """Begin a session with a line, if there is none."""
        with self._lock:
            self._meeting.add(line)

    def leave(self, line: Line) -> None:
        """End the session with a line, and forget what has come for it. What comes later begins another one."""
        with self._lock:
            self._left.add(line)
            self._meeting.discard(line)
            gone = self._inbox.pop(line, ())
        line.worked(sum(map(len, gone)))

    def change(self) -> None:
        """Note that blocks of the party were committed."""
        with self._lock:
            self._changed = True

    @property
    def is_idle(self) -> bool:
        """True if nothing waits, and the party is not open for sessions: the work can be forgotten."""
        with self._lock:
            waits = self._inbox or self._meeting or self._left or self._changed
            return not waits and self._end is None and not self.error

    def holdings(self) -> dict[bytes, dict[bytes, int]]:
        """Return how many blocks of each feed the other ends have told that they hold, by device."""
        return {line.device: session.their_lengths() for line, session in self._sessions.copy().items()}

    # -- in the worker that has the turn

    def turn(self) -> int | None:
        """Do a part of the work. Return the time of the next turn: 0 for at once, None if there is nothing to do."""
        now_ms = self._now_ms()
        messages, more = self._take(now_ms)
        try:
            if self._retry_ms > now_ms:
                return 0 if more else self._retry_ms
            wake_ms = self._work(messages, now_ms)
        except StoreClosed:
            return None
        except Exception as error:
            self._fail(error, now_ms)
            return self._retry_ms
        finally:
            for line, message in messages:
                line.worked(len(message))
        self.error, self._retry_ms = "", 0
        return 0 if more else wake_ms

    def _take(self, now_ms: int) -> tuple[list[tuple[Line, bytes]], bool]:
        """Take what has come: one message of each line in turns, up to the size of a turn. True if more waits."""
        with self._lock:
            left, self._left = self._left, set()
            taken: list[tuple[Line, bytes]] = []
            size = 0
            while self._inbox and size < TURN_SIZE:
                for line in list(self._inbox):
                    queue = self._inbox[line]
                    taken.append((line, queue.popleft()))
                    size += len(taken[-1][1])
                    if not queue:
                        del self._inbox[line]
            more = bool(self._inbox)
            met: set[Line] = set()
            if now_ms < self._retry_ms:  # the party has failed: what comes is dropped, and sessions begin anew later
                self._meeting.update(line for line, _ in taken)
            else:
                met, self._meeting = self._meeting, met
        for line in left:
            self._drop(line)
        if taken or met or self._changed:
            self._quiet_ms = now_ms
        self._met = met
        return taken, more

    def _work(self, messages: list[tuple[Line, bytes]], now_ms: int) -> int | None:
        changed, self._changed = self._changed, False
        if self._end is None and not self._open(bool(messages or self._met or changed)):
            return None
        assert self._end is not None
        for line in (*self._met, *(line for line, _ in messages)):
            self._begin(line, now_ms)
        if changed:
            self._end.replica.refresh()
        with self._host.taking():
            if self._receive(messages, now_ms) and not self._end.work():
                self._open_again()
        wake_ms = self._speak(now_ms)
        tell_ms = self._tell(now_ms)
        if tell_ms is not None:
            return tell_ms if wake_ms is None else min(tell_ms, wake_ms)
        return self._rest(wake_ms, now_ms)

    def _open(self, wanted: bool) -> bool:
        if wanted:
            self._end = self._host.open(self.party)
            if self._end is not None:
                self._end.work()
        return self._end is not None

    def _open_again(self) -> None:
        """The party has outgrown its end: begin all sessions anew."""
        lines = list(self._sessions)
        self._shut()
        if self._open(True):
            for line in lines:
                self._begin(line, self._now_ms())

    def _begin(self, line: Line, now_ms: int) -> None:
        if line not in self._sessions and not line.is_closed and self._end is not None:
            self._terms[line] = line.term(self.party)  # before the gate of the session looks who is admitted
            session = self._sessions[line] = Session(self._end.replica, line.device)
            self._began_ms[line] = now_ms
            if (shown := self._shown(line)) is not None:
                with suppress(InvalidInput):  # what cannot be read has been answered by silence before
                    session.receive(shown, now_ms)

    def _receive(self, messages: list[tuple[Line, bytes]], now_ms: int) -> bool:
        """Let the sessions take messages, those of a line in one commit. True if any brought something new."""
        came = False
        by_line: dict[Line, list[bytes]] = {}
        for line, message in messages:
            by_line.setdefault(line, []).append(message)
        for line, found in by_line.items():
            session = self._sessions.get(line)
            if session is None:
                continue
            try:
                session.receive_all(found, now_ms)
            except (InvalidInput, RefusedBlocks) as error:
                self._drop(line)
                line.blame(error)
            came = came or bool(session.taken or session.taken_blobs)
            session.taken = session.taken_blobs = 0
        return came

    def _speak(self, now_ms: int) -> int | None:
        """Let the sessions speak, as far as there is room. Return when to do it again; None if nothing is awaited."""
        wake: list[int] = []
        for line, session in self._sessions.items():
            session.arriving(line.came_ms)  # of all, before any looks for requests that have timed out
        for line, session in list(self._sessions.items()):
            if line.heard_ms:
                session.arriving(line.heard_ms)  # what it waits for may come behind messages of other parties
            at_ms = session.tick(now_ms)
            if self._is_vain(line, session, now_ms):
                self._drop(line)
                line.hush(self.party)
                continue
            if at_ms is not None:
                wake.append(at_ms)
            if self._send(line, session, now_ms):
                self._quiet_ms = now_ms
                wake.append(now_ms)  # perhaps there is more
        return min(wake, default=None)

    def _send(self, line: Line, session: Session, now_ms: int) -> bool:
        """Send what a session has to say, as far as there is room. True if it said something."""
        if not session.has_outgoing or (room := line.room(self.party)) <= 0:
            return False
        found = session.outgoing(min(room, TURN_SIZE), now_ms)
        if found:
            line.send(self.party, found, self._terms[line])
        return bool(found)

    def _tell(self, now_ms: int) -> int | None:
        """Tell other ends what is held now, once nothing has moved for a moment. Return when, if not yet."""
        digest = self._host.digest(self.party)
        untold = [
            line for line, session in self._sessions.items() if session.connected and self._told.get(line) != digest
        ]
        if untold and now_ms < self._quiet_ms + TELL_MS:
            return self._quiet_ms + TELL_MS
        for line in untold:
            self._told[line] = digest
            line.tell(self.party)
        return None

    def _is_vain(self, line: Line, session: Session, now_ms: int) -> bool:
        """True if a session has nobody to speak to: the device may not have the party, or does not answer."""
        if not session.is_open:
            return not session.is_judging
        return (
            not session.connected and not session.replica.admits.seeks() and now_ms > self._began_ms[line] + ANSWERED_MS
        )

    def _rest(self, wake_ms: int | None, now_ms: int) -> int | None:
        """Close the party if it has been quiet for long enough. Return when to look again."""
        assert self._end is not None
        if wake_ms is not None:
            return wake_ms
        if self._end.in_use:
            if self._sessions:
                return None
        elif now_ms < self._quiet_ms + IDLE_MS:  # also without sessions: who is not admitted may come again and again
            return self._quiet_ms + IDLE_MS
        self._shut()
        return None

    def _drop(self, line: Line) -> None:
        session = self._sessions.pop(line, None)
        self._began_ms.pop(line, None)
        self._terms.pop(line, None)
        self._told.pop(line, None)
        if session is not None:
            session.close()

    def _shut(self) -> None:
        """End all sessions, and close the party."""
        for line in list(self._sessions):
            self._drop(line)
        end, self._end = self._end, None
        if end is not None:
            end.close()

    def _fail(self, error: Exception, now_ms: int) -> None:
        """Give the party up for a while: its disk may be full, or its store damaged."""
        why = str(error) if isinstance(error, AntiphonError) else repr(error)
        _LOG.error("mesh.party_failed: party %s: %s", self.party.hex()[:8], why, exc_info=error)
        self.error, self._retry_ms = why, now_ms + RETRY_MS
        try:
            lines = list(self._sessions)
            self._shut()
            with self._lock:
                self._meeting |= {line for line in lines if not line.is_closed}
        except Exception:
            _LOG.exception("mesh.party_failed: party %s cannot be closed", self.party.hex()[:8])

    def close(self) -> None:
        """End all sessions, when no worker has the turn any more."""
        self._shut()
