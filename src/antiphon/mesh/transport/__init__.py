"""Ordered bytes between two machines. What they mean is the business of `channel` and `link`.

Start reading at `pipe`: the port that the other modules implement, and its laws.

pipe            `Pipe`, `PipeEvents`, `Listener`, `Transport`: the port
address         `Address`: where a device listens, and its key: `antiphon://DEVICE@HOST:PORT`
tcp             `TcpTransport`: pipes over TCP, on an asyncio loop
memory          `MemoryNetwork`: pipes within one process, pumped by hand or by a loop
doorkeeper      `Doorkeeper`: counts connections from accept on; who must go, and who is not let in
bans            `Bans`: addresses and devices that broke the protocol
waiting_budget  `WaitingBudget`: one bound for all bytes that wait on the connections of a node
limits          bounds and times

In: bytes of owners of pipes. Out: the same bytes at the other end. `Doorkeeper` and `WaitingBudget` are pure: they
count what their owner tells them, at times that are handed in. May import `core`; nothing of the other rooms.
"""
