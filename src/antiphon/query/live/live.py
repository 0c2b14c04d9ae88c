"""`LiveQueries`: subscriptions to queries on a live party. Changes are matched in memory, and reported at once.

>>> import tempfile
>>> from antiphon.query.filters import prop
>>> from antiphon.testing.peers import Peers
>>> with tempfile.TemporaryDirectory() as folder, Peers(folder) as peers:
...     party = peers.add("alice").party
...     live = LiveQueries(party)
...     open_tasks = live.subscribe(Query(prop("done").is_(False)))
...     stop = open_tasks.on(lambda delta: print(len(delta.added), "added,", len(delta.removed), "removed"))
...     task = party.create("antiphon/object")
...     _ = task.edit("set", "done", False)
...     _ = task.edit("set", "done", True)
0 added, 0 removed
1 added, 0 removed
0 added, 1 removed
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from antiphon.core.errors import PartyPaused, StoreError
from antiphon.query.delta import Delta
from antiphon.query.live.matcher import Matcher, StandingQuery
from antiphon.query.live.party_source import Party, PartySource
from antiphon.query.live.port import IndexedSource
from antiphon.query.live.subscription import Resolve, Subscription
from antiphon.query.query import Query
from antiphon.query.validate import check


class LiveQueries:
    """The standing queries of one party. Thread-safe. Close it before the party, so that no iterator waits forever.

    `index` answers queries about all items of the party, as `ItemIndex` does. Without it, each subscription starts by
    reading all items.
    """

    def __init__(self, party: Party, index: IndexedSource | None = None) -> None:
        self._party = party
        self._source = PartySource(party, index)
        self._matcher = Matcher(self._source)
        self._known: dict[StandingQuery, weakref.ref[Subscription[Any]]] = {}
        self._pending: weakref.WeakSet[Subscription[Any]] = weakref.WeakSet()
        # Python may collect a subscription at any moment, also while a lock is held: it is removed later, in `_tidy`.
        self._gone: deque[StandingQuery] = deque()
        self._closed = False
        self._unmatched: set[bytes] = set()  # changed items, noted under the party's lock
        self._leads = 0  # `PartySource.leads` when ids in queries were last resolved
        # Guards pending deltas and results. The party's lock guards the matcher, and is always taken first.
        self.lock = threading.RLock()
        self._stop = party.listen(self._changed, self._note)

    def __len__(self) -> int:
        """The number of standing queries."""
        with self._party.locked(), self.lock:
            self._tidy()
            return len(self._matcher)

    def subscribe(
        self,
        query: Query,
        present: Callable[[Delta], Any] | None = None,
        *,
        resolve: Resolve | None = None,
        values: bool = False,
    ) -> Subscription[Any]:
        """Start a subscription, which lasts while the caller holds it. Inside an open batch it is pending at first.

        `resolve` returns the query with the ids in it replaced by those that they lead to; it is called again when an
        item was forked. With `values`, the values of the items in the result are kept, and are in its deltas.
        """
        check(query)
        subscription = Subscription(self, query, present, resolve=resolve, values=values)
        with self.lock:
            self._pending.add(subscription)
        batch = self._party.open_batch()
        if batch is not None:  # filled when the batch ends, also if it is rolled back and nothing changes
            batch.on_end.append(self._open_pending)
        self.open(subscription)
        return subscription

    def open(self, subscription: Subscription[Any]) -> None:
        """Compute the result of a subscription, unless the caller is in a batch, which may still be rolled back."""
        try:
            if self._closed:
                raise _closed()
            if self._party.open_batch() is None:
                with self._source.moment():
                    self._open(subscription)
        except Exception as error:
            subscription.fail(error)

    def _open(self, subscription: Subscription[Any]) -> None:
        with self.lock:
            self._tidy()
            if subscription not in self._pending:
                return  # another thread was quicker
        matcher = self._matcher
        if subscription.resolve is not None and not len(matcher):
            self._source.begin()  # without standing queries, no forks were reported
        try:
            standing = matcher.subscribe(self._resolved(subscription), values=subscription.with_values)
        except BaseException:
            with self.lock:
                self._pending.discard(
                    subscription
                )  # now: a damaged party is rebuilt when its lock is released, and reports changes
            raise
        with self.lock:
            if matcher is not self._matcher:
                return  # all subscriptions failed meanwhile; this one is still pending
            self._known[standing] = weakref.ref(subscription)
            self._pending.discard(subscription)
            subscription.begin(standing, self._release_of(subscription, standing))

    def _resolved(self, subscription: Subscription[Any]) -> Query:
        resolve = subscription.resolve
        return subscription.query if resolve is None else resolve(self._source.lead)

    def _note(self, items: frozenset[bytes]) -> None:
        """Note changed items, under the party's lock: whoever matches next does so for all that have changed so far.

        So a result is always of one moment, though threads that wrote may come here in another order.
        """
        if self._known:
            self._unmatched |= items

    def _changed(self, items: frozenset[bytes]) -> None:
        failed: list[Subscription[Any]] = []
        try:
            told = self._match(failed) if self._known else []
        except BaseException as error:
            for subscription in failed or self._drop():
                subscription.fail(error if isinstance(error, Exception) else _interrupted())
            if not isinstance(error, Exception):
                raise
            return
        with ExitStack() as rest:  # runs all callbacks, last first, also after a `KeyboardInterrupt` in one
            rest.callback(self._open_pending)  # after the others, which have not seen these changes yet
            for subscription in reversed(told):
                rest.callback(subscription.deliver)

    def _open_pending(self) -> None:
        with self.lock:
            pending = [each for each in self._pending if not each.closed and each.error is None]
        with ExitStack() as rest:
            for subscription in reversed(pending):
                rest.callback(subscription.deliver)
                rest.callback(self.open, subscription)

    def _match(self, failed: list[Subscription[Any]]) -> list[Subscription[Any]]:
        """Return the subscriptions with new deltas; if this raises, `failed` has the subscriptions that fail.

        All changes so far are one update. No result or delta of it is seen before its last part is matched.
        """
        told: dict[Subscription[Any], None] = {}
        with self._source.moment():
            try:
                with self.lock:
                    self._tidy()
                    items, self._unmatched = self._unmatched, set()
                    for facts, gone in self._source.changes(items) if items else ():
                        told.update(dict.fromkeys(self._put(self._matcher.changed(facts, gone))))
                    if self._source.leads != self._leads:
                        told.update(dict.fromkeys(self._resolve_again()))
            except BaseException:
                failed += self._drop()  # here: a damaged party is rebuilt when its lock is released, and reports
                raise
        return list(told)

    def _resolve_again(self) -> Iterator[Subscription[Any]]:
        """Start queries anew that name an item which has been forked, and yield their subscriptions."""
        self._leads = self._source.leads
        for standing, held in list(self._known.items()):
            subscription = held()
            if subscription is None or (query := self._resolved(subscription)) == standing.query:
                continue
            anew = self._matcher.subscribe(query, values=subscription.with_values)
            del self._known[standing]
            self._known[anew] = held
            self._matcher.unsubscribe(standing)
            subscription.put(anew.difference(standing))
            subscription.begin(anew, self._release_of(subscription, anew))
            yield subscription

    def _release_of(self, subscription: Subscription[Any], standing: StandingQuery) -> Callable[[], object]:
        release = weakref.finalize(subscription, self._gone.append, standing)
        release.atexit = False
        return release

    def _put(self, deltas: Mapping[StandingQuery, Delta]) -> Iterator[Subscription[Any]]:
        for standing, delta in deltas.items():
            subscription = self._known[standing]()
            if subscription is not None:
                subscription.put(delta)
                yield subscription

    def _tidy(self) -> None:
        while self._gone:
            standing = self._gone.popleft()
            if self._known.pop(standing, None) is not None:
                self._matcher.unsubscribe(standing)

    def _drop(self) -> list[Subscription[Any]]:
        """Forget all state, which may be half updated; return the subscriptions that there were."""
        with self.lock:
            held = [*(known() for known in self._known.values()), *self._pending]
            self._known.clear()
            self._unmatched.clear()
            self._pending.clear()
            self._matcher = Matcher(self._source)
        return [subscription for subscription in held if subscription is not None]

    def close(self) -> None:
        """Stop. All subscriptions fail with `PartyPaused`, which wakes those who wait for deltas."""
        if not self._closed:
            self._closed = True
            self._stop()
            for subscription in self._drop():
                subscription.fail(_closed())


def _interrupted() -> StoreError:
    return StoreError("the live queries of the party were interrupted and know nothing any more; subscribe again")


def _closed() -> PartyPaused:
    return PartyPaused("the live queries of the party were closed; open it again, and subscribe again")
