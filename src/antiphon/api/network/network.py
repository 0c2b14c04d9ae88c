"""`Network`: the connections of a store to other devices. The node behind it begins when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.api.inputs import need_key
from antiphon.api.network.peers import StorePeer
from antiphon.api.network.store_host import StoreHost
from antiphon.core.errors import InvalidInput, StoreClosed
from antiphon.mesh.node.node import Node
from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.tcp import TcpTransport

if TYPE_CHECKING:
    from antiphon.api.store import Store

PORT_MAX = 65_535


class Network:
    """Listens, connects, and tells who is connected, for `Store`. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._node: Node | None = None
        self._host: StoreHost | None = None
        self._undo: list[Callable[[], object]] = []
        self._closed = False

    @property
    def node(self) -> Node | None:
        """The node, if it has begun."""
        return self._node

    def _begin(self) -> Node:
        with self._lock:
            if self._closed:
                raise StoreClosed(f"the store {str(self._store.path)!r} was closed; open it again")
            if self._node is None:
                manager = self._store.manager
                self._host = StoreHost(self._store)
                self._node = node = Node(
                    manager.device.pair,
                    self._host,
                    lambda thread: TcpTransport(thread.loop),
                    clock=manager.clock,
                    randomness=manager.randomness,
                )
                self._undo.append(manager.feeds.listen(node.committed))
                manager.listeners.append(node.followed)
                self._undo.append(lambda: manager.listeners.remove(node.followed))
                node.begin()
            return self._node

    def listen(self, host: str, port: int) -> Address:
        """Accept connections; see `Store.listen`."""
        if isinstance(port, bool) or not 0 <= port <= PORT_MAX:
            raise InvalidInput(f"{port!r:.80} is no port to listen on: 1 to {PORT_MAX}, and 0 for any free one")
        return self._begin().listen(host, port)

    def connect(self, address: Address | str, timeout_s: float) -> bool:
        """Keep an address connected; see `Store.connect`."""
        return self._begin().connect(need_address(address), timeout_s)

    def disconnect(self, who: Address | bytes | str) -> bool:
        """End connections; see `Store.disconnect`."""
        if self._node is None:
            return False
        ended = [self._node.disconnect(device) for device in self._devices(who)]
        return any(ended)

    def peers(self) -> tuple[StorePeer, ...]:
        """Return who is connected; see `Store.peers`."""
        if self._node is None or self._host is None:
            return ()
        names = self._host.index.names()
        return tuple(StorePeer.of(peer, *names.get(bytes(peer.device), (None, ""))) for peer in self._node.peers())

    def holdings(self, party: bytes) -> dict[bytes, dict[bytes, int]]:
        """Return how many blocks of each feed of a party other devices hold, as far as they have told."""
        return {} if self._node is None else self._node.works.holdings(party)

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call a function, which must be quick, whenever connections or what others hold may have changed.

        It is called in any thread. Return the function that ends it.
        """
        return self._begin().works.watchers.add(watcher)

    @property
    def is_closed(self) -> bool:
        """True if the store has closed its network."""
        return self._closed

    def synced(self, party: bytes, with_: Address | bytes | str | None, timeout_s: float | None) -> bool:
        """Wait until others hold the same; see `Party.synced`."""
        if self._node is None:
            return False
        if with_ is None:
            return self._node.synced(party, None, timeout_s)
        return self._node.synced(party, lambda device: device in self._devices(with_), timeout_s)

    def _devices(self, who: Address | bytes | str) -> set[bytes]:
        """Return the devices that an address, a device or an identity names."""
        if isinstance(who, Address):
            return {bytes(who.device)}
        if isinstance(who, str) and who.startswith("antiphon://"):
            return {bytes(Address.parse(who).device)}
        key = bytes(need_key(who, "a device or identity"))
        found = set() if self._host is None else self._host.index.devices_of(key)
        return found | {key}

    def close(self) -> None:
        """End the node. The store calls this before it closes its parties."""
        with self._lock:
            self._closed = True
            node, self._node = self._node, None
        for undo in self._undo:
            undo()
        if node is not None:
            node.close()


def need_address(address: Address | str) -> Address:
    """Return an address, from its text too. `InvalidInput` if it is none, or names no device."""
    if isinstance(address, Address):
        return address
    if not isinstance(address, str):
        raise InvalidInput(f"one connects to an address, antiphon://DEVICE@HOST:PORT, not to {address!r:.80}")
    return Address.parse(address)
