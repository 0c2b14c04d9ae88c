"""`PeerLinks`: the connections of a peer to its neighbours, and the link over each. It ends with a crash of the peer.

What the network thread of a real peer does happens at once here; what its workers do, when the peer works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.errors import LinkSilent
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.link.frames import Frame, Show, Tags
from antiphon.mesh.link.link import Link
from antiphon.mesh.link.party_sessions import PartySessions, Taken
from antiphon.mesh.replication.session import Session
from antiphon.sim.network import Connection
from antiphon.sim.trace import Kind
from antiphon.sim.world import START_MS

if TYPE_CHECKING:
    from antiphon.sim.peer import SimPeer

REDIAL_MS = (200, 1_500)
BUDGET = 1 << 20  # bytes that a peer sends to a neighbour when it works
CLOCK_OFF_MS = 240_000  # of the clocks of channels, which refuse each other beyond ten minutes


class PeerLinks:
    """The connections and links of one peer, from its start to its crash. Sessions are those of `host`."""

    def __init__(self, peer: SimPeer) -> None:
        self._peer = peer
        self._links: dict[Connection, Link] = {}
        self._by_name: dict[str, Connection] = {}  # of neighbours that are proven
        self._dialling: set[str] = set()
        self.host = PartySessions([peer.replica])
        self.is_up = True
        peer.network.listen(peer.name, self.answer)
        for name in peer.neighbours:
            self.begin(name)

    # -- what there is

    def names(self) -> list[str]:
        """The neighbours to which there is a link."""
        return sorted(self._by_name)

    def connection(self, name: str) -> Connection | None:
        return self._by_name.get(name)

    def link(self, name: str) -> Link | None:
        """The link to a neighbour, if there is one."""
        connection = self._by_name.get(name)
        return None if connection is None else self._links[connection]

    def sessions(self) -> dict[str, Session]:
        """The sessions with neighbours, by their names."""
        found = {name: self.host.session(self._links[at], self._peer.key) for name, at in self._by_name.items()}
        return {name: session for name, session in found.items() if session is not None}

    # -- connecting

    def begin(self, name: str) -> None:
        """Dial a neighbour soon, if this device is the one of the two that dials."""
        peer = self._peer
        if self.is_up and peer.device.key < peer.neighbours[name].device.key:
            peer.world.after(peer.world.chance.randint(*REDIAL_MS), lambda: self._dial(name))

    def _dial(self, name: str) -> None:
        peer = self._peer
        if not self.is_up or name in self._by_name or name in self._dialling:
            return
        other, now_ms = peer.neighbours[name].device.key, self._channel_ms()
        channel = Channel.dial(peer.device.pair, other, now_ms=now_ms, randomness=peer.channel_dice)
        end = _End(self, self._link(channel))
        connection = peer.network.dial(peer.name, name, bytes(peer.device.key), end)
        if connection is None:
            self.begin(name)
            return
        self._dialling.add(name)
        self._connect(connection, end)
        self._flush(connection)

    def answer(self, connection: Connection) -> _End | None:
        """Answer a connection, unless this peer is down."""
        if not self.is_up:
            return None
        peer = self._peer
        channel = Channel.answer(peer.device.pair, peer.seen, now_ms=self._channel_ms(), randomness=peer.channel_dice)
        end = _End(self, self._link(channel))
        self._connect(connection, end)
        return end

    def _link(self, channel: Channel) -> Link:
        peer = self._peer
        return WatchedLink(peer, channel, self.host)

    def _channel_ms(self) -> int:
        peer = self._peer
        skew_ms = peer.clock.now_ms() - START_MS - peer.world.now_ms
        return START_MS + peer.world.now_ms + max(-CLOCK_OFF_MS, min(CLOCK_OFF_MS, skew_ms))

    def _connect(self, connection: Connection, end: _End) -> None:
        end.connection = connection
        self._links[connection] = end.link
        self.host.connect(end.link)

    def ended(self, connection: Connection) -> None:
        """Forget a connection, and dial again if this end did."""
        link = self._links.pop(connection, None)
        if link is None:
            return
        self.host.disconnect(link)
        for name in [name for name, other in self._by_name.items() if other is connection]:
            del self._by_name[name]
        if connection.dialler == self._peer.name:
            self._dialling.discard(connection.answering)
            self.begin(connection.answering)

    def close(self) -> None:
        """End all connections."""
        self.is_up = False
        for connection in list(self._links):
            connection.cut()

    # -- bytes

    def arrived(self, connection: Connection, data: bytes) -> None:
        """Take bytes of a connection; let the peer work if there is something to do."""
        peer, link = self._peer, self._links.get(connection)
        if link is None or not self.is_up:
            return
        was_open, due = link.is_open, [False]

        def receive() -> None:
            due[0] = self.host.receive(link, data, peer.clock.now_ms())

        if not peer.guarded(receive, resume=False):
            connection.cut()  # some of the bytes may have got lost
            return
        if link.is_open and not was_open:
            self._open(connection, link)
        if due[0] and link not in self.host.faults:
            peer.guarded(self.work)
        if not self.is_up:
            return
        self.drop_faulty()
        if due[0]:
            peer.poke()
        elif peer.settled:
            self._flush(connection)
        else:  # control state may have changed: nothing is sent before links are judged
            peer.poke()
        if not was_open:
            self._flush(connection)

    def _open(self, connection: Connection, link: Link) -> None:
        """Note which neighbour is at the other end."""
        peer = self._peer
        names = [name for name, other in peer.neighbours.items() if other.device.key == link.device]
        if connection.dialler == peer.name:
            self._dialling.discard(connection.answering)
        elif connection.device != link.device:
            peer.network.misled.append(f"{peer.name} took {connection.dialler} for {', '.join(names) or 'a device'}")
        for name in names:
            before = self._by_name.pop(name, None)
            if before is not None:
                before.cut()
            self._by_name[name] = connection

    def work(self) -> None:
        """Let sessions read what came."""
        for taken in self.host.work(self._peer.clock.now_ms()):
            self._note(taken)

    def _note(self, taken: Taken) -> None:
        peer = self._peer
        (name,) = [name for name, at in self._by_name.items() if self._links[at] is taken.link]
        peer.news(name, taken.blocks)

    def drop_faulty(self) -> None:
        """End connections whose other end is at fault, or silent."""
        for link, error in list(self.host.faults.items()):
            (connection,) = [at for at, other in self._links.items() if other is link]
            if not isinstance(error, LinkSilent):
                other = connection.other(self._peer.name)
                self._peer.world.record(Kind.REFUSE, self._peer.name, other=other, text=f"a message: {error}"[:120])
            connection.cut()
            self.host.faults.pop(link, None)

    def tick(self) -> int | None:
        """Let links and sessions do what is due. Return when to call this again."""
        wake_ms = self.host.tick(self._peer.clock.now_ms())
        self.drop_faulty()
        return wake_ms

    def send(self) -> bool:
        """Send what waits to all neighbours. Return True if more waits."""
        more = False
        for connection in [connection for connection, link in self._links.items() if link.has_outgoing]:
            self._flush(connection)
            link = self._links.get(connection)
            more = more or (link is not None and link.has_outgoing)
        return more

    def _flush(self, connection: Connection) -> None:
        link = self._links.get(connection)
        data = b"" if link is None else self.host.outgoing(link, BUDGET, self._peer.clock.now_ms())
        if data:
            if link is not None and link.speaks(self._peer.key):
                self._peer.tell(connection.other(self._peer.name))
            connection.write(self._peer.name, data)


class _End:
    """One end of a connection of a peer."""

    def __init__(self, links: PeerLinks, link: Link) -> None:
        self.links = links
        self.link = link
        self.connection: Connection

    def arrived(self, data: bytes) -> None:
        self.links.arrived(self.connection, data)

    def ended(self) -> None:
        self.links.ended(self.connection)


class WatchedLink(Link):
    """A link that notes if a tag comes that came on another channel: somebody who heard both could tell."""

    def __init__(self, peer: SimPeer, channel: Channel, host: PartySessions) -> None:
        super().__init__(channel, host, randomness=peer.channel_dice, now_ms=peer.clock.now_ms())
        self._network = peer.network

    def _take(self, frame: Frame) -> None:
        match frame:
            case Tags(tags):
                for tag in tags:
                    self._network.note_tag(tag, self.channel.id)
            case Show(tag):
                self._network.note_tag(tag, self.channel.id)
        super()._take(frame)
