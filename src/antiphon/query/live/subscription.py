"""`Subscription`: the result of a query, kept up to date, and the observers of its changes. See `LiveQueries`."""

from __future__ import annotations

import asyncio
import enum
import logging
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

from antiphon.core.errors import StoreClosed, StoreError
from antiphon.core.generics import TypeVar
from antiphon.model.value import Value
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result
from antiphon.query.live.matcher import StandingQuery
from antiphon.query.live.pending import Pending
from antiphon.query.query import Query

if TYPE_CHECKING:
    from antiphon.query.live.live import LiveQueries

Change = TypeVar("Change", default=Delta)
Lead = Callable[[bytes], bytes]  # returns the item that an id leads to, through forks
Resolve = Callable[[Lead], Query]  # returns a query with the ids in it resolved
_LOG = logging.getLogger("antiphon")


class State(enum.Enum):
    """The state of a subscription. Only a ready one has a result; a pending one is not shown as empty."""

    PENDING = "pending"  # made inside a batch, which may still be rolled back: ready when the batch ends
    READY = "ready"
    FAILED = "failed"  # see its error; subscribe again


class _Observer:
    """A callback, and the delta that it has not received yet."""

    __slots__ = ("callback", "failed", "pending")

    def __init__(self, callback: Callable[[Any], object], failed: Callable[[Exception], object] | None) -> None:
        self.callback = callback
        self.failed = failed
        self.pending = Pending()


