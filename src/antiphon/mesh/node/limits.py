"""The bounds of a node, and its times."""

from __future__ import annotations

WORKERS = 2  # threads that work on parties: one can fold while the other waits for the disk
TURN_SIZE = 1 << 20  # bytes of messages that a party takes, and sends, before the next party has its turn
INBOX_SIZE_HIGH = 4 << 20  # bytes of one connection that wait for workers: then it is not read
INBOX_SIZE_LOW = 1 << 20  # it is read again
CLOSE_TIMEOUT_S = 30.0  # for the threads of a node to end; a worker ends when the commit that it waits for is made
FLUSH_TIMEOUT_S = 2.0  # for what is written to leave, before connections are aborted

IDLE_MS = 5_000  # a party that only the node has opened is closed when nothing has happened for so long
TELL_MS = 20  # without a message, after which other ends are told what is held now
RETRY_MS = 60_000  # a party that failed (a full disk, perhaps) is worked on again

SHOWN_MAX = 64  # parties about which a device has shown something, and is let in once control feeds admit it
LOOK_TIMEOUT_S = 60.0  # for the first look at the control feeds of all parties

DIAL_PAUSE_MS = 1_000  # before the second dial of an address; then twice as long after each failure, up to:
DIAL_PAUSE_MS_MAX = 60_000
DIALLED_MAX = 256  # addresses that are kept connected
STEADY_MS = 30_000  # a connection that lasted so long was none that failed
SIMULTANEOUS_MS = 5_000  # two connections that began within this time were dialled by both ends at once
HOARDERS_MS = 10_000  # from one look for connections that hold too much for too long to the next
ERRORS_MAX = 256  # devices of which the last error is kept
PIECE_SIZE = 64 << 10  # bytes that a link gives at once, so that urgent messages are not behind many others

UNMATCHED_MS = 2_000  # from one party to the next that is shown to a device that does not speak about it
ANSWERED_MS = 15_000  # a session without any answer ends, unless this device is a newcomer
