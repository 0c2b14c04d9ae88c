"""Where standing queries get items from: a port, so that they need neither a party nor a disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Protocol

from antiphon.query.evaluate import Result, backward, onward, run
from antiphon.query.facts import Facts
from antiphon.query.forks import Fork
from antiphon.query.query import Query, Way

FACTS_AT_ONCE = 1000


class Source(Protocol):
    """The items as they are now."""

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        """Of those that are here."""

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        """Where a way leads to from an item, deleted or not."""

    def run(self, query: Query) -> Result: ...


class Kept(Source, Protocol):
    """A source that keeps more than facts: `ItemIndex`."""

    def all_forks(self) -> list[Fork]: ...

    def namers(self, ends: Iterable[bytes]) -> set[bytes]:
        """The items here that lead to one of some, in any way or by any claim; and these."""


class Followed(Source, Protocol):
    """A source on which queries stand: whoever changes it tells them."""

    def begin(self) -> None:
        """No query stands yet, so nothing was told."""


class EveryItem:
    """A source in memory: all items by their ids."""

    def __init__(self, items: Iterable[Facts] = ()) -> None:
        self.items = {facts.id: facts for facts in items}

    def begin(self) -> None:
        """It remembers nothing."""

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        return {item: self.items[item] for item in ids if item in self.items}

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        ahead = onward(way, self.items[item]) if item in self.items else ()
        return [*ahead, *(facts.id for facts in self.items.values() if item in backward(way, facts))]

    def run(self, query: Query) -> Result:
        return run(query, self.items.values())


class Frozen(EveryItem):
    """All items as they are at one moment; where ways lead to is found by going through them once."""

    def __init__(self, items: Iterable[Facts]) -> None:
        super().__init__(items)
        self._back: dict[tuple[Way, bytes], list[bytes]] = {}
        for facts in self.items.values():
            for way in Way:
                for end in backward(way, facts):
                    self._back.setdefault((way, end), []).append(facts.id)

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        ahead = onward(way, self.items[item]) if item in self.items else ()
        return [*ahead, *self._back.get((way, item), ())]


def facts_in_parts(source: Source, ids: Iterable[bytes]) -> Iterator[Mapping[bytes, Facts]]:
    """The facts of very many items, some at a time."""
    rest = iter(ids)
    while some := list(islice(rest, FACTS_AT_ONCE)):
        yield source.facts(some)
