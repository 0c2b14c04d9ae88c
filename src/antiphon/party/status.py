"""How a party stands on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.timeframe import Timeframe
from antiphon.party.delivery import Blocked


@dataclass(frozen=True, slots=True)
class Status:
    """How a party stands here, for people and for monitoring."""

    running: bool
    items: int
    items_open: int
    timeframe: Timeframe
    blocked: tuple[Blocked, ...]
    refused: int
    error: str
