"""`Sightings`: what the writer of a feed had seen of other feeds, at each of its blocks.

Each block's timeframe differs from the one before by its advance entries alone. So a feed keeps, for every feed that it
has seen, the blocks at which it saw more of it; a timeframe is a view of that log at one block, and copies nothing. The
log of a feed takes memory in proportion to its entries, however many timeframes are held.

>>> a, b = b"a" * 32, b"b" * 32
>>> seen = Sightings()
>>> seen.see(2, {a: 7})
>>> seen.see(5, {a: 9, b: 0})
>>> [dict(seen.at(seq)) == found for seq, found in ((1, {}), (4, {a: 7}), (5, {a: 9, b: 0}))]
[True, True, True]
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from antiphon.core.codec import Reader, u32
from antiphon.core.errors import BadEncoding

KEY_SIZE = 32
_PAIR = struct.Struct("<qq")
Seen = Mapping[bytes, int]  # feed → the last seq seen of it
Marks = Sequence[tuple[bytes, Sequence[int]]]  # blocks that matter: feeds, each with ascending seqs of it


class Sightings:
    """An append-only log of timeframes, by the seq of the block from which on each holds."""

    __slots__ = ("_steps", "starts")

    def __init__(self, steps: Iterable[tuple[int, Seen]] = ()) -> None:
        self.starts: list[int] = []  # the blocks at which the timeframe grew, ascending
        self._steps: dict[bytes, array[int]] = {}  # by feed: (block, seq seen from there on), one after the other
        for seq, seen in steps:
            self.see(seq, seen)

    def see(self, seq: int, seen: Seen) -> None:
        """Note that block `seq`, and all after it, have seen these blocks too. The greater seq of a feed counts."""
        grew = False
        for feed, at in seen.items():
            known = self._steps.get(feed)
            if known is None:
                self._steps[feed] = array("q", (seq, at))
            elif at <= known[-1]:
                continue
            elif known[-2] == seq:
                known[-1] = at
            else:
                known.append(seq)
                known.append(at)
            grew = True
        if grew and (not self.starts or self.starts[-1] != seq):
            self.starts.append(seq)

    def at(self, seq: int) -> SeenAt:
        """Return the timeframe of block `seq`."""
        return SeenAt(self, seq)

    def last(self, feed: bytes, seq: int, default: Any = -1) -> Any:
        """Return the last block of a feed that block `seq` had seen."""
        steps = self._steps.get(feed)
        if steps is None:
            return default
        if steps[-2] <= seq:  # the most common question is about a timeframe that has not grown since
            return steps[-1]
        place = bisect_right(range(0, len(steps), 2), seq, key=steps.__getitem__)
        return steps[2 * place - 1] if place else default

    def feeds(self) -> Iterable[bytes]:
        return self._steps

    def first_seeing(self, feed: bytes, seq: int) -> int | None:
        """Return the first block that had seen block `seq` of a feed, or a later one; None if there is none."""
        steps = self._steps.get(feed)
        if steps is None or steps[-1] < seq:
            return None
        return steps[2 * bisect_left(range(1, len(steps), 2), seq, key=steps.__getitem__)]

    def pieces(self, start: int, stop: int, marks: Marks | None = None) -> Iterator[tuple[int, int, int]]:
        """Divide [start, stop) into ranges of blocks with one timeframe. Yield (low, high, origin) of each.

        The origin is the block from which on the timeframe holds; 0 before any was seen. With `marks`, timeframes that
        have seen the same of the marked blocks are one.
        """
        if marks is None:
            place = bisect_right(self.starts, start)
            origin = self.starts[place - 1] if place else 0
            begins = self.starts[place : bisect_left(self.starts, stop)]
        else:
            origin, begins = self._origin(start, marks), sorted(set(self._begins(start, stop, marks)))
        for begin in begins:
            yield start, begin, origin
            start = origin = begin
        if start < stop:
            yield start, stop, origin

    def _origin(self, seq: int, marks: Marks) -> int:
        """Return the first block that had seen the same marked blocks as block `seq`."""
        origin = 0
        for feed, marked in marks:
            count = bisect_right(marked, self.last(feed, seq))
            if count:
                origin = max(origin, self.first_seeing(feed, marked[count - 1]) or 0)
        return origin

    def _begins(self, start: int, stop: int, marks: Marks) -> Iterator[int]:
        """Yield the blocks in (start, stop) that had seen more marked blocks than the one before them."""
        for feed, marked in marks:
            place = bisect_right(marked, self.last(feed, start))
            while place < len(marked):
                begin = self.first_seeing(feed, marked[place])
                if begin is None or begin >= stop:
                    break
                yield begin
                place = bisect_right(marked, self.last(feed, begin), place)

    def steps(self) -> Iterator[tuple[int, Seen]]:
        """Yield the blocks at which the timeframe grew, each with what was new: `Sightings(steps)` is an equal log."""
        found: dict[int, dict[bytes, int]] = {start: {} for start in self.starts}
        for feed, steps in self._steps.items():
            for place in range(0, len(steps), 2):
                found[steps[place]][feed] = steps[place + 1]
        yield from found.items()

    def since(self, seq: int) -> Sightings:
        """Return the log from block `seq` on: it begins there with all that was seen before."""
        whole = dict(self.at(seq))
        later = [(start, seen) for start, seen in self.steps() if start > seq]
        return Sightings([(seq, whole), *later] if whole else later)

    def until(self, seq: int) -> Sightings:
        """Return the log of the blocks before `seq`."""
        return Sightings((start, seen) for start, seen in self.steps() if start < seq)

    def encode(self, stop: int | None = None) -> bytes:
        """Encode the log, or its blocks before `stop`, as columns."""
        parts = []
        for feed, steps in sorted(self._steps.items()):
            count = len(steps) // 2
            if stop is not None:
                count = bisect_left(range(0, len(steps), 2), stop, key=steps.__getitem__)
            if count:
                parts.append(feed + u32(count) + np.asarray(steps[: 2 * count], dtype="<i8").tobytes())
        return u32(len(parts)) + b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> Sightings:
        """Decode the bytes of `encode`, without a step of Python for each block. Raises `BadEncoding`."""
        found, last = cls(), b""
        for _ in range(reader.u32()):
            feed = reader.take(KEY_SIZE)
            count = reader.u32()
            if count == 1:  # most are so short that an array of numpy costs more than they
                pair = _PAIR.unpack(reader.take(16))
                if feed <= last or min(pair) < 0:
                    raise BadEncoding("what a feed has seen: feeds, blocks or seqs do not ascend")
                found._steps[feed], last = array("q", pair), feed
                continue
            rows = np.frombuffer(reader.take(count * 16), dtype="<i8").reshape(-1, 2)
            ascends = len(rows) and int(rows[0].min()) >= 0 and bool((np.diff(rows, axis=0) > 0).all())
            if feed <= last or not ascends:
                raise BadEncoding("what a feed has seen: feeds, blocks or seqs do not ascend")
            steps = found._steps[feed] = array("q")
            steps.frombytes(rows.astype(np.int64).tobytes())
            last = feed
        found.starts = sorted({seq for steps in found._steps.values() for seq in steps[::2]})
        return found

    def copy(self) -> Sightings:
        """Return a log of its own, which does not grow with this one."""
        return Sightings(self.steps())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sightings):
            return NotImplemented
        return self.starts == other.starts and self._steps == other._steps

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.starts)


class SeenAt(Mapping[bytes, int]):
    """The timeframe of one block of a feed: a view of the feed's `Sightings`."""

    __slots__ = ("_log", "_seq")

    def __init__(self, log: Sightings, seq: int) -> None:
        self._log = log
        self._seq = seq

    def get(self, feed: bytes, default: Any = None, /) -> Any:
        return self._log.last(feed, self._seq, default)

    def __getitem__(self, feed: bytes) -> int:
        found: int | None = self._log.last(feed, self._seq, None)
        if found is None:
            raise KeyError(feed)
        return found

    def __contains__(self, feed: object) -> bool:
        return isinstance(feed, bytes) and self._log.last(feed, self._seq, None) is not None

    def __iter__(self) -> Iterator[bytes]:
        return (feed for feed in self._log.feeds() if feed in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
