"""The bounds of a link. One that the other end exceeds ends the connection, unless something is dropped."""

from __future__ import annotations

from antiphon.mesh.replication.limits import MESSAGE_SIZE_MAX

PIECE_SIZE_MAX = 16 << 10  # of a message, in one frame: parties take turns by pieces
TAG_GROUP = 16  # tags are padded to a multiple of this number
TAGS_IN_FRAME_MAX = 2_048  # more tags are in the next frame
TAGS_MAX = 4_096  # of the other end, in parties that are not spoken in here; the oldest are forgotten
BOX_SIZE_MAX = 60 << 10  # of a shown message, encrypted: it fits into one record of the channel

STREAM_SIZE_MAX = 1 << 20  # messages of one party that wait to be sent; the last one may exceed it
QUEUE_SIZE_MAX = 4 << 20  # messages of all parties that wait to be sent
ASSEMBLED_SIZE_MAX = 2 * MESSAGE_SIZE_MAX  # messages that are arriving: neither end lets more be under way

HANDSHAKE_MS = 10_000  # until the other device must be proven
JUDGE_MS = 1_000  # one shown message is judged in this time; of several, the last
SHOWS_OWED_MAX = 4_096  # shown messages whose answers have not left: an end that is paced shows few
SHOW_MS = 1_500  # from one shown message to the next, so that none displaces another at the other end
PING_MS = 20_000  # without a word, after which the other end is asked for one
ANSWER_MS = 60_000  # without an answer to that, after which the link has ended
