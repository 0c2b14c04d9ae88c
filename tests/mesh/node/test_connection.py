"""A connection whose other end does not behave: it costs a bounded part of the memory."""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from tests.mesh.link.link_pair import ALICE, BOB, NOW_MS, HandHost, party

from antiphon.core.errors import AntiphonError, LinkSilent, TooLarge
from antiphon.core.ports import SeededRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.mesh.link.frames import Data, Frame, Ping, Show, Tags, decode, encode
from antiphon.mesh.link.limits import ANSWER_MS, PIECE_SIZE_MAX, PING_MS, SHOWS_OWED_MAX
from antiphon.mesh.link.link import Link
from antiphon.mesh.link.party_tags import DIALLER, PartyTags
from antiphon.mesh.node.connection import Connection
from antiphon.mesh.node.door import Door
from antiphon.mesh.node.limits import INBOX_SIZE_HIGH
from antiphon.mesh.transport.doorkeeper import Guest, Standing
from antiphon.mesh.transport.limits import BACKLOG_FULL
from antiphon.mesh.transport.waiting_budget import Share, WaitingBudget


@dataclass
class StuckPipe:
    """A pipe that takes bytes, and lets them leave only when a test says so."""

    far_end: str = "192.0.2.7:4242"
    held: bytearray = field(default_factory=bytearray)
    is_read: bool = True
    ended: str = ""

    @property
    def backlog(self) -> int:
        return len(self.held)

    def write(self, data: bytes) -> None:
        self.held += data

    def leave(self) -> bytes:
        data, self.held = bytes(self.held), bytearray()
        return data

    def pause(self) -> None:
        self.is_read = False

    def resume(self) -> None:
        self.is_read = True

    def close(self, why: str = "") -> None:
        self.ended = why

    def abort(self, why: str = "") -> None:
        self.ended = why


class OpenDoor:
    """A door that lets everybody in."""

    def __init__(self) -> None:
        self.budget = WaitingBudget()

    def shares(self, connection: Connection) -> tuple[Share, Share]:
        return self.budget.share(connection), self.budget.share(connection)

    def receive(self, guest: Guest, size: int) -> str | None:
        return None

    def resume(self) -> None:
        for share in self.budget.resumable():
            cast(Connection, share.owner).go_on()


class Meeting:
    """Alice, frame by frame, at a connection of Bob."""

    def __init__(self, host: HandHost | None = None) -> None:
        self.now_ms = NOW_MS
        self.pipe, self.door = StuckPipe(), OpenDoor()
        self.errors: list[AntiphonError | None] = []
        chance = SeededRandomness("meeting")
        self.alice = Channel.dial(ALICE, BOB.key, now_ms=NOW_MS, randomness=chance)
        channel = Channel.answer(BOB, SeenHandshakes(), now_ms=NOW_MS, randomness=chance)
        self.bob = Connection(
            self.pipe,
            Guest("192.0.2.7", Standing.UNPROVEN, NOW_MS),
            cast(Door, self.door),
            lambda: Link(channel, host or HandHost(), randomness=chance, now_ms=NOW_MS),
            lambda: self.now_ms,
            self._call_at,
            lambda connection, why, error: self.errors.append(error),
            gone=lambda connection: None,
            wake=lambda party: None,
        )
        self.bob.received(self.alice.outgoing())
        self.hear()
        self.bob.received(self.alice.outgoing())
        self.hear()

    def _call_at(self, at_ms: int, act: Callable[[], None]) -> TimerHandle:
        class Timer:
            def cancel(self) -> None: ...

        return cast(TimerHandle, Timer())

    def say(self, *frames: Frame) -> None:
        self.bob.received(b"".join(self.alice.seal(encode(frame)) for frame in frames))

    def hear(self) -> list[Frame]:
        return [decode(frame) for frame in self.alice.receive(self.pipe.leave())]


def test_who_asks_and_does_not_read_fills_no_memory() -> None:
    meeting = Meeting()
    for number in range(3 * BACKLOG_FULL // 27):
        meeting.say(Ping(number.to_bytes(8)))
    assert meeting.pipe.backlog <= BACKLOG_FULL + 1_000
    meeting.hear()
    meeting.bob.writable()
    assert len(meeting.hear()) == 1  # the last one is still answered


def test_who_shows_messages_without_end_and_does_not_read_is_let_go() -> None:
    meeting = Meeting()
    meeting.pipe.held += bytes(BACKLOG_FULL)
    for _ in range(SHOWS_OWED_MAX):
        meeting.say(Show(bytes(16), bytes(16)))
    assert meeting.pipe.backlog == BACKLOG_FULL
    assert not meeting.pipe.ended
    meeting.say(Show(bytes(16), bytes(16)))
    assert isinstance(meeting.errors[0], TooLarge)


def test_pieces_of_a_message_count_for_what_has_come_and_not_for_what_is_to_be_sent() -> None:
    one = party("one")
    meeting = Meeting(HandHost(speaks={one}))
    tag = PartyTags(meeting.alice.id, DIALLER).tag(one)
    meeting.say(Tags((tag, *(bytes([number] * 16) for number in range(1, 16)))))
    meeting.hear()
    meeting.bob.writable()
    for number in range(64):
        meeting.say(Data(tag, not number, False, bytes(PIECE_SIZE_MAX)))
    incoming, outgoing = meeting.bob._incoming, meeting.bob._outgoing
    assert (incoming.held, outgoing.held) == (64 * PIECE_SIZE_MAX, 0)
    meeting.say(Data(tag, False, True, b"."))
    assert incoming.held == 0


def test_who_is_not_read_for_long_is_not_called_silent_and_hears_of_this_end() -> None:
    """Workers are busy for minutes, and more than enough waits for them: answers are behind what is not read."""
    meeting = Meeting()
    meeting.bob.wait(2 * INBOX_SIZE_HIGH)
    assert not meeting.pipe.is_read
    silent_ms = 0
    for _ in range(30):
        meeting.now_ms += 10_000
        silent_ms += 10_000
        meeting.bob.step()
        if any(isinstance(frame, Ping) for frame in meeting.hear()):
            silent_ms = 0
        assert not meeting.errors
        assert silent_ms < PING_MS + ANSWER_MS
    meeting.bob.wait(0)
    assert meeting.pipe.is_read
    meeting.bob.step()
    assert not meeting.errors
    for _ in range(2):
        meeting.now_ms += ANSWER_MS + PING_MS
        meeting.bob.step()
    assert isinstance(meeting.errors[0], LinkSilent)
