"""`Window`: how many bytes of answers may be under way to this end, so that a feed streams at the rate of the link."""

from __future__ import annotations

from antiphon.mesh.replication.limits import NEVER, WINDOW_MAX, WINDOW_MIN, WINDOW_START


class Window:
    """Twice the bytes that came in a round trip. So it doubles each round trip, until the link carries no more.

    >>> window = Window()
    >>> window.size >> 10
    2048
    >>> window.answered(100)
    >>> for at_ms in (100, 150, 200):
    ...     window.came(1 << 20, at_ms)
    >>> window.size >> 10
    4096
    """

    def __init__(self) -> None:
        self.size = WINDOW_START
        self._delay_ms = NEVER  # the shortest round trip
        self._since_ms = NEVER  # when the measurement began
        self._came = 0  # since then

    def answered(self, took_ms: int) -> None:
        """Note the time from a request to the first part of its answer."""
        self._delay_ms = min(self._delay_ms, max(1, took_ms))

    def rest(self) -> None:
        """Note that nothing is under way: the time until the next answer says nothing about the link."""
        self._since_ms = NEVER

    def came(self, size: int, now_ms: int) -> None:
        """Note a part of an answer. The first one after a rest begins the measurement."""
        if self._since_ms > now_ms:
            self._since_ms, self._came = now_ms, 0
            return
        self._came += size
        took_ms = now_ms - self._since_ms
        if took_ms < self._delay_ms:
            return
        fits = 2 * self._came * self._delay_ms // took_ms
        self.size = max(WINDOW_MIN, min(WINDOW_MAX, max(self.size // 2, min(fits, 2 * self.size))))
        self._since_ms, self._came = now_ms, 0
