"""A TCP proxy on loopback that stalls, truncates, cuts, splits, delays and flips bytes, by a script.

    with Proxy(server.port, faults=seeded(7, every=20_000)) as proxy:
        store.connect(Address(device, "127.0.0.1", proxy.port))
        …                # faults come
        proxy.calm()     # no more of them: now everybody must converge

A fault has a place in the bytes of one direction of one connection, so a script does the same however the bytes are
cut on their way. The proxy runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import enum
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

_READ_SIZE = 64 << 10
_QUEUE_MAX = 64  # pieces that are delayed, in one direction
_RESET = struct.pack("ii", 1, 0)


class Kind(enum.Enum):
    """What happens at a place."""

    SPLIT = "split"  # what follows comes by itself
    FLIP = "flip"  # a bit of the next byte is another
    STALL = "stall"  # nothing goes on in this direction for `ms`
    TRUNCATE = "truncate"  # the stream ends here, in this direction
    CUT = "cut"  # the connection is reset, in both directions


@dataclass(frozen=True)
class Fault:
    """A fault before the byte `at` of one direction."""

    at: int
    kind: Kind
    ms: int = 0  # of a stall; without it, for as long as the proxy is not calm


#: The faults of a connection, by its number from 0, and whether it is the direction from the one that dialled.
Script = Callable[[int, bool], Iterable[Fault]]


def seeded(seed: int, *, every: int = 50_000, kinds: Iterable[Kind] = tuple(Kind), stall_ms_max: int = 200) -> Script:
    """Return a script of random faults, one in `every` bytes or so. It has no end, and is the same for a seed."""
    choices = tuple(kinds)

    def script(number: int, is_up: bool) -> Iterator[Fault]:
        chance = random.Random(f"{seed} {number} {is_up}")
        at = 0
        while True:
            at += 1 + int(chance.expovariate(1 / every))
            yield Fault(at, chance.choice(choices), ms=1 + chance.randrange(stall_ms_max))

    return script


class Proxy:
    """Listens on loopback, and passes every connection on to a port of loopback."""

    def __init__(
        self, port: int, *, faults: Script = lambda number, is_up: (), delay_ms: int = 0, host: str = "127.0.0.1"
    ) -> None:
        self.host = host
        self.faults = faults
        self.delay_ms = delay_ms  # in each direction
        self.happened: Counter[Kind] = Counter()
        self.sizes = [0, 0]  # bytes that were passed on: down, up
        self.connections = 0
        self.is_calm = threading.Event()
        self._target = port
        self._ways: set[_Way] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._socket = socket.create_server((host, 0))
        self.port: int = self._socket.getsockname()[1]

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *error: object) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def calm(self) -> None:
        """Make no more faults. What is stalled goes on."""
        self.is_calm.set()

    def cut(self) -> None:
        """Reset all connections now."""
        self._call(self._cut())

    def _call(self, coroutine: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    # -- in the thread

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._pass_on, sock=self._socket, backlog=256)

    async def _end(self) -> None:
        self._server.close()
        await self._cut()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _cut(self) -> None:
        for way in tuple(self._ways):
            way.reset()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number, self.connections = self.connections, self.connections + 1
        ends = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self._target)
            ends.append(far_writer)
            up = _Way(self, reader, far_writer, writer, iter(self.faults(number, True)), is_up=True)
            down = _Way(self, far_reader, writer, far_writer, iter(self.faults(number, False)), is_up=False)
            self._ways |= {up, down}
            await asyncio.gather(up.run(), down.run())
            self._ways -= {up, down}
        except (OSError, asyncio.CancelledError):  # a server of asyncio would log that its task was cancelled
            _reset(writer)
        finally:
            for end in ends:
                end.close()
                with suppress(OSError, asyncio.CancelledError):
                    await end.wait_closed()
            self._tasks.discard(task)


class _Way:
    """One direction of a connection."""

    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamWriter,
        faults: Iterator[Fault],
        *,
        is_up: bool,
    ) -> None:
        self._proxy, self._reader, self._writer, self._back = proxy, reader, writer, back
        self._faults = faults
        self._next = next(faults, None)
        self._is_up = is_up
        self._at = 0
        self._queue: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue(_QUEUE_MAX)  # None: the end

    async def run(self) -> None:
        """Pass bytes on until one of the ends has had enough."""
        sender = asyncio.create_task(self._send())
        try:
            while data := await self._reader.read(_READ_SIZE):
                if not await self._take(data):
                    break
            await self._queue.put((self._due(), None))
            await sender
            while await self._reader.read(_READ_SIZE):
                pass  # after a truncation
        except OSError:
            self.reset()
        finally:
            sender.cancel()

    def reset(self) -> None:
        """Reset both ends of the connection."""
        _reset(self._writer)
        _reset(self._back)

    async def _take(self, data: bytes) -> bool:
        """Pass a piece on, with the faults that are due in it. False if the stream ends before its end."""
        while self._next is not None and self._next.at < self._at + len(data) and not self._proxy.is_calm.is_set():
            fault, self._next = self._next, next(self._faults, None)
            head, data = data[: fault.at - self._at], data[fault.at - self._at :]
            await self._put(head)
            self._proxy.happened[fault.kind] += 1
            if fault.kind is Kind.FLIP:
                data = bytes([data[0] ^ (1 << fault.at % 8)]) + data[1:]
            elif fault.kind is Kind.STALL:
                await self._stall(fault.ms)
            elif fault.kind is Kind.CUT:
                await self._queue.join()
                self.reset()
            if fault.kind in (Kind.CUT, Kind.TRUNCATE):
                return False
        await self._put(data)
        return True

    async def _stall(self, ms: int) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + ms / 1000 if ms else None
        while not self._proxy.is_calm.is_set() and (until is None or loop.time() < until):
            await asyncio.sleep(0.005)

    async def _put(self, data: bytes) -> None:
        self._at += len(data)
        if data:
            await self._queue.put((self._due(), data))

    def _due(self) -> float:
        return asyncio.get_running_loop().time() + self._proxy.delay_ms / 1000

    async def _send(self) -> None:
        """Write what is due, until the end of the stream."""
        while True:
            due, data = await self._queue.get()
            await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0))
            with suppress(OSError):  # who has closed takes nothing more, and the reader hears of it
                if data is None:
                    self._writer.write_eof()
                    return
                self._proxy.sizes[self._is_up] += len(data)
                self._writer.write(data)
                await self._writer.drain()
            self._queue.task_done()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other end sees it lost."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
