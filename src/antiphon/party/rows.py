"""Rows of the item store, made ahead of the save that writes them.

A save writes all that has changed in one transaction, and whoever writes messages waits for it. To make the rows is
more than half of that work; so as a save draws near, each batch makes some of them, and the save takes those that are
still true.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model import itemcodec
from antiphon.model.item import ItemState
from antiphon.party.cache import Entry
from antiphon.party.ports import Index, ItemRow

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


def _row(item: ItemState, index: Index | None) -> ItemRow:
    facts = b"" if index is None else index.describe(item)
    opaque, guarded = item.model is None, item.access is not None
    record = itemcodec.encode(item)
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
                entry.made = Made(item, tuple(item.frame.values()), index, _row(item, index))
                count -= 1

    def clear(self) -> None:
        """All is saved."""
        self._left.clear()
        self._seen = 0
