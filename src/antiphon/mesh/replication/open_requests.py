"""`OpenRequests`: the requests of one end of a session that are not answered: time-outs, parts, and the window."""

from __future__ import annotations

from dataclasses import dataclass, field

from antiphon.core.errors import BadEncoding
from antiphon.mesh.replication.in_flight import InFlight
from antiphon.mesh.replication.limits import GRANT_MIN, NEVER, RATE_MIN, TIMEOUT_MAX_MS
from antiphon.mesh.replication.message import Answer, Blobs, More, Ranges
from antiphon.mesh.replication.timeouts import Timeout
from antiphon.mesh.replication.window import Window


@dataclass(slots=True)
class OpenRequest:
    """One open request."""

    keys: dict[bytes, bool]  # feeds or CIDs; true if something of it has come
    asked_ms: int
    until_ms: int
    answer: type[Answer] = Ranges  # the message that answers it
    sent: bool = False  # its time runs from then
    came_ms: int = 0  # when it was sent, or its last part came
    parts: int = 0  # that have come
    size: int = 0  # of these
    allowed: int = 0  # bytes that they may have in all
    ending: bool = False  # it gets no more, so that other feeds get their turn
    freed: set[bytes] = field(default_factory=set)  # feeds that it stands for no longer

    def wait(self, now_ms: int, timeout_ms: int) -> None:
        """Put off the time-out. An answer that does not come for long, or slowly, is not waited for."""
        slowest_ms = self.asked_ms + TIMEOUT_MAX_MS + self.size // RATE_MIN
        self.until_ms = max(self.until_ms, min(now_ms + timeout_ms, self.came_ms + TIMEOUT_MAX_MS, slowest_ms))

    @property
    def under_way(self) -> int:
        """The bytes of its answer that may come yet."""
        return max(0, self.allowed - self.size)


