"""What has been asked for and has not come yet, over all sessions of a peer, so that nothing is asked for twice."""

from __future__ import annotations


class UnderWay:
    """Which session waits for what, and until when. What is late may be asked of another.

    It is bounded by what sessions may ask for at once; what is past its time goes when it is met.
    """

    def __init__(self) -> None:
        self._asked: dict[bytes, tuple[object, int]] = {}

    def claim(self, key: bytes, who: object, until_ms: int) -> None:
        self._asked[key] = who, until_ms

    def until(self, key: bytes, who: object, now_ms: int) -> int | None:
        """Until when another than `who` is waited for; None if nobody is."""
        asked = self._asked.get(key)
        if asked is None or asked[0] is who:
            return None
        if asked[1] <= now_ms:
            del self._asked[key]
            return None
        return asked[1]

    def release(self, key: bytes, who: object) -> None:
        asked = self._asked.get(key)
        if asked is not None and asked[0] is who:
            del self._asked[key]

    def __len__(self) -> int:
        return len(self._asked)
