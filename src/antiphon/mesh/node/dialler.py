"""`Dialler`: keeps addresses connected. It says when to dial again, after growing pauses."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.errors import InvalidInput
from antiphon.core.ports import Randomness
from antiphon.mesh.node.limits import DIAL_PAUSE_MS, DIAL_PAUSE_MS_MAX, DIALLED_MAX, STEADY_MS
from antiphon.mesh.transport.address import Address


@dataclass(slots=True, eq=False)
class Target:
    """An address that is kept connected."""

    address: Address
    since_ms: int  # when its state last changed
    next_ms: int | None = None  # when to dial; None while it is dialled, or its device is connected
    failures: int = 0
    error: str = ""


class Dialler:
    """The addresses to keep connected, one for each device, without I/O. Pauses have jitter: ends differ."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._targets: dict[bytes, Target] = {}

    def add(self, address: Address, now_ms: int) -> Target:
        """Keep an address connected: dial it now, whatever failed before. It replaces another one of its device."""
        known = self._targets.get(address.device)
        if known is None and len(self._targets) >= DIALLED_MAX:
            raise InvalidInput(f"{DIALLED_MAX} devices are kept connected already; disconnect one first")
        made = self._targets[bytes(address.device)] = Target(address, now_ms, now_ms)
        return made

    def remove(self, device: bytes) -> bool:
        """Dial a device no longer. False if it was not dialled."""
        return self._targets.pop(bytes(device), None) is not None

    def get(self, device: bytes) -> Target | None:
        """Return the target of a device."""
        return self._targets.get(bytes(device))

    def targets(self) -> list[Target]:
        """Return all targets."""
        return list(self._targets.values())

    def due(self, now_ms: int) -> list[Target]:
        """Return the targets to dial now, and note that they are dialled."""
        found = [one for one in self._targets.values() if one.next_ms is not None and one.next_ms <= now_ms]
        for one in found:
            one.next_ms = None
        return found

    def next_ms(self) -> int | None:
        """Return when the next target is due; None if none waits."""
        return min((one.next_ms for one in self._targets.values() if one.next_ms is not None), default=None)

    def connected(self, device: bytes, now_ms: int) -> None:
        """Note that a device is connected, whoever dialled."""
        target = self.get(device)
        if target is not None:
            target.next_ms, target.since_ms, target.error = None, now_ms, ""

    def ended(self, device: bytes, why: str, now_ms: int, *, lasted_ms: int = 0) -> None:
        """Note that a dial has failed, or a connection ended: dial again after a pause."""
        target = self.get(device)
        if target is not None:
            target.failures = 1 if lasted_ms >= STEADY_MS else target.failures + 1
            target.next_ms, target.since_ms, target.error = now_ms + self._pause_ms(target.failures), now_ms, why

    def _pause_ms(self, failures: int) -> int:
        """Return a pause between a half and all of what doubles with each failure."""
        most = min(DIAL_PAUSE_MS << min(failures - 1, 16), DIAL_PAUSE_MS_MAX)
        return most // 2 + int.from_bytes(self._randomness.bytes(4)) % (most // 2 + 1)
