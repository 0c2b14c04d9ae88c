"""What a session announces: what changed here that the other end does not hold, and again what it has not heard."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.errors import BadEncoding
from antiphon.mesh.limits import HOLDINGS_MAX, NEVER
from antiphon.mesh.message import Announcement, Holding
from antiphon.mesh.replica import Replica
from antiphon.mesh.requests import Asking
from antiphon.mesh.timeouts import Pace


class Telling:
    """The announcing part of one end of a session. Announcements are counted; the other end says how many it heard.

    What is written here is announced at once, and so is what the other end has asked for before. Of other feeds it has
    had the blocks elsewhere when it was told of them: those are announced some time later, if it does not hold them by
    then. So in a party where everybody is everybody's neighbour, a block is not announced by each to each.
    """

    def __init__(self, replica: Replica, asking: Asking, pace: Pace, lazy_ms: int) -> None:
        self._replica = replica
        self._asking = asking
        self._pace = pace
        self._lazy_ms = lazy_ms
        self._passed = 0  # the version of the holdings up to which changes are due, or told
        self._due: dict[bytes, int] = {}  # feeds to announce, and when
        self._lazy: set[bytes] = set()  # feeds that were announced, and not asked for since
        self._told = self._acknowledged = 0
        self._unheard: dict[bytes, None] = {}  # feeds in announcements that are not acknowledged
        self._again_ms = NEVER

    def heard(self, count: int, now_ms: int) -> None:
        """The other end has heard so many announcements without a gap."""
        if count > self._told:
            raise BadEncoding(f"{count} announcements are acknowledged, and {self._told} were made")
        if count <= self._acknowledged:
            return
        self._acknowledged = count
        self._pace.alive()
        self._again_ms = now_ms + self._pace.timeout_ms
        if count == self._told:
            self._unheard.clear()
            self._again_ms = NEVER

    def asked(self, feeds: Iterable[bytes]) -> None:
        """The other end has asked for these: it gets them from here."""
        for feed in feeds:
            self._lazy.discard(feed)
            if feed in self._due:
                self._due[feed] = 0

    def tell(self, now_ms: int) -> tuple[list[Announcement], int]:
        """What to announce now, and when to look again."""
        told = []
        if now_ms >= self._again_ms:
            self._pace.late()
            self._again_ms = NEVER
            told.append(self._announce(self._acknowledged, [*self._unheard], now_ms))
        self._gather(now_ms)
        while len(self._unheard) < HOLDINGS_MAX:
            due = [feed for feed, at_ms in self._due.items() if at_ms <= now_ms]
            if not due and self._told:
                break
            some = due[: HOLDINGS_MAX - len(self._unheard)]
            for feed in some:
                del self._due[feed]
            news = [feed for feed in some if not self._knows(feed)]
            if news or not self._told:
                told.append(self._announce(self._told, news, now_ms))
        wake_ms = min(self._due.values(), default=NEVER) if len(self._unheard) < HOLDINGS_MAX else NEVER
        return told, min(wake_ms, self._again_ms)

    def _gather(self, now_ms: int) -> None:
        holdings = self._replica.holdings
        if self._passed == holdings.version:
            return
        for _, held in reversed([*holdings.since(self._passed)]):
            later_ms = self._lazy_ms if held.feed in self._lazy and not holdings.is_own(held.feed) else 0
            self._due[held.feed] = min(now_ms + later_ms, self._due.get(held.feed, NEVER))
        self._passed = holdings.version

    def _announce(self, since: int, feeds: list[bytes], now_ms: int) -> Announcement:
        held = [found for feed in feeds if (found := self._replica.holdings.get(feed)) is not None]
        self._told += 1
        self._unheard.update(dict.fromkeys(feeds))
        self._lazy.update(feeds)
        if self._again_ms == NEVER:  # else an older one is waited for
            self._again_ms = now_ms + self._pace.timeout_ms
        return Announcement(since, self._told, tuple(held))

    def _knows(self, feed: bytes) -> bool:
        """Whether the other end holds as much of a feed, so that it need not be told."""
        theirs, held = self._asking.theirs.get(feed), self._replica.holdings.get(feed)
        if held is None:
            return True
        return theirs is not None and _covers(theirs, held)


def _covers(theirs: Holding, held: Holding) -> bool:
    if held.fork is not None and (theirs.fork is None or theirs.fork > held.fork):
        return False
    return theirs.length > held.length or (theirs.length, theirs.hash) == (held.length, held.hash)
