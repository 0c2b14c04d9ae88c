"""Writing metadata: several keys in one message, and embedded items whatever a peer has put in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import InvalidInput
from antiphon.model.item import EMBEDDED
from antiphon.model.itemstate import META
from antiphon.model.value import Reference, Value

if TYPE_CHECKING:
    from antiphon.api.party import Party


def describe(party: Party, item: bytes, values: Mapping[str, Value]) -> None:
    """Write several keys; nothing if there are none."""
    if values:
        paths: dict[str | tuple[str, ...], Value] = {(key,): value for key, value in values.items()}
        _write(party, item, lambda meta, feed: META.update(meta, paths, feed=feed))


def embed(party: Party, item: bytes, child: bytes) -> None:
    """Let an item embed another one of its party."""
    added = Reference(bytes(child))

    def make(meta: Any, feed: bytes) -> bytes:
        try:
            return META.add(meta, EMBEDDED, added, feed=feed)
        except InvalidInput:  # a peer wrote something else there, which shows nothing
            return META.set(meta, EMBEDDED, {added}, feed=feed)

    with party.processor.batch():
        party.processor.item(child)
        _write(party, item, make)


def embedded(metadata: Mapping[str, Any]) -> list[Reference]:
    """What an item embeds by its metadata, which a peer may have filled with anything."""
    found = metadata.get(EMBEDDED)
    return [one for one in found if isinstance(one, Reference)] if isinstance(found, list) else []


def _write(party: Party, item: bytes, make: Callable[[Any, bytes], bytes]) -> None:
    """One message, which `make` builds from the metadata as it stands and the writer's feed."""
    with party.processor.batch() as batch:
        state = party.processor.engine.entry(item).item
        meta = None if state is None else state.meta
        batch.describe(bytes(item), make(META.initial() if meta is None else meta, batch.feed))