class Subscription(Generic[Change]):
    """A standing query on a live party. It ends when it is closed, or when it is no longer referenced.

    Deltas come one at a time and in order, without the party's lock, in the thread that made or received the change.
    A slow observer gets one delta for several changes. An observer may write to the party; the changes are delivered
    after the current delta.
    """

    def __init__(
        self,
        live: LiveQueries,
        query: Query,
        present: Callable[[Delta], Any] | None = None,
        *,
        resolve: Resolve | None = None,
        values: bool = False,
    ) -> None:
        self.query = query
        self.resolve = resolve
        self.with_values = values
        self.present = present or (lambda delta: delta)  # what observers get of a delta
        self.error: Exception | None = None
        self.closed = False
        self._live = live
        self._standing: StandingQuery | None = None
        self._observers: list[_Observer] = []
        self._iterators: weakref.WeakSet[Deltas] = weakref.WeakSet()
        self._delivering = False
        self._release: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        return f"Subscription({self.query!r}, {self.state.value})"

    @property
    def state(self) -> State:
        """Pending, ready or failed."""
        if self.error is None and self._standing is None and not self.closed:
            self._live.open(self)
        if self.error is not None:
            return State.FAILED
        return State.PENDING if self._standing is None else State.READY

    @property
    def result(self) -> Result:
        """The current result. Raises the error of a failed subscription, and `StoreError` while it is pending."""
        state = self.state
        with self._live.lock:
            if self.error is not None:
                raise self.error
            if self.closed:
                raise StoreClosed("the subscription was closed; subscribe again")
            if self._standing is None:
                raise StoreError(f"the subscription is {state.value}: it is ready when the batch here is over")
            return self._standing.result

    @property
    def values(self) -> dict[bytes, Value]:
        """The values of the items in the result, by id, in its order. Only a subscription with values keeps them."""
        if self.state is not State.READY:
            return {}
        with self._live.lock:
            return {} if self._standing is None else self._standing.values(self._standing.result.ids)

    # -- observers

    def on(
        self, callback: Callable[[Change], object], *, failed: Callable[[Exception], object] | None = None
    ) -> Callable[[], None]:
        """Call `callback` with each delta; return a function that stops it. The first delta adds the whole result.

        An exception in a callback is logged, and does not affect the others. `failed` gets the error that ends the
        subscription.
        """
        observer = _Observer(callback, failed)
        with self._live.lock:
            self._observers.append(observer)
        if self.state is State.FAILED:
            self._tell_failure()
        self.deliver()

        def stop() -> None:
            with self._live.lock:
                if observer in self._observers:
                    self._observers.remove(observer)

        return stop

    def __aiter__(self) -> AsyncIterator[Change]:
        """Iterate over the deltas in an event loop. The first adds the whole result. Raises the error of a failure."""
        deltas = Deltas(self)
        with self._live.lock:
            self._iterators.add(deltas)
        return deltas

    # -- for `LiveQueries`

    def begin(self, standing: StandingQuery, release: Callable[[], object]) -> None:
        """Make the subscription ready, or let it go on with another standing query."""
        self._standing = standing
        self._release = release

    def put(self, delta: Delta) -> None:
        """Add a delta to those pending for each observer. The caller holds the lock."""
        for observer in self._observers:
            observer.pending.put(delta)
        for deltas in list(self._iterators):
            deltas.pending.put(delta)

    def fail(self, error: Exception) -> None:
        """End the subscription with an error."""
        if self.error is None and not self.closed:
            self.error = error
            self._release()
            self._tell_failure()

    def deliver(self) -> None:
        """Call the observers with their pending deltas, unless another thread is doing so: then that thread continues.

        A `KeyboardInterrupt`, or another that is no `Exception`, is raised after all observers got their deltas.
        """
        self._wake()
        stopped: BaseException | None = None
        while stopped is None:
            with self._live.lock:
                told = [] if self._delivering else self._next()
                if not told:
                    return
                self._delivering = True
            for observer, delta in told:
                try:
                    self._call(observer, delta)
                except BaseException as error:
                    stopped = stopped or error
            self._delivering = False
        raise stopped

    def _next(self) -> list[tuple[_Observer, Delta]]:
        if self.closed or self.error is not None or self._standing is None:
            return []
        found = [(observer, observer.pending.take(self._standing)) for observer in self._observers]
        return [(observer, delta) for observer, delta in found if delta is not None]

    def _call(self, observer: _Observer, delta: Delta) -> None:
        if self.closed or observer not in self._observers:  # an earlier observer has ended it
            return
        try:
            observer.callback(self.present(delta))
        except Exception:
            _LOG.exception("an observer of a query failed")

    def _tell_failure(self) -> None:
        assert self.error is not None
        with self._live.lock:
            observers, self._observers = self._observers, []
        for observer in observers:
            try:
                if observer.failed is not None:
                    observer.failed(self.error)
            except Exception:
                _LOG.exception("an observer of a query failed")
        self._wake()

    def _wake(self) -> None:
        with self._live.lock:
            iterators = list(self._iterators)
        for deltas in iterators:
            deltas.wake()

    def take(self, pending: Pending) -> Delta | None:
        """The next delta of an iterator; None if there is none yet."""
        ready = self.state is State.READY
        with self._live.lock:
            if self.error is not None:
                raise self.error
            return pending.take(self._standing) if ready and self._standing is not None else None

    # -- the end

    def close(self) -> None:
        """End the subscription and free its memory."""
        self.closed = True
        self._release()
        self._wake()

    def __enter__(self) -> Subscription[Change]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Deltas(AsyncIterator[Any]):
    """The deltas of a subscription for one task. It keeps the subscription alive; any thread may wake it."""

    def __init__(self, subscription: Subscription[Any]) -> None:
        self._subscription = subscription
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.pending = Pending()

    def wake(self) -> None:
        """Let the waiting task look for a delta."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and the task with it
                self._loop.call_soon_threadsafe(self._news.set)

    async def __anext__(self) -> Any:
        self._loop = asyncio.get_running_loop()
        while not self._subscription.closed:
            self._news.clear()  # before the check, so that a delta in between wakes it
            delta = self._subscription.take(self.pending)
            if delta is not None:
                return self._subscription.present(delta)
            await self._news.wait()
        raise StopAsyncIteration
