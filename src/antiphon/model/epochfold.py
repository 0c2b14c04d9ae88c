"""`fold_epoch`: what an epoch makes of one item. Every engine calls it, so every engine comes to the same bytes.

(The item's bytes in the epoch before, the messages to it between the two cuts) → its bytes in this epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from antiphon.core.errors import InvalidInput, UnknownModel
from antiphon.core.stamp import Stamp
from antiphon.model import itemcodec
from antiphon.model.envelope import Note
from antiphon.model.factory import ModelFactory
from antiphon.model.interface import Discard, Model
from antiphon.model.item import Authors, feed_itself, fold
from antiphon.model.raw import RAW

Key = tuple[str, int]  # a model, by name and version


class Listed(ModelFactory):
    """The models that an epoch reifies. Any other is raw to everybody, also where there is code for it."""

    def __init__(self, models: ModelFactory, listed: Collection[Key]) -> None:
        super().__init__()
        self._code = models
        self._listed = listed

    def find(self, name: str, version: int) -> Model[Any] | None:
        return self._code.find(name, version) if (name, version) in self._listed else RAW


def fold_epoch(
    party: bytes,
    item_id: bytes,
    base: bytes | None,
    notes: Sequence[Note],
    models: ModelFactory,
    listed: Collection[Key],
    authors: Authors = feed_itself,
    discard: Discard | None = None,
) -> tuple[bytes | None, dict[Stamp, str]]:
    """An item's snapshot at an epoch (None: there is no such item), and why messages among `notes` do not count.

    `base` is its snapshot in the epoch before, None if it has none. `notes` are the messages to it in this cut and
    outside the former, in the total order. `listed` has the models that the epoch reifies; one of them whose code is
    not here, or too old for the base, is `UnknownModel`: who lacks it does not attest.
    """
    if not notes and (base is None or _stays(base, models, listed, discard)):
        return base, {}
    chosen = Listed(models, listed)
    item = None if base is None else itemcodec.restore(base, chosen)
    if item is not None and item.id != item_id:
        raise InvalidInput(f"item {item_id.hex()}: its base is that of item {item.id.hex()}")
    folded = fold(party, item_id, item, notes, chosen, authors, whole=True)
    if folded.late:
        raise InvalidInput(f"item {item_id.hex()}: its messages do not come in the total order")
    if folded.item is None:
        return None, folded.verdicts
    model = folded.item.model
    if model is None:
        key = f"{folded.item.name} {folded.item.version}"
        raise UnknownModel(f"item {item_id.hex()}: the epoch reifies {key}, and no code for it is here; install it")
    # Without a snapshot there are messages, and those are forgotten whole or not.
    if discard is not None and discard.limits and model.has_snapshot:
        model.discard(folded.item.state, discard)
    return itemcodec.snapshot(folded.item), folded.verdicts


def _stays(base: bytes, models: ModelFactory, listed: Collection[Key], discard: Discard | None) -> bool:
    """Whether an item without messages has the bytes that it had: nothing to reify, write anew or discard."""
    about = itemcodec.about(base)
    key = about.name, about.version
    if key not in listed:
        return True
    model = models.find(*key)
    if model is None or about.raw or about.codec != model.codec:
        return False
    return discard is None or not discard.limits or not model.has_snapshot or type(model).discard is Model.discard
