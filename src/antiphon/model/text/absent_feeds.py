"""`AbsentFeeds`: deletions of elements of feeds that have none in a text. No honest writer makes any.

A hostile one names such a feed, and an element of it, with 41 bytes. So each is kept as the row that a snapshot has of
it. Rows are sorted, in blocks, and the next snapshot takes them as they are. The latest deletions are in a dictionary
until a snapshot is made, or there are many; then they are put into their blocks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby

from antiphon.core.v1 import text_pb2
from antiphon.model.text import clock_ranges
from antiphon.model.text.clock_ranges import ClockRanges, pairs, with_range
from antiphon.model.text.runs import OFFSET_BITS, OFFSET_MAX
from antiphon.model.wire import field, number_at, tags, varint

FEED_SIZE = 32
RANGES_MAX = 8  # of a feed; with more of them, a `Writer` takes little beside them
_BLOCK_MAX = 512  # rows
_LATEST_MIN = 256  # feeds that may be in the dictionary
_LATEST_PART = 8  # and such a part of those that are in blocks
_SNAPSHOT, _WRITER = tags("TextSnapshot", "TextWriter")


class AbsentFeeds:
    """Ranges of clocks that are deleted, by feed."""

    __slots__ = ("_blocks", "_count", "_ends", "_firsts", "_latest")

    def __init__(self) -> None:
        self._latest: dict[bytes, ClockRanges] = {}  # without any, the feed has come, or its row is gone
        self._blocks = [b""]  # rows, one after the other
        self._ends = [array("I")]  # for each block, where its rows end
        self._firsts = [b""]  # for each block, a feed up to its first one, and after the block before
        self._count = 0  # rows in blocks

    def get(self, feed: bytes) -> ClockRanges:
        """Return what is deleted of a feed."""
        if not self._latest and not self._count:
            return clock_ranges.NONE
        found = self._latest.get(feed)
        if found is None:
            block, at = self._locate(feed)
            found = _ranges_of(self._row(block, at)) if self._is(block, at, feed) else clock_ranges.NONE
        return found

    def put(self, feed: bytes, ranges: ClockRanges) -> None:
        """Set what is deleted of a feed."""
        self._latest[feed] = ranges
        if len(self._latest) > max(_LATEST_MIN, self._count // _LATEST_PART):
            self._settle()

    def take(self, feed: bytes) -> ClockRanges:
        """Remove a feed, which has come, and return what is deleted of it."""
        found = self.get(feed)
        if found:
            self.put(feed, clock_ranges.NONE)
        return found

    def between(self, feeds: Iterable[bytes]) -> Iterator[tuple[list[bytes], int, bool]]:
        """Yield for each of some ascending feeds all rows since the one before, how many are before it, and True if
        one is its own; at the end the rows that follow.
        """
        self._settle()
        counts = list(accumulate(map(len, self._ends), initial=0))
        block = at = 0
        for feed in feeds:
            end, place = self._locate(feed)
            yield self._rows(block, at, end, place), counts[end] + place, self._is(end, place, feed)
            block, at = end, place
        end = len(self._blocks) - 1
        yield self._rows(block, at, end, len(self._ends[end])), counts[-1], False

    def _rows(self, block: int, at: int, end: int, place: int) -> list[bytes]:
        """Return the rows from one place to before another."""
        start, stop = self._start(block, at), self._start(end, place)
        if block == end:
            return [self._blocks[block][start:stop]]
        return [self._blocks[block][start:], *self._blocks[block + 1 : end], self._blocks[end][:stop]]

    def _start(self, block: int, at: int) -> int:
        return self._ends[block][at - 1] if at else 0

    def _row(self, block: int, at: int) -> bytes:
        return self._blocks[block][self._start(block, at) : self._ends[block][at]]

    def _is(self, block: int, at: int, feed: bytes) -> bool:
        return at < len(self._ends[block]) and _feed_at(self._blocks[block], self._start(block, at)) == feed

    def _locate(self, feed: bytes) -> tuple[int, int]:
        """Return the block and the index of the first row of a feed or of later ones."""
        block = bisect_right(self._firsts, feed) - 1
        rows = range(len(self._ends[block]))
        return block, bisect_left(rows, feed, key=lambda at: _feed_at(self._blocks[block], self._start(block, at)))

    def _settle(self) -> None:
        """Put the latest deletions into their blocks; the last ones first, as a block may become several."""
        latest, self._latest = self._latest, {}
        chosen = sorted(latest, reverse=True)
        for block, feeds in groupby(chosen, lambda feed: bisect_right(self._firsts, feed) - 1):
            rows = {_feed_at(row, 0): row for row in (self._row(block, at) for at in range(len(self._ends[block])))}
            self._count -= len(rows)
            for feed in feeds:
                rows.pop(feed, None)
                if latest[feed]:
                    rows[feed] = _row_of(feed, latest[feed])
            self._count += len(rows)
            self._put_rows(block, [rows[feed] for feed in sorted(rows)])

    def _put_rows(self, block: int, rows: Sequence[bytes]) -> None:
        """Replace a block by others that hold these rows."""
        size = _BLOCK_MAX if len(rows) <= _BLOCK_MAX else _BLOCK_MAX // 2
        parts = [rows[first : first + size] for first in range(0, len(rows), size)]
        if not parts and not block:
            parts = [[]]
        self._blocks[block : block + 1] = [b"".join(part) for part in parts]
        self._ends[block : block + 1] = [array("I", accumulate(map(len, part))) for part in parts]
        firsts = [_feed_at(part[0], 0) for part in parts[1:]]
        self._firsts[block + 1 : block + 1] = firsts
        if not parts:
            del self._firsts[block]


def numbers_of(ranges: ClockRanges) -> list[int]:
    """Return ranges as the column of a snapshot: lamport, offset, lamport, offset."""
    numbers: list[int] = []
    for low, high in pairs(ranges):
        numbers += (low >> OFFSET_BITS, low & OFFSET_MAX, high >> OFFSET_BITS, high & OFFSET_MAX)
    return numbers


def _row_of(feed: bytes, ranges: ClockRanges) -> bytes:
    doomed = b"".join(map(varint, numbers_of(ranges)))
    return field(_SNAPSHOT.writers, field(_WRITER.feed, feed) + field(_WRITER.doomed, doomed))


def _ranges_of(row: bytes) -> ClockRanges:
    numbers = [iter(text_pb2.TextSnapshot.FromString(row).writers[0].doomed)] * 4
    found = clock_ranges.NONE
    for low, low_offset, high, high_offset in zip(*numbers, strict=True):
        found = with_range(found, low << OFFSET_BITS | low_offset, high << OFFSET_BITS | high_offset)
    return found


def _feed_at(block: bytes, start: int) -> bytes:
    """Return the feed with which the row at a place begins."""
    at = number_at(block, start + 1, len(block))[1] + 2
    return block[at : at + FEED_SIZE]
