"""How long a peer is waited for: longer where its answers take long, and twice as long each time that one stays out."""

from __future__ import annotations

from antiphon.mesh.limits import TIMEOUT_MAX_MS, TIMEOUT_MIN_MS


class Pace:
    """What was learnt from the times that answers took.

    >>> pace = Pace()
    >>> pace.timeout_ms
    1000
    >>> pace.late(), pace.timeout_ms
    (None, 2000)
    >>> pace.answered(700), pace.timeout_ms
    (None, 2800)
    """

    def __init__(self) -> None:
        self._round_ms = 0
        self._late = 0

    @property
    def timeout_ms(self) -> int:
        usual = max(TIMEOUT_MIN_MS, 4 * self._round_ms)
        return min(TIMEOUT_MAX_MS, usual << min(self._late, 16))

    def answered(self, took_ms: int) -> None:
        took_ms = max(0, min(took_ms, TIMEOUT_MAX_MS))
        self._round_ms = took_ms if not self._round_ms else (7 * self._round_ms + took_ms) // 8
        self._late = 0

    def alive(self) -> None:
        """The peer was heard, though not as an answer whose time tells anything."""
        self._late = 0

    def late(self) -> None:
        self._late += 1
