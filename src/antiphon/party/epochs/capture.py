"""Capture a consistent view of a party for an epoch: lanes and item rows of one moment. Writers are not blocked."""

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
    """Copies of the engine's lanes, and a read view of its items at the same moment."""

    engine: Engine
    lanes: list[LaneState]
    items: Items

    def pins(self, *, raw: bool) -> tuple[ModelPin, ...]:
        """Return the models for the epoch to list: those of its items, and those that the previous epoch listed.

        A model without code here is left out with `raw`, and an error otherwise. Reads all rows: not under the lock.
        """
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
    """Capture the party as it is now; the read view is closed when the context ends."""
    party.save()  # separately, so that a waiting writer gets the lock before the rest
    with party.locked() as engine:
        engine.save()
        states = [lane.state for lane in engine.delivery.lanes.values()]  # also of feeds cut at 0: items refer to them
        lanes = [
            replace(state, segments=state.segments.copy(), voids=list(state.voids), authors=list(state.authors))
            for state in states
        ]
        view = engine.items.view()
        items = view.__enter__()
    try:
        yield Captured(engine, lanes, items)
    finally:
        view.__exit__(None, None, None)
