"""`Timeout`: how long to wait for a peer. It follows the time that answers take, and doubles when one is late."""

from __future__ import annotations

from antiphon.mesh.replication.limits import TIMEOUT_MAX_MS, TIMEOUT_MIN_MS


class Timeout:
    """An estimate from the times that answers took.

    >>> timeout = Timeout()
    >>> timeout.timeout_ms
    1000
    >>> timeout.late(), timeout.timeout_ms
    (None, 2000)
    >>> timeout.answered(700), timeout.timeout_ms
    (None, 2800)
    """

    def __init__(self) -> None:
        self._round_ms = 0
        self._late = 0
        self.lates = 0  # all late answers

    @property
    def timeout_ms(self) -> int:
        """Return four times the usual time of an answer, within limits, doubled for each late one."""
        usual = max(TIMEOUT_MIN_MS, 4 * self._round_ms)
        return min(TIMEOUT_MAX_MS, usual << min(self._late, 16))

    def answered(self, took_ms: int) -> None:
        """Note the time that an answer took."""
        took_ms = max(0, min(took_ms, TIMEOUT_MAX_MS))
        self._round_ms = took_ms if not self._round_ms else (7 * self._round_ms + took_ms) // 8
        self._late = 0

    def alive(self) -> None:
        """Note that the peer is running, without a measured time: the timeout is no longer doubled."""
        self._late = 0

    def late(self) -> None:
        """Note that an answer did not come in time."""
        self._late += 1
        self.lates += 1
