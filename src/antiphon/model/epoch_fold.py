"""`fold_epoch`: what an epoch makes of one item. Every engine calls it, so every engine comes to the same bytes.

(The item's bytes in the epoch before, the messages to it between the two cuts) → its bytes in this epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput, UnknownModel
from antiphon.core.stamp import Stamp
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import Authors, feed_itself, fold, keeps_tail
from antiphon.model.item_state import ItemState
from antiphon.model.message import Note
from antiphon.model.model import Discard, Model
from antiphon.model.raw import RAW
from antiphon.model.replay import stand

Key = tuple[str, int]  # a model, by name and version


class Listed(ModelFactory):
    """The models that an epoch reifies. Any other is raw to everybody, also where there is code for it."""

    def __init__(self, models: ModelFactory, listed: Collection[Key]) -> None:
        super().__init__()
        self._code = models
        self._listed = listed

    def find(self, name: str, version: int) -> Model[Any] | None:
        return self._code.find(name, version) if (name, version) in self._listed else RAW


class EpochItem(NamedTuple):
    """What an epoch makes of an item: its bytes, and the state that they stand for, if the next may go on with it."""

    data: bytes | None
    verdicts: dict[Stamp, str]
    state: ItemState | None


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
    return fold_on(None, party, item_id, base, notes, models, listed, authors, discard)[:2]


def fold_on(
    known: ItemState | None,
    party: bytes,
    item_id: bytes,
    base: bytes | None,
    notes: Sequence[Note],
    models: ModelFactory,
    listed: Collection[Key],
    authors: Authors = feed_itself,
    discard: Discard | None = None,
) -> EpochItem:
    """`fold_epoch`, for whoever computed the epoch before, too: `known` is the state that came with `base` then.

    It is changed in place. To restore it from the bytes takes longer than all the rest.
    """
    if not notes and (base is None or _stays(base, models, listed, discard)):
        return EpochItem(base, {}, known)
    chosen = Listed(models, listed)
    if known is not None and chosen.find(known.name, known.version) is known.model:
        item: ItemState | None = known
    else:
        item = None if base is None else item_codec.restore(base, chosen)
    if item is not None and item.id != item_id:
        raise InvalidInput(f"item {item_id.hex()}: its base is that of item {item.id.hex()}")
    folded = fold(party, item_id, item, notes, chosen, authors, whole=True)
    if folded.late:
        raise InvalidInput(f"item {item_id.hex()}: its messages do not come in the total order")
    if folded.item is None:
        return EpochItem(None, folded.verdicts, None)
    model = folded.item.model
    if model is None:
        key = f"{folded.item.name} {folded.item.version}"
        raise UnknownModel(f"item {item_id.hex()}: the epoch reifies {key}, and no code for it is here; install it")
    # Without a snapshot there are messages, and those are forgotten whole or not.
    limited = discard is not None and discard.limits
    if discard is not None and limited and model.has_snapshot:
        model.discard(folded.item.state, discard)
    data = item_codec.snapshot(folded.item)
    return EpochItem(data, folded.verdicts, None if limited else _base_of(folded.item))


def _base_of(item: ItemState) -> ItemState | None:
    """An item as if it were restored from its snapshot; None for those that keep more than the snapshot has."""
    if item.model is None or item.model is RAW or item.access is not None or keeps_tail(item.model):
        return None
    item.frame = {}
    stand(item)
    return item


def _stays(base: bytes, models: ModelFactory, listed: Collection[Key], discard: Discard | None) -> bool:
    """Whether an item without messages has the bytes that it had: nothing to reify, write anew or discard."""
    about = item_codec.about(base)
    key = about.name, about.version
    if key not in listed:
        return True
    model = models.find(*key)
    if model is None or about.raw or about.codec != model.codec:
        return False
    return discard is None or not discard.limits or not model.has_snapshot or type(model).discard is Model.discard
