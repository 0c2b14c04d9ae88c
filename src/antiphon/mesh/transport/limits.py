"""The bounds of addresses, pipes and connections, and their times. `DoorLimits` and `WaitingBudget` can have others."""

from __future__ import annotations

ADDRESS_SIZE_MAX = 400  # characters of an address
HOST_SIZE_MAX = 253  # characters of a host's name
LABEL_SIZE_MAX = 63  # characters between two dots of a host's name
PORT_MAX = (1 << 16) - 1

BACKLOG_LOW = 64 << 10  # a backlog that was above this is told to be `writable` when it is not any more
BACKLOG_HIGH = 256 << 10  # an owner fills a pipe up to this, then waits until it is `writable`
BACKLOG_FULL = 512 << 10  # above this, answers wait too: the other end sends, and does not read
UNSENT_LOW = 128 << 10  # bytes that the kernel holds unsent, so that urgent messages pass bulk ones on slow links
READ_SIZE = 64 << 10  # bytes that one read takes; larger ones are slower, since each allocates fresh pages
WAITING_MAX = 128  # connections that wait in the kernel to be accepted
FULL_MS = 1_000  # a process without descriptors accepts again after this time

DIAL_MS_MAX = 10_000  # a dial without a connection fails
DIAL_NEXT_MS = 250  # a name with several addresses: the next one is tried beside the first after this time
CLOSE_MS_MAX = 5_000  # for what was written before `close` to leave, and for the other end to take it

UNPROVEN_MAX = 256  # connections that were accepted and have proven no device yet
HOST_MAX = 8  # of these, and of strangers, from one address (IPv6: from one /64)
STRANGERS_MAX = 64  # connections that have proven a device that no party here admits
MEMBERS_MAX = 512  # connections of admitted devices, and those dialled here
UNPROVEN_SIZE_MAX = 4 << 10  # bytes that a connection may send until it has proven its device
UNPROVEN_MS_MAX = 10_000  # until a connection must have proven its device
STRANGER_MS_MAX = 300_000  # until a device must be admitted to a party: a newcomer shows its admission meanwhile
SILENT_MS = 250  # a connection that has sent nothing for so long makes room for another one
UNPROVEN_MS_MIN = 1_000  # and any other one not before this time
STRANGER_MS_MIN = 30_000  # nor a stranger before this time

BANS_MAX = 4_096  # remembered, of addresses and of devices each; the oldest are forgotten
BAN_MS_MIN = 60_000  # the first ban; each further one is twice as long
BAN_MS_MAX = 3_600_000  # the longest ban; and so long after a ban its length starts again

WAITING_SIZE_MAX = 64 << 20  # bytes that wait on all connections of a node together, to be sent or to be worked on
SHARE_SIZE_MIN = 16 << 10  # of these, each direction of a connection may always hold so much
SHARE_SIZE_SPARE = 17 << 20  # and one at a time so much more, to finish the messages that have begun to arrive
SHARE_MS_MAX = 120_000  # if others wait for room, a share that has given nothing back for so long ends
