"""The port through which standing queries read items, so that they need neither a party nor a disk."""

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
    """Items in their current state."""

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        """The facts of the items that are here."""

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        """The items that a way leads to from one item, deleted or not."""

    def run(self, query: Query) -> Result:
        """The result of a query."""


class IndexedSource(Source, Protocol):
    """A source that also knows all forks, and which items name which: `ItemIndex`."""

    def all_forks(self) -> list[Fork]:
        """The forks of the party."""

    def namers(self, ends: Iterable[bytes]) -> set[bytes]:
        """The items that name one of these, along any way or by any claim; and those of these that are here."""


class ChangeSource(Source, Protocol):
    """A source whose changes are reported to standing queries."""

    def begin(self) -> None:
        """Called before the first standing query: earlier changes were not reported."""


class MemorySource:
    """A source in memory, for tests and small sets."""

    def __init__(self, items: Iterable[Facts] = ()) -> None:
        self.items = {facts.id: facts for facts in items}

    def begin(self) -> None:
        """Nothing to forget."""

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        return {item: self.items[item] for item in ids if item in self.items}

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        ahead = onward(way, self.items[item]) if item in self.items else ()
        return [*ahead, *(facts.id for facts in self.items.values() if item in backward(way, facts))]

    def run(self, query: Query) -> Result:
        return run(query, self.items.values())


class FrozenSource(MemorySource):
    """Items that do not change, with the edges between them found in one pass."""

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
    """The facts of very many items, in parts."""
    rest = iter(ids)
    while some := list(islice(rest, FACTS_AT_ONCE)):
        yield source.facts(some)
