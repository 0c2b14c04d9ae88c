"""`Lane`: the delivery state of one data feed, and the blocks of it that were read but not delivered yet."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from antiphon.core.sightings import Marks, Seen
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import HASH_SIZE, NO_END, Entry, Flag, decode_entries
from antiphon.feed.span import Span
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.ports import LaneState

_RECENT_SPANS = 4  # whose hashes are kept: advance entries mostly name recent blocks
FAR = 1 << 62  # beyond every seq
ALL_SEQS = range(FAR)  # for `bisect`: finds the first seq from which on something holds


_Answer = TypeVar("_Answer")


def find_steps(origin: int, ask: Callable[[int], _Answer]) -> tuple[tuple[int, _Answer], ...]:
    """Find at which seqs, from `origin` on, an answer changes: (first seq, answer). None comes twice.

    Changes are mostly near: it looks for one in steps that double, then by bisection between the last two.
    """
    steps, last = [(origin, ask(origin))], ask(FAR)
    while steps[-1][1] != last:
        begin, answer = steps[-1]
        low, high = begin + 1, begin + 2
        while ask(high) == answer:
            low, high = high + 1, min(FAR, 3 * high - 2 * begin)
        end = bisect_left(ALL_SEQS, True, lo=low, hi=high, key=lambda seq: ask(seq) != answer)
        steps.append((end, ask(end)))
    return tuple(steps)


class Run(NamedTuple):
    """Delivered blocks: [low, high) of a span. Whole batches, and all that they have seen was delivered before."""

    feed: bytes
    span: Span
    low: int
    high: int

    @property
    def start(self) -> int:
        return self.span.first + self.low

    @property
    def stop(self) -> int:
        return self.span.first + self.high


class Buffer:
    """A span with a cursor. Blocks with advance entries are found by column, so blocks without any cost nothing."""

    __slots__ = ("at", "high", "moving", "next_moving", "span")

    def __init__(self, span: Span, low: int, high: int) -> None:
        self.span = span
        self.at = low
        self.high = high
        moving = np.flatnonzero(span.columns["advance"][low:high]) + low
        self.moving: list[int] = moving.tolist()
        self.next_moving = 0

    def entries(self, index: int) -> tuple[Entry, ...]:
        """Decode the advance entries of a block of the span."""
        offsets = self.span.advance_offsets
        return decode_entries(self.span.advance[offsets[index] : offsets[index + 1]])

    def cut(self, stop: int) -> None:
        """Drop the blocks from seq `stop` on, and a batch that reaches beyond it."""
        flags = self.span.columns["flags"]
        high = max(self.at, min(self.high, stop - self.span.first))
        while self.at < high < self.span.count and flags[high - 1] & Flag.MORE:
            high -= 1
        self.high = high


class Links(NamedTuple):
    """Hashes and lamports of the blocks of a delivered span, to check advance entries that name them."""

    first: int
    hashes: bytes
    lamports: npt.NDArray[np.uint64]


class Lane:
    """Delivery state of one data feed, with the control timeframes of its writer (`LaneState.segments`)."""

    __slots__ = ("_recent", "_runs", "buffer", "other_branch", "state")

    def __init__(self, state: LaneState) -> None:
        self.state = state
        self.buffer: Buffer | None = None
        self.other_branch = False  # the feed is forked, and the base holds another branch than the store
        self._runs: Iterator[tuple[Span, int, int]] | None = None
        self._recent: deque[Links] = deque(maxlen=_RECENT_SPANS)

    @property
    def feed(self) -> bytes:
        return self.state.feed

    def fill(self, store: FeedReader, end: int) -> Buffer | None:
        """Return the buffer with the next block, read from the store if needed; None at the end of the feed."""
        position = self.state.position
        if position >= end or self.state.fault:
            self.other_branch = False
            self.release()
            return None
        if self.buffer is not None and self.buffer.at < self.buffer.high:
            return self.buffer
        for _ in range(2):  # the feed may have grown since an iterator ended
            if self._runs is None:
                self._runs = store.runs(self.feed, position)
            found = next(self._runs, None)
            if found is not None:
                self.other_branch = position > 0 and found[0].hash_at(position - 1) != self.state.hash
                if self.other_branch:
                    break
                self.buffer = Buffer(*found)
                if end != NO_END:
                    self.buffer.cut(end)
                return self.buffer if self.buffer.at < self.buffer.high else None
            self._runs = self.buffer = None
        self._runs = self.buffer = None
        return None

    def compare(self, record: FeedRecord) -> None:
        """Note whether the store has another branch up to the base; of blocks behind it `fill` finds it out."""
        state = self.state
        if record.length == state.position == state.base and state.base > 0 and record.why is End.NONE:
            self.other_branch = record.hash != state.hash

    def is_at(self, record: FeedRecord) -> bool:
        """True if the last delivered block is the head of the feed."""
        return self.state.position == record.length and (not record.length or self.state.hash == record.hash)

    def release(self) -> None:
        """Release the buffer. A blocked feed waits in the feed store."""
        self.buffer = self._runs = None

    def known(self, seq: int) -> tuple[bytes, int] | None:
        """Return the hash and lamport of a delivered block if they are in memory."""
        if seq == self.state.position - 1:
            return self.state.hash, self.state.lamport
        if seq < self.state.position:
            for first, hashes, lamports in self._recent:
                if 0 <= (index := seq - first) < len(lamports):
                    return hashes[index * HASH_SIZE : (index + 1) * HASH_SIZE], int(lamports[index])
        return None

    def delivered(self, run: Run) -> None:
        """Move the position to the end of a run."""
        span = run.span
        self.state.position = run.stop
        self.state.hash = span.hash_at(run.stop - 1)
        lamports = span.columns["lamport"]
        self.state.lamport = int(lamports[run.high - 1])
        if not self._recent or self._recent[0].hashes is not span.hashes:
            self._recent.appendleft(Links(span.first, span.hashes, lamports.copy()))

    def forget(self) -> None:
        """Drop the cached hashes and lamports: a fork may have replaced the blocks."""
        self._recent.clear()

    def see(self, seq: int, control: dict[bytes, int]) -> None:
        """Begin a segment at block `seq`: from there on, the writer has seen these control blocks too."""
        self.state.segments.see(seq, control)

    def seen_at(self, seq: int) -> Seen:
        """Return the control timeframe of block `seq`."""
        return self.state.segments.at(seq)

    def pieces(self, start: int, stop: int, marks: Marks | None = None) -> Iterator[tuple[int, int, int, Seen]]:
        """Divide [start, stop) by segments. Yield (low, high, origin, seen): origin is the first seq of the segment.

        Segments that have seen the same of the marked blocks are one.
        """
        segments = self.state.segments
        for low, high, origin in segments.pieces(start, stop, marks):
            yield low, high, origin, segments.at(origin)
