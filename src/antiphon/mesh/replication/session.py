"""`Session`: replicates one party with one other peer, independent of the transport.

Messages go in and out as bytes, and the time is passed in; a transport or a simulation carries them. Messages may get
lost, arrive twice, late and in any order, even from before a restart of either end.
"""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.mesh.replication.admits import Access
from antiphon.mesh.replication.announcements import Announcer
from antiphon.mesh.replication.codec import decode, encode
from antiphon.mesh.replication.handshake import Handshake, HandshakeStep
from antiphon.mesh.replication.limits import (
    ACKNOWLEDGE_MS,
    LAZY_MS,
    NEVER,
    OUTGOING_SIZE,
    STALLED_MS,
    STRANGER_SIZE_MAX,
)
from antiphon.mesh.replication.message import Announcement, Answer, Body, Enough, Message, More, Request, Show, Want
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.requests import Requester
from antiphon.mesh.replication.responses import Responder
from antiphon.mesh.replication.session_gate import SessionGate
from antiphon.mesh.replication.timeouts import Timeout


class Session:
    """One end of a session. After `receive` and after local changes, `tick` each session of the replica.

    `device` is the key of the other end's device, as a channel or the process has proven it. While that device may not
    have the party, this end is silent: it sends nothing, and raises nothing.
    """

    def __init__(self, replica: Replica, device: bytes, *, name: str = "") -> None:
        self.replica = replica
        self.name = name
        self._gate = SessionGate(replica.admits, device)
        self.taken = 0  # new blocks and evidence of forks; the driver of the session reads and resets it
        self.taken_blobs = 0
        self._handshake = Handshake(replica.new_name)
        self._replies: list[Message] = []
        self._greet_ms = 0
        self._now_ms = 0  # of the last call that told the time
        self._begin()

    def _begin(self) -> None:
        """Reset the session: the two ends know nothing of each other."""
        self._timeout = Timeout()
        self._requester = Requester(self.replica, self._gate, self._timeout)
        self._responder = Responder(self.replica, self._gate, lambda feed, end: self._announcer.gave(feed, end))
        self._queue: list[Body | None] = []
        self._heard = 0  # announcements of the other end that arrived without a gap
        self._acknowledge_ms = 0  # when to acknowledge them at the latest, with an empty message
        lazy_ms = LAZY_MS + int.from_bytes(self._handshake.mine) % LAZY_MS  # the two ends wait for different times
        self._announcer = Announcer(
            self.replica, self._gate, self._requester, self._timeout, lazy_ms, self._responder.serves
        )
        self._their_digest = b""  # of what the other end held when it greeted

    @property
    def connected(self) -> bool:
        """True if the other end has answered."""
        return bool(self._handshake.theirs)

    @property
    def access(self) -> Access:
        """How much of the party the other end's device may have."""
        return self._gate.gives

    @property
    def has_outgoing(self) -> bool:
        """True if `outgoing` would return messages."""
        return bool(self._queue or self._replies or self._responder.has_work)

    @property
    def is_open(self) -> bool:
        """True if this end speaks: the other device may have something of the party, or this one is a newcomer."""
        return self._gate.is_open

    @property
    def is_judging(self) -> bool:
        """True if the other device has shown credentials that are not judged yet."""
        return self._gate.judge_ms < NEVER

    def their_lengths(self) -> dict[bytes, int]:
        """Return how many blocks of each feed the other end has told that it holds. Any thread may ask."""
        return {feed: held.length for feed, held in self._requester.theirs.copy().items()}

    def seems_to_hold(self, feed: bytes) -> bool:
        """True if the other end has claimed as much of a feed as is held here, so that it is not announced."""
        return self._announcer.knows(feed)

    def close(self) -> None:
        """Release the open requests, so that other sessions can make them."""
        self._requester.close()

    # -- bytes

    def receive(self, data: bytes, now_ms: int) -> None:
        """Receive one message. On `InvalidInput` or `RefusedBlocks` the other end is at fault: drop the session."""
        self.receive_all([data], now_ms)

    def receive_all(self, messages: Iterable[bytes], now_ms: int) -> None:
        """Receive messages in their order, as `receive` does; the ranges in all of them are stored in one commit."""
        try:
            for data in messages:
                message = self._accept(data, now_ms)
                if message is not None:
                    self._announcer.acknowledge(message.heard, now_ms)
                    self._dispatch(message.body, now_ms)
        finally:  # what came before a message that is refused is kept
            try:
                self._requester.store(now_ms)
            finally:
                self._count()

    def _count(self) -> None:
        self.taken += self._requester.taken
        self.taken_blobs += self._requester.taken_blobs
        self._requester.taken = self._requester.taken_blobs = 0

    def _accept(self, data: bytes, now_ms: int) -> Message | None:
        """Return a message if the other end may speak, and it is one of this session."""
        self._look(now_ms)
        message = self._read(data) if self._gate.is_open else self._read_from_stranger(data)
        if message is not None and isinstance(message.body, Show):
            self._gate.hear(message.body.credentials)
            self._look(now_ms)
        if message is None or not self._gate.is_open:
            return None
        step = self._handshake.receive(message.sender, message.receiver)
        if step is HandshakeStep.ANSWER:
            mine, theirs = self._handshake.reply(message.sender)
            self._replies = [Message(self.replica.key, mine, theirs, 0, digest=self._digest())]
        if step is HandshakeStep.FRESH:
            self._requester.store(now_ms)
            self._count()
            self._requester.close()
            self._begin()
        if step not in (HandshakeStep.SAME, HandshakeStep.FRESH):
            return None
        self._their_digest = message.digest or self._their_digest
        return message

    def _read(self, data: bytes) -> Message:
        message = decode(data)
        if message.party not in (self.replica.key, b""):
            raise BadEncoding(
                f"a message about party {message.party.hex()[:8]} in a session about {self.replica.key.hex()[:8]}"
            )
        return message

    def _read_from_stranger(self, data: bytes) -> Message | None:
        """Read a message of a device that may not have the party. An error would tell that the party is held here."""
        if len(data) > STRANGER_SIZE_MAX:
            return None
        try:
            return self._read(data)
        except InvalidInput:
            return None

    def _look(self, now_ms: int) -> None:
        """Ask again what the other end may have, if that may have changed."""
        self._now_ms = now_ms
        before = self._gate.gives
        if not self._gate.look(now_ms):
            return
        if self._gate.gives < before or not self._gate.is_open:  # what the other end may still have is sent again later
            self._queue, self._replies = [], []
            self._responder.close()
        if self._gate.is_open:
            self._announcer.again()
            self._requester.again()
        else:
            self._requester.close()

    def _dispatch(self, body: Body | None, now_ms: int) -> None:
        if isinstance(body, Announcement):
            self._take_announcement(body, now_ms)
        elif isinstance(body, Request):
            if isinstance(body, Want):
                self._announcer.requested(body.ranges)
            self._responder.ask(body)
        elif isinstance(body, More):
            self._responder.extend(body)
        elif isinstance(body, Enough):
            self._announcer.enough(body.feeds)
        elif isinstance(body, Answer):
            self._requester.take(body, now_ms)

    def _take_announcement(self, announcement: Announcement, now_ms: int) -> None:
        again = announcement.upto <= self._heard
        if announcement.spans and not again:
            self._requester.take_pushed(announcement.holdings, announcement.spans)
        noted = self._requester.note_holdings(announcement.holdings)
        if noted and announcement.since <= self._heard < announcement.upto:
            self._heard = announcement.upto
        due_ms = now_ms if again else now_ms + ACKNOWLEDGE_MS
        self._acknowledge_ms = min(self._acknowledge_ms or due_ms, due_ms)

    def outgoing(self, budget: int = OUTGOING_SIZE, now_ms: int | None = None) -> list[bytes]:
        """Return messages to send now, of about `budget` bytes, and forget them.

        Announcements and requests come before answers, which are read from the store only now. What is left of them
        comes with the next call. The time of requests runs from `now_ms`, by default that of the last tick.
        """
        if budget <= 0:
            return []
        bodies, replies = self._queue, self._replies
        self._queue, self._replies = [], []
        if bodies:
            self._acknowledge_ms = 0
        sent = [encode(message) for message in (*replies, *map(self._message, bodies))]
        self._requester.sent(self._now_ms if now_ms is None else now_ms)
        left = budget - sum(map(len, sent))
        while left > 0 and (answer := self._responder.next_part(left)) is not None:
            self._acknowledge_ms = 0
            sent.append(encode(self._message(answer)))
            left -= len(sent[-1])
        return sent

    def _message(self, body: Body | None) -> Message:
        mine, theirs = self._handshake.mine, self._handshake.theirs
        begins = isinstance(body, Show) or (isinstance(body, Announcement) and not body.since)
        return Message(b"" if theirs else self.replica.key, mine, theirs, self._heard, body, self._digest(begins))

    def _digest(self, wanted: bool = True) -> bytes:
        """Return the digest of all that is held here, if the two ends may have all of it."""
        whole = wanted and self._gate.gives is Access.WHOLE and self._gate.takes is Access.WHOLE
        return self.replica.digest() if whole else b""

    def arriving(self, now_ms: int) -> None:
        """Note that bytes of the other end are coming, whatever they are: nothing times out meanwhile.

        A link calls this, which has answers on their way behind other data. What comes for too long, or too slowly,
        is not waited for.
        """
        self._requester.arriving(now_ms)
        self._announcer.arriving(now_ms)

    # -- time

    def tick(self, now_ms: int) -> int | None:
        """Announce changed feeds, request missing blocks and blobs, and repeat what timed out.

        Return the time at which to call this again even if no message arrives; None if nothing is waited for.
        """
        self.replica.look()
        self._look(now_ms)
        if not self._gate.is_open:
            return self._gate.judge_ms if self._gate.judge_ms < NEVER else None
        if not self.connected:
            return min(self._greet(now_ms), self._gate.judge_ms)
        if self._queue:  # nothing leaves: what is new meanwhile is said, all at once, when it does
            return min(now_ms + STALLED_MS, self._gate.judge_ms)
        if not self._announcer.has_begun and self._their_digest and self._their_digest == self._digest():
            self._requester.note_the_same()
            self._announcer.skip()
        news, announce_ms = self._announcer.announce(now_ms)
        requests, request_ms = self._requester.request(now_ms)
        shown = [Show(self._gate.proof)] if self._gate.shows(now_ms, self._timeout.lates) else []
        self._queue += [*shown, *news, *requests]
        if self._acknowledge_ms and now_ms >= self._acknowledge_ms and not self._queue:
            self._queue.append(None)
        acknowledge_ms = NEVER if self._queue else self._acknowledge_ms or NEVER
        wake_ms = min(announce_ms, request_ms, acknowledge_ms, self._gate.judge_ms, self._gate.show_ms)
        return wake_ms if wake_ms < NEVER else None

    def _greet(self, now_ms: int) -> int:
        if now_ms >= self._greet_ms:
            if self._greet_ms:
                self._timeout.late()
            self._greet_ms = now_ms + self._timeout.timeout_ms
            shown = Show(self._gate.proof) if self._gate.proof else None
            greeting = Message(self.replica.key, self._handshake.mine, b"", 0, shown, self._digest())
            self._replies = [*self._replies, greeting][-2:]
        return self._greet_ms
