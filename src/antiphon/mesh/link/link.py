"""`Link`: one end of a link between two devices, over one channel, without I/O.

It tells the other end in which parties it speaks, by tags that only members of a party can compute. It carries the
messages of the parties in which both speak, in turns. It notices when the other end is gone. All else is for its
`LinkHost`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon.core.errors import TooLarge
from antiphon.core.keys import PublicKey
from antiphon.core.ports import Randomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.link.assembly import Assembly
from antiphon.mesh.link.frames import Data, Digest, Frame, Ping, Pong, Show, Shown, Tags, decode, encode
from antiphon.mesh.link.host import LinkHost
from antiphon.mesh.link.keep_alive import KeepAlive
from antiphon.mesh.link.limits import BOX_SIZE_MAX, PING_MS, SHOWS_OWED_MAX, STREAM_SIZE_MAX
from antiphon.mesh.link.matching import Matching, SpokenParty
from antiphon.mesh.link.party_tags import ANSWERING, DIALLER, PartyTags
from antiphon.mesh.link.shown_messages import ShowJudge, ShowQueue
from antiphon.mesh.link.streams import StreamQueue

_ROOM_MIN = STREAM_SIZE_MAX // 2  # with less room in a queue, the host waits for `has_room`


class Link:
    """One end of a link. Call `tick` and send what `outgoing` gives after each other call, and at the time `tick` said.

    An `InvalidInput` of `receive`: the other end is at fault. `LinkSilent` of `tick`: it is gone. Then the link has
    ended; close the connection.
    """

    def __init__(self, channel: Channel, host: LinkHost, *, randomness: Randomness, now_ms: int) -> None:
        self.channel = channel
        self._host = host
        self._randomness = randomness
        self._keep_alive = KeepAlive(randomness, now_ms)
        self._now_ms = now_ms
        self._streams = StreamQueue()
        self._assembly = Assembly()
        self._full: dict[bytes, None] = {}  # parties whose host waits for room, in the order of their turns
        self._digests: dict[bytes, None] = {}  # parties whose digest is to be sent
        self._owed = 0  # answers to shown messages
        self._ping: Ping | None = None
        self._pong: Pong | None = None
        self._proven = False
        self._idle_until_ms = now_ms  # nothing is due before, unless something is shown

    # -- what both ends know

    @property
    def is_open(self) -> bool:
        """True if the other device is proven."""
        return self._proven

    @property
    def device(self) -> PublicKey:
        """The key of the other device."""
        return self.channel.device

    @property
    def waiting_size(self) -> int:
        """The bytes that this link holds: messages that wait to be sent, or to be judged, or are incomplete."""
        return self._streams.size + self.arrived_size

    @property
    def arrived_size(self) -> int:
        """The part of `waiting_size` that has come: messages that are incomplete, or wait to be judged."""
        return self._assembly.size + (self._shown.size if self._proven else 0)

    @property
    def has_outgoing(self) -> bool:
        """True if `outgoing` would give something now, once the channel is open."""
        if not self._proven:
            return False
        show_ms = self._shows.due_ms
        if show_ms is not None and show_ms <= self._now_ms:
            return True
        replies = self._owed or self._ping or self._pong or self._digests or self._matching.has_tags
        return bool(replies or self._streams.size)

    @property
    def is_shown(self) -> bool:
        """True if a shown message waits to be judged by `tick`."""
        return self._proven and self._shown.is_waiting

    def speaks(self, party: bytes) -> bool:
        """True if this end speaks in a party."""
        return self._proven and self._matching.get(party) is not None

    def is_matched(self, party: bytes) -> bool:
        """True if both ends speak in a party."""
        spoken = self._matching.get(party) if self._proven else None
        return spoken is not None and spoken.is_matched

    def _open(self) -> None:
        """The other device is proven: send tags, also if this end speaks in no party."""
        self._proven = True
        self._idle_until_ms = self._now_ms
        roles = (DIALLER, ANSWERING) if self.channel.dialled else (ANSWERING, DIALLER)
        mine, theirs = (PartyTags(self.channel.id, role) for role in roles)
        self._shows, self._shown = ShowQueue(mine), ShowJudge(theirs)
        self._matching = Matching(mine, theirs, self._randomness)
        self._host.proven(self)
        self._speak(self._host.admitted(self.device))

    # -- parties

    def tell(self, party: bytes) -> None:
        """Tell the other end what is held of a party now: it has changed, and the session is quiet."""
        if self.is_matched(party):
            self._digests[party] = None

    def their_digest(self, party: bytes) -> bytes:
        """Return the last digest of the other end about a party; empty before there was one."""
        spoken = self._matching.get(party) if self._proven else None
        return b"" if spoken is None else spoken.their_digest

    def judge(self) -> None:
        """Ask again in which parties this end speaks, because control state has changed.

        The others are dropped with all that waits: the other end cannot tell this from a device without the party.
        """
        if not self._proven:
            return
        admitted = dict.fromkeys(self._host.admitted(self.device))
        for spoken in self._matching:
            if spoken.party not in admitted:
                self.drop(spoken.party)
        fresh = [party for party in admitted if self._matching.get(party) is None]
        if fresh:
            self._speak(fresh)

    def drop(self, party: bytes) -> None:
        """Forget a party on this link, with its messages in both directions."""
        if not self._proven:
            return
        self._matching.drop(party)
        self._streams.drop(party)
        self._assembly.drop(party)
        self._shows.drop(party)
        self._digests.pop(party, None)
        self._full.pop(party, None)

    def _speak(self, parties: Iterable[bytes]) -> None:
        for spoken in self._matching.speak(parties):
            if spoken.is_matched:
                self._match(spoken)
            elif self._matching.has_heard:
                self._host.unmatched(self, spoken.party)

    def _match(self, spoken: SpokenParty) -> None:
        """Compare digests. A tag that comes again begins a party anew: the other end had dropped it meanwhile."""
        self._assembly.drop(spoken.party)
        self._digests[spoken.party] = None
        self._streams.put(spoken.party, spoken.mine, self._shows.drop(spoken.party))

    # -- receiving

    def receive(self, data: bytes, now_ms: int) -> None:
        """Take bytes of the other end. On `InvalidInput` it is at fault: close the connection."""
        self._now_ms = now_ms
        frames = self.channel.receive(data)
        if not self._proven and self.channel.is_open:
            self._keep_alive.heard(now_ms)
            self._open()
        if frames:
            self._keep_alive.heard(now_ms)
            self._idle_until_ms = min(self._idle_until_ms, now_ms + PING_MS)
        for frame in frames:
            self._take(decode(frame))

    def _take(self, frame: Frame) -> None:
        match frame:
            case Data(stream):
                spoken = self._matching.stream(stream)
                if spoken is None:
                    self._shown.hear_data(frame)
                    return
                message = self._assembly.add(spoken.party, frame)
                if message is not None:
                    self._host.received(self, spoken.party, message, False)
            case Tags(tags):
                self._take_tags(tags)
            case Show(tag):
                self._owed += 1
                if self._owed > SHOWS_OWED_MAX:
                    raise TooLarge(
                        f"{self._owed} messages are shown, and no answer to them is read; drop the connection"
                    )
                self._shown.hear(frame)
                if self._matching.stream(tag) is None:  # else it was sent before the tag of this end had come
                    self._take_tags((tag,), shown=True)
            case Digest(stream, digest):
                spoken = self._matching.stream(stream)
                if spoken is not None:
                    spoken.their_digest = digest
                    self._host.matched(self, spoken.party, digest != self._host.digest(spoken.party))
            case Ping(token):
                self._pong = Pong(token)

    def _take_tags(self, tags: Iterable[bytes], *, shown: bool = False) -> None:
        for spoken in self._matching.hear(tags):
            self._match(spoken)
        if not self._matching.has_heard and not shown:
            self._matching.has_heard = True
            for spoken in self._matching:
                if not spoken.is_matched:
                    self._host.unmatched(self, spoken.party)

    # -- sending

    def send(self, party: bytes, messages: Iterable[bytes]) -> int:
        """Queue messages of a party's session. Return the room that is left, in bytes.

        Nothing is sent about a party of which `LinkHost.admitted` does not say that this end speaks in it.
        """
        if not self._proven:
            return 0
        if self._matching.get(party) is None:
            self.judge()
        spoken = self._matching.get(party)
        if spoken is None:
            return 0
        if spoken.is_matched:
            self._streams.put(party, spoken.mine, messages)
        else:
            self._shows.put(party, messages)
        return self.room(party)

    def room(self, party: bytes) -> int:
        """Return how many bytes a party can queue now. If it is little, `LinkHost.has_room` tells when it is more."""
        if not self.speaks(party):
            return 0
        if not self.is_matched(party):
            return BOX_SIZE_MAX
        room = self._streams.room(party)
        if room <= _ROOM_MIN:
            self._full[party] = None
        return room

    def outgoing(self, budget: int) -> bytes:
        """Return the bytes to write to the connection now: about `budget` of messages, and what goes before them."""
        sent = [self.channel.outgoing()]
        if not self._proven:
            return sent[0]
        sent += [self.channel.seal(encode(frame)) for frame in self._first_frames()]
        sent += [self.channel.seal(encode(piece)) for piece in self._streams.take(budget)]
        for party in [party for party in self._full if self._streams.room(party) > _ROOM_MIN]:
            self._full.pop(party, None)
            self._host.has_room(self, party)
        return b"".join(sent)

    def _first_frames(self) -> Iterator[Frame]:
        """Yield the frames that go before messages of parties."""
        pong, self._pong = self._pong, None
        if pong is not None:
            yield pong
        owed, self._owed = self._owed, 0
        for _ in range(owed):
            yield Shown()
        ping, self._ping = self._ping, None
        if ping is not None:
            yield ping
        if self._matching.has_tags:
            yield from self._matching.take_tags()
        digests, self._digests = self._digests, {}
        for party in digests:
            spoken = self._matching.get(party)
            if spoken is not None:
                yield Digest(spoken.mine, self._host.digest(party))
        show = self._shows.take(self._now_ms)
        if show is not None:
            yield show

    # -- time

    def unread(self, now_ms: int) -> None:
        """Note that nothing was read lately, because much waits here: the other end may have answered."""
        self._keep_alive.unread(now_ms)

    def tick(self, now_ms: int) -> int:
        """Judge what was shown, and keep the link alive. Return the time at which to call this again.

        Raise `LinkSilent` if the other end is gone, or has not finished its handshake in time.
        """
        self._now_ms = now_ms
        if now_ms < self._idle_until_ms and not (self._proven and (self._shown.is_waiting or self._shows.is_waiting)):
            return self._idle_until_ms
        wake_ms, ping = self._keep_alive.tick(self._proven, now_ms)
        self._idle_until_ms = wake_ms
        if not self._proven:
            return wake_ms
        if ping is not None:
            self._ping = ping
        judged = self._shown.judge(self._host.held, now_ms)
        if judged is not None:
            self._host.received(self, *judged, True)
        return min(due_ms for due_ms in (wake_ms, self._shown.due_ms, self._shows.due_ms) if due_ms is not None)
