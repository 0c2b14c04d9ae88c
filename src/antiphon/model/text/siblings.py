"""Siblings: the children on one side of an element, by name. They ascend by (feed, clock of the first element).

Children are named and not referred to, so that their leaves can be packed. Few siblings are a tuple of names. Of many,
`ManySiblings` stores the clocks alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from antiphon.model.text.clock_order import Clocks, compact, with_number

Child = tuple[bytes, int]  # the feed of a run, and the clock of its first element
FEW_MAX = 16
BLOCK_MAX = 1024  # clocks in a block


class ManySiblings:
    """Siblings in blocks of clocks for each feed, so that it is cheap to add one in the middle of many."""

    __slots__ = ("_blocks", "_feeds")

    def __init__(self, siblings: Iterable[Child]) -> None:
        self._feeds: list[bytes] = []
        self._blocks: dict[bytes, list[Clocks]] = {}
        for child in siblings:
            self.add(child)

    def add(self, child: Child) -> None:
        """Add a child."""
        feed, clock = child
        blocks = self._blocks.get(feed)
        if blocks is None:
            insort(self._feeds, feed)
            self._blocks[feed] = [compact([clock])]
            return
        at = max(bisect_right(blocks, clock, key=_first) - 1, 0)
        block = blocks[at]
        if len(block) == BLOCK_MAX:
            half = BLOCK_MAX if clock > block[-1] and at == len(blocks) - 1 else BLOCK_MAX // 2
            blocks[at : at + 1] = [block[:half], block[half:]]
            at += clock > blocks[at][-1]
            block = blocks[at]
        place = bisect_left(block, clock)
        blocks[at] = with_number(block, place, clock)

    def first(self) -> Child:
        """Return the first child."""
        feed = self._feeds[0]
        return feed, self._blocks[feed][0][0]

    def last(self) -> Child:
        """Return the last child."""
        feed = self._feeds[-1]
        return feed, self._blocks[feed][-1][-1]

    def next_to(self, child: Child, step: int) -> Child | None:
        """Return the nearest child after another one (step 1), or before it (step -1)."""
        feed, clock = child
        blocks = self._blocks.get(feed)
        if blocks is not None:
            at = max(bisect_right(blocks, clock, key=_first) - 1, 0)
            place = bisect_right(blocks[at], clock) if step > 0 else bisect_left(blocks[at], clock) - 1
            if 0 <= place < len(blocks[at]):
                return feed, blocks[at][place]
            if 0 <= at + step < len(blocks):
                return feed, blocks[at + step][0 if step > 0 else -1]
        nth = bisect_right(self._feeds, feed) if step > 0 else bisect_left(self._feeds, feed) - 1
        if not 0 <= nth < len(self._feeds):
            return None
        other = self._feeds[nth]
        return other, self._blocks[other][0][0] if step > 0 else self._blocks[other][-1][-1]


Siblings = tuple[Child, ...] | ManySiblings


def with_child(siblings: Siblings | None, child: Child) -> Siblings:
    """Return siblings and one more."""
    if siblings is None:
        return (child,)
    if isinstance(siblings, tuple):
        if len(siblings) < FEW_MAX:
            at = bisect_left(siblings, child)
            return *siblings[:at], child, *siblings[at:]
        siblings = ManySiblings(siblings)
    siblings.add(child)
    return siblings


def next_child(siblings: Siblings | None, child: Child, step: int) -> Child | None:
    """Return the nearest sibling after a child (step 1), or before it (step -1)."""
    if siblings is None:
        return None
    if not isinstance(siblings, tuple):
        return siblings.next_to(child, step)
    at = bisect_right(siblings, child) if step > 0 else bisect_left(siblings, child) - 1
    return siblings[at] if 0 <= at < len(siblings) else None


def outermost(siblings: Siblings | None, left: bool) -> Child | None:
    """Return the first of left siblings, or the last of right ones."""
    if siblings is None:
        return None
    if not isinstance(siblings, tuple):
        return siblings.first() if left else siblings.last()
    return siblings[0 if left else -1]


def _first(block: Clocks) -> int:
    return block[0]
