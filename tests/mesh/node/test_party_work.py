"""The work on one party: what fails is tried again, and what is left and met again is not forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from antiphon.core.errors import DiskFull
from antiphon.mesh.node.limits import RETRY_MS
from antiphon.mesh.node.line import Line
from antiphon.mesh.node.party_work import PartyWork

PARTY = b"p" * 32


class FullHost:
    """A host whose disk is full."""

    def __init__(self) -> None:
        self.opened = 0

    def open(self, party: bytes) -> None:
        self.opened += 1
        raise DiskFull("no room is left; free some")

    def digest(self, party: bytes) -> bytes:
        return bytes(32)

    def taking(self) -> nullcontext[None]:
        return nullcontext()


class Ends:
    """A line, with what it says to the network thread."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.waits: list[int] = []
        self.delivered: list[tuple[bytes, Sequence[bytes]]] = []
        self.line = Line(
            1,
            b"d" * 32,
            self.calls.append,
            lambda party, messages: self.delivered.append((party, messages)),
            self.waits.append,
            lambda error: None,
            lambda party: None,
            lambda party: None,
        )

    def network(self) -> None:
        """Do what the network thread has been asked for."""
        calls, self.calls[:] = self.calls[:], []
        for call in calls:
            call()


def work_of(host: object, now: list[int]) -> PartyWork:
    return PartyWork(PARTY, host, lambda: now[0], lambda line: None)  # type: ignore[arg-type]


def test_what_comes_while_a_party_waits_for_another_try_counts_no_more_and_meets_then() -> None:
    ends, host, now = Ends(), FullHost(), [0]
    work = work_of(host, now)
    work.meet(ends.line)
    assert work.turn() == RETRY_MS
    for _ in range(100):
        ends.line.came(1_000)
        work.receive(ends.line, bytes(1_000))
        assert work.turn() == RETRY_MS
    ends.network()
    assert ends.waits[-1] == 0
    assert host.opened == 1
    now[0] = RETRY_MS
    work.turn()
    assert host.opened == 2  # the session that could not begin is begun


def test_who_is_met_again_right_after_leaving_is_met() -> None:
    ends, host = Ends(), FullHost()
    work = work_of(host, [0])
    work.leave(ends.line)
    work.meet(ends.line)
    work.turn()
    assert host.opened == 1


def test_messages_of_a_session_that_was_ended_do_not_leave() -> None:
    """A device is revoked while a worker prepares an answer for it: the answer came too late."""
    ends = Ends()
    term = ends.line.term(PARTY)
    ends.line.send(PARTY, [b"before"], term)
    ends.network()
    ends.line.send(PARTY, [b"too late"], term)
    ends.line.forget(PARTY)
    ends.network()
    ends.line.send(PARTY, [b"later still"], term)
    ends.network()
    ends.line.send(PARTY, [b"of another session"], ends.line.term(PARTY))
    ends.network()
    assert [messages for _, messages in ends.delivered] == [[b"before"], [b"of another session"]]


def test_a_worker_reports_what_waits_through_the_network_thread() -> None:
    """A report at once would take locks of the network thread, which may wait for those of the worker."""
    ends = Ends()
    ends.line.came_again(1_000)
    assert not ends.waits
    ends.network()
    assert ends.waits == [1_000]