class OpenRequests:
    """The open requests of one end of a session: their time-outs, the parts that come, and how much may come."""

    def __init__(self, in_flight: InFlight, pace: Timeout) -> None:
        self._in_flight = in_flight
        self._timeout = pace
        self._window = Window()
        self._requests: dict[int, OpenRequest] = {}
        self._more: dict[int, More] = {}  # to be sent
        self._last = 0
        self.asked: set[bytes] = set()  # feeds, blobs and blocks that requests stand for

    def __len__(self) -> int:
        return len(self._requests)

    def __contains__(self, number: int) -> bool:
        return number in self._requests

    @property
    def until_ms(self) -> int:
        """When the next request times out."""
        return min((request.until_ms for request in self._requests.values()), default=NEVER)

    @property
    def range_count(self) -> int:
        """The number of open requests for ranges."""
        return sum(request.answer is Ranges for request in self._requests.values())

    def close(self) -> None:
        """Release all open requests."""
        for request in self._requests.values():
            self._release(request)
        self._requests.clear()
        self._more.clear()

    def take_more(self) -> list[More]:
        """Return what is to be said about open requests, and about those that were given up."""
        more = [*self._more.values()]
        self._more.clear()
        return more

    def sent(self, now_ms: int) -> None:
        """Note that the requests made until now have left: their time runs from now on."""
        for request in self._requests.values():
            if not request.sent:
                request.sent = True
                request.asked_ms = request.came_ms = now_ms
                request.until_ms = max(request.until_ms, now_ms + self._timeout.timeout_ms)

    def arriving(self, now_ms: int) -> None:
        """Note that bytes of the other end are coming, perhaps of an answer: requests do not time out meanwhile."""
        for request in self._requests.values():
            if request.sent:
                request.wait(now_ms, self._timeout.timeout_ms)

    def open(self, keys: tuple[bytes, ...], now_ms: int, answer: type[Answer] = Ranges) -> int:
        """Open a request for feeds, blobs or blocks. Return its number."""
        self._last += 1
        request = OpenRequest(dict.fromkeys(keys, False), now_ms, now_ms + self._timeout.timeout_ms, answer)
        self._requests[self._last] = request
        for key in keys:
            self.asked.add(key)
            self._in_flight.claim(key, self, request)
        return self._last

    def open_window(self, feeds: tuple[bytes, ...], now_ms: int) -> tuple[int, int]:
        """Open a request for ranges. Return its number, and how many bytes may come for now."""
        size = max(GRANT_MIN, self._window_left())
        number = self.open(feeds, now_ms)
        self._requests[number].allowed = size
        return number, size

    def expire(self, now_ms: int) -> list[bytes]:
        """Give up the requests that have timed out. Return what they stood for."""
        for request in self._requests.values():
            if not request.sent:
                request.until_ms = max(request.until_ms, now_ms + self._timeout.timeout_ms)
        late = [number for number, request in self._requests.items() if request.until_ms <= now_ms]
        if late:
            self._timeout.late()
        keys: list[bytes] = []
        for number in late:
            keys += self._stop(number).keys
        return keys

    def _stop(self, number: int) -> OpenRequest:
        """Give up a request. The other end is told, as it may still be answering."""
        request = self._requests.pop(number)
        self._release(request)
        if request.answer in (Ranges, Blobs):
            self._more[number] = More(number, 0)
        return request

    def _window_left(self) -> int:
        return self._window.size - sum(request.under_way for request in self._requests.values())

    def end_oldest(self) -> None:
        """Let the oldest request end when its window is used up: there are feeds that wait for their turn."""
        oldest = next(request for request in self._requests.values() if request.answer is Ranges)
        oldest.ending = True

    def _allow_more(self) -> None:
        """Let the answers go on that are coming, before the other end has sent all that it may."""
        for number in [number for number, one in self._requests.items() if one.ending and not one.under_way]:
            self._stop(number)
        left = self._window_left()
        if left < self._window.size // 4:
            return
        going_on = [
            (request.under_way, number)
            for number, request in self._requests.items()
            if request.answer is Ranges and not request.ending
        ]
        if going_on:
            number = min(going_on)[1]
            request = self._requests[number]
            request.allowed += left
            before = self._more.get(number)
            self._more[number] = More(number, request.allowed, before.without if before is not None else ())

    def free(self, number: int, request: OpenRequest, feed: bytes, *, unwanted: bool = False) -> None:
        """Let a feed be requested again before the answer ends; if it is unwanted, the answer goes on without it."""
        if feed in request.freed or number not in self._requests:
            return
        request.freed.add(feed)
        self.asked.discard(feed)
        self._in_flight.release(feed, self)
        if unwanted:
            before = self._more.get(number) or More(number, request.allowed)
            self._more[number] = More(number, request.allowed, (*before.without, feed))

    def take_part(self, answer: Answer, size: int, now_ms: int) -> OpenRequest | None:
        """Note a part of an answer, and return its request; None if that is not open, or if a part before it lacks.

        After its last part, or if a part lacks, the request is closed.
        """
        number = answer.request
        if number > self._last:
            raise BadEncoding(f"an answer to request {number}, which was never made")
        request = self._requests.get(number)
        if request is None:
            return None
        if not isinstance(answer, request.answer):
            raise BadEncoding(f"an answer to request {number} that answers another kind of request")
        part, last = (answer.part, answer.last) if isinstance(answer, Ranges | Blobs) else (0, True)
        if part != request.parts:
            if part > request.parts:
                self._stop(number)
            return None
        if not part:
            self._timeout.answered(now_ms - request.asked_ms)
            self._window.answered(now_ms - request.asked_ms)
        request.parts += 1
        request.size += size
        request.came_ms = now_ms
        if size:
            self._window.came(size, now_ms)
        self.arriving(now_ms)
        if last:
            del self._requests[number]
            self._more.pop(number, None)
            self._release(request)
            if not self._requests:
                self._window.rest()
        self._allow_more()
        return request

    def _release(self, request: OpenRequest) -> None:
        for key in request.keys.keys() - request.freed:
            self.asked.discard(key)
            self._in_flight.release(key, self)
