"""What an epoch is computed from, of one moment: states, and the positions that they stand at. Writers go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

from antiphon.party.ports import Items, LaneState

if TYPE_CHECKING:
    from antiphon.party.engine import Engine
    from antiphon.party.processor import PartyProcessor


class Captured(NamedTuple):
    """The engine's lanes, and a view of its items. What comes later is in neither."""

    engine: Engine
    lanes: list[LaneState]
    items: Items

    def models(self) -> set[tuple[str, int]]:
        """Those that items have, or that the epoch before has listed. All rows are looked at: not under the lock."""
        base = self.engine.base
        listed = () if base is None else base.root.models
        return {*self.items.models(), *((name, version) for name, version, _ in listed)}


@contextmanager
def capture(party: PartyProcessor) -> Iterator[Captured]:
    """The party as it is now."""
    with party.locked() as engine:
        engine.save()
        lanes = [deepcopy(lane.state) for lane in engine.delivery.lanes.values()]
        view = engine.items.view()
        items = view.__enter__()
    try:
        yield Captured(engine, lanes, items)
    finally:
        view.__exit__(None, None, None)
