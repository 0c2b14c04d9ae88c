"""`Announcer`: announces the feeds that changed here, and repeats announcements that were not acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from antiphon.core.errors import BadEncoding
from antiphon.mesh.replication.limits import HOLDINGS_MAX, NEVER, PUSH_SIZE_MAX, RANGES_MAX, TIMEOUT_MAX_MS
from antiphon.mesh.replication.message import Announcement, Holding
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.requests import Requester
from antiphon.mesh.replication.session_gate import SessionGate
from antiphon.mesh.replication.timeouts import Timeout


class Announcer:
    """The announcing part of one end of a session. Announcements are numbered; the other end acknowledges them.

    The other end *follows* from here the feeds that are written here, and those that it has requested from here, until
    it says that it gets one elsewhere. They are announced at once, with their new blocks. Other feeds are announced
    after `lazy_ms`, unless the other end holds their blocks by then. So in a party where all peers are neighbours, not
    every peer announces every block to every other, and a block reaches each about once.
    """

    def __init__(
        self,
        replica: Replica,
        gate: SessionGate,
        asking: Requester,
        pace: Timeout,
        lazy_ms: int,
        serves: Callable[[bytes], bool],
    ) -> None:
        self._replica = replica
        self._gate = gate
        self._requester = asking
        self._timeout = pace
        self._lazy_ms = lazy_ms
        self._serves = serves  # true for feeds in an answer that is not finished
        self._version = 0  # the version of the holdings up to which changes are due or announced
        self._due: dict[bytes, int] = {}  # feeds to announce, and when
        self._lazy: set[bytes] = set()  # feeds that were announced, and not requested since
        self._follows: dict[bytes, bool] = {}  # what the other end has said, by requests and otherwise
        self._reached: dict[bytes, int] = {}  # by feed: up to which seq the other end has it, or asks for it
        self._sent = self._acknowledged = 0
        self._unacknowledged: dict[bytes, None] = {}  # feeds in announcements without acknowledgement
        self._repeat_ms = NEVER
        self._announced_ms = 0  # the last time

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

    def arriving(self, now_ms: int) -> None:
        """Note that bytes of the other end are coming, perhaps an acknowledgement behind them."""
        if self._repeat_ms < NEVER:
            later_ms = min(now_ms + self._timeout.timeout_ms, self._announced_ms + TIMEOUT_MAX_MS)
            self._repeat_ms = max(self._repeat_ms, later_ms)

    def requested(self, ranges: Iterable[tuple[bytes, int]]) -> None:
        """Note that the other end gets these feeds from here, each from a seq on, so they are announced at once."""
        for feed, first in ranges:
            if self._gate.gives_feed(self._replica.holdings.get(feed)):
                self._follows[feed] = True
                self._reached[feed] = first
            self._lazy.discard(feed)
            if feed in self._due:
                self._due[feed] = 0

    def gave(self, feed: bytes, end: int) -> None:
        """Note that blocks of a feed up to `end` are on their way to the other end."""
        self._reached[feed] = end

    def enough(self, feeds: Iterable[bytes]) -> None:
        """Note that the other end gets these feeds elsewhere."""
        for feed in feeds:
            if self._replica.holdings.get(feed) is not None:
                self._follows[feed] = False
                self._lazy.add(feed)

    def again(self) -> None:
        """Announce all feeds again that the other end does not hold: it may have more of the party than before."""
        self._version = 0

    def skip(self) -> None:
        """Announce nothing of what is held now: the other end holds the same."""
        self._version = self._replica.holdings.version
        self._due.clear()
        for held in self._replica.holdings:
            self._reached[held.feed] = held.length

    @property
    def has_begun(self) -> bool:
        """True if an announcement was made."""
        return self._sent > 0

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
                spans = self._push(news) if self._sent else {}
                announced.append(self._announcement(self._sent, news, now_ms, spans))
        wake_ms = min(self._due.values(), default=NEVER) if len(self._unacknowledged) < HOLDINGS_MAX else NEVER
        return announced, min(wake_ms, self._repeat_ms)

    def _gather(self, now_ms: int) -> None:
        holdings = self._replica.holdings
        if self._version == holdings.version:
            return
        for _, held in reversed([*holdings.since(self._version)]):
            if not self._gate.gives_feed(held):
                continue
            later_ms = self._lazy_ms if held.feed in self._lazy and not self._is_followed(held.feed) else 0
            self._due[held.feed] = min(now_ms + later_ms, self._due.get(held.feed, NEVER))
        self._version = holdings.version

    def _is_followed(self, feed: bytes) -> bool:
        follows = self._follows.get(feed)
        return self._replica.holdings.is_own(feed) if follows is None else follows

    def _push(self, feeds: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the new blocks of those feeds that the other end follows from here, as far as they are few."""
        found: dict[bytes, bytes] = {}
        left = PUSH_SIZE_MAX
        for feed in feeds:
            held, theirs = self._replica.holdings.get(feed), self._requester.theirs.get(feed)
            if held is None or held.fork is not None or not self._gate.gives_feed(held):
                continue
            if not self._is_followed(feed) or self._serves(feed):
                continue
            first = max(self._reached.get(feed, 0), theirs.length if theirs is not None else 0)
            span = self._replica.read_range(feed, first, left) if held.start <= first < held.length else None
            if span is None or span.end < held.length or len(data := span.encode()) > left:
                continue  # it is requested as usual
            found[feed] = data
            self._reached[feed] = span.end  # past what is announced, if a block was written in this moment
            left -= len(data)
            if len(found) == RANGES_MAX:
                break
        return found

    def _announcement(
        self, since: int, feeds: list[bytes], now_ms: int, spans: dict[bytes, bytes] | None = None
    ) -> Announcement:
        spans = spans or {}
        known = map(self._replica.holdings.get, feeds)
        held = [found for found in known if found is not None and self._gate.gives_feed(found)]
        self._sent += 1
        self._announced_ms = now_ms
        self._unacknowledged.update(dict.fromkeys(feeds))
        self._lazy.update(feed for feed in feeds if feed not in spans)
        for one in held:
            self._reached[one.feed] = max(one.length, self._reached.get(one.feed, 0))
        if self._repeat_ms == NEVER:  # otherwise an older announcement is still not acknowledged
            self._repeat_ms = now_ms + self._timeout.timeout_ms
        return Announcement(since, self._sent, tuple(held), tuple(spans.values()))

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
