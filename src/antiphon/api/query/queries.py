"""The queries of one party: on an index that is stored beside its items, and subscriptions on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from antiphon.api.options import QueryArguments
from antiphon.api.query.arguments import query_from, record_class
from antiphon.api.query.deltas import delta_of
from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.model.fork_chain import lead
from antiphon.model.hierarchy import ClaimsOf, lineage, settle
from antiphon.party.engine.engine import Engine
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts
from antiphon.query.filters import Filter
from antiphon.query.forks import Claims, Fork, fork_of
from antiphon.query.index.index import ItemIndex
from antiphon.query.live.live import LiveQueries
from antiphon.query.live.subscription import Subscription
from antiphon.query.query import Deleted, Query, Way

if TYPE_CHECKING:
    from antiphon.api.party import Party

CLOSURE_MAX = 1_000_000
_FEW = 64  # most items of a batch that are compared one by one


class _Current:
    """The current index, as a source of live queries. A rebuilt item store has a new index object."""

    def __init__(self, index: Callable[[], ItemIndex]) -> None:
        self._index = index

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        return self._index().facts(ids)

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        return self._index().edges(way, item)

    def run(self, query: Query) -> Result:
        return self._index().run(query)

    def all_forks(self) -> list[Fork]:
        return self._index().all_forks()

    def namers(self, ends: Iterable[bytes]) -> set[bytes]:
        return self._index().namers(ends)


class Queries:
    """Runs queries on the index of a party.

    A new party has an index from the start. A party whose items existed before gets one with its first query, and keeps
    it.
    """

    def __init__(self, party: Party) -> None:
        self._party = party
        self._live: LiveQueries | None = None
        self._observed: list[Subscription[Any]] = []  # subscriptions with a callback, which live until they are closed

    def _index(self) -> ItemIndex:
        index = self._party.processor.attach(ItemIndex)
        assert isinstance(index, ItemIndex)
        return index

    def _save(self, engine: Engine) -> None:
        """Save the state that queries read: everything applied; inside a batch, everything before the batch."""
        batch = self._party.processor.open_batch()
        if batch is None:
            engine.save()
        else:
            batch.save_before()

    def run(self, query: Query) -> Result:
        """Run a query. Inside a batch, it finds the items as they were before the batch."""
        with self._party.processor.locked() as engine:
            return self._current(engine).run(query)

    def neighbours(self, item: bytes, way: Way) -> Result:
        """Return the items that a way leads to from an item, or from its fork. Deleted items are left out.

        Inside a batch, it finds the items as they were before the batch.
        """
        with self._party.processor.locked() as engine:
            index = self._current(engine)
            return Result(tuple(index.edges(way, index.forks().lead(item), Deleted.HIDDEN)))

    def aggregate(self, query: Query) -> Any:
        """Return the value of an aggregate query; with groups, a list of pairs (group, value)."""
        if query.aggregate is None:
            raise InvalidInput("an aggregate needs a query that counts or sums: `Query().count()`, `.sum(...)`")
        found = self.run(query)
        return found.value if query.aggregate.group is None else list(found.groups)

    def subscribe(
        self,
        query: Query | Filter | None,
        parts: QueryArguments,
        callback: Callable[[Any], object] | None,
        *,
        values: bool = False,
    ) -> Subscription[Any]:
        """Subscribe to a query; see `Party.subscribe`. Ids in it are resolved again when an item was forked."""
        whole = query_from(query, parts, self._party.key, self.lead)
        present = delta_of(self._party, whole, record_class(parts))
        resolve = partial(query_from, query, parts, self._party.key)
        if callback is not None and not callable(callback):
            raise InvalidInput(f"a subscription calls back with each delta, and {callback!r:.80} cannot be called")
        with self._party.processor.locked():
            if self._live is None:
                self._live = LiveQueries(self._party.processor, _Current(self._index))
            live = self._live
        subscription = live.subscribe(whole, present, resolve=resolve, values=values)
        if callback is not None:
            with self._party.processor.locked():
                self._observed = [known for known in self._observed if not known.closed and known.error is None]
                self._observed.append(subscription)
            subscription.on(callback)
        return subscription

    def parent_of(self, item: bytes) -> bytes:
        """Return the parent of an item, from the claims of all items; inside a batch, with the changes of the batch."""
        with self._party.processor.locked() as engine:
            index = self._current(engine)
            if self._parents_unchanged(engine, index):
                return index.parent(item)
            return settle([item], _claims_of(engine, index)).get(item, b"")

    def above(self, item: bytes) -> list[bytes]:
        """Return the ancestors of an item, the nearest first. All are settled together."""
        with self._party.processor.locked() as engine:
            index = self._current(engine)
            if self._parents_unchanged(engine, index):
                return index.above(item)
            return lineage(item, cache(_claims_of(engine, index)))

    def _parents_unchanged(self, engine: Engine, index: ItemIndex) -> bool:
        """True if the index has all parents: no batch is open, or a small one that moved and forked no item."""
        batch = self._party.processor.open_batch()
        if batch is None:
            return True
        if len(batch) + len(engine.cache.dirty) > _FEW:
            return False
        touched = {item: engine.find(item) for item in {*batch.items, *engine.cache.dirty}}
        return all(
            state is not None and not state.forks and tuple(state.parents) == tuple(index.claims(item))
            for item, state in touched.items()
            if item != SYSTEM_ITEM
        )

    def forked_to(self, item: bytes) -> bytes:
        """Return the id of the item that an item was forked into, if it has arrived; else empty."""
        with self._party.processor.locked() as engine:
            state = engine.find(item)
            return state.forked_to if state is not None and engine.find(state.forked_to) is not None else b""

    def lead(self, item: bytes) -> bytes:
        """Return the item that an id leads to through forks; inside a batch, as it was before the batch."""
        with self._party.processor.locked() as engine:
            return self._current(engine).forks().lead(item)

    def view_key(self, item: bytes) -> bytes:
        """Return the inception key of the view that an item was forked from; empty if there is none.

        Inside a batch, forks of the batch count, too.
        """
        with self._party.processor.locked() as engine:
            batch = self._party.processor.open_batch()
            states = {each: engine.find(each) for each in (() if batch is None else batch.items)}
            forks = {each: None if state is None else fork_of(state) for each, state in states.items()}
            return self._current(engine).forks(forks).view_key(item)

    def _current(self, engine: Engine) -> ItemIndex:
        """Return the index with all applied changes; inside a batch, with those before the batch.

        The item store was checked before. If it was damaged, it is built again, with another engine.
        """
        engine = self._party.processor.sound()
        index = engine.items.index
        self._save(engine)
        return index if isinstance(index, ItemIndex) else self._index()

    def closure(self, item: bytes) -> list[bytes]:
        """Return an item and all items embedded in it or below it, transitively; and the links between them."""
        with self._party.processor.locked() as engine:
            index = self._current(engine)
            item = index.forks().lead(item)
            found = {item}
            fresh = [item]
            while fresh:
                if len(found) > CLOSURE_MAX:
                    raise TooLarge(f"item {item.hex()}: more than {CLOSURE_MAX} items belong to it")
                at = fresh.pop()
                for way in (Way.EMBEDS, Way.CHILDREN):
                    new = [other for other in index.edges(way, at) if other not in found and other != SYSTEM_ITEM]
                    found.update(new)
                    fresh += new
            links = {link for one in list(found) for link in index.edges(Way.LINKS, one)}
            inside = [link for link, facts in index.facts(links).items() if facts.link and facts.link[1] in found]
            return sorted(found | set(inside))

    def close(self) -> None:
        """End all subscriptions."""
        self._observed.clear()
        if self._live is not None:
            self._live.close()
            self._live = None


def _claims_of(engine: Engine, index: ItemIndex) -> ClaimsOf:
    """Return a function that gives the claims of an item to parents, with forks resolved, in an open batch.

    Items in memory count as they are in memory, which includes all changes of the batch. For other items the index is
    read: loading an item takes far longer.
    """
    forks = index.forks()

    def forked_to(item: bytes) -> bytes:
        entry = engine.cache.get(item)
        if entry is None:
            return _here(forks.says(item))
        return b"" if entry.item is None else _here(entry.item.forked_to)

    def _here(said: bytes) -> bytes:
        return said if said and engine.find(said) is not None else b""

    def claims_of(item: bytes) -> Claims:
        entry = engine.cache.get(item)
        if entry is not None and entry.item is None:
            return ()
        claims = index.claims(item) if entry is None or entry.item is None else entry.item.parents
        return [(stamp, lead(parent, forked_to)) for stamp, parent in claims]

    return claims_of
