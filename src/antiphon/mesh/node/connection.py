"""`Connection`: one pipe to another machine, with the link on it. It lives in the network thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError, InvalidInput
from antiphon.mesh.link.limits import BOX_SIZE_MAX
from antiphon.mesh.link.link import Link
from antiphon.mesh.node.door import Door
from antiphon.mesh.node.limits import INBOX_SIZE_HIGH, INBOX_SIZE_LOW, PIECE_SIZE
from antiphon.mesh.node.line import Line
from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.doorkeeper import Guest
from antiphon.mesh.transport.limits import BACKLOG_FULL, BACKLOG_HIGH
from antiphon.mesh.transport.pipe import Pipe

if TYPE_CHECKING:
    from asyncio import TimerHandle


class Connection:
    """Owns a pipe (`PipeEvents`), and moves bytes between it and a link. `line` is its side for workers, once proven.

    `ended` is called once, with the error if the other end is at fault or gone; `gone` when the pipe is closed.
    """

    def __init__(
        self,
        pipe: Pipe,
        guest: Guest,
        door: Door,
        make_link: Callable[[], Link],
        now_ms: Callable[[], int],
        call_at: Callable[[int, Callable[[], None]], TimerHandle],
        ended: Callable[[Connection, str, AntiphonError | None], None],
        *,
        gone: Callable[[Connection], None],
        wake: Callable[[bytes], None],
        address: Address | None = None,
    ) -> None:
        self.pipe = pipe
        self.guest = guest
        self._door = door
        self._incoming, self._outgoing = door.shares(self)
        self._is_read = True
        self._waiting = 0
        self.address = address  # that was dialled
        self.line: Line | None = None
        self.began_ms = now_ms()
        self.since_ms = 0  # when the other device was proven
        self.bytes_in = self.bytes_out = 0
        self.rtt_ms: int | None = None
        self.shown: set[bytes] = set()  # parties about which only what the other device has shown lets this end speak
        self.parties: set[bytes] = set()  # those that workers were told of
        self.unmatched: deque[bytes] = deque()
        self.is_over = False
        self._now_ms = now_ms
        self._call_at = call_at
        self._ended = ended
        self._gone = gone
        self._wake = wake
        self._timer: TimerHandle | None = None
        self._asked_ms = now_ms()  # when this end last sent something of the handshake
        self._error: AntiphonError | None = None
        self.link = make_link()

    @property
    def dialled(self) -> bool:
        """True if this end dialled."""
        return self.address is not None

    @property
    def far_end(self) -> str:
        """The address that was dialled, or the far end of the pipe."""
        return str(self.address) if self.address is not None else self.pipe.far_end

    # -- the pipe

    def received(self, data: bytes) -> None:
        """Take bytes of the other end."""
        if self.is_over:
            return
        self.bytes_in += len(data)
        now_ms = self._now_ms()
        was_open = self.link.is_open
        if self.line is not None:
            self.line.heard_ms = now_ms
        try:
            self.link.receive(data, now_ms)
        except InvalidInput as error:
            self.end(str(error), error)
            return
        if self.line is not None:
            self.line.came_ms = now_ms
        if self.link.is_open and not was_open:
            self.rtt_ms = now_ms - self._asked_ms
        if not self.link.is_open and (why := self._door.receive(self.guest, len(data))) is not None:
            self.end(why, abort=True)  # what comes behind the proof of a device does not count
            return
        self._count_arrived()
        self.step()

    def writable(self) -> None:
        """Write on."""
        self.step()

    def closed(self, why: str) -> None:
        """Note that the pipe has ended."""
        self._over(why)
        self._gone(self)

    # -- the link

    def step(self) -> None:
        """Write what the link has to send, as far as the pipe takes it, and set the timer."""
        if self.is_over:
            return
        if self.pipe.backlog < BACKLOG_FULL:  # else who asks and does not read would fill the memory with answers
            self._write(self.link.outgoing(0))
        self._count()
        while self.link.is_open and self.link.has_outgoing and self.pipe.backlog < BACKLOG_HIGH:
            if not self._write(self.link.outgoing(PIECE_SIZE)):
                break
        self._count()
        self._tick()

    def _count(self) -> None:
        """Count what waits to be sent."""
        waiting = self.link.waiting_size - self.link.arrived_size
        self._outgoing.hold(waiting + self.pipe.backlog, self._now_ms())

    def _count_arrived(self) -> None:
        """Count what has come: messages for workers, and incomplete ones. If it is too much, nothing is read."""
        if self.is_over:
            return
        now_ms, before = self._now_ms(), self._incoming.held
        room = self._incoming.hold(self._waiting + self.link.arrived_size, now_ms)
        if self._is_read and (not room or self._waiting > INBOX_SIZE_HIGH):
            self._is_read = False
            self.pipe.pause()
            self._door.resume()  # one that waits for room may have the spare
        elif not self._is_read and room and self._waiting <= INBOX_SIZE_LOW:
            self._is_read = True
            self.link.unread(now_ms)
            self.pipe.resume()
        if self._incoming.held < before:
            self._door.resume()

    def wait(self, size: int) -> None:
        """Count what waits for workers. If it is too much, nothing is read."""
        self._waiting = size
        self._count_arrived()

    def go_on(self) -> None:
        """Read and send on: others have given back what they held."""
        if self.is_over:
            return
        self._count_arrived()
        for party in self.parties:
            if self.line is not None and self.line.set_room(party, self.room(party)):
                self._wake(party)

    def _write(self, data: bytes) -> bool:
        if data:
            if not self.link.is_open:
                self._asked_ms = self._now_ms()
            self.bytes_out += len(data)
            self.pipe.write(data)
        return bool(data)

    def _tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_read:
            self.link.unread(self._now_ms())
        try:
            at_ms = self.link.tick(self._now_ms())
        except AntiphonError as error:  # it is silent
            self.end(str(error), error)
            return
        if not self.is_over:
            self._timer = self._call_at(at_ms, self.step)

    def end(self, why: str, error: AntiphonError | None = None, *, abort: bool = False) -> None:
        """Close the connection. `error` says what the other end did; with it, or `abort`, nothing more is sent."""
        if not self.is_over:
            self._error = error
            if error is None and not abort:
                self.pipe.close(why)
            else:
                self.pipe.abort(why)
            self._over(why)

    def _over(self, why: str) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self.line is not None:
            self.line.is_closed = True
        self._incoming.end()
        self._outgoing.end()
        self._ended(self, why, self._error)

    # -- for workers

    def room(self, party: bytes) -> int:
        """Return how many bytes of a party can be queued. What a newcomer is answered first fits one box."""
        room = self.link.room(party) or (0 if self.link.is_matched(party) else BOX_SIZE_MAX)
        return min(room, self._outgoing.room)

    def deliver(self, party: bytes, messages: list[bytes]) -> int:
        """Queue messages of a session. Return the room that is left."""
        self.link.send(party, messages)
        self.step()
        return self.room(party)

    def next_unmatched(self) -> bytes | None:
        """Return a party in which this end speaks, and the other does not, as far as known; None if there is none."""
        while self.unmatched:
            party = self.unmatched.popleft()
            if not self.link.is_matched(party):
                return party
        return None
