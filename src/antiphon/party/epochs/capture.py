"""What an epoch is computed from, of one moment: states, and the positions that they stand at. Writers go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from antiphon.core.errors import UnknownModel
from antiphon.model.fold import META
from antiphon.party.engine.ports import Items, LaneState
from antiphon.snapshot.root import ModelPin

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine
    from antiphon.party.live.processor import PartyProcessor


class Captured(NamedTuple):
    """The engine's lanes, and a view of its items. What comes later is in neither."""

    engine: Engine
    lanes: list[LaneState]
    items: Items

    def pins(self, *, raw: bool) -> tuple[ModelPin, ...]:
        """The models to be listed: those that items have, or that the epoch before has listed. What has no code is
        left out with `raw`, else refused. All rows are looked at: not under the lock."""
        base, models = self.engine.base, self.engine.models
        listed = () if base is None else base.root.models
        used = {META.key, *self.items.models(), *((name, version) for name, version, _ in listed)}
        lacking = sorted(key for key in used if key not in models)
        if lacking and not raw:
            name, version = lacking[0]
            raise UnknownModel(
                f"party {self.engine.party.hex()[:8]}: no code for model {name} {version} is here; install it, or "
                "declare the epoch with such items kept raw"
            )
        return tuple(key for key in models.codecs if key[:2] in used)


@contextmanager
def capture(party: PartyProcessor) -> Iterator[Captured]:
    """The party as it is now."""
    party.save()  # by itself: then whoever waits for the lock gets in before the rest
    with party.locked() as engine:
        engine.save()
        states = [lane.state for lane in engine.delivery.lanes.values()]
        # What is in these lists is never changed: only the lists are.
        lanes = [replace(state, segments=list(state.segments), voids=list(state.voids)) for state in states]
        view = engine.items.view()
        items = view.__enter__()
    try:
        yield Captured(engine, lanes, items)
    finally:
        view.__exit__(None, None, None)
