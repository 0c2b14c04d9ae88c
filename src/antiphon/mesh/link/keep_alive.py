"""`KeepAlive`: notices an end that is silent."""

from __future__ import annotations

from antiphon.core.errors import LinkSilent
from antiphon.core.ports import Randomness
from antiphon.mesh.link.frames import TOKEN_SIZE, Ping
from antiphon.mesh.link.limits import ANSWER_MS, HANDSHAKE_MS, PING_MS


class KeepAlive:
    """Times of one link. Any frame of the other end shows that it is there."""

    def __init__(self, randomness: Randomness, now_ms: int) -> None:
        self._randomness = randomness
        self._began_ms = self._heard_ms = now_ms
        self._asked_ms: int | None = None

    def heard(self, now_ms: int) -> None:
        """Note that a frame came."""
        self._heard_ms, self._asked_ms = now_ms, None

    def unread(self, now_ms: int) -> None:
        """Note that nothing was read lately: an answer that has not been heard may have come. Ask again."""
        if self._asked_ms is not None and now_ms >= self._asked_ms + PING_MS:
            self._asked_ms = None

    def tick(self, is_open: bool, now_ms: int) -> tuple[int, Ping | None]:
        """Return the next time to call this, and a `Ping` to send. Raise `LinkSilent` if the other end is gone."""
        if not is_open:
            return self._check(self._began_ms + HANDSHAKE_MS, now_ms, "has not finished its handshake"), None
        if self._asked_ms is not None:
            return self._check(self._asked_ms + ANSWER_MS, now_ms, "has not answered"), None
        if now_ms < self._heard_ms + PING_MS:
            return self._heard_ms + PING_MS, None
        self._asked_ms = now_ms
        return now_ms + ANSWER_MS, Ping(self._randomness.bytes(TOKEN_SIZE))

    def _check(self, end_ms: int, now_ms: int, what: str) -> int:
        if now_ms >= end_ms:
            seconds = (now_ms - self._heard_ms) // 1_000
            raise LinkSilent(f"the other end {what} for {seconds} s: close the connection, and dial again")
        return end_ms
