"""The laws of a transport, for any adapter: `run_transport_tests(make)` checks an adapter.

>>> from contextlib import nullcontext
>>> from antiphon.mesh.transport.memory import MemoryNetwork
>>> class InMemory:
...     def __init__(self) -> None:
...         self.network = MemoryNetwork("seed")
...         self.transport, self.host = self.network.transport("here"), "here"
...     def run(self, until: Callable[[], bool]) -> None:
...         while not until():
...             assert self.network.deliver(), "nothing more happens"
>>> len(run_transport_tests(lambda: nullcontext(InMemory())))
15
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol

from antiphon.core.keys import PublicKey
from antiphon.core.reasons import Reason, code_of
from antiphon.mesh.transport.address import Address, endpoint
from antiphon.mesh.transport.limits import BACKLOG_HIGH, BACKLOG_LOW
from antiphon.mesh.transport.pipe import Listener, Pipe, PipeEvents, Transport

_DEVICE = PublicKey(b"d" * 32)
_PIECE = 64 << 10
_PIECES_MAX = 1024  # what a network without a reader may take
_SIZES = (1, 3, 4096, 1, 70_000, 17, 3 << 20, 1, 262_144, 2)


class TransportSetup(Protocol):
    """A transport that can reach itself, and the loop that drives it."""

    @property
    def transport(self) -> Transport:
        """The transport."""

    @property
    def host(self) -> str:
        """The host to listen on and to dial."""

    def run(self, until: Callable[[], bool]) -> None:
        """Let the transport work until the condition is true. AssertionError if that takes too long."""


def _pattern(size: int, mark: int) -> bytes:
    """Return bytes in which no two places look alike."""
    return random.Random(mark).randbytes(size)  # noqa: S311


class Owner:
    """One end of a pipe in a law. Remembers what it was told, and finds fault with what must not come."""

    def __init__(self, bench: Bench, pipe: Pipe) -> None:
        self.bench = bench
        self.pipe = pipe
        self.got = bytearray()
        self.whys: list[str] = []
        self.writables = 0
        self.is_paused = False
        self.has_ended = False  # by a call of this owner
        self.when_received: Callable[[], None] | None = None

    def received(self, data: bytes) -> None:
        self._told("received", unless=self.has_ended)
        if self.is_paused:
            self.bench.faults.append("bytes came while reading was paused")
        if not data:
            self.bench.faults.append("no bytes came")
        self.got += data
        if self.when_received is not None:
            self.when_received()

    def writable(self) -> None:
        self._told("writable", unless=self.has_ended)
        if self.pipe.backlog > BACKLOG_LOW:
            self.bench.faults.append("a pipe called itself writable with a backlog above the low mark")
        self.writables += 1

    def closed(self, why: str) -> None:
        self._told("closed")
        self.whys.append(why)

    def _told(self, name: str, *, unless: bool = False) -> None:
        if self.bench.calls:
            self.bench.faults.append(f"`{name}` was called from inside a call of a pipe or transport")
        if self.whys:
            self.bench.faults.append(f"`{name}` was called after `closed`")
        elif unless:
            self.bench.faults.append(f"`{name}` was called after this end had closed the pipe")

    def write(self, data: bytes) -> None:
        with self.bench.call():
            self.pipe.write(data)

    def pause(self) -> None:
        self.is_paused = True
        with self.bench.call():
            self.pipe.pause()

    def resume(self) -> None:
        self.is_paused = False
        with self.bench.call():
            self.pipe.resume()

    def close(self, why: str = "") -> None:
        self.has_ended = True
        with self.bench.call():
            self.pipe.close(why)

    def abort(self, why: str = "") -> None:
        self.has_ended = True
        with self.bench.call():
            self.pipe.abort(why)


class Bench:
    """Listens, dials itself, and collects faults, for one law."""

    def __init__(self, setup: TransportSetup) -> None:
        self.setup = setup
        self.faults: list[str] = []
        self.calls = 0  # of the transport, that have not returned
        self.dialled: list[Owner] = []
        self.accepted: list[Owner] = []
        self.failures: list[str] = []
        self.refuse = False
        self.listener = self.listen()

    @contextmanager
    def call(self) -> Iterator[None]:
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    def listen(self) -> Listener:
        with self.call():
            return self.setup.transport.listen(self.setup.host, 0, self._accept)

    def _accept(self, pipe: Pipe) -> PipeEvents | None:
        return None if self.refuse else self._own(pipe, self.accepted)

    def _own(self, pipe: Pipe, owners: list[Owner]) -> Owner:
        if self.calls:
            self.faults.append("an owner was asked for from inside a call of a pipe or transport")
        owners.append(Owner(self, pipe))
        return owners[-1]

    def _failed(self, why: str) -> None:
        if self.calls:
            self.faults.append("`failed` was called from inside a call of a pipe or transport")
        self.failures.append(why)

    def dial(self, port: int | None = None) -> None:
        address = Address(_DEVICE, self.setup.host, self.listener.port if port is None else port)
        with self.call():
            self.setup.transport.dial(address, partial(self._own, owners=self.dialled), self._failed)

    def pair(self) -> tuple[Owner, Owner]:
        """Return both ends of a new pipe: the one that dialled, and the one that accepted."""
        dialled, accepted = len(self.dialled), len(self.accepted)
        self.dial()
        self.run(lambda: len(self.dialled) > dialled and len(self.accepted) > accepted)
        return self.dialled[-1], self.accepted[-1]

    def run(self, until: Callable[[], bool]) -> None:
        self.setup.run(until)

    def fill(self, owner: Owner) -> bytes:
        """Write until the backlog is at its high mark. Return what was written."""
        written = bytearray()
        for number in range(_PIECES_MAX):
            piece = _pattern(_PIECE, number)
            owner.write(piece)
            written += piece
            if owner.pipe.backlog >= BACKLOG_HIGH:
                return bytes(written)
            self.exchange()  # time for the network to take what it can
        raise AssertionError(f"{len(written):,} bytes left for a reader that is paused")

    def exchange(self) -> None:
        """Send a byte there and back on a pipe of its own: whatever was due before that has come by then."""
        one, other = self.pair()
        for sender, receiver in ((one, other), (other, one)):
            sender.write(b"x")
            self.run(lambda receiver=receiver: bool(receiver.got))  # type: ignore[misc]
        one.close()
        self.run(lambda: bool(one.whys and other.whys))


def bytes_arrive_in_order(bench: Bench) -> None:
    """Bytes arrive whole and in order, in both directions at once, from writes of one byte and of millions."""
    one, other = bench.pair()
    pieces = [_pattern(size, number) for number, size in enumerate(_SIZES)]
    whole = b"".join(pieces)
    for piece in pieces:
        one.write(piece)
        other.write(piece[::-1])
    bench.run(lambda: len(one.got) >= len(whole) and len(other.got) >= len(whole))
    assert other.got == whole, "the listening end got other bytes"
    assert one.got == b"".join(piece[::-1] for piece in pieces), "the dialling end got other bytes"
    bench.run(lambda: one.pipe.backlog == other.pipe.backlog == 0)


def an_empty_write_is_nothing(bench: Bench) -> None:
    """A write of no bytes sends nothing, and harms nothing."""
    one, other = bench.pair()
    one.write(b"")
    one.write(b"after")
    bench.run(lambda: len(other.got) >= 5)
    assert other.got == b"after"


def ends_have_names(bench: Bench) -> None:
    """Both ends name the other, the dialling one as it was dialled. A listener on any port knows which it is."""
    one, other = bench.pair()
    assert one.pipe.far_end == endpoint(bench.setup.host, bench.listener.port)
    assert ":" in other.pipe.far_end
    assert bench.listener.port > 0
    assert bench.listener.host == bench.setup.host


def a_paused_reader_stops_the_writer(bench: Bench) -> None:
    """While a reader pauses, nothing comes and the backlog grows; later all comes, and the writer hears `writable`."""
    one, other = bench.pair()
    other.write(b"go")
    bench.run(lambda: one.got == b"go")
    other.pause()
    written = bench.fill(one)
    assert not other.got, "bytes came while reading was paused"
    assert not one.writables, "a full pipe called itself writable"
    other.resume()
    bench.run(lambda: len(other.got) >= len(written))
    assert other.got == written, "other bytes came"
    bench.run(lambda: one.pipe.backlog == 0 and one.writables > 0)


def a_writer_that_waits_writes_all(bench: Bench) -> None:
    """A writer that goes on at each `writable` sends any amount through a bounded backlog."""
    one, other = bench.pair()
    pieces = [_pattern(_PIECE, number) for number in range(300)]
    sent, heard, greatest = 0, -1, 0

    def write_on() -> bool:
        nonlocal sent, heard, greatest
        if heard < one.writables:
            heard = one.writables
            while sent < len(pieces) and one.pipe.backlog < BACKLOG_HIGH:
                one.write(pieces[sent])
                sent += 1
            greatest = max(greatest, one.pipe.backlog)
        return len(other.got) >= len(pieces) * _PIECE

    bench.run(write_on)
    assert other.got == b"".join(pieces)
    assert greatest < BACKLOG_HIGH + _PIECE


def reading_can_pause_inside_a_callback(bench: Bench) -> None:
    """A reader that pauses at each piece gets all of them, one after each `resume`."""
    one, other = bench.pair()
    whole = _pattern(2 << 20, 5)

    def pause() -> None:
        other.pause()

    other.when_received = pause
    one.write(whole)

    def resume() -> bool:
        if other.is_paused:
            other.resume()
        return len(other.got) >= len(whole)

    bench.run(resume)
    assert other.got == whole


def the_last_words_arrive(bench: Bench) -> None:
    """Bytes written before `close` arrive, then the end; each end hears `closed` once, with its own reason."""
    one, other = bench.pair()
    whole = _pattern(1 << 20, 9)
    one.write(whole)
    one.close("we are done")
    bench.run(lambda: bool(one.whys and other.whys))
    assert other.got == whole, f"{len(other.got):,} of {len(whole):,} bytes came before the end"
    assert one.whys[0].startswith("we are done")
    assert code_of(one.whys[0]) is Reason.PIPE_CLOSED
    assert code_of(other.whys[0]) is Reason.PIPE_CLOSED, other.whys[0]


def the_last_words_arrive_against_a_stream(bench: Bench) -> None:
    """Bytes written before `close` arrive even if the other end is sending, which the closing end does not hear."""
    one, other = bench.pair()
    whole = _pattern(1 << 20, 11)
    other.write(_pattern(4 << 20, 12))
    bench.run(lambda: bool(one.got))
    one.write(whole)
    one.close()
    bench.run(lambda: bool(one.whys and other.whys))
    assert other.got == whole, f"{len(other.got):,} of {len(whole):,} bytes came before the end"


def both_ends_can_close_at_once(bench: Bench) -> None:
    """Two ends that close at once are both closed, each with its own reason."""
    one, other = bench.pair()
    one.close("one")
    other.close("other")
    bench.run(lambda: bool(one.whys and other.whys))
    assert one.whys[0].startswith("one")
    assert other.whys[0].startswith("other")


def an_abort_ends_both(bench: Bench) -> None:
    """`abort` ends a pipe whose reader pauses, whatever waits; a second end changes nothing."""
    one, other = bench.pair()
    other.pause()
    bench.fill(one)
    one.close("enough")
    one.abort("later")
    bench.run(lambda: bool(one.whys))
    assert one.whys[0].startswith("enough")
    other.resume()
    bench.run(lambda: bool(other.whys))
    assert code_of(other.whys[0]) in (Reason.PIPE_CLOSED, Reason.PIPE_LOST), other.whys[0]


def an_end_is_the_end(bench: Bench) -> None:
    """Calls of a closed pipe do nothing."""
    one, other = bench.pair()
    one.close("first")
    bench.run(lambda: bool(one.whys and other.whys))
    for owner in (one, other):
        owner.write(b"too late")
        assert owner.pipe.backlog == 0, "a closed pipe has a backlog"
        owner.pause()
        owner.resume()
        owner.close("second")
        owner.abort("third")
    bench.exchange()
    assert not one.got
    assert not other.got


def pipes_do_not_mix(bench: Bench) -> None:
    """Many pipes carry their own bytes, at once, and end one by one."""
    count = 40
    for _ in range(count):
        bench.dial()
    bench.run(lambda: len(bench.dialled) == len(bench.accepted) == count)
    for number, owner in enumerate(bench.dialled):
        owner.write(_pattern(50_000, number))
        owner.close()
    bench.run(lambda: all(owner.whys for owner in (*bench.dialled, *bench.accepted)))
    got = sorted(bytes(owner.got) for owner in bench.accepted)
    assert got == sorted(_pattern(50_000, number) for number in range(count)), "bytes of one pipe came on another"


def a_refused_pipe_ends(bench: Bench) -> None:
    """A dialler that is refused hears the end once; others are accepted after it."""
    bench.refuse = True
    bench.dial()
    bench.run(lambda: bool(bench.failures) or any(owner.whys for owner in bench.dialled))
    bench.refuse = False
    bench.exchange()
    assert len(bench.failures) + len(bench.dialled) == 2, "who was refused was told twice"


def a_failed_dial_is_told_once(bench: Bench) -> None:
    """A dial to a port on which nothing listens fails once, with a reason, and makes no pipe."""
    other = bench.listen()
    other.close()
    bench.dial(other.port)
    bench.run(lambda: bool(bench.failures))
    bench.exchange()
    assert len(bench.failures) == 1
    assert code_of(bench.failures[0]) is Reason.DIAL_REFUSED, bench.failures[0]
    assert len(bench.dialled) == 1, "a dial that failed made a pipe"


def pipes_outlive_their_listener(bench: Bench) -> None:
    """A listener that is closed accepts nothing more; its pipes stay."""
    one, other = bench.pair()
    with bench.call():
        bench.listener.close()
        bench.listener.close()
    bench.dial()
    bench.run(lambda: bool(bench.failures))
    one.write(b"still here")
    bench.run(lambda: other.got == b"still here")
    assert len(bench.accepted) == 1


LAWS: tuple[Callable[[Bench], None], ...] = (
    bytes_arrive_in_order,
    an_empty_write_is_nothing,
    ends_have_names,
    a_paused_reader_stops_the_writer,
    a_writer_that_waits_writes_all,
    reading_can_pause_inside_a_callback,
    the_last_words_arrive,
    the_last_words_arrive_against_a_stream,
    both_ends_can_close_at_once,
    an_abort_ends_both,
    an_end_is_the_end,
    pipes_do_not_mix,
    a_refused_pipe_ends,
    a_failed_dial_is_told_once,
    pipes_outlive_their_listener,
)


def run_transport_tests(make: Callable[[], AbstractContextManager[TransportSetup]]) -> tuple[str, ...]:
    """Check every law on a transport from `make`, a new one each time. During all of them: no callback comes from
    inside a call, after `closed`, or while reading is paused.
    """
    for law in LAWS:
        try:
            with make() as setup:
                bench = Bench(setup)
                law(bench)
                for owner in (*bench.dialled, *bench.accepted):
                    owner.abort()
                bench.run(lambda bench=bench: all(o.whys for o in (*bench.dialled, *bench.accepted)))  # type: ignore[misc]
                bench.listener.close()
                assert not bench.faults, "; ".join(dict.fromkeys(bench.faults))
        except AssertionError as error:
            raise AssertionError(f"{law.__doc__} {error}") from error
    return tuple((law.__doc__ or "").strip() for law in LAWS)
