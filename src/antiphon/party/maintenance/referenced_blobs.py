"""Find the blobs outside item states that a party's items refer to: the contents of files."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.core.cid import Cid
from antiphon.core.errors import MissingBlob, UnknownItem
from antiphon.model import item_codec
from antiphon.model.fold import ItemState
from antiphon.model.model import Model
from antiphon.party.live.processor import PartyProcessor
from antiphon.snapshot import tree


def contents(party: PartyProcessor) -> Iterator[Cid]:
    """Yield the roots of all contents that items refer to, also deleted items. A root may come twice.

    Items whose blobs are not here are skipped: their files cannot be read here either.
    """
    names = {name for name, version in party.models.keys if _refers(party.models.find(name, version))}
    with party.locked() as engine:
        engine.save()
        whole, base = engine.whole, engine.base
        opened = {item for name in sorted(names) for item in engine.items.ids(name)}
    for item in sorted(opened):
        yield from _of_item(party, item)
    if base is None or whole:
        return
    for item, data in tree.available_entries(base.root.items, base.blobs):
        if item not in opened and item_codec.summary(data).name in names:
            yield from _refers_to(item_codec.restore(data, party.models))


def _of_item(party: PartyProcessor, item: bytes) -> list[Cid]:
    with party.locked() as engine:
        try:
            state = engine.entry(item).item
        except (UnknownItem, MissingBlob):  # the item was dropped meanwhile
            return []
        return [] if state is None else _refers_to(state)


def _refers_to(state: ItemState) -> list[Cid]:
    return [] if state.model is None else list(state.model.blobs(state.state))


def _refers(model: Model[object] | None) -> bool:
    return model is not None and type(model).blobs is not Model.blobs
