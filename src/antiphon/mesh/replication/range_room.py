"""`RangeRoom`: how many spans of a feed fit under one head, and `join_ranges`, which joins those of several answers."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.feed.limits import SPAN_BLOCKS_MAX, SPAN_HEADERS_SIZE_MAX
from antiphon.feed.span import Span
from antiphon.mesh.replication.limits import ANSWER_SIZE, STORED_SIZE


class RangeRoom:
    """The room that is left in a range of one feed. One signature is as good as many, so spans may be joined."""

    def __init__(self, size_max: int) -> None:
        self._size_max = max(size_max, ANSWER_SIZE)
        self._count = self._headers = self._whole = 0
        self.size = 0

    def take(self, span: Span) -> bool:
        """Use room for a span. False if there is not enough: only the first one of a range is taken however large."""
        count = self._count + span.count
        headers = self._headers + len(span.headers) + len(span.advance)
        whole = self._whole + span.whole_size
        if self._count and (count > SPAN_BLOCKS_MAX or headers > SPAN_HEADERS_SIZE_MAX or whole > self._size_max):
            return False
        self._count, self._headers, self._whole = count, headers, whole
        self.size += span.size
        return True


def join_ranges(ranges: Iterable[Span]) -> list[list[Span]]:
    """Join ranges that follow each other in their feeds. Return lists of ranges, each of another feed, in order."""
    rounds: list[dict[bytes, tuple[RangeRoom, list[Span]]]] = [{}]
    for span in ranges:
        known = rounds[-1].get(span.feed)
        if known is not None:
            room, parts = known
            if parts[-1].end == span.first and room.take(span):
                parts.append(span)
                continue
            rounds.append({})
        room = RangeRoom(STORED_SIZE)
        room.take(span)
        rounds[-1][span.feed] = room, [span]
    return [[Span.joined_all(parts) for _, parts in each.values()] for each in rounds]
