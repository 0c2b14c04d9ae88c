"""`ItemCache`: the open items, a bounded LRU cache of item states. Handles hold ids, not states.

Unsaved states are also referenced by `ItemCache.dirty` until they are saved, so the cache never drops them.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from antiphon.model.fold import ItemState
from antiphon.model.message import Note
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.ports import Posting

if TYPE_CHECKING:
    from antiphon.party.engine.row_cache import CachedRow

_new = tuple.__new__  # half the cost of calling the class, per message
CACHE_ITEMS_MAX = 1024


class Entry:
    """An open item. `item` is None if there are messages but no genesis, or if the item is hidden."""

    __slots__ = ("__weakref__", "cached", "id", "item", "orphaned", "postings", "state")

    def __init__(self, item_id: bytes, state: ItemState | None) -> None:
        self.id = item_id
        self.cached: CachedRow | None = None  # its row, if encoded ahead of the next save
        self.put(state)
        self.orphaned = False  # it has messages but no genesis
        self.postings: list[Posting] = []  # since the last save

    def put(self, state: ItemState | None) -> None:
        """Set the state that messages are folded into. A hidden one is not shown as `item`."""
        self.state = state
        self.item = None if state is None or state.hidden else state
        self.orphaned = state is None

    def post(self, number: int, seq: int) -> None:
        """Add a message of lane `number` to the postings."""
        last = self.postings[-1] if self.postings else None
        if last is not None and last.number == number and last.stop == seq:
            self.postings[-1] = Posting(number, last.start, seq + 1)
        else:
            self.postings.append(Posting(number, seq, seq + 1))

    def post_all(self, notes: Iterable[Note], lanes: Mapping[bytes, Lane]) -> None:
        """Add messages to the postings."""
        postings = self.postings
        number, start, stop = postings.pop() if postings else (0, 0, 0)
        feed, now = b"", 0
        for note in notes:
            if note[2] != feed:
                feed = note[2]
                now = lanes[feed].state.number
            if now != number or note[3] != stop:
                if number:
                    postings.append(_new(Posting, (number, start, stop)))
                number, start = now, note[3]
            stop = note[3] + 1
        postings.append(Posting(number, start, stop))


class ItemCache:
    """Entries by id. The `limit` most recently used are kept, and all that are referenced elsewhere."""

    def __init__(self, limit: int = CACHE_ITEMS_MAX) -> None:
        self._limit = limit
        self._held: weakref.WeakValueDictionary[bytes, Entry] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[bytes, Entry] = OrderedDict()
        self.dirty: dict[bytes, Entry] = {}

    def get(self, item_id: bytes) -> Entry | None:
        """Return an open item, as the most recently used; None if it is not open."""
        entry = self._held.get(item_id)
        if entry is not None:
            self._use(entry)
        return entry

    def put(self, entry: Entry) -> Entry:
        """Add an entry as the most recently used, and return it."""
        self._held[entry.id] = entry
        self._use(entry)
        return entry

    def drop(self, item_id: bytes) -> None:
        """Remove an entry, saved or not."""
        self._recent.pop(item_id, None)
        self.dirty.pop(item_id, None)
        self._held.pop(item_id, None)

    def clear(self) -> None:
        """Remove all entries, saved or not."""
        self._recent.clear()
        self.dirty.clear()
        self._held.clear()

    def open(self) -> Iterator[Entry]:
        """Iterate over all entries in memory."""
        return iter(list(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def _use(self, entry: Entry) -> None:
        recent = self._recent
        recent[entry.id] = entry
        recent.move_to_end(entry.id)
        if len(recent) > self._limit:
            recent.popitem(last=False)
