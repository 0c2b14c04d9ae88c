"""`TcpTransport`: pipes over TCP, on an asyncio loop.

A pipe is an asyncio protocol: no task, and no buffer of its own until something waits to be sent. All pipes of a
transport read into one buffer, which is safe because a selector loop reads and hands over in one step.

Closing is in two steps, because a socket that is closed with unread bytes takes back what it sent: the end that closes
says so after its last byte and reads on, into nothing, until the other end has seen that, or a time is over.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import cast

from antiphon.core.errors import InvalidInput
from antiphon.core.reasons import Reason, because, coded
from antiphon.mesh.transport.address import Address, endpoint
from antiphon.mesh.transport.limits import (
    BACKLOG_LOW,
    CLOSE_MS_MAX,
    DIAL_MS_MAX,
    DIAL_NEXT_MS,
    FULL_MS,
    PORT_MAX,
    READ_SIZE,
    UNSENT_LOW,
    WAITING_MAX,
)
from antiphon.mesh.transport.pipe import Pipe, PipeEvents

_FAR_CLOSE = because(Reason.PIPE_CLOSED, "the other end closed the connection")
_NO_ROUTE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL)
_MAPPED = "::ffff:"  # an IPv4 address, seen by a listener on both kinds
_ERRNO = re.compile(r"\[Errno (\d+)\]")


class TcpTransport:
    """Dials and listens on one running loop. To be made and called in the thread of that loop alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.buffer = memoryview(bytearray(READ_SIZE))  # what was read last, by any pipe
        self._dials: set[asyncio.Task[None]] = set()
        self._listeners: set[TcpListener] = set()

    def dial(self, address: Address, events: Callable[[Pipe], PipeEvents], failed: Callable[[str], None]) -> None:
        task = self.loop.create_task(self._dial(address, events, failed))
        self._dials.add(task)
        task.add_done_callback(self._dials.discard)

    async def _dial(
        self, address: Address, events: Callable[[Pipe], PipeEvents], failed: Callable[[str], None]
    ) -> None:
        pipe: TcpPipe | None = None

        def make() -> TcpPipe:
            nonlocal pipe
            pipe = TcpPipe(self, events, endpoint(address.host, address.port))
            return pipe

        try:
            async with asyncio.timeout(DIAL_MS_MAX / 1000):
                await self.loop.create_connection(
                    make, address.host, address.port, happy_eyeballs_delay=DIAL_NEXT_MS / 1000
                )
        except OSError as error:
            if pipe is None or not pipe.is_made:  # else the pipe ends, and says so
                failed(_why_not_dialled(address, error))

    def listen(self, host: str, port: int, accept: Callable[[Pipe], PipeEvents | None]) -> TcpListener:
        listener = TcpListener(self, _bound(host, port), host, accept)
        self._listeners.add(listener)
        return listener

    def forget(self, listener: TcpListener) -> None:
        """Let go of a listener that is closed."""
        self._listeners.discard(listener)

    def close(self) -> None:
        """Give up all dials and listeners. Pipes stay until their owners end them."""
        for task in tuple(self._dials):
            task.cancel()
        for listener in tuple(self._listeners):
            listener.close()


