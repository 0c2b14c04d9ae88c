"""`Timeframe`: for each feed, the last seq that is included; a vector clock over feeds.

>>> a, b = b"a" * 32, b"b" * 32
>>> first, second = Timeframe({a: 3}), Timeframe({a: 1, b: 0})
>>> first.compare(second)
<Causality.CONCURRENT: 'concurrent'>
>>> merged = first.merge(second)
>>> merged.covers(first), merged.missing(Timeframe({a: 5})) == Timeframe({a: 5})
(True, True)
>>> Timeframe.decode(merged.encode()) == merged
True
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.keys import KEY_SIZE

TIMEFRAME_ENTRIES_MAX = 1 << 20
_ENTRY_SIZE = KEY_SIZE + 8


class Causality(enum.Enum):
    """The causal relation of one timeframe to another."""

    BEFORE = "before"
    AFTER = "after"
    EQUAL = "equal"
    CONCURRENT = "concurrent"


class Timeframe(Mapping[bytes, int]):
    """An immutable map from feeds to seqs; of a missing feed nothing is included. Iterates in the order of keys."""

    __slots__ = ("_seqs",)
    _seqs: dict[bytes, int]

    def __init__(self, seqs: Mapping[bytes, int] | None = None) -> None:
        entries = sorted((bytes(feed), seq) for feed, seq in (seqs or {}).items())
        for feed, seq in entries:
            if len(feed) != KEY_SIZE or not 0 <= seq < 1 << 63:
                raise InvalidInput(f"a timeframe maps feed keys to seqs from 0, not {feed.hex()[:80]} to {seq}")
        self._seqs = dict(entries)

    def __getitem__(self, feed: bytes) -> int:
        return self._seqs[feed]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._seqs)

    def __len__(self) -> int:
        return len(self._seqs)

    def __hash__(self) -> int:
        return hash(tuple(self._seqs.items()))

    def __eq__(self, other: object) -> bool:
        return self._seqs == other._seqs if isinstance(other, Timeframe) else NotImplemented

    def __repr__(self) -> str:
        return "Timeframe({" + ", ".join(f"{feed.hex()[:8]}: {seq}" for feed, seq in self._seqs.items()) + "})"

    def merge(self, other: Timeframe) -> Timeframe:
        """Return the least timeframe that covers both."""
        merged = dict(self._seqs)
        for feed, seq in other._seqs.items():
            if merged.get(feed, -1) < seq:
                merged[feed] = seq
        found = Timeframe()  # both are checked, and in order: only new feeds must be sorted in
        found._seqs = merged if len(merged) == len(self._seqs) else dict(sorted(merged.items()))
        return found

    def covers(self, other: Timeframe) -> bool:
        """True if everything in `other` is included in this timeframe."""
        mine = self._seqs
        return all(mine.get(feed, -1) >= seq for feed, seq in other._seqs.items())

    def includes(self, feed: bytes, seq: int) -> bool:
        """True if this block is included."""
        return self._seqs.get(feed, -1) >= seq

    def missing(self, other: Timeframe) -> Timeframe:
        """Return the entries of `other` that are not included here: the blocks to wait for, or to request."""
        mine = self._seqs
        return Timeframe({feed: seq for feed, seq in other._seqs.items() if mine.get(feed, -1) < seq})

    def compare(self, other: Timeframe) -> Causality:
        """Return the causal relation of this timeframe to another."""
        mine, theirs = self.covers(other), other.covers(self)
        if mine:
            return Causality.EQUAL if theirs else Causality.AFTER
        return Causality.BEFORE if theirs else Causality.CONCURRENT

    def encode(self) -> bytes:
        """Canonical bytes: the count, then (feed, seq) by ascending feed. Also the form of an anchor."""
        return u32(len(self._seqs)) + b"".join(feed + u64(seq) for feed, seq in self._seqs.items())

    @classmethod
    def decode(cls, data: bytes) -> Timeframe:
        """Decode the bytes of `encode`; refuse any encoding that is not canonical."""
        reader = Reader(data, "timeframe")
        count = reader.u32()
        if count > TIMEFRAME_ENTRIES_MAX:
            raise TooLarge(f"timeframe: {count} entries, at most {TIMEFRAME_ENTRIES_MAX} are allowed")
        if len(data) != 4 + count * _ENTRY_SIZE:
            raise BadEncoding(f"timeframe: {count} entries take {4 + count * _ENTRY_SIZE} bytes, not {len(data)}")
        seqs: dict[bytes, int] = {}
        last = b""
        for _ in range(count):
            feed = reader.take(KEY_SIZE)
            if feed <= last:
                raise BadEncoding("timeframe: feeds do not ascend")
            seqs[feed] = reader.u64()
            last = feed
        return cls(seqs)
