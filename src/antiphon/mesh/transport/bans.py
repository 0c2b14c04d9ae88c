"""`Bans`: addresses or devices that broke the protocol, each for a time that doubles with every further breach."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.mesh.transport.limits import BAN_MS_MAX, BAN_MS_MIN, BANS_MAX


@dataclass(frozen=True, slots=True)
class Ban:
    """How often something was banned without a long pause, and until when."""

    count: int
    until_ms: int


class Bans:
    """A bounded table of bans. When it is full, the ban that was imposed or lengthened longest ago is forgotten."""

    def __init__(self, *, ban_ms_min: int = BAN_MS_MIN, count_max: int = BANS_MAX) -> None:
        self._ban_ms_min = ban_ms_min
        self._count_max = count_max
        self._bans: dict[str | bytes, Ban] = {}

    def __len__(self) -> int:
        return len(self._bans)

    def ban(self, name: str | bytes, now_ms: int) -> int:
        """Ban an address or a device. Return the time at which the ban ends."""
        before = self._bans.pop(name, None)
        count = before.count + 1 if before is not None and now_ms < before.until_ms + BAN_MS_MAX else 1
        length_ms = min(self._ban_ms_min << min(count - 1, 32), BAN_MS_MAX)
        if len(self._bans) >= self._count_max:
            del self._bans[next(iter(self._bans))]
        self._bans[name] = Ban(count, now_ms + length_ms)
        return now_ms + length_ms

    def until(self, name: str | bytes, now_ms: int) -> int | None:
        """Return when a ban ends; None if there is none at this time."""
        found = self._bans.get(name)
        return found.until_ms if found is not None and now_ms < found.until_ms else None

    def pardon(self, name: str | bytes) -> None:
        """Forget a ban, and how often it was imposed."""
        self._bans.pop(name, None)
