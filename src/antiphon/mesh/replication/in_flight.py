"""`InFlight`: the requests of all sessions of a peer that are not answered, so that nothing is requested twice."""

from __future__ import annotations


class InFlight:
    """Which session waits for which feed or blob, and until when. After that time another session may request it.

    Its size is bounded by the requests that sessions may have open. An expired claim is removed when it is read.
    """

    def __init__(self) -> None:
        self._claims: dict[bytes, tuple[object, int]] = {}

    def claim(self, key: bytes, who: object, until_ms: int) -> None:
        """Note that session part `who` waits for a feed or blob."""
        self._claims[key] = who, until_ms

    def until(self, key: bytes, who: object, now_ms: int) -> int | None:
        """Return until when a session other than `who` waits for this key; None if none does."""
        claim = self._claims.get(key)
        if claim is None or claim[0] is who:
            return None
        if claim[1] <= now_ms:
            del self._claims[key]
            return None
        return claim[1]

    def release(self, key: bytes, who: object) -> None:
        """Remove the claim of `who`, if it has one."""
        claim = self._claims.get(key)
        if claim is not None and claim[0] is who:
            del self._claims[key]

    def __len__(self) -> int:
        return len(self._claims)
