"""`Party` for event loops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar, Unpack

from antiphon.aio.waiting import until
from antiphon.api import party as api
from antiphon.api.network.replication import FeedReplication, PartyReplication
from antiphon.api.options import QueryArguments
from antiphon.api.query.deltas import Delta
from antiphon.core.keys import PublicKey
from antiphon.mesh.transport.address import Address
from antiphon.query.filters import Filter
from antiphon.query.query import Query

Value = TypeVar("Value")


class Party:
    """A party of a store. `blocking` is the same party with all its methods."""

    def __init__(self, blocking: api.Party) -> None:
        self.blocking = blocking

    def __repr__(self) -> str:
        return repr(self.blocking)

    @property
    def key(self) -> PublicKey:
        """The key that names the party everywhere."""
        return self.blocking.key

    @property
    def replication(self) -> PartyReplication:
        """The state of replication to each connected device."""
        return self.blocking.replication

    async def run(self, act: Callable[[api.Party], Value]) -> Value:
        """Call a function with the party in a thread, and return its result: several writes, a batch, a large query."""
        return await asyncio.to_thread(act, self.blocking)

    async def refresh(self) -> int:
        """Process the messages that have arrived in the feeds. Return how many there were."""
        return await asyncio.to_thread(self.blocking.refresh)

    async def synced(self, with_: Address | bytes | str | None = None, timeout: float | None = None) -> bool:
        """Wait until other devices hold all that is held here; see `antiphon.Party.synced`."""
        return await until(
            self.blocking.store.network, lambda: self.blocking.synced(with_, timeout=0), timeout_s=timeout
        )

    async def subscribe(
        self, query: Query | Filter | None = None, *, values: bool = False, **parts: Unpack[QueryArguments]
    ) -> AsyncIterator[Delta]:
        """Yield the deltas of a query, the first with its whole result. The arguments are those of a query.

        >>> import asyncio
        >>> import antiphon.aio
        >>> async def main() -> None:
        ...     async with await antiphon.aio.open("laptop", unprotected=True) as store:
        ...         party = await store.create_party("Household")
        ...         task = await party.run(lambda party: party.object({"title": "Plan"}, type="task"))
        ...         async for delta in party.subscribe(type="task"):
        ...             print(len(delta.added), "added")
        ...             break
        >>> asyncio.run(main())
        1 added
        """
        subscription = await asyncio.to_thread(lambda: self.blocking.subscribe(query, values=values, **parts))
        try:
            await asyncio.to_thread(lambda: subscription.state)
            async for delta in subscription:
                yield delta
        finally:
            await asyncio.to_thread(subscription.close)

    async def changes(self) -> AsyncIterator[tuple[FeedReplication, ...]]:
        """Yield the state of replication now, and whenever it has changed; see `PartyReplication.subscribe`."""
        loop, states = asyncio.get_running_loop(), asyncio.Queue[Any](1)

        def put(state: tuple[FeedReplication, ...]) -> None:
            if states.full():
                states.get_nowait()  # the latest is enough
            states.put_nowait(state)

        stop = await asyncio.to_thread(
            lambda: self.replication.subscribe(lambda state: loop.call_soon_threadsafe(put, state))
        )
        try:
            while True:
                yield await states.get()
        finally:
            stop()
