"""`fold_epoch`: the snapshot of one item at an epoch. Every engine calls it, so every engine gets the same bytes.

(Snapshot of the item in the epoch before, messages to it between the two cuts) → snapshot of the item in this epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput, UnknownModel
from antiphon.core.stamp import Stamp
from antiphon.halo.rights.verdict import was_taken
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import Authors, feed_itself, fold, keeps_tail
from antiphon.model.item_state import ItemState
from antiphon.model.late_messages import start_from_base
from antiphon.model.message import Note
from antiphon.model.model import Discard, Model
from antiphon.model.raw import RAW

Key = tuple[str, int]  # a model, by name and version


class EpochModels(ModelFactory):
    """The models that an epoch reifies. Every other model is raw for all peers, even for those that have its code."""

    def __init__(self, models: ModelFactory, listed: Collection[Key]) -> None:
        super().__init__()
        self._code = models
        self._listed = listed

    def find(self, name: str, version: int) -> Model[Any] | None:
        return self._code.find(name, version) if (name, version) in self._listed else RAW


class EpochItem(NamedTuple):
    """The snapshot of an item at an epoch, and the state that it encodes if the next epoch may continue from it."""

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
    beyond: Note | None = None,
) -> tuple[bytes | None, dict[Stamp, str]]:
    """Return the snapshot of an item at an epoch (None: no such item), and the reasons why messages do not count.

    `base` is the snapshot in the epoch before, or None. `notes` are the messages to the item inside this cut and
    outside the former one, in the total order. `listed` are the models that the epoch reifies. If the code of such a
    model is missing, or too old for the base, `UnknownModel` is raised: a peer without the code does not attest.
    """
    return fold_on(None, party, item_id, base, notes, models, listed, authors, discard, beyond)[:2]


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
    beyond: Note | None = None,
) -> EpochItem:
    """Do `fold_epoch` for a caller that computed the epoch before: `known` is the state that came with `base`.

    The state is changed in place. Restoring it from the bytes would take longer than everything else.
    """
    if not notes and (base is None or _stays(base, models, listed, discard)):
        return EpochItem(base, {}, known)
    chosen = EpochModels(models, listed)
    if known is not None and chosen.find(known.name, known.version) is known.model:
        item: ItemState | None = known
    else:
        item = None if base is None else item_codec.restore(base, chosen)
    if item is not None and item.id != item_id:
        raise InvalidInput(f"item {item_id.hex()}: its base is that of item {item.id.hex()}")
    folded = fold(party, item_id, item, notes, chosen, authors, whole=True, beyond=beyond)
    if folded.late:
        raise InvalidInput(f"item {item_id.hex()}: its messages do not come in the total order")
    made = folded.state
    if made is None or not is_kept(made):
        return EpochItem(None, folded.verdicts, None)
    model = made.model
    if model is None:
        key = f"{made.name} {made.version}"
        raise UnknownModel(f"item {item_id.hex()}: the epoch reifies {key}, and no code for it is here; install it")
    # A model without a snapshot keeps messages, and a message is never discarded in part.
    limited = discard is not None and discard.limits
    if discard is not None and limited and model.has_snapshot:
        model.discard(made.state, discard)
    return EpochItem(item_codec.snapshot(made), folded.verdicts, None if limited else _base_of(made))


def is_kept(item: ItemState) -> bool:
    """True if an epoch keeps an item: it is shown, or hidden because something was taken away.

    A genesis whose writer never had the right to it takes no room in a snapshot.
    """
    return not item.hidden or item.based or was_taken(item.hidden)


def _base_of(item: ItemState) -> ItemState | None:
    """Return the item as if restored from its snapshot; None if it keeps more than the snapshot holds."""
    if item.model is None or item.model is RAW or item.access is not None or keeps_tail(item.model):
        return None
    item.frame = {}
    start_from_base(item)
    return item


def _stays(base: bytes, models: ModelFactory, listed: Collection[Key], discard: Discard | None) -> bool:
    """True if the snapshot of an item without new messages stays: nothing to reify, to re-encode or to discard."""
    about = item_codec.summary(base)
    key = about.name, about.version
    if key not in listed:
        return True
    model = models.find(*key)
    if model is None or about.raw or about.codec != model.codec:
        return False
    return discard is None or not discard.limits or not model.has_snapshot or type(model).discard is Model.discard
