"""`SeenHandshakes`: each first message of a handshake is answered once by all channels of a node."""

from __future__ import annotations

from antiphon.mesh.channel.limits import CLOCK_OFF_MS_MAX, SEEN_COUNT_MAX

_BUCKET_MS = 60_000
_NAME_SIZE = 16  # of an ephemeral key, which nobody can choose for another dialler


class SeenHandshakes:
    """The ephemeral keys of the first messages that were answered, for as long as their times are taken.

    Only messages that decrypt are remembered, so only somebody who knows the device key can fill this. If there are
    too many, the earliest minute is forgotten, and its messages are not answered any more. Those of the present are,
    for a flood must not shut out diallers whose clocks are right.
    """

    __slots__ = ("_buckets", "_count", "_count_max", "_floor_ms")

    def __init__(self, count_max: int = SEEN_COUNT_MAX) -> None:
        self._count_max = count_max
        self._buckets: dict[int, set[bytes]] = {}  # by minute of sending
        self._count = 0
        self._floor_ms = 0

    def __len__(self) -> int:
        return self._count

    def add(self, ephemeral: bytes, *, sent_ms: int, now_ms: int) -> bool:
        """True if a message with this key and time may be answered; from now on it may not."""
        first_ms, last_ms = now_ms - CLOCK_OFF_MS_MAX, now_ms + CLOCK_OFF_MS_MAX
        if not first_ms <= sent_ms <= last_ms:
            return False
        for minute in list(self._buckets):
            if not first_ms <= (minute + 1) * _BUCKET_MS <= last_ms + _BUCKET_MS:
                self._forget(minute)
        if sent_ms < self._floor_ms <= last_ms:  # a later floor is of a clock that was set back since
            return False
        bucket = self._buckets.setdefault(sent_ms // _BUCKET_MS, set())
        name = ephemeral[:_NAME_SIZE]
        if name in bucket:
            return False
        bucket.add(name)
        self._count += 1
        if self._count > self._count_max:
            self._floor_ms = min(self._forget(min(self._buckets)), now_ms)
        return True

    def _forget(self, minute: int) -> int:
        """Forget the messages of a minute, and return its end."""
        self._count -= len(self._buckets.pop(minute))
        return (minute + 1) * _BUCKET_MS
