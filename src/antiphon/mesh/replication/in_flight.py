"""`InFlight`: the requests of all sessions of a peer that are not answered, so that nothing is requested twice."""

from __future__ import annotations

from typing import Protocol


class Claim(Protocol):
    """A request that may still be answered until `until_ms`; that moves on while its answer comes."""

    until_ms: int


class InFlight:
    """Which session waits for which feed or blob, and until when. After that time another session may request it.

    Its size is bounded by the requests that sessions may have open. An expired claim is removed when it is read.
    """

    def __init__(self) -> None:
        self._claims: dict[bytes, tuple[object, Claim]] = {}

    def claim(self, key: bytes, who: object, claim: Claim) -> None:
        """Note that session part `who` waits for a feed or blob."""
        self._claims[key] = who, claim

    def until(self, key: bytes, who: object, now_ms: int) -> int | None:
        """Return until when a session other than `who` waits for this key; None if none does."""
        claim = self._claims.get(key)
        if claim is None or claim[0] is who:
            return None
        if claim[1].until_ms <= now_ms:
            del self._claims[key]
            return None
        return claim[1].until_ms

    def release(self, key: bytes, who: object) -> None:
        """Remove the claim of `who`, if it has one."""
        claim = self._claims.get(key)
        if claim is not None and claim[0] is who:
            del self._claims[key]

    def __len__(self) -> int:
        return len(self._claims)
