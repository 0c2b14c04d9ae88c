"""`LiveQueries`: subscriptions to queries on a live party. What changes is matched in memory, and told at once.

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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from antiphon.core.errors import PartyPaused, StoreError
from antiphon.query.delta import Delta
from antiphon.query.live.matcher import Matcher, Standing
from antiphon.query.live.party_source import Party, PartySource
from antiphon.query.live.port import Kept
from antiphon.query.live.subscription import Subscription
from antiphon.query.query import Query
from antiphon.query.validate import check


class LiveQueries:
    """The standing queries of one party. Thread-safe. Close it before the party, so that nobody waits in vain.

    `index` answers queries about all items of the party, as `ItemIndex` does; without one, each subscription begins by
    going through all of them.
    """

    def __init__(self, party: Party, index: Kept | None = None) -> None:
        self._party = party
        self._source = PartySource(party, index)
        self._matcher = Matcher(self._source)
        self._known: dict[Standing, weakref.ref[Subscription]] = {}
        self._pending: weakref.WeakSet[Subscription] = weakref.WeakSet()
        # Subscriptions are collected at any moment, also while a lock is held: what they leave is tidied up later.
        self._gone: deque[Standing] = deque()
        self._closed = False
        # What observers are to be told, and results. The matcher itself is guarded by the party's lock, which is always
        # taken first.
        self.lock = threading.RLock()
        self._stop = party.listen(self._changed)

    def __len__(self) -> int:
        """How many queries stand."""
        with self._party.locked(), self.lock:
            self._tidy()
            return len(self._matcher)

    def subscribe(self, query: Query) -> Subscription:
        """A subscription; hold it as long as it is to last. It is ready, or failed, unless a batch is open here."""
        check(query)
        subscription = Subscription(self, query)
        with self.lock:
            self._pending.add(subscription)
        batch = self._party.open_batch()
        if batch is not None:  # it is filled when the batch is over, also if that is taken back and nothing changes
            batch.on_end.append(self._open_pending)
        self.open(subscription)
        return subscription

    def open(self, subscription: Subscription) -> None:
        """Fill a subscription, unless the caller is in a batch, whose changes may still be taken back."""
        try:
            if self._closed:
                raise _closed()
            if self._party.open_batch() is None:
                with self._source.moment():
                    self._open(subscription)
        except Exception as error:
            subscription.fail(error)

    def _open(self, subscription: Subscription) -> None:
        with self.lock:
            self._tidy()
            if subscription not in self._pending:
                return  # another thread was quicker
        matcher = self._matcher
        try:
            standing = matcher.subscribe(subscription.query)
        except BaseException:
            with self.lock:
                self._pending.discard(
                    subscription
                )  # now: a damaged party is built anew when its lock is left, and tells
            raise
        with self.lock:
            if matcher is not self._matcher:
                return  # all failed meanwhile; it is still to be filled
            release = weakref.finalize(subscription, self._gone.append, standing)
            release.atexit = False
            self._known[standing] = weakref.ref(subscription)
            self._pending.discard(subscription)
            subscription.begin(standing, release)

    def _changed(self, items: frozenset[bytes]) -> None:
        failed: list[Subscription] = []
        try:
            told = self._match(items, failed) if self._known else []
        except BaseException as error:
            for subscription in failed or self._drop():
                subscription.fail(error if isinstance(error, Exception) else _interrupted())
            if not isinstance(error, Exception):
                raise
            return
        with ExitStack() as rest:  # calls the last first, and all of them, also after a `KeyboardInterrupt` of one
            rest.callback(self._open_pending)  # after the others, which have not seen these items as they are now
            for subscription in reversed(told):
                rest.callback(subscription.deliver)

    def _open_pending(self) -> None:
        with self.lock:
            pending = [each for each in self._pending if not each.closed and each.error is None]
        with ExitStack() as rest:
            for subscription in reversed(pending):
                rest.callback(subscription.deliver)
                rest.callback(self.open, subscription)

    def _match(self, items: frozenset[bytes], failed: list[Subscription]) -> list[Subscription]:
        """Which subscriptions have something to tell now; if it raises, which of them fail of that."""
        told: dict[Subscription, None] = {}
        with self._source.moment():
            try:
                with self.lock:
                    self._tidy()
                for facts, gone in self._source.changes(items):
                    with self.lock:
                        told.update(dict.fromkeys(self._put(self._matcher.changed(facts, gone))))
            except BaseException:
                failed += self._drop()  # here: a damaged party is built anew when its lock is left, and tells
                raise
        return list(told)

    def _put(self, deltas: Mapping[Standing, Delta]) -> Iterator[Subscription]:
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

    def _drop(self) -> list[Subscription]:
        """What is kept may be half of the old and half of the new: begin with nothing. Returns who had subscribed."""
        with self.lock:
            held = [*(known() for known in self._known.values()), *self._pending]
            self._known.clear()
            self._pending.clear()
            self._matcher = Matcher(self._source)
        return [subscription for subscription in held if subscription is not None]

    def close(self) -> None:
        """Stop. All subscriptions fail with `PartyPaused`, so that those who wait for deltas learn of it."""
        if not self._closed:
            self._closed = True
            self._stop()
            for subscription in self._drop():
                subscription.fail(_closed())


def _interrupted() -> StoreError:
    return StoreError("the live queries of the party were interrupted and know nothing any more; subscribe again")


def _closed() -> PartyPaused:
    return PartyPaused("the live queries of the party were closed; open it again, and subscribe again")
