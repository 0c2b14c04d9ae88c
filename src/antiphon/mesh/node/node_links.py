"""`NodeLinks`: the connections of a node and their links, in the network thread. It is the `LinkHost` of all links."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence

from antiphon.core.errors import AntiphonError
from antiphon.core.keys import KeyPair
from antiphon.core.ports import Clock, Randomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.mesh.link.link import Link
from antiphon.mesh.node.connection import Connection
from antiphon.mesh.node.dialler import Dialler, Target
from antiphon.mesh.node.directory import PartyDirectory
from antiphon.mesh.node.door import Door
from antiphon.mesh.node.limits import ERRORS_MAX, SIMULTANEOUS_MS, UNMATCHED_MS
from antiphon.mesh.node.line import Line
from antiphon.mesh.node.network_thread import NetworkThread
from antiphon.mesh.node.party_works import PartyWorks
from antiphon.mesh.node.ports import PartyView
from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.doorkeeper import Guest, Standing
from antiphon.mesh.transport.pipe import Pipe, PipeEvents, Transport

_LOG = logging.getLogger("antiphon.mesh")


class NodeLinks:
    """Connections by link and by device; one stays for each device. Everything here runs in the network thread.

    `changed` is called when a connection begins or ends.
    """

    def __init__(
        self,
        device: KeyPair,
        thread: NetworkThread,
        transport: Transport,
        works: PartyWorks,
        *,
        clock: Clock,
        randomness: Randomness,
        changed: Callable[[], None],
    ) -> None:
        self._device = device
        self._thread = thread
        self._transport = transport
        self._works = works
        self._clock = clock
        self._randomness = randomness
        self._changed = changed
        self.directory = PartyDirectory()
        self.door = Door(thread, self.directory.admits)
        self.dialler = Dialler(randomness)
        self._dial_timer = thread.call_at(0, lambda: None)
        self._seen = SeenHandshakes()
        self._by_link: dict[Link, Connection] = {}
        self._pipes: set[Connection] = set()  # those whose pipes are not closed yet
        self.no_pipes = threading.Event()
        self.by_device: dict[bytes, Connection] = {}
        self.errors: dict[bytes, str] = {}  # the last one of each device
        self._count = 0
        self._closing = False

    # -- connections

    def accept(self, pipe: Pipe) -> PipeEvents | None:
        """Answer somebody who has dialled."""
        guest = "the store is being closed" if self._closing else self.door.arrive(pipe.far_end, dialled=False)
        if isinstance(guest, str):
            return None

        def make() -> Link:
            channel = Channel.answer(self._device, self._seen, now_ms=self._clock.now_ms(), randomness=self._randomness)
            return Link(channel, self, randomness=self._randomness, now_ms=self._thread.now_ms())

        return self._add(pipe, guest, make, None)

    def _dial(self, target: Target) -> None:
        """Dial a target. Errors of the device key were raised when it was added."""
        address = target.address
        device = bytes(address.device)

        def begun(pipe: Pipe) -> PipeEvents:
            guest = self.door.arrive(pipe.far_end, dialled=True)
            place = Guest(pipe.far_end, Standing.GONE, 0) if isinstance(guest, str) else guest
            made = self._add(pipe, place, lambda: self._make_dialling(address), address)
            if isinstance(guest, str) or self._closing or self.dialler.get(device) is not target:
                why = guest if isinstance(guest, str) else "it is not wanted any more"
                self._thread.loop.call_soon(lambda: made.end(why, abort=True))
            return made

        def failed(why: str) -> None:
            self._end_dial(device, why)

        self._transport.dial(address, begun, failed)

    def _make_dialling(self, address: Address) -> Link:
        now_ms = self._clock.now_ms()
        channel = Channel.dial(self._device, address.device, now_ms=now_ms, randomness=self._randomness)
        return Link(channel, self, randomness=self._randomness, now_ms=self._thread.now_ms())

    def _add(self, pipe: Pipe, guest: Guest, make: Callable[[], Link], address: Address | None) -> Connection:
        made = Connection(
            pipe,
            guest,
            self.door,
            make,
            self._thread.now_ms,
            self._thread.call_at,
            self._ended,
            gone=self._gone,
            wake=self._works.wake,
            address=address,
        )
        self.door.enter(guest, made)
        self._by_link[made.link] = made
        self._pipes.add(made)
        self._thread.loop.call_soon(made.step)
        return made

    def dial_due(self) -> None:
        """Dial what is due, and set the timer for what is due next."""
        self._dial_timer.cancel()
        if self._closing:
            return
        for target in self.dialler.due(self._thread.now_ms()):
            if bytes(target.address.device) not in self.by_device:
                self._dial(target)
        at_ms = self.dialler.next_ms()
        if at_ms is not None:
            self._dial_timer = self._thread.call_at(at_ms, self.dial_due)

    def _end_dial(self, device: bytes, why: str, lasted_ms: int = 0) -> None:
        if device not in self.by_device:
            self._note_error(device, why)
            self.dialler.ended(device, why, self._thread.now_ms(), lasted_ms=lasted_ms)
            self.dial_due()
            self._changed()

    def _note_error(self, device: bytes, why: str) -> None:
        self.errors.pop(device, None)
        self.errors[device] = why
        if len(self.errors) > ERRORS_MAX:
            del self.errors[next(iter(self.errors))]

    def _gone(self, connection: Connection) -> None:
        """Forget a connection whose pipe is closed."""
        self._pipes.discard(connection)
        if self._closing and not self._pipes:
            self.no_pipes.set()

    def _ended(self, connection: Connection, why: str, error: AntiphonError | None) -> None:
        """Forget a connection. Its device is dialled again, if it is to be kept connected."""
        self._by_link.pop(connection.link, None)
        self.door.leave(connection.guest, error)
        line = connection.line
        if error is not None:
            _LOG.warning("mesh.connection_refused: %s: %s", connection.pipe.far_end, error)
        else:
            _LOG.info("mesh.ended: %s: %s", connection.pipe.far_end, why)
        if line is None:
            if connection.address is not None:
                self._end_dial(bytes(connection.address.device), why)
            return
        self._works.leave(line, connection.parties)
        if self.by_device.get(line.device) is connection:
            del self.by_device[line.device]
            lasted_ms = self._thread.now_ms() - connection.since_ms
            self._end_dial(line.device, why, lasted_ms)
        self._changed()

    def end(self, device: bytes, why: str) -> bool:
        """Close the connection to a device. False if there is none."""
        known = self.by_device.get(device)
        if known is not None:
            known.end(why)
        return known is not None

    def view(self, views: Collection[PartyView]) -> None:
        """Take newer views of parties, and let all links judge again."""
        for view in views:
            self.directory.update(view)
        for connection in list(self.by_device.values()):
            if (why := self.door.judge(connection.guest)) is not None:
                connection.end(why)
            else:
                self._judge(connection)

    def _judge(self, connection: Connection) -> None:
        spoken = [party for party in connection.parties if connection.link.speaks(party)]
        connection.link.judge()
        gone = [party for party in spoken if not connection.link.speaks(party)]
        if gone and connection.line is not None:
            self._works.leave(connection.line, gone)
            connection.parties.difference_update(gone)
            connection.shown.difference_update(gone)
            for party in gone:
                connection.line.forget(party)
        connection.step()

    def close(self) -> None:
        """End all connections, and begin none."""
        self._closing = True
        self._dial_timer.cancel()
        self.door.close()
        for connection in list(self._by_link.values()):
            connection.end("the store is being closed")
        if not self._pipes:
            self.no_pipes.set()

    def abort(self) -> None:
        """Give up what has not left."""
        for connection in list(self._pipes):
            connection.pipe.abort("the store is being closed")

    # -- what links ask (`LinkHost`)

    def proven(self, link: Link) -> None:
        """Keep one connection with the device: this one, or the one that there is."""
        connection, device = self._by_link[link], bytes(link.device)
        known = self.by_device.get(device)
        if known is not None and not self._replaces(connection, known):
            connection.end("mesh.twice: this device is connected already", abort=True)
            return
        if (why := self.door.prove(connection.guest, device)) is not None:
            connection.end(why, abort=True)
            return
        connection.since_ms = now_ms = self._thread.now_ms()
        self._count += 1
        connection.line = Line(
            self._count,
            device,
            self._thread.post,
            lambda party, messages: self._deliver(connection, party, messages),
            connection.wait,
            lambda error: self._blame(connection, error),
            lambda party: self._hush(connection, party),
            lambda party: self._tell(connection, party),
        )
        self.by_device[device] = connection
        self.dialler.connected(device, now_ms)
        self.errors.pop(device, None)
        if known is not None:
            known.end("mesh.twice: another connection with this device takes its place", abort=True)
        self._changed()

    def _replaces(self, fresh: Connection, known: Connection) -> bool:
        """True if a connection takes the place of another one with the same device; the other end decides alike.

        If both ends have dialled at once, the device with the lesser key wins. Else the older one is probably dead.
        """
        if fresh.dialled == known.dialled or fresh.began_ms - known.began_ms > SIMULTANEOUS_MS:
            return True
        mine_wins = bytes(self._device.key) < bytes(fresh.link.device)
        return fresh.dialled == mine_wins

    def admitted(self, device: bytes) -> Iterable[bytes]:
        """Return the parties to speak about with a device."""
        connection = self.by_device.get(bytes(device))
        return {*self.directory.admitted(bytes(device)), *(connection.shown if connection is not None else ())}

    def held(self) -> Iterable[bytes]:
        """Return all parties that a device may show a message about."""
        return self.directory.parties

    def digest(self, party: bytes) -> bytes:
        """Return the digest of what is held of a party."""
        return self._works.digest(party)

    def matched(self, link: Link, party: bytes, differs: bool) -> None:
        """Work on a party that is not the same at both ends."""
        connection = self._by_link.get(link)
        if connection is not None and connection.line is not None:
            self._share(connection, connection.line, party)
            self._works.match(connection.line, party, link.their_digest(party))

    def unmatched(self, link: Link, party: bytes) -> None:
        """Show the party to the other end soon, unless it begins to speak about it."""
        connection = self._by_link.get(link)
        if connection is None:
            return
        if self.directory.seeks(party):
            self._meet(connection, party)
            return
        if not connection.unmatched:
            self._thread.call_at(self._thread.now_ms() + UNMATCHED_MS, lambda: self._show_next(connection))
        connection.unmatched.append(party)

    def _show_next(self, connection: Connection) -> None:
        if connection.is_over:
            return
        party = connection.next_unmatched()
        if party is not None:
            self._meet(connection, party)
            if connection.unmatched:
                self._thread.call_at(self._thread.now_ms() + UNMATCHED_MS, lambda: self._show_next(connection))

    def _meet(self, connection: Connection, party: bytes) -> None:
        if connection.line is not None:
            self._share(connection, connection.line, party)
            self._works.meet(connection.line, party)

    def received(self, link: Link, party: bytes, message: bytes, shown: bool) -> None:
        """Give a message to the session of its party."""
        connection = self._by_link.get(link)
        if connection is not None and connection.line is not None:
            self._share(connection, connection.line, party)
            connection.line.came(len(message))
            self._works.receive(connection.line, party, message, shown=shown)

    def _share(self, connection: Connection, line: Line, party: bytes) -> None:
        connection.parties.add(party)
        line.set_room(party, connection.room(party))

    def has_room(self, link: Link, party: bytes) -> None:
        """Let a party send more."""
        connection = self._by_link.get(link)
        line = None if connection is None else connection.line
        if connection is not None and line is not None and line.set_room(party, connection.room(party)):
            self._works.wake(party)

    # -- what workers ask

    def _deliver(self, connection: Connection, party: bytes, messages: Sequence[bytes]) -> None:
        assert connection.line is not None
        if not connection.link.speaks(party):
            connection.shown.add(party)
        room = connection.deliver(party, list(messages))
        if connection.line.set_room(party, room):
            self._works.wake(party)

    def _hush(self, connection: Connection, party: bytes) -> None:
        if party in connection.shown:
            connection.shown.discard(party)
            self._judge(connection)

    def _tell(self, connection: Connection, party: bytes) -> None:
        connection.link.tell(party)
        connection.step()

    def _blame(self, connection: Connection, error: AntiphonError) -> None:
        connection.end(str(error), error)
