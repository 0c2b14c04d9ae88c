"""`Bounds`: the messages of one feed that are replaced at a path.

A name in a mutation covers the named message and all earlier ones of its feed: those with at most its seq and at most
its lamport. In a feed both ascend, so an honest name covers exactly what its writer has seen of the feed. A hostile
name may pair a small lamport with a great seq. It never covers a message with a greater lamport than its own, and so
none whose writer has seen the mutation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from antiphon.core.stamp import Stamp


def covers(name: Stamp, stamp: Stamp) -> bool:
    """True if a name of a feed covers a message of the same feed."""
    return stamp.seq <= name.seq and stamp.lamport <= name.lamport


class Bounds:
    """The union of what several names of one feed cover: pairs of seq and lamport, none within another.

    With ascending seqs the lamports descend. Honest names leave one pair.
    """

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        self.pairs: list[tuple[int, int]] = []

    def add(self, name: Stamp) -> int:
        """Add a name. Return the number of others that it covers; -1 if one of them covers it."""
        pairs, seq, lamport = self.pairs, name.seq, name.lamport
        after = bisect_left(pairs, seq, key=_seq)
        if after < len(pairs) and pairs[after][1] >= lamport:
            return -1
        end = bisect_right(pairs, seq, key=_seq)
        begin = bisect_left(pairs, -lamport, hi=end, key=_falling_lamport)
        pairs[begin:end] = [(seq, lamport)]
        return end - begin

    def has(self, stamp: Stamp) -> bool:
        """True if a message is covered."""
        at = bisect_left(self.pairs, stamp.seq, key=_seq)
        return at < len(self.pairs) and stamp.lamport <= self.pairs[at][1]

    def forget(self, seq: int) -> None:
        """Drop the names up to a seq."""
        del self.pairs[: bisect_right(self.pairs, seq, key=_seq)]


Waits = dict[bytes, Bounds]  # by feed: writes that are replaced already and have not arrived


def waited(waits: Waits | None) -> Iterator[Stamp]:
    """Yield the names of the messages that are waited for."""
    for feed, bounds in (waits or {}).items():
        for seq, lamport in bounds.pairs:
            yield Stamp(lamport, feed, seq)


def is_waited(waits: Waits | None, stamp: Stamp) -> bool:
    """True if the write of a message is replaced already."""
    return waits is not None and stamp.feed in waits and waits[stamp.feed].has(stamp)


def still_waited(waits: Waits | None, heard: Stamp) -> Waits | None:
    """Return what is waited for after a message has arrived."""
    if waits is not None and (bounds := waits.get(heard.feed)) is not None:
        bounds.forget(heard.seq)
        if not bounds.pairs:
            del waits[heard.feed]
    return waits or None


def _seq(pair: tuple[int, int]) -> int:
    return pair[0]


def _falling_lamport(pair: tuple[int, int]) -> int:
    return -pair[1]
