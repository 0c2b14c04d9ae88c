"""`until`: waits in an event loop for what threads of the network do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from antiphon.api.network.network import Network


async def until(network: Network, done: Callable[[], bool], timeout_s: float | None) -> bool:
    """Wait until `done`, which is called in a thread whenever the network has changed. False if the time is up first.

    A network that is closed ends the wait.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed, and the wait with it
            loop.call_soon_threadsafe(changed.set)

    unwatch = await asyncio.to_thread(network.watch, wake)
    try:
        async with asyncio.timeout(timeout_s):
            while not network.is_closed:
                changed.clear()
                if await asyncio.to_thread(done):
                    return True
                await changed.wait()
    except TimeoutError:
        pass
    finally:
        unwatch()
    return False
