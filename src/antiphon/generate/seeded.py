"""Time and keys that follow from a seed alone."""

from __future__ import annotations

from hashlib import sha256

from antiphon.core.keys import KeyPair

BEGIN_MS = 1_700_000_000_000
LENGTH_MS = 90 * 24 * 3_600_000  # how long the history of a party is


class ManualClock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.ms = BEGIN_MS

    def now_ms(self) -> int:
        return self.ms


def pair_of(*names: object) -> KeyPair:
    """A key pair that depends on these names alone. Whoever knows the seed has it."""
    return KeyPair.from_seed(sha256("/".join(map(str, ("antiphon.generate", *names))).encode()).digest())
