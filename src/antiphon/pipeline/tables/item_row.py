"""What tables show of an item, told while it is folded: else its state would be read from its bytes again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon.model.item_state import ItemState
from antiphon.pipeline.fold.digest import item_hash
from antiphon.pipeline.fold.item_fold import MESSAGES, SCHEMA, STATE
from antiphon.pipeline.tables.item_rows import shown_of
from antiphon.pipeline.tables.links import End, ends_of
from antiphon.query.facts import facts_of

_TOLD = len(SCHEMA)  # where a row has what `tell` says: type, name, state, facts and ends


def tell(item: ItemState) -> tuple[Any, ...]:
    """What is shown of an item, for `Folding.more`."""
    said = facts_of(item)
    return (*shown_of(said, known=item.model is not None), ends_of(item.parent, said))


def item_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row of the table of items, from one of a fold that tells."""
    kind, called, state, asked, _ = row[_TOLD:]
    return (*row[:STATE], row[MESSAGES], kind, called, state, row[STATE], hash_in(row), asked)


def hash_in(row: Sequence[Any]) -> bytes:
    """The hash of the item of a row."""
    return item_hash(row[1], row[STATE])


def ends_in(row: Sequence[Any]) -> list[End]:
    """Where the item of a row leads to, likewise."""
    ends: list[End] = row[_TOLD + 4]
    return ends
