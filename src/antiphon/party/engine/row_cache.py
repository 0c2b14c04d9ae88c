"""Rows of the item store, encoded ahead of the save that writes them.

A save writes all changed items in one transaction, and writers wait for it. Encoding the rows is more than half of that
work. So shortly before a save, each batch encodes some rows (`RowsAhead`), and the save uses those that are still
valid. A thread that calls `save` first encodes rows a few at a time, and yields the lock in between (`prepare_rows`).
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

ROWS_BESIDE = 32  # per hold of the lock: some 2 ms
_ROUNDS_MAX = 100  # bounds the wait beside a writer that never pauses
_MORE = 32  # changed items that must be added before `RowsAhead` collects items without a row again


class CachedRow(NamedTuple):
    """A row and the state it was encoded from. It is valid for that state until the next message to the item."""

    item: ItemState
    frame: tuple[Stamp, ...]
    described: Index | None  # the index whose facts it holds
    row: ItemRow

    def holds(self, item: ItemState, index: Index | None) -> bool:
        """True if the row is valid for a state and an index."""
        return self.item is item and self.described is index and self.frame == tuple(item.frame.values())


def row_of(entry: Entry, index: Index | None) -> ItemRow:
    """Return the row of an entry: the cached one if it is valid, else a new one."""
    item, made = entry.item, entry.cached
    if item is None:
        hidden = entry.state
        return ItemRow(entry.id, None) if hidden is None else _hidden_row(hidden)
    return made.row if made is not None and made.holds(item, index) else _row(item, index)


def prepare_rows(party: PartyProcessor) -> None:
    """Encode the rows of all changed items, a few per hold of the party's lock."""
    for _ in range(_ROUNDS_MAX):
        party.waited_for = False
        party.let_in.clear()
        with party.locked() as engine:
            if engine.batch_open or not _make_some(engine.cache.dirty, ROWS_BESIDE, engine.saved.index):
                return
        if party.waited_for:  # else this running thread would take the lock again before the waiting one
            party.let_in.wait(REST_S)


def _make_some(dirty: dict[bytes, Entry], count: int, index: Index | None) -> bool:
    """Encode up to `count` missing or invalid rows. True if there are more."""
    for entry in dirty.values():
        item, made = entry.item, entry.cached
        if item is not None and (made is None or not made.holds(item, index)):
            if not count:
                return True
            entry.cached = _made(item, index)
            count -= 1
    return False


def _made(item: ItemState, index: Index | None) -> CachedRow:
    return CachedRow(item, tuple(item.frame.values()), index, _row(item, index))


def _row(item: ItemState, index: Index | None) -> ItemRow:
    facts = b"" if index is None else index.describe(item)
    opaque, guarded = item.model is None, item.access is not None
    record = item_codec.encode(item)
    return ItemRow(item.id, record, item.name, item.version, item.parent, item.is_deleted, opaque, guarded, facts)


def _hidden_row(item: ItemState) -> ItemRow:
    """Return the row of a hidden item: without model and facts, so that nothing lists it."""
    return ItemRow(item.id, item_codec.encode(item), guarded=item.access is not None)


class RowsAhead:
    """Queue of changed items without a cached row."""

    def __init__(self) -> None:
        self._left: deque[Entry] = deque()
        self._seen = 0  # changed items at the last refill of the queue

    def make(self, dirty: dict[bytes, Entry], count: int, index: Index | None) -> None:
        """Encode up to `count` rows."""
        if not self._left and len(dirty) >= self._seen + _MORE:
            self._seen = len(dirty)
            self._left.extend(entry for entry in dirty.values() if entry.cached is None)
        while count and self._left:
            entry = self._left.popleft()
            item = entry.item
            if item is not None and entry.id in dirty:
                entry.cached = _made(item, index)
                count -= 1

    def clear(self) -> None:
        """Empty the queue, after a save."""
        self._left.clear()
        self._seen = 0