class TcpListener:
    """A bound socket, from which connections are taken as they come."""

    def __init__(
        self, transport: TcpTransport, bound: socket.socket, host: str, accept: Callable[[Pipe], PipeEvents | None]
    ) -> None:
        self.host = host
        self.port: int = bound.getsockname()[1]
        self._transport = transport
        self._socket = bound
        self._accept = accept
        self._tasks: set[asyncio.Task[object]] = set()
        self._later: asyncio.TimerHandle | None = None
        self._read()

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        if self._socket.fileno() >= 0:
            self._transport.loop.remove_reader(self._socket)
            self._socket.close()
            self._transport.forget(self)

    def _read(self) -> None:
        self._transport.loop.add_reader(self._socket, self._take)

    def _take(self) -> None:
        """Take connections that wait, so many at a time that others get their turn."""
        loop = self._transport.loop
        for _ in range(WAITING_MAX):
            try:
                accepted, _address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptors, or no memory: some will be free later
                loop.remove_reader(self._socket)
                self._later = loop.call_later(FULL_MS / 1000, self._read)
                return
            accepted.setblocking(False)
            task = loop.create_task(self._begin(accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _begin(self, accepted: socket.socket) -> None:
        try:
            await self._transport.loop.connect_accepted_socket(
                partial(TcpPipe, self._transport, self._accept, ""), accepted
            )
        except OSError:  # it has gone already
            accepted.close()


class TcpPipe(asyncio.BufferedProtocol):
    """One end of a TCP connection."""

    __slots__ = ("_events", "_is_ending", "_is_over", "_make", "_socket", "_timer", "_transport", "_why", "far_end")

    def __init__(self, transport: TcpTransport, make: Callable[[Pipe], PipeEvents | None], far_end: str) -> None:
        self.far_end = far_end
        self._transport = transport
        self._make = make
        self._socket: asyncio.Transport | None = None
        self._events: PipeEvents | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._why = ""
        self._is_ending = False  # the owner has ended it: it hears no more but `closed`
        self._is_over = False

    # -- for the owner

    @property
    def backlog(self) -> int:
        """Bytes written that this process holds. What the kernel has taken has left."""
        return 0 if self._socket is None or self._is_over else self._socket.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._socket is not None and not self._is_ending and not self._socket.is_closing():
            self._socket.write(data)

    def pause(self) -> None:
        if self._socket is not None and not self._is_ending:
            self._socket.pause_reading()

    def resume(self) -> None:
        if self._socket is not None:
            self._socket.resume_reading()

    def close(self, why: str = "") -> None:
        if self._is_ending or self._socket is None:
            return
        self._end(why)
        if self._socket.is_closing():
            return
        self._socket.resume_reading()
        try:
            self._socket.write_eof()
        except OSError:  # the connection was lost, which the loop has not seen yet
            self._socket.abort()
            return
        self._timer = self._transport.loop.call_later(CLOSE_MS_MAX / 1000, self._socket.abort)

    def abort(self, why: str = "") -> None:
        if self._socket is not None:
            self._end(why)
            self._socket.abort()

    def _end(self, why: str) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._why = self._why or coded(Reason.PIPE_CLOSED, why or "closed here")

    # -- for the loop

    @property
    def is_made(self) -> bool:
        """True if the owner has been given the pipe."""
        return self._socket is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self._socket.set_write_buffer_limits(BACKLOG_LOW, BACKLOG_LOW)
        raw = transport.get_extra_info("socket")
        with suppress(OSError):  # it was lost already, which the loop will see
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # which asyncio does for dialled ones alone
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_LOW)
        if not self.far_end:
            host, port = (transport.get_extra_info("peername") or ("unknown", 0))[:2]
            self.far_end = endpoint(host.removeprefix(_MAPPED) if "." in host else host, port)
        make, self._make = self._make, _make_nothing
        self._events = make(self)
        if self._events is None:
            self.abort("refused")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._transport.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._events is not None and not self._is_ending:
            self._events.received(bytes(self._transport.buffer[:nbytes]))

    def eof_received(self) -> None:
        self._why = self._why or _FAR_CLOSE
        if self._socket is not None:
            self._socket.abort()  # the other end takes nothing more

    def resume_writing(self) -> None:
        if self._events is not None and not self._is_ending:
            self._events.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = self._is_ending = True
        if self._timer is not None:
            self._timer.cancel()
        if self._events is not None:
            self._events.closed(self._why or because(Reason.PIPE_LOST, f"the connection was lost: {_text_of(exc)}"))
            self._events = None


def _make_nothing(pipe: Pipe) -> None:
    """Let go of the maker of an owner, once it has made one."""


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and port."""
    try:
        if not 0 <= port <= PORT_MAX:
            raise OverflowError(f"ports are 0 to {PORT_MAX}")
        family, _kind, _protocol, _name, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        both = family == socket.AF_INET6 and address[0] == "::" and socket.has_dualstack_ipv6()
        bound = socket.create_server(address[:2], family=family, backlog=WAITING_MAX, dualstack_ipv6=both)
    except (OSError, UnicodeError, OverflowError) as error:
        raise InvalidInput(
            f"cannot listen on {endpoint(host[:80], port)}: {_text_of(error)}; "
            "choose an address of this machine, and a free port or 0 for any"
        ) from None
    bound.setblocking(False)
    return bound


def _text_of(error: Exception | None) -> str:
    """Return the system's words for an error."""
    return getattr(error, "strerror", None) or str(error or "no reason is known")


def _why_not_dialled(address: Address, error: OSError) -> str:
    """Say why a dial failed, and what to do."""
    to = endpoint(address.host, address.port)
    if isinstance(error, socket.gaierror):
        text = f"the name {address.host} was not found ({_text_of(error)}): check it, and the connection to the network"
        return because(Reason.DIAL_UNKNOWN_HOST, text)
    # A name with several addresses has an error for each of them, in one text.
    numbers = {error.errno} if error.errno else {int(number) for number in _ERRNO.findall(str(error))}
    if isinstance(error, TimeoutError) or errno.ETIMEDOUT in numbers:
        text = f"{to} did not answer in {DIAL_MS_MAX // 1000} s: the machine is off, or a firewall drops what it gets"
        return because(Reason.DIAL_TIMEOUT, text)
    if errno.ECONNREFUSED in numbers:
        text = f"{to} refused: the machine is there, but nothing listens on that port; does the other store listen?"
        return because(Reason.DIAL_REFUSED, text)
    if errno.ECONNRESET in numbers:
        return because(Reason.DIAL_REFUSED, f"{to} ended the connection at once: it may have too many; try again later")
    if numbers & set(_NO_ROUTE):
        text = f"no way leads to {to} ({_text_of(error)}): check the address, and the connection to the network"
        return because(Reason.DIAL_UNREACHABLE, text)
    return because(Reason.DIAL_UNREACHABLE, f"{to} cannot be dialled: {_text_of(error)}")
