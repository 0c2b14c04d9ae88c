"""`Store` for event loops, and what opens and synchronises stores."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any

from antiphon.aio.party import Party
from antiphon.aio.waiting import until
from antiphon.api import party as api_party, store as api
from antiphon.api.invitation import Invitation
from antiphon.api.network.network import need_address
from antiphon.api.network.peers import StorePeer
from antiphon.api.sync import sync as api_sync
from antiphon.mesh.node.peer import PeerState
from antiphon.mesh.transport.address import Address


class Store:
    """The home of one device. `blocking` is the same store with all its methods. Use it in `async with`."""

    def __init__(self, blocking: api.Store) -> None:
        self.blocking = blocking

    def __repr__(self) -> str:
        return repr(self.blocking)

    async def listen(self, host: str = "127.0.0.1", port: int = 0) -> Address:
        """Let other devices connect to this one; see `antiphon.Store.listen`."""
        return await asyncio.to_thread(self.blocking.listen, host, port)

    async def connect(self, address: Address | str, timeout: float | None = 10.0) -> bool:
        """Connect to a device, and keep it connected; see `antiphon.Store.connect`."""
        whole = need_address(address)

        def connected() -> bool:
            return any(
                peer.device == whole.device and peer.state is PeerState.CONNECTED for peer in self.blocking.peers
            )

        return await asyncio.to_thread(self.blocking.connect, whole, 0.0) or await until(
            self.blocking.network, connected, timeout
        )

    async def disconnect(self, who: Address | bytes | str) -> bool:
        """End the connections to a device or identity; see `antiphon.Store.disconnect`."""
        return await asyncio.to_thread(self.blocking.disconnect, who)

    async def peers(self) -> tuple[StorePeer, ...]:
        """Return the devices that are connected, and those that are dialled."""
        return await asyncio.to_thread(lambda: self.blocking.peers)

    async def create_party(self, name: str = "", *, parent: Party | None = None) -> Party:
        """Create a party; see `antiphon.Store.create_party`."""
        above = None if parent is None else parent.blocking
        return Party(await asyncio.to_thread(lambda: self.blocking.create_party(name, parent=above)))

    async def join(self, invitation: Invitation | bytes | str) -> None:
        """Join a party; see `antiphon.Store.join`."""
        await asyncio.to_thread(self.blocking.join, invitation)

    async def party(self, which: bytes | str) -> Party:
        """Return a party; see `antiphon.Store.party`."""
        found: api_party.Party = await asyncio.to_thread(self.blocking.party, which)
        return Party(found)

    async def close(self) -> None:
        """Save and close the store and its parties, and end its connections."""
        await asyncio.to_thread(self.blocking.close)

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


async def open(path: str | Path, **options: Any) -> Store:  # noqa: A001 - read as `antiphon.aio.open`
    """Open the store in a folder, or create it there. The options are those of `antiphon.open`."""
    return Store(await asyncio.to_thread(lambda: api.Store.open(path, **options)))


async def sync(one: Store, other: Store) -> int:
    """Exchange the data of the parties that both stores have joined; see `antiphon.sync`."""
    return await asyncio.to_thread(api_sync.sync, one.blocking, other.blocking)
