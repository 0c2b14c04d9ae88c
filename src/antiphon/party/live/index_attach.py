"""An index for queries beside the items: it is kept with them, and filled from what is saved of them if it is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antiphon.model import item_codec
from antiphon.party.engine.cold_fold import ROWS_AT_ONCE
from antiphon.party.engine.gc_pause import uncollected
from antiphon.party.engine.ports import Index
from antiphon.party.epochs.rebase import hydrate

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine


def attach(engine: Engine, make: Callable[[Any], Index], *, only_known: bool = False) -> Index | None:
    """Keep an index from now on; with `only_known`, one that was kept before."""
    current, index = engine.items.attach(make, only_known=only_known), engine.items.index
    if current or index is None:
        return index
    hydrate(engine)
    ids = list(engine.items.ids())
    with engine.saving(), uncollected():
        for start in range(0, len(ids), ROWS_AT_ONCE):
            records = engine.items.load(ids[start : start + ROWS_AT_ONCE]).values()
            states = [item_codec.decode(record, engine.models) for record in records if record]
            index.put([(state.id, index.describe(state)) for state in states])
    return index
