"""`Status` of a party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.timeframe import Timeframe
from antiphon.party.engine.delivery import Blocked

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a party on this device, for people and for monitoring."""

    running: bool
    items: int
    items_open: int
    timeframe: Timeframe
    blocked: tuple[Blocked, ...]
    refused: int
    error: str
    epoch: int = 0  # the number of the current base; 0: none
    ignored: int = 0  # feeds whose bodies are ignored here
    rebuilt: str = ""  # why the items were last built again from the feeds in this process
    view_missing: bool = False  # one view alone is held, and nothing of it is here: `sync` fetches it

    @classmethod
    def of(cls, engine: Engine | None, error: str, rebuilt: str = "") -> Status:
        """Return the status of a running party, or of a stopped one (`engine` is None)."""
        if engine is None:
            return cls(False, 0, 0, Timeframe(), (), 0, error, rebuilt=rebuilt)
        engine.save()
        return cls(
            True,
            engine.count(),
            len(engine.cache),
            engine.delivery.timeframe(),
            tuple(engine.delivery.blocked()),
            engine.items.refused_count(),
            error,
            0 if engine.base is None else engine.base.number,
            sum(record.ignored for record in engine.store.feeds(engine.party)),
            rebuilt,
            engine.scope.ready_items is not None and engine.scope.ready_items <= {bytes(SYSTEM_ITEM)},
        )
