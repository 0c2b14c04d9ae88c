"""`Session`: one connection to one other peer about one party, without the connection.

Bytes go in and come out, and time is handed in; whoever has a network, or a simulation of one, carries them. Messages
may get lost, come twice, late and in any order, from before a restart of either side too.
"""

from __future__ import annotations

from antiphon.core.errors import BadEncoding
from antiphon.mesh.announcements import Telling
from antiphon.mesh.codec import decode, encode
from antiphon.mesh.handshake import Greeted, Greeting
from antiphon.mesh.limits import ACKNOWLEDGE_MS, LAZY_MS, NEVER, OUTGOING_SIZE_MAX
from antiphon.mesh.message import Announcement, Blobs, Body, Message, Ranges, Want, WantBlobs
from antiphon.mesh.replica import Replica
from antiphon.mesh.requests import Asking
from antiphon.mesh.responses import Giving
from antiphon.mesh.timeouts import Pace


class Session:
    """One end of a session. After `receive` and after local changes, `tick` each session of the replica."""

    def __init__(self, replica: Replica, *, name: str = "") -> None:
        self.replica = replica
        self.name = name
        self.taken = 0  # blocks and evidence of forks that were new: whoever drives the session reads and resets it
        self.taken_blobs = 0
        self._greeting = Greeting(replica.name)
        self._replies: list[Message] = []
        self._greet_ms = 0
        self._begin()

    def _begin(self) -> None:
        """The other end knows nothing of this one, nor this one of that."""
        self._pace = Pace()
        self._asking = Asking(self.replica, self._pace)
        self._giving = Giving(self.replica)
        self._queue: list[Body | None] = []
        self._queued_size = 0
        self._heard = 0  # the other's announcements that were heard, without a gap
        self._owe_ms = 0  # when to say so at the latest, though there is nothing else to say
        lazy_ms = LAZY_MS + int.from_bytes(self._greeting.mine) % LAZY_MS  # the two ends wait unequally long
        self._telling = Telling(self.replica, self._asking, self._pace, lazy_ms)

    @property
    def connected(self) -> bool:
        """Whether the other end has answered."""
        return bool(self._greeting.theirs)

    def close(self) -> None:
        """Let others ask for what was asked for here."""
        self._asking.close()

    # -- bytes

    def receive(self, data: bytes, now_ms: int) -> None:
        """Take one message. `InvalidInput` and `RefusedBlocks` mean that the other end is wrong: drop the session."""
        message = decode(data)
        if message.party != self.replica.key:
            raise BadEncoding(
                f"a message about party {message.party.hex()[:8]} in a session about {self.replica.key.hex()[:8]}"
            )
        greeted = self._greeting.hear(message.sender, message.receiver)
        if greeted is Greeted.ANSWER:
            mine, theirs = self._greeting.reply(message.sender)
            self._replies = [Message(self.replica.key, mine, theirs, 0)]
        if greeted is Greeted.FRESH:
            self._asking.close()
            self._begin()
        if greeted not in (Greeted.SAME, Greeted.FRESH):
            return
        self._telling.heard(message.heard, now_ms)
        self._dispatch(message.body, now_ms)

    def _dispatch(self, body: Body | None, now_ms: int) -> None:
        if isinstance(body, Announcement):
            self._hear(body, now_ms)
        elif isinstance(body, Want | WantBlobs):
            if isinstance(body, Want):
                self._telling.asked(feed for feed, _ in body.ranges)
            if self._queued_size < OUTGOING_SIZE_MAX:
                self._answer(body)
        elif body is not None:
            try:
                if isinstance(body, Ranges):
                    self._asking.take(body, now_ms)
                else:
                    self._asking.take_blobs(body, now_ms)
            finally:
                self.taken += self._asking.taken
                self.taken_blobs += self._asking.taken_blobs
                self._asking.taken = self._asking.taken_blobs = 0

    def _answer(self, want: Want | WantBlobs) -> None:
        answer: Ranges | Blobs | None = self._giving.answer(want)
        if answer is not None:
            self._queue.append(answer)
            self._queued_size += self._giving.size

    def _hear(self, announcement: Announcement, now_ms: int) -> None:
        self._asking.hear(announcement.holdings)
        again = announcement.upto <= self._heard
        if announcement.since <= self._heard < announcement.upto:
            self._heard = announcement.upto
        due_ms = now_ms if again else now_ms + ACKNOWLEDGE_MS
        self._owe_ms = min(self._owe_ms or due_ms, due_ms)

    def outgoing(self) -> list[bytes]:
        """The messages to be sent now."""
        bodies, replies = self._queue, self._replies
        self._queue, self._queued_size, self._replies = [], 0, []
        if bodies:
            self._owe_ms = 0
        mine, theirs = self._greeting.mine, self._greeting.theirs
        return [
            encode(message)
            for message in (*replies, *(Message(self.replica.key, mine, theirs, self._heard, body) for body in bodies))
        ]

    # -- time

    def tick(self, now_ms: int) -> int | None:
        """Announce what changed, ask for what is lacking, and again for what is late.

        Returns when to be called again though nothing comes; None if there is nothing to wait for.
        """
        self.replica.look()
        if not self.connected:
            return self._greet(now_ms)
        news, tell_ms = self._telling.tell(now_ms)
        asked, ask_ms = self._asking.ask(now_ms)
        self._queue += [*news, *asked]
        if self._owe_ms and now_ms >= self._owe_ms and not self._queue:
            self._queue.append(None)
        wake_ms = min(tell_ms, ask_ms, self._owe_ms if self._owe_ms and not self._queue else NEVER)
        return wake_ms if wake_ms < NEVER else None

    def _greet(self, now_ms: int) -> int:
        if now_ms >= self._greet_ms:
            if self._greet_ms:
                self._pace.late()
            self._greet_ms = now_ms + self._pace.timeout_ms
            self._replies = [*self._replies, Message(self.replica.key, self._greeting.mine, b"", 0)][-2:]
        return self._greet_ms
