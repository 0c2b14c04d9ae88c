"""`NetworkThread`: a thread with an event loop, in which all connections of a node live."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from antiphon.core.errors import StoreClosed

Value = TypeVar("Value")

_LOG = logging.getLogger("antiphon.mesh")
_CLOSED = "the network of this store has been closed; open the store again"


class NetworkThread:
    """Runs functions in its loop. Milliseconds are those of the loop's clock, which never goes back."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(_report)
        self._calls: set[Callable[[], None]] = set()  # what `call` waits for
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()
            for give_up in tuple(self._calls):
                give_up()

    def now_ms(self) -> int:
        """Return the time."""
        return int(self.loop.time() * 1_000)

    def call_at(self, at_ms: int, act: Callable[[], None]) -> asyncio.TimerHandle:
        """Call a function in the loop at a time; only from the loop."""
        return self.loop.call_at((at_ms + 1) / 1_000, act)

    def post(self, act: Callable[[], None]) -> None:
        """Call a function in the loop soon, from any thread. After the end of the thread nothing is called."""
        try:
            self.loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop is closed
            _LOG.debug("mesh.closed: the network thread has ended")

    def call(self, act: Callable[[], Value]) -> Value:
        """Call a function in the loop, and wait for what it returns or raises."""
        if threading.current_thread() is self._thread:
            return act()
        outcome: Future[Value] = Future()

        def run() -> None:
            try:
                outcome.set_result(act())
            except BaseException as error:
                outcome.set_exception(error)

        def give_up() -> None:
            with suppress(InvalidStateError):  # it has run
                outcome.set_exception(StoreClosed(_CLOSED))

        self._calls.add(give_up)
        try:
            try:
                self.loop.call_soon_threadsafe(run)
            except RuntimeError:  # the loop is closed
                give_up()
            return outcome.result()
        finally:
            self._calls.discard(give_up)

    def stop(self, timeout_s: float) -> bool:
        """End the loop, and wait for the thread. False if the time was up first."""
        self.post(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    error = context.get("exception")
    _LOG.error(
        "mesh.network_failed: %s", context.get("message"), exc_info=error if isinstance(error, BaseException) else None
    )
