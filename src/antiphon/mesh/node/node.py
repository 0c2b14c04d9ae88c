"""`Node`: the connections of a device, and the work on its parties: one network thread, a few workers.

Its methods may be called in any thread. What a connection does happens in the network thread; what a party does, in
the worker that has its turn.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.ports import Clock, Randomness, SystemClock, SystemRandomness
from antiphon.mesh.channel.device_keys import static_public
from antiphon.mesh.node.limits import CLOSE_TIMEOUT_S, FLUSH_TIMEOUT_S
from antiphon.mesh.node.network_thread import NetworkThread
from antiphon.mesh.node.node_links import NodeLinks
from antiphon.mesh.node.party_works import PartyWorks
from antiphon.mesh.node.peer import Peer, PeerState
from antiphon.mesh.node.ports import PartyHost, PartyView
from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.pipe import Listener, Transport

_LOG = logging.getLogger("antiphon.mesh")


class Node:
    """One device in a network. `close` ends it.

    `make_transport` is called in the network thread, with its loop.
    """

    def __init__(
        self,
        device: KeyPair,
        host: PartyHost,
        make_transport: Callable[[NetworkThread], Transport],
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._device = device
        self._thread = NetworkThread("antiphon network")
        self.works = PartyWorks(host, self._thread.now_ms, self._viewed)
        self._listeners: list[Listener] = []
        self._connections = threading.Condition()

        def make() -> NodeLinks:
            self._transport = make_transport(self._thread)
            return NodeLinks(
                device,
                self._thread,
                self._transport,
                self.works,
                clock=clock or SystemClock(),
                randomness=randomness or SystemRandomness(),
                changed=self._changed,
            )

        self._links = self._thread.call(make)

    def begin(self) -> None:
        """Look at all parties, so that connections find out at once what both ends share."""
        self.works.begin()

    def _viewed(self, views: Collection[PartyView]) -> None:
        self._thread.post(lambda: self._links.view(views))

    def _changed(self) -> None:
        with self._connections:
            self._connections.notify_all()
        self.works.watchers.call()

    # -- connections

    def listen(self, host: str, port: int) -> Address:
        """Accept connections. Return the address that others dial."""

        def act() -> Address:
            listener = self._transport.listen(host, port, self._links.accept)
            self._listeners.append(listener)
            return Address(self._device.key, listener.host, listener.port)

        return self._thread.call(act)

    def connect(self, address: Address, timeout_s: float) -> bool:
        """Keep an address connected from now on. Wait for the connection; False if the time is up first."""
        if address.device == self._device.key:
            raise InvalidInput(f"{address} is the address of this device itself; connect to another one")
        static_public(address.device)  # a key that no device can have

        def act() -> None:
            self._links.door.pardon(address.device)
            if bytes(address.device) not in self._links.by_device:
                self._links.dialler.add(address, self._thread.now_ms())
                self._links.dial_due()
            else:
                self._links.dialler.add(address, self._thread.now_ms()).next_ms = None

        self._thread.call(act)
        with self._connections:
            self._connections.wait_for(
                lambda: self.works.is_closed or bytes(address.device) in self._links.by_device, timeout_s
            )
            return bytes(address.device) in self._links.by_device

    def disconnect(self, device: bytes) -> bool:
        """End the connection to a device, and dial it no more. False if there was neither."""

        def act() -> bool:
            dialled = self._links.dialler.remove(device)
            return self._links.end(bytes(device), "disconnected here") or dialled

        return self._thread.call(act)

    def peers(self) -> tuple[Peer, ...]:
        """Return all devices that are connected, or kept connected."""
        return self._thread.call(self._peers)

    def _peers(self) -> tuple[Peer, ...]:
        now_ms, links = self._thread.now_ms(), self._links
        found = [
            Peer(
                PublicKey(device),
                PeerState.CONNECTED,
                one.far_end,
                one.dialled,
                now_ms - one.since_ms,
                one.bytes_in,
                one.bytes_out,
                one.rtt_ms,
                tuple(PublicKey(party) for party in sorted(one.parties) if one.link.is_matched(party)),
                next(filter(None, map(self.works.error, sorted(one.parties))), links.errors.get(device, "")),
            )
            for device, one in links.by_device.items()
        ]
        for target in links.dialler.targets():
            device = bytes(target.address.device)
            if device not in links.by_device:
                state = PeerState.DIALLING if target.next_ms is None else PeerState.WAITING
                error = target.error or links.errors.get(device, "")
                found.append(
                    Peer(PublicKey(device), state, str(target.address), True, now_ms - target.since_ms, error=error)
                )
        return tuple(sorted(found, key=lambda peer: peer.device))

    # -- parties

    def committed(self, parties: Collection[bytes] | None) -> None:
        """Note that blocks of these parties were committed; with None, of any. It does not block."""
        self.works.committed(parties)

    def followed(self, party: bytes) -> None:
        """Note that a party is followed, paused, resumed or left."""
        self.works.followed(party)

    def synced(self, party: bytes, device: Callable[[bytes], bool] | None, timeout_s: float | None) -> bool:
        """Wait until the chosen devices that share a party hold the same as this one, and there is one at least.

        `device` chooses; None chooses every connected one. False if the time is up first, or the node is closed.
        """

        def done() -> bool:
            if self.works.is_closed:
                return True
            lines = self.works.standing(party)
            chosen = [same for line, same in lines.items() if device is None or device(line.device)]
            return bool(chosen) and all(chosen)

        with self.works.stepped:
            return self.works.stepped.wait_for(done, timeout_s) and not self.works.is_closed

    def close(self) -> None:
        """Stop listening, end all connections and threads. What the workers have begun is done first."""

        def act() -> None:
            for listener in self._listeners:
                listener.close()
            self._links.close()

        self._thread.call(act)
        ended = self.works.close()
        if not self._links.no_pipes.wait(FLUSH_TIMEOUT_S):
            self._thread.call(self._links.abort)
            self._links.no_pipes.wait(FLUSH_TIMEOUT_S)
        ended = self._thread.stop(CLOSE_TIMEOUT_S) and ended
        self._changed()
        if not ended:
            _LOG.error("mesh.close_failed: a thread of the network did not end in %d s", CLOSE_TIMEOUT_S)
