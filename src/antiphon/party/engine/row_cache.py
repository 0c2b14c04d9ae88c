"""Rows of the item store, made ahead of the save that writes them.

A save writes all that has changed in one transaction, and whoever writes messages waits for it. To make the rows is
more than half of that work; so as a save draws near, each batch makes some of them, and the save takes those that are
still true. Another thread that wants a save makes them first, a few at a time, and lets writers in between.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model import item_codec
from antiphon.model.fold import ItemState
from antiphon.party.engine.cache import Entry
from antiphon.party.engine.ports import Index, ItemRow
from antiphon.party.engine.yielding import REST_S

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor

ROWS_BESIDE = 32  # at once: some 2 ms
_ROUNDS_MAX = 100  # who writes without end makes no other wait for ever
_MORE = 32  # so many more items must have changed before those without a row are looked for again


class Made(NamedTuple):
    """A row, and what it was made from: it is true of that very state as long as no message comes to it."""

    item: ItemState
    frame: tuple[Stamp, ...]
    described: Index | None  # the index that it is for
    row: ItemRow

    def holds(self, item: ItemState, index: Index | None) -> bool:
        return self.item is item and self.described is index and self.frame == tuple(item.frame.values())


def row_of(entry: Entry, index: Index | None) -> ItemRow:
    """An entry's row, made now unless it was made before."""
    item, made = entry.item, entry.made
    if item is None:
        return ItemRow(entry.id, None)
    return made.row if made is not None and made.holds(item, index) else _row(item, index)


def make_beside(party: PartyProcessor) -> None:
    """Make the rows of all that has changed, a few at a time, with the party's lock let go of in between."""
    for _ in range(_ROUNDS_MAX):
        party.waited_for = False
        party.let_in.clear()
        with party.locked() as engine:
            if engine.held or not _make_some(engine.cache.dirty, ROWS_BESIDE, engine.saved.index):
                return
        if party.waited_for:  # by somebody whom this thread, which runs, would forestall
            party.let_in.wait(REST_S)


def _make_some(dirty: dict[bytes, Entry], count: int, index: Index | None) -> bool:
    """Make up to `count` rows that are missing, or true no more; whether others are."""
    for entry in dirty.values():
        item, made = entry.item, entry.made
        if item is not None and (made is None or not made.holds(item, index)):
            if not count:
                return True
            entry.made = _made(item, index)
            count -= 1
    return False


def _made(item: ItemState, index: Index | None) -> Made:
    return Made(item, tuple(item.frame.values()), index, _row(item, index))


def _row(item: ItemState, index: Index | None) -> ItemRow:
    facts = b"" if index is None else index.describe(item)
    opaque, guarded = item.model is None, item.access is not None
    record = item_codec.encode(item)
    return ItemRow(item.id, record, item.name, item.version, item.parent, item.is_deleted, opaque, guarded, facts)


class Ahead:
    """Which of the items that have changed still need a row."""

    def __init__(self) -> None:
        self._left: deque[Entry] = deque()
        self._seen = 0  # how many had changed when they were last looked through

    def make(self, dirty: dict[bytes, Entry], count: int, index: Index | None) -> None:
        """Make up to `count` rows."""
        if not self._left and len(dirty) >= self._seen + _MORE:
            self._seen = len(dirty)
            self._left.extend(entry for entry in dirty.values() if entry.made is None)
        while count and self._left:
            entry = self._left.popleft()
            item = entry.item
            if item is not None and entry.id in dirty:
                entry.made = _made(item, index)
                count -= 1

    def clear(self) -> None:
        """All is saved."""
        self._left.clear()
        self._seen = 0
