"""`PartySource`: the items of a live party as its engine has them in memory, before they are on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Protocol
from weakref import ref

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.model.hierarchy import ClaimsOf
from antiphon.party.engine.engine import Engine
from antiphon.party.live.batch import Batch
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts, facts_of
from antiphon.query.forks import Fork, KnownForks, fork_of
from antiphon.query.live.cycles import Claims, ParentCycles
from antiphon.query.live.port import FACTS_AT_ONCE, FrozenSource, IndexedSource
from antiphon.query.query import Query, Way

_BY_ONE_MAX = 64  # beyond this many, items are read from the index, if there is one


class Party(Protocol):
    """The part of `PartyProcessor` that standing queries use."""

    def locked(self) -> AbstractContextManager[Engine]: ...

    def listen(
        self,
        callback: Callable[[frozenset[bytes]], None],
        note: Callable[[frozenset[bytes]], None] | None = None,
    ) -> Callable[[], None]: ...

    def open_batch(self) -> Batch | None: ...

    def items(self, model: str | None = None) -> list[bytes]: ...


class PartySource:
    """The items of one party. `index` answers queries about all items; without it, every item is read."""

    def __init__(self, party: Party, index: IndexedSource | None = None) -> None:
        self._party = party
        self._index = index
        self.cycles = ParentCycles()
        self._forks: KnownForks | None = None  # None: not read yet
        self._moved: set[bytes] = set()  # items with a new parent that were not reported yet
        self.leads = 0  # how often an id has come to lead to another item
        self._frozen: FrozenSource | None = None
        self._engine: Engine | None = None
        self._last: ref[Engine] | None = None

    def begin(self) -> None:
        """Forget everything: without standing queries no changes were reported, so the memory may be stale."""
        self.cycles = ParentCycles()
        self._forks = KnownForks(self._all_forks())
        self._moved.clear()

    @contextmanager
    def moment(self) -> Iterator[Engine]:
        """Lock the party; all other methods work only inside. Without an index, all items are read at most once."""
        with self._party.locked() as engine:
            self._engine = engine
            if self._last is None or self._last() is not engine:
                self._last = ref(engine)
                self._forks = None
                self.leads += 1
                self.cycles.trim(0)
            try:
                yield engine
            finally:
                self._engine = self._frozen = None

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        if self._index is not None and len(ids) > _BY_ONE_MAX:
            return self._saved(self._index).facts(ids)
        return self._facts(ids, told=False)

    def changes(self, ids: Iterable[bytes]) -> Iterator[tuple[list[Facts], list[bytes]]]:
        """Yield, in parts, the facts of changed items and the ids of removed ones; then items that moved with them."""
        self.cycles.trim()
        told = set(ids)
        yield from self._told(told | self._led_elsewhere(told))
        moved, self._moved = self._moved, set()
        yield from self._told(moved)

    def _told(self, ids: Iterable[bytes]) -> Iterator[tuple[list[Facts], list[bytes]]]:
        rest = iter(sorted(ids))
        while some := list(islice(rest, FACTS_AT_ONCE)):
            if self._index is not None and len(some) > _BY_ONE_MAX:
                found = self._saved(self._index).facts(some)
                self._look(some, self._claims_of({item: facts.claims for item, facts in found.items()}), told=True)
            else:
                found = self._facts(some, told=True)
            self._moved.difference_update(some)  # a later part may move them again
            yield list(found.values()), [item for item in some if item not in found]

    def _facts(self, ids: Collection[bytes], *, told: bool) -> Mapping[bytes, Facts]:
        engine = self._now()
        states = {item: engine.find(item) for item in ids if item != SYSTEM_ITEM}  # queries do not find the system item
        claims = {item: () if state is None else state.parents for item, state in states.items()}
        self._look(ids, self._claims_of(claims), told=told)
        forks, cycles = self._known_forks(), self.cycles
        return {
            item: forks.led(facts_of(state, cycles.parent(item, forks.lead(state.parent) if forks else state.parent)))
            for item, state in states.items()
            if state is not None
        }

    def _claims_of(self, known: Mapping[bytes, Claims]) -> ClaimsOf:
        """Claims with forks resolved: those just read, and for other items the claims in the engine."""
        engine, forks = self._now(), self._known_forks()
        return lambda item: forks.led_claims(known[item] if item in known else engine.claims(item))

    def lead(self, item: bytes) -> bytes:
        """Return the item that an id leads to, through forks."""
        return self._known_forks().lead(item)

    def _known_forks(self) -> KnownForks:
        if self._forks is None:
            self._forks = KnownForks(self._all_forks())
        return self._forks

    def _all_forks(self) -> list[Fork]:
        if self._index is not None:
            return self._saved(self._index).all_forks()
        states = [state for item in self._party.items() if (state := self._now().find(item)) and state.forked_to]
        return [fork_of(state)._replace(here=self._now().find(state.forked_to) is not None) for state in states]

    def _led_elsewhere(self, told: set[bytes]) -> set[bytes]:
        """Items that name an item which resolves to another one since these changes; they count as changed too."""
        forks = self._known_forks()
        if self._index is not None and len(told) > _BY_ONE_MAX:
            said = {fork.old: fork for fork in self._all_forks()}
            news = [fork for fork in said.values() if fork != forks.get(fork.old)]
            news += [Fork(old, b"") for old in forks if old not in said]
        else:
            news = [fork for item in told for fork in self._said_of_forks(item)]
        ends = forks.update(news) if news else set()
        if not ends:
            return set()
        self.leads += 1
        return set(self._party.items()) if self._index is None else self._saved(self._index).namers(ends)

    def _said_of_forks(self, item: bytes) -> Iterator[Fork]:
        """Changed forks because of one item: its own fork, and forks into it if it has come or gone."""
        forks, engine = self._known_forks(), self._now()
        state = engine.find(item)
        said = b"" if state is None else state.forked_to
        if state is not None and said:
            yield fork_of(state)._replace(here=engine.find(said) is not None)
        elif item in forks:
            yield Fork(item, b"")
        for old in list(forks.before(item)):
            fork = forks.get(old)
            if fork is not None and fork.here is not (state is not None):
                yield fork._replace(here=state is not None)

    def _look(self, ids: Iterable[bytes], claims_of: ClaimsOf, *, told: bool) -> None:
        self._moved |= self.cycles.look(ids, claims_of, told=told)

    def _now(self) -> Engine:
        assert self._engine is not None, "ask in a moment"
        return self._engine

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        return (self._everything() if self._index is None else self._saved(self._index)).edges(way, item)

    def run(self, query: Query) -> Result:
        return (self._everything() if self._index is None else self._saved(self._index)).run(query)

    def _saved(self, index: IndexedSource) -> IndexedSource:
        """The index, after saving all that is applied: it has only saved items."""
        self._now().save()
        return index

    def _everything(self) -> FrozenSource:
        if self._frozen is None:
            self._frozen = FrozenSource(self._facts(self._party.items(), told=False).values())
        return self._frozen
