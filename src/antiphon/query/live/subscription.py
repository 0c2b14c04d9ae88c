"""`Subscription`: a query's result that stays up to date, and who is told how it changes. See `LiveQueries`."""

from __future__ import annotations

import asyncio
import enum
import logging
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from antiphon.core.errors import StoreClosed, StoreError
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result
from antiphon.query.live.matcher import Standing
from antiphon.query.live.pending import Pending
from antiphon.query.query import Query

if TYPE_CHECKING:
    from antiphon.query.live.live import LiveQueries

_LOG = logging.getLogger("antiphon")


class State(enum.Enum):
    """How a subscription stands. Only a ready one has a result: none is shown as empty before."""

    PENDING = "pending"  # made inside a batch, whose changes may still be taken back: ready once that is over
    READY = "ready"
    FAILED = "failed"  # see its error; subscribe again


class _Observer:
    """A callback, and what it has not been told."""

    __slots__ = ("callback", "failed", "pending")

    def __init__(self, callback: Callable[[Delta], object], failed: Callable[[Exception], object] | None) -> None:
        self.callback = callback
        self.failed = failed
        self.pending = Pending()


class Subscription:
    """A standing query on a live party. It ends when it is closed, or when nobody holds it any more.

    Deltas come one at a time and in order, without the party's lock, in the thread that made or received the change.
    Whoever is slow gets one delta for several changes. An observer may write to the party; what that changes is told
    after the delta at hand.
    """

    def __init__(self, live: LiveQueries, query: Query) -> None:
        self.query = query
        self.error: Exception | None = None
        self.closed = False
        self._live = live
        self._standing: Standing | None = None
        self._observers: list[_Observer] = []
        self._iterators: weakref.WeakSet[Deltas] = weakref.WeakSet()
        self._delivering = False
        self._release: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        return f"Subscription({self.query!r}, {self.state.value})"

    @property
    def state(self) -> State:
        if self.error is None and self._standing is None and not self.closed:
            self._live.open(self)
        if self.error is not None:
            return State.FAILED
        return State.PENDING if self._standing is None else State.READY

    @property
    def result(self) -> Result:
        """The result of now. Raises the error of a failed subscription, and `StoreError` while it is pending."""
        state = self.state
        with self._live.lock:
            if self.error is not None:
                raise self.error
            if self.closed:
                raise StoreClosed("the subscription was closed; subscribe again")
            if self._standing is None:
                raise StoreError(f"the subscription is {state.value}: it is ready when the batch here is over")
            return self._standing.result

    # -- observers

    def on(
        self, callback: Callable[[Delta], object], *, failed: Callable[[Exception], object] | None = None
    ) -> Callable[[], None]:
        """Call back with each delta; returns how to stop it. The first has the whole result as added.

        What a callback raises is logged, and keeps nothing from the others. `failed` is told why there will be no more.
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

    def __aiter__(self) -> AsyncIterator[Delta]:
        """The deltas, in an event loop; the first has the whole result as added. It raises the error of a failure."""
        deltas = Deltas(self)
        with self._live.lock:
            self._iterators.add(deltas)
        return deltas

    # -- for `LiveQueries`

    def begin(self, standing: Standing, release: Callable[[], object]) -> None:
        self._standing = standing
        self._release = release

    def put(self, delta: Delta) -> None:
        """With the lock held: note what is to be told."""
        for observer in self._observers:
            observer.pending.put(delta)
        for deltas in list(self._iterators):
            deltas.pending.put(delta)

    def fail(self, error: Exception) -> None:
        if self.error is None and not self.closed:
            self.error = error
            self._release()
            self._tell_failure()

    def deliver(self) -> None:
        """Tell what is to be told, unless some thread is at it: then that one goes on.

        What is no error, a `KeyboardInterrupt` say, ends it when all have been told what was taken for them.
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
        if self.closed or observer not in self._observers:  # an observer before it has ended this
            return
        try:
            observer.callback(delta)
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
        """What an iterator gives next, if there is anything yet."""
        ready = self.state is State.READY
        with self._live.lock:
            if self.error is not None:
                raise self.error
            return pending.take(self._standing) if ready and self._standing is not None else None

    # -- the end

    def close(self) -> None:
        """Tell nobody any more, and let go of what is kept for it."""
        self.closed = True
        self._release()
        self._wake()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Deltas(AsyncIterator[Delta]):
    """The deltas of a subscription for one task. It holds the subscription, and is woken from any thread."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.pending = Pending()

    def wake(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and the task with it
                self._loop.call_soon_threadsafe(self._news.set)

    async def __anext__(self) -> Delta:
        self._loop = asyncio.get_running_loop()
        while not self._subscription.closed:
            self._news.clear()  # before looking, so that what comes meanwhile wakes it
            delta = self._subscription.take(self.pending)
            if delta is not None:
                return delta
            await self._news.wait()
        raise StopAsyncIteration
