"""The bounds of addresses, pipes and connections, and their times."""

from __future__ import annotations

ADDRESS_SIZE_MAX = 400  # characters of an address
HOST_SIZE_MAX = 253  # characters of a host's name
LABEL_SIZE_MAX = 63  # characters between two dots of a host's name
PORT_MAX = (1 << 16) - 1

BACKLOG_LOW = 64 << 10  # a backlog that was above this is told to be `writable` when it is not any more
BACKLOG_HIGH = 256 << 10  # an owner fills a pipe up to this, then waits until it is `writable`
UNSENT_LOW = 128 << 10  # bytes that the kernel holds unsent, so that urgent messages pass bulk ones on slow links
READ_SIZE = 256 << 10  # bytes that one read takes; all pipes of a transport read into one buffer of this size
WAITING_MAX = 128  # connections that wait in the kernel to be accepted
FULL_MS = 1_000  # a process without descriptors accepts again after this time

DIAL_MS_MAX = 10_000  # a dial without a connection fails
DIAL_NEXT_MS = 250  # a name with several addresses: the next one is tried beside the first after this time
CLOSE_MS_MAX = 5_000  # for what was written before `close` to leave, and for the other end to take it
