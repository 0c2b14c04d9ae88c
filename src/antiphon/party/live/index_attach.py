"""Attach an index for queries to the item store. It is updated with the items; a new index is filled from the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antiphon.model import item_codec
from antiphon.party.engine.cold_fold import ROWS_AT_ONCE
from antiphon.party.engine.gc_pause import gc_paused
from antiphon.party.engine.ports import Index
from antiphon.party.epochs.rebase import hydrate

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine


def attach(engine: Engine, make: Callable[[Any], Index], *, only_known: bool = False) -> Index | None:
    """Attach an index, and fill it if it is new or out of date. With `only_known`, attach only an index that exists."""
    current, index = engine.items.attach(make, only_known=only_known), engine.items.index
    if current or index is None:
        return index
    hydrate(engine)
    ids = list(engine.items.ids())
    with engine.saving(), gc_paused():
        for start in range(0, len(ids), ROWS_AT_ONCE):
            records = engine.items.load(ids[start : start + ROWS_AT_ONCE]).values()
            states = [item_codec.decode(record, engine.models) for record in records if record]
            index.put([(state.id, index.describe(state)) for state in states])
    return index
