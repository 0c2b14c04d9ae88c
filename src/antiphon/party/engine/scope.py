"""`Scope`: the items that an engine folds. All, unless the device holds one view: then only ready items."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlob, MissingBlocks
from antiphon.party.engine.cache import Entry

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine


class Scope:
    """The items that are folded here, and what is missing of others. Messages to other items are only noted."""

    def __init__(self, engine: Engine, ready_items: Set[bytes] | None) -> None:
        self._engine = engine
        self.ready_items = ready_items  # None: all; the set grows as more items become ready

    def leaves_out(self, item: bytes) -> bool:
        """True if an item is out of scope: its messages are neither folded nor refused, and need no bodies."""
        return self.ready_items is not None and item not in self.ready_items

    def lacks(self, item: bytes) -> bool:
        """True if an item cannot be folded: it is out of scope, or its blobs of the base are missing."""
        engine = self._engine
        if self.leaves_out(item):
            return True
        if engine.whole:
            return False
        try:
            engine.in_base(item)
        except MissingBlob:
            return True
        return False

    def set_aside(self, entry: Entry) -> None:
        """Drop the state of an item that cannot be folded. Its messages are only recorded as postings from now on."""
        engine = self._engine
        entry.postings = engine.items.postings(entry.id) + entry.postings
        entry.put(None)
        engine.items.forget(entry.id)
        engine.cache.put(entry)
        engine.cache.dirty[entry.id] = entry

    def bodiless(self, item: bytes, *, counting: bool = False) -> list[tuple[bytes, int]]:
        """List the messages to an item outside the base whose bodies are missing, as (feed, seq)."""
        entry = self._engine.cache.get(item)
        notes = self._engine.notes_outside(item, entry.postings if entry is not None else [])
        return [(note.feed, note.seq) for note in notes if note.message is None and not (counting and note.void)]

    def check(self, item: bytes) -> None:
        """Raise `MissingBlocks` if bodies must be fetched before an item out of scope can be opened."""
        missing = self.bodiless(item, counting=True) if self.leaves_out(item) else []
        if missing:
            feed, seq = missing[0]
            raise MissingBlocks(
                f"item {item.hex()} is not part of the view that is held here: {len(missing)} bodies of messages "
                f"to it were left out, that of block {seq} of feed {feed.hex()[:8]} among them; fetch them first"
            )
