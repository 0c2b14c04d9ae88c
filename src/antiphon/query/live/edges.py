"""Hops: the memory that a standing query keeps for one of its steps, so that a change costs only what it moves.

Exactly one of the two ends of an edge states it. If the start of the step states the edge (a link names its target),
a hop counts how often each item is reached, present or not. If the end of the step states it (a child names its
parent), the facts of the item say whether it is reached, and the hop keeps only items that are reached and pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from antiphon.query.evaluate import backward, onward
from antiphon.query.facts import Facts
from antiphon.query.live.port import Source, facts_in_parts
from antiphon.query.multimap import Multimap
from antiphon.query.query import Query, Way

Owner = TypeVar("Owner", bound=Hashable)
News = Mapping[bytes, Facts | None]  # None: the item is gone

BACKWARD = (Way.CHILDREN, Way.LINKS, Way.BACKLINKS, Way.EMBEDDERS, Way.REFERRERS)


class Interest(Generic[Owner]):
    """The keys that a part of a standing query watches: an item, or a way and an item that others name along it."""

    __slots__ = ("_register", "owner")

    def __init__(self, register: Multimap[Hashable, Interest[Owner]], owner: Owner) -> None:
        self._register = register
        self.owner = owner

    def want(self, key: Hashable) -> None:
        """Watch a key."""
        self._register.add(key, self)

    def drop(self, key: Hashable) -> None:
        """Watch a key no longer."""
        self._register.discard(key, self)


class Hop(Protocol):
    """The step from the items of one stage to those of the next."""

    def begin(self, items: Iterable[bytes], query: Query, source: Source) -> Iterable[bytes]:
        """Start with the items of the stage before; return those that may be at the next. `query` ends here."""

    def follow(self, moved: News, news: News, source: Source) -> set[bytes]:
        """Take items that entered, changed or left the stage before; return those that may do so at the next."""

    def reaches(self, item: bytes, facts: Facts) -> bool:
        """True if the step leads to an item."""

    def settle(self, item: bytes, facts: Facts | None) -> None:
        """Record that an item is at the next stage, with these facts; with None, that it is not."""

    def release(self) -> None:
        """Drop all interests."""


class ForwardHop(Generic[Owner]):
    """A hop along edges that the start of the step states."""

    def __init__(self, way: Way, interest: Interest[Owner]) -> None:
        self._way = way
        self._interest = interest
        self._out: dict[bytes, tuple[bytes, ...]] = {}
        self._support: dict[bytes, int] = {}

    def begin(self, items: Iterable[bytes], query: Query, source: Source) -> Iterable[bytes]:
        for some in facts_in_parts(source, items):
            self.follow(some, {}, source)
        return list(self._support)

    def follow(self, moved: News, news: News, source: Source) -> set[bytes]:
        touched = {item for item in news if item in self._support}
        for item, facts in moved.items():
            old = set(self._out.pop(item, ()))
            new = set(onward(self._way, facts)) if facts is not None else set()
            if new:
                self._out[item] = tuple(new)
            touched.update(end for end in new - old if self._count(end, 1) == 1)
            touched.update(end for end in old - new if self._count(end, -1) == 0)
        return touched

    def _count(self, item: bytes, by: int) -> int:
        count = self._support.get(item, 0) + by
        if count:
            self._support[item] = count
            self._interest.want(item)
        else:
            del self._support[item]
            self._interest.drop(item)
        return count

    def reaches(self, item: bytes, facts: Facts) -> bool:
        return item in self._support

    def settle(self, item: bytes, facts: Facts | None) -> None:
        pass  # it is reached, whether it passes or not

    def release(self) -> None:
        for item in self._support:
            self._interest.drop(item)


class BackwardHop(Generic[Owner]):
    """A hop along edges that the end of the step states."""

    def __init__(self, way: Way, interest: Interest[Owner]) -> None:
        self._way = way
        self._interest = interest
        self._before: set[bytes] = set()  # the items at the stage before
        self._out: dict[bytes, set[bytes]] = {}  # the items at the next stage that each of them leads to
        self._into: dict[bytes, tuple[bytes, ...]] = {}

    def begin(self, items: Iterable[bytes], query: Query, source: Source) -> Iterable[bytes]:
        for item in items:
            self._enter(item)
        return source.run(query).ids

    def follow(self, moved: News, news: News, source: Source) -> set[bytes]:
        touched: set[bytes] = set()
        for item, facts in moved.items():
            if facts is None:
                touched.update(self._leave(item))
            elif item not in self._before:
                self._enter(item)
                touched.update(source.edges(self._way, item))
        for item, facts in news.items():
            if item in self._into or (facts is not None and self.reaches(item, facts)):
                touched.add(item)
        return touched

    def _enter(self, item: bytes) -> None:
        self._before.add(item)
        self._interest.want((self._way, item))

    def _leave(self, item: bytes) -> Iterator[bytes]:
        self._before.discard(item)
        self._interest.drop((self._way, item))
        for end in self._out.pop(item, ()):
            self._into[end] = tuple(other for other in self._into[end] if other != item)
            if not self._into[end]:
                yield end

    def reaches(self, item: bytes, facts: Facts) -> bool:
        return any(end in self._before for end in backward(self._way, facts))

    def settle(self, item: bytes, facts: Facts | None) -> None:
        old = self._into.pop(item, ())
        new = () if facts is None else tuple(end for end in backward(self._way, facts) if end in self._before)
        for end in old:
            if end not in new:
                self._forget(end, item)
        for end in new:
            self._out.setdefault(end, set()).add(item)
        if new:
            self._into[item] = new
            self._interest.want(item)
        else:
            self._interest.drop(item)

    def _forget(self, item: bytes, end: bytes) -> None:
        known = self._out[item]
        known.discard(end)
        if not known:
            del self._out[item]

    def release(self) -> None:
        for item in self._before:
            self._interest.drop((self._way, item))
        for item in self._into:
            self._interest.drop(item)
