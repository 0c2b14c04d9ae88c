"""The items of a live party, as its engine has them in memory: what was just written is there before it is on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from antiphon.core.errors import UnknownItem
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.model.itemstate import ItemState
from antiphon.model.tree import components, settle
from antiphon.party.batch import Batch
from antiphon.party.engine import Engine
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts, facts_of
from antiphon.query.query import Query, Way
from antiphon.query.source import EveryItem, Source

_BY_ONE_MAX = 64  # more than these are read from the index, if there is one


class Party(Protocol):
    """What standing queries need of `PartyProcessor`."""

    def locked(self) -> AbstractContextManager[Engine]: ...

    def listen(self, callback: Callable[[frozenset[bytes]], None]) -> Callable[[], None]: ...

    def open_batch(self) -> Batch | None: ...

    def items(self, model: str | None = None) -> list[bytes]: ...


class PartySource:
    """Call it while the party is locked. `index` answers what is about all items; without one, all are gone through."""

    def __init__(self, party: Party, index: Source | None = None) -> None:
        self._party = party
        self._index = index
        self._circles: dict[bytes, frozenset[bytes]] = {}  # items whose claims to parents make a circle

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        if self._index is not None and len(ids) > _BY_ONE_MAX:
            return self._saved(self._index).facts(ids)
        self._find_circles(set(ids))
        return self._facts(ids)

    def changes(self, ids: Iterable[bytes]) -> tuple[list[Facts], list[bytes]]:
        """The facts of items that changed, and of those that hang elsewhere because of it; and what is gone."""
        touched = set(ids)
        touched.update(*(self._circles[item] for item in touched if item in self._circles))
        for item in touched:
            self._circles.pop(item, None)
        self._find_circles(touched)
        touched.update(*(self._circles[item] for item in touched if item in self._circles))
        found = self._facts(touched)
        return list(found.values()), [item for item in touched if item not in found]

    def _facts(self, ids: Iterable[bytes]) -> dict[bytes, Facts]:
        with self._party.locked() as engine:
            states = {item: state for item in ids if (state := _state(engine, item)) is not None}
            moved = [item for item in states if item in self._circles]
            parents = settle(moved, _claims_of(engine)) if moved else {}
            return {item: facts_of(state, parents.get(item, state.parent)) for item, state in states.items()}

    def _find_circles(self, ids: set[bytes]) -> None:
        """Where claims make no circle, the last one holds; in a circle, a claim of one item may move the others."""
        with self._party.locked() as engine:
            for members in components(ids, _claims_of(engine)):
                if len(members) > 1:
                    self._circles.update(dict.fromkeys(members, frozenset(members)))

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        return (self._everything() if self._index is None else self._saved(self._index)).edges(way, item)

    def run(self, query: Query) -> Result:
        return (self._everything() if self._index is None else self._saved(self._index)).run(query)

    def _saved(self, index: Source) -> Source:
        """The index has what is saved, so all that is applied is saved first."""
        with self._party.locked() as engine:
            engine.save()
        return index

    def _everything(self) -> EveryItem:
        ids = self._party.items()
        self._find_circles(set(ids))
        return EveryItem(self._facts(ids).values())


def _claims_of(engine: Engine) -> Callable[[bytes], Sequence[tuple[Stamp, bytes]]]:
    def claims_of(item: bytes) -> Sequence[tuple[Stamp, bytes]]:
        state = _state(engine, item)
        return () if state is None else state.parents

    return claims_of


def _state(engine: Engine, item: bytes) -> ItemState | None:
    if item == SYSTEM_ITEM:  # the system's own: queries find none of it
        return None
    try:
        return engine.entry(item).item
    except UnknownItem:
        return None
