"""The items of a live party, as its engine has them in memory: what was just written is there before it is on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
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
from antiphon.query.source import FACTS_AT_ONCE, Frozen, Source

_BY_ONE_MAX = 64  # more than these are read from the index, if there is one


class Party(Protocol):
    """What standing queries need of `PartyProcessor`."""

    def locked(self) -> AbstractContextManager[Engine]: ...

    def listen(self, callback: Callable[[frozenset[bytes]], None]) -> Callable[[], None]: ...

    def open_batch(self) -> Batch | None: ...

    def items(self, model: str | None = None) -> list[bytes]: ...


class PartySource:
    """`index` answers what is about all items; without one, all are gone through."""

    def __init__(self, party: Party, index: Source | None = None) -> None:
        self._party = party
        self._index = index
        self._circles: dict[bytes, frozenset[bytes]] = {}  # items whose claims to parents make a circle
        self._frozen: Frozen | None = None
        self._engine: Engine | None = None

    @contextmanager
    def moment(self) -> Iterator[Engine]:
        """The party, locked: ask for nothing outside of this. All items are gone through at most once in it."""
        with self._party.locked() as engine:
            self._engine = engine
            try:
                yield engine
            finally:
                self._engine = self._frozen = None

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        if self._index is not None and len(ids) > _BY_ONE_MAX:
            return self._saved(self._index).facts(ids)
        self._find_circles(ids, {})
        return self._facts(ids)

    def changes(self, ids: Iterable[bytes]) -> Iterator[tuple[list[Facts], list[bytes]]]:
        """Some at a time: the facts of items that changed, and what is gone; then others that hang elsewhere now."""
        told = set(ids)
        told.update(*(self._circles[item] for item in told if item in self._circles))
        for item in told:
            self._circles.pop(item, None)
        more: set[bytes] = set()
        rest = iter(sorted(told))
        while some := list(islice(rest, FACTS_AT_ONCE)):
            found = self.facts(some)
            if len(some) > _BY_ONE_MAX:  # of fewer they were found already
                self._find_circles(some, found)
            more.update(*(self._circles[item] for item in some if item in self._circles))
            yield list(found.values()), [item for item in some if item not in found]
        if more - told:
            yield list(self._facts(more - told).values()), []

    def _facts(self, ids: Iterable[bytes]) -> dict[bytes, Facts]:
        engine = self._now()
        states = {item: state for item in ids if (state := _state(engine, item)) is not None}
        moved = [item for item in states if item in self._circles]
        parents = settle(moved, _claims_of(engine, {})) if moved else {}
        return {item: facts_of(state, parents.get(item, state.parent)) for item, state in states.items()}

    def _find_circles(self, ids: Iterable[bytes], known: Mapping[bytes, Facts]) -> None:
        """Where claims make no circle, the last one holds; in a circle, a claim of one item may move the others."""
        for members in components(ids, _claims_of(self._now(), known)):
            if len(members) > 1:
                self._circles.update(dict.fromkeys(members, frozenset(members)))

    def _now(self) -> Engine:
        assert self._engine is not None, "ask in a moment"
        return self._engine

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        return (self._everything() if self._index is None else self._saved(self._index)).edges(way, item)

    def run(self, query: Query) -> Result:
        return (self._everything() if self._index is None else self._saved(self._index)).run(query)

    def _saved(self, index: Source) -> Source:
        """The index has what is saved, so all that is applied is saved first."""
        self._now().save()
        return index

    def _everything(self) -> Frozen:
        if self._frozen is None:
            ids = self._party.items()
            self._find_circles(ids, {})
            self._frozen = Frozen(self._facts(ids).values())
        return self._frozen


def _claims_of(engine: Engine, known: Mapping[bytes, Facts]) -> Callable[[bytes], Sequence[tuple[Stamp, bytes]]]:
    def claims_of(item: bytes) -> Sequence[tuple[Stamp, bytes]]:
        if item in known:
            return known[item].claims
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
