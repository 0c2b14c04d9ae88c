"""The bounds of replication. A message that exceeds one is refused, and its session dropped."""

from __future__ import annotations

from antiphon.feed.limits import SPAN_SIZE_MAX

MESSAGE_SIZE_MAX = SPAN_SIZE_MAX + (64 << 10)  # a span cannot be cut short of its head, so the largest must fit
ANSWER_SIZE = 512 << 10  # a part of an answer is filled up to this size; it has at least one range or blob
FIRST_SIZE = 16 << 10  # the first part of an answer with ranges; each later one may be twice as large
GROUP_SIZE = 8 << 20  # of ranges that are stored in one commit, about
STORED_SIZE = 1 << 20  # of ranges that are joined under one head when they are stored
TURN_SIZE = 64 << 10  # of one feed in a part of an answer, at least, if others wait for their turn
PUSH_SIZE_MAX = 512 << 10  # of the blocks that come with an announcement
WINDOW_START = 2 << 20  # bytes of answers that may be under way to this end, before anything was measured
WINDOW_MIN = 256 << 10
WINDOW_MAX = 16 << 20
GRANT_MIN = 64 << 10  # the first allowance of a request, though others use up the window
HOLDINGS_MAX = 1024  # in one announcement
FEEDS_MAX = 1 << 16  # announced by one peer, without those that are held here
RANGES_MAX = 64  # in one request
BRANCH_SPANS_MAX = 1024  # in one answer about a branch; the rest is requested again
BRANCH_BACK_MAX = 1024  # blocks of a branch before the wanted one, in one request
TIPS_MAX = 1024  # last blocks of branches, in one answer
CIDS_MAX = 256  # in one request
REQUESTS_MAX = 4  # open to one peer
CIDS_START = 32  # in a request, so that several peers share the work; more if a peer has what it is asked for
SHOW_SIZE_MAX = 64 << 10  # of the credentials that a device shows
STRANGER_SIZE_MAX = SHOW_SIZE_MAX + (4 << 10)  # of a message from a device that may not have the party
ANSWERED_MAX = 64  # requests remembered as answered; a repeated one is ignored
OUTGOING_SIZE = 16 << 20  # of the messages of one call, if the caller gives no other budget

TIMEOUT_MIN_MS = 1_000
TIMEOUT_MAX_MS = 60_000
RATE_MIN = 4  # bytes a millisecond: a slower answer is not waited for beyond TIMEOUT_MAX_MS
ACKNOWLEDGE_MS = 200  # an announcement is acknowledged with the next message, or after this time alone
STALLED_MS = 1_000  # a session whose messages do not leave looks again after this time
JUDGE_MS = 1_000  # the credentials that a device shows are judged at most so often
JOIN_WAIT_MS = 15_000  # a newcomer without news of control feeds or the snapshot takes the history after this time
BRANCH_WAIT_MS = 2_000  # a block that may come as a part of its feed is not requested by its hash before
LAZY_MS = 500  # feeds of others are announced after this time to a peer that gets them elsewhere
NEVER = 1 << 62  # a time that does not come
