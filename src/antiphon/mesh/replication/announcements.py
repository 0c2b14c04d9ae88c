"""`Announcer`: announces the feeds that changed here, and repeats announcements that were not acknowledged."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.errors import BadEncoding
from antiphon.mesh.replication.limits import HOLDINGS_MAX, NEVER
from antiphon.mesh.replication.message import Announcement, Holding
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.requests import Requester
from antiphon.mesh.replication.session_gate import SessionGate
from antiphon.mesh.replication.timeouts import Timeout


class Announcer:
    """The announcing part of one end of a session. Announcements are numbered; the other end acknowledges them.

    A feed that is written here is announced at once, and so is a feed that the other end has requested from here. Other
    feeds the other end gets elsewhere: they are announced after `lazy_ms`, unless it holds their blocks by then. So in
    a party where all peers are neighbours, not every peer announces every block to every other.
    """

    def __init__(self, replica: Replica, gate: SessionGate, asking: Requester, pace: Timeout, lazy_ms: int) -> None:
        self._replica = replica
        self._gate = gate
        self._requester = asking
        self._timeout = pace
        self._lazy_ms = lazy_ms
        self._version = 0  # the version of the holdings up to which changes are due or announced
        self._due: dict[bytes, int] = {}  # feeds to announce, and when
        self._lazy: set[bytes] = set()  # feeds that were announced, and not requested since
        self._sent = self._acknowledged = 0
        self._unacknowledged: dict[bytes, None] = {}  # feeds in announcements without acknowledgement
        self._repeat_ms = NEVER

    def acknowledge(self, count: int, now_ms: int) -> None:
        """Note that the other end has received the first `count` announcements."""
        if count > self._sent:
            raise BadEncoding(f"{count} announcements are acknowledged, and {self._sent} were made")
        if count <= self._acknowledged:
            return
        self._acknowledged = count
        self._timeout.alive()
        self._repeat_ms = now_ms + self._timeout.timeout_ms
        if count == self._sent:
            self._unacknowledged.clear()
            self._repeat_ms = NEVER

    def requested(self, feeds: Iterable[bytes]) -> None:
        """Note that the other end gets these feeds from here, so they are announced at once."""
        for feed in feeds:
            self._lazy.discard(feed)
            if feed in self._due:
                self._due[feed] = 0

    def again(self) -> None:
        """Announce all feeds again that the other end does not hold: it may have more of the party than before."""
        self._version = 0

    def announce(self, now_ms: int) -> tuple[list[Announcement], int]:
        """Return the announcements to send now, and the time at which to call this again."""
        announced = []
        if now_ms >= self._repeat_ms:
            self._timeout.late()
            self._repeat_ms = NEVER
            announced.append(self._announcement(self._acknowledged, [*self._unacknowledged], now_ms))
        self._gather(now_ms)
        while len(self._unacknowledged) < HOLDINGS_MAX:
            due = [feed for feed, at_ms in self._due.items() if at_ms <= now_ms]
            if not due and self._sent:
                break
            some = due[: HOLDINGS_MAX - len(self._unacknowledged)]
            for feed in some:
                del self._due[feed]
            news = [feed for feed in some if not self.knows(feed)]
            if news or not self._sent:
                announced.append(self._announcement(self._sent, news, now_ms))
        wake_ms = min(self._due.values(), default=NEVER) if len(self._unacknowledged) < HOLDINGS_MAX else NEVER
        return announced, min(wake_ms, self._repeat_ms)

    def _gather(self, now_ms: int) -> None:
        holdings = self._replica.holdings
        if self._version == holdings.version:
            return
        for _, held in reversed([*holdings.since(self._version)]):
            if not self._gate.gives_feed(held):
                continue
            later_ms = self._lazy_ms if held.feed in self._lazy and not holdings.is_own(held.feed) else 0
            self._due[held.feed] = min(now_ms + later_ms, self._due.get(held.feed, NEVER))
        self._version = holdings.version

    def _announcement(self, since: int, feeds: list[bytes], now_ms: int) -> Announcement:
        known = map(self._replica.holdings.get, feeds)
        held = [found for found in known if found is not None and self._gate.gives_feed(found)]
        self._sent += 1
        self._unacknowledged.update(dict.fromkeys(feeds))
        self._lazy.update(feeds)
        if self._repeat_ms == NEVER:  # otherwise an older announcement is still not acknowledged
            self._repeat_ms = now_ms + self._timeout.timeout_ms
        return Announcement(since, self._sent, tuple(held))

    def knows(self, feed: bytes) -> bool:
        """True if the other end holds as much of a feed as this one, so that no announcement is needed."""
        theirs, held = self._requester.theirs.get(feed), self._replica.holdings.get(feed)
        if held is None:
            return True
        return theirs is not None and _covers(theirs, held)


def _covers(theirs: Holding, held: Holding) -> bool:
    if held.fork is not None and held.may_name:  # lengths and counts do not tell whether both hold the same branches
        return False
    if held.fork is not None and (theirs.fork is None or theirs.fork > held.fork):
        return False
    if held.branches > theirs.branches:
        return False
    return theirs.length > held.length or (theirs.length, theirs.hash) == (held.length, held.hash)
