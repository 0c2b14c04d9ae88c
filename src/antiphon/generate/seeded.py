"""A clock and keys that depend on the seed alone."""

from __future__ import annotations

from hashlib import sha256

from antiphon.core.keys import KeyPair

BEGIN_MS = 1_700_000_000_000
LENGTH_MS = 90 * 24 * 3_600_000  # the time span of a party's history


class ManualClock:
    """A clock that shows the time it is set to."""

    def __init__(self) -> None:
        self.ms = BEGIN_MS

    def now_ms(self) -> int:
        return self.ms


def pair_of(*names: object) -> KeyPair:
    """Return a key pair that depends on these names alone. It is not secret: the seed gives it."""
    return KeyPair.from_seed(sha256("/".join(map(str, ("antiphon.generate", *names))).encode()).digest())
