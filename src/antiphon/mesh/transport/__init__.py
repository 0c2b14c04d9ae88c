"""Ordered bytes between two machines. What they mean is the business of `channel` and `link`.

Start reading at `pipe`: the port that the other modules implement, and its laws.

pipe     `Pipe`, `PipeEvents`, `Listener`, `Transport`: the port
address  `Address`: where a device listens, and its key: `antiphon://DEVICE@HOST:PORT`
tcp      `TcpTransport`: pipes over TCP, on an asyncio loop
memory   `MemoryNetwork`: pipes within one process, pumped by hand or by a loop, for tests, simulations and `sync`
limits   bounds and times

In: bytes of owners of pipes. Out: the same bytes at the other end. May import `core`; nothing of the other rooms.
"""
