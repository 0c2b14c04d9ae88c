"""`Ranking`: all items of a standing query in its order; the first ones, up to the limit, are its result."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import blake2b
from operator import attrgetter
from typing import Any

from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts, Missing
from antiphon.query.live.edges import News
from antiphon.query.live.port import Source, facts_in_parts
from antiphon.query.packed_json import pack
from antiphon.query.query import OrderBy, Query
from antiphon.query.value_order import sort_key

_FINGERPRINT_SIZE = 16
# All of these have an exact repr. Claims are left out: queries see only the parent that follows from them, and there
# may be thousands.
_others = attrgetter(*(name for name in Facts.__slots__ if name not in ("value", "claims")))
_ONE_BY_ONE_MAX = 64  # beyond this many, all items are sorted again

Row = Any  # the sort keys of an item, then its id; without an order only the id


def fingerprint(facts: Facts) -> bytes:
    """A hash of the facts of an item, which changes when any fact changes."""
    packed = f"{pack(facts.value, canonical=True)} {_others(facts)!r}"
    return blake2b(packed.encode(), digest_size=_FINGERPRINT_SIZE).digest()


class _Descending:
    """A sort key that sorts in descending order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.key == other.key

    __hash__ = None  # type: ignore[assignment]


def row_of(order: tuple[OrderBy, ...], facts: Facts) -> Row:
    return (*(_rank(each, facts) for each in order), facts.id) if order else facts.id


def _rank(order: OrderBy, facts: Facts) -> tuple[Any, ...]:
    found = facts.get(order.path)
    if isinstance(found, Missing):
        return (1,)
    return (0, _Descending(sort_key(found)) if order.descending else sort_key(found))


class Ranking:
    """The sorted rows of all items, and a fingerprint of the facts of each.

    Without an order and without steps, items come at first by id alone, without facts and so without a fingerprint. The
    first change reported of such an item counts as a change.
    """

    def __init__(self, query: Query) -> None:
        self._order = query.order
        self._limit = query.limit
        self._blind = not query.order and not query.steps
        self._sorted: list[Row] = []
        self._rows: dict[bytes, Row] = {}
        self._prints: dict[bytes, bytes] = {}

    def __contains__(self, item: object) -> bool:
        return item in self._rows

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def fill(self, ids: Iterable[bytes], source: Source) -> None:
        if self._blind:
            self._rows = {item: item for item in ids}
        else:
            for some in facts_in_parts(source, ids):
                for item, facts in some.items():
                    self._rows[item] = row_of(self._order, facts)
                    self._prints[item] = fingerprint(facts)
        self._sorted = sorted(self._rows.values())

    @property
    def result(self) -> Result:
        return Result(tuple(self._window()))

    def place(self, item: bytes) -> int:
        """The place of an item in the result."""
        return bisect_left(self._sorted, self._rows[item])

    def _window(self) -> list[bytes]:
        rows = self._sorted[: self._limit]
        return [row[-1] for row in rows] if self._order else rows

    def update(self, moved: News, fingerprint: Callable[[Facts], bytes]) -> Delta:
        before = set(moved) & self._rows.keys() if self._limit is None else set(self._window())
        changed = {
            item for item, facts in moved.items() if facts is not None and self._is_news(item, fingerprint(facts))
        }
        self._resort(moved)
        if self._limit is None:
            after = {item for item, facts in moved.items() if facts is not None}
        else:
            after = set(self._window())
        return Delta(self.placed(after - before), self.placed(changed & before & after), frozenset(before - after))

    def placed(self, items: Collection[bytes]) -> dict[bytes, int]:
        """The places of some items in the result, in its order."""
        places = sorted((self.place(item), item) for item in items)
        return {item: place for place, item in places}

    def _is_news(self, item: bytes, now: bytes) -> bool:
        known, self._prints[item] = self._prints.get(item), now
        return known != now

    def _resort(self, moved: News) -> None:
        old = [self._rows.pop(item) for item in moved if item in self._rows]
        new = [row_of(self._order, facts) for facts in moved.values() if facts is not None]
        for item, facts in moved.items():
            if facts is None:
                self._prints.pop(item, None)
        self._rows.update((row[-1] if self._order else row, row) for row in new)
        if len(moved) > _ONE_BY_ONE_MAX:
            self._sorted = sorted(self._rows.values())
            return
        for row in old:
            del self._sorted[bisect_left(self._sorted, row)]
        for row in new:
            insort(self._sorted, row)
