"""`Session`: one connection to one other peer about one party, without the connection.

Bytes go in and come out, and time is handed in; whoever has a network, or a simulation of one, carries them. Messages
may get lost, come twice, late and in any order, from before a restart of either side too.
"""

from __future__ import annotations

from antiphon.core.errors import BadEncoding
from antiphon.mesh.asking import Asking
from antiphon.mesh.codec import decode, encode
from antiphon.mesh.giving import Giving
from antiphon.mesh.greeting import Greeted, Greeting
from antiphon.mesh.limits import HOLDINGS_MAX, OUTGOING_SIZE_MAX
from antiphon.mesh.message import Announcement, Blobs, Body, Holding, Message, Ranges, Want, WantBlobs
from antiphon.mesh.pace import Pace
from antiphon.mesh.replica import Replica


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
        self._queue: list[Body] = []
        self._queued_size = 0
        self._owes = False  # the other end waits to hear that its announcement was heard
        self._heard = 0  # the version of the other's holdings that was heard without a gap
        self._passed = self._told = self._acknowledged = 0  # versions of the own ones
        self._told_most = 0
        self._unheard = 0  # holdings that were told and not acknowledged
        self._told_ms = 0
        self._tell_again_ms = 0

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
        self._acknowledge(message.heard, now_ms)
        self._dispatch(message.body, now_ms)

    def _dispatch(self, body: Body | None, now_ms: int) -> None:
        if isinstance(body, Announcement):
            self._hear(body)
        elif isinstance(body, Want | WantBlobs):
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

    def _hear(self, announcement: Announcement) -> None:
        self._asking.hear(announcement.holdings)
        if announcement.since <= self._heard < announcement.upto:
            self._heard = announcement.upto
        self._owes = True

    def _acknowledge(self, heard: int, now_ms: int) -> None:
        if heard > self._told_most:
            raise BadEncoding(f"version {heard} of what is held here is acknowledged, which was never announced")
        if heard <= self._acknowledged:
            return
        self._acknowledged = heard
        self._passed, self._told = max(self._passed, heard), max(self._told, heard)  # it may be what is told again
        if heard == self._told:
            self._unheard = 0
            self._pace.answered(now_ms - self._told_ms)

    def outgoing(self) -> list[bytes]:
        """The messages to be sent now."""
        bodies: list[Body | None] = [*self._queue]
        if self._owes and not bodies:
            bodies.append(None)
        replies, self._replies = self._replies, []
        if bodies:
            self._queue, self._queued_size, self._owes = [], 0, False
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
        self._tell(now_ms)
        asked, wake_ms = self._asking.ask(now_ms)
        self._queue += asked
        if self._told > self._acknowledged:
            wake_ms = min(wake_ms, self._tell_again_ms)
        return wake_ms if wake_ms < _NEVER else None

    def _greet(self, now_ms: int) -> int:
        if now_ms >= self._greet_ms:
            if self._greet_ms:
                self._pace.late()
            self._greet_ms = now_ms + self._pace.timeout_ms
            self._replies = [*self._replies, Message(self.replica.key, self._greeting.mine, b"", 0)][-2:]
        return self._greet_ms

    def _tell(self, now_ms: int) -> None:
        """Announce what the other end has not heard of."""
        version = self.replica.holdings.version
        if self._told > self._acknowledged and now_ms >= self._tell_again_ms:
            self._pace.late()
            self._passed = self._told = self._acknowledged
            self._unheard = 0
        while self._passed < version and self._unheard < HOLDINGS_MAX:
            self._tell_some(now_ms)

    def _tell_some(self, now_ms: int) -> None:
        changed = [*self.replica.holdings.since(self._passed)][::-1]
        some = changed[: HOLDINGS_MAX - self._unheard]
        upto = self.replica.holdings.version if len(some) == len(changed) else some[-1][0]
        self._passed = upto
        news = tuple(held for _, held in some if not self._knows(held))
        if not news and self._told:
            return
        self._queue.append(Announcement(self._told, upto, news))
        self._told = upto
        self._told_most = max(self._told_most, upto)
        self._unheard += len(news)
        self._told_ms = now_ms
        self._tell_again_ms = now_ms + self._pace.timeout_ms

    def _knows(self, held: Holding) -> bool:
        """Whether the other end holds as much of a feed, so that it need not be told."""
        theirs = self._asking.theirs.get(held.feed)
        if theirs is None or theirs.length < held.length:
            return False
        if held.fork is not None and (theirs.fork is None or theirs.fork > held.fork):
            return False
        return theirs.length > held.length or theirs.hash == held.hash


_NEVER = 1 << 62
