"""`BranchCheckpoint`: what was found out about the kept branches of one control feed, so that an opening reads few.

A span of a branch is *settled* if its first blocks are shown, with acts that say nothing but whom they name, or with
idle votes, and the others wait for one block or follow a block with a fault. All of that depends on the blocks that
lead to them, which their hashes name. So it is right wherever a store has them, and is used only if the store has all
of them. Idle votes are in columns, as those of a history are: they are woken when they may count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import Stamp
from antiphon.feed.header import ENTRY_SIZE, HASH_SIZE, NO_HASH, Entry, decode_entries
from antiphon.halo.acts.barren_acts import BarrenActs

FIRST, START, COUNT, SHOWN = range(4)  # columns of `BranchCheckpoint.rows`
OPEN = -1  # in the column SHOWN: the span is read again
_WHAT = "checkpoints of branches"


class SettledSpan(NamedTuple):
    """One row: the span of a branch that ends with the block `last`; NO_HASH: blocks of the store beyond the fork."""

    last: bytes
    first: int  # of the span
    start: int  # its first settled block
    hashes: tuple[bytes, ...] = ()  # of the settled blocks
    lamports: tuple[int, ...] = ()
    shown: int = OPEN  # how many of them are shown; OPEN if the span is read again
    waits: Entry | None = None  # the block that the next one waits for; None if there is none, or if it has a fault
    before: bytes = NO_HASH  # hash of the block before the first settled one


@dataclass(frozen=True, slots=True, eq=False)
class BranchCheckpoint:
    """The kept spans of one control feed, as columns."""

    end: int  # blocks of the history of the feed, which has ended
    held: int  # blocks of the feed that are in the store, beyond the fork, too
    tip: bytes  # hash of the last of them
    lasts: bytes  # of each span: the hash of its last block
    befores: bytes  # of each span: the hash of the block before its first settled one
    rows: npt.NDArray[np.int64]  # of each span: its first block, its first settled one, how many are, and are shown
    hashes: bytes  # of the settled blocks, span by span
    lamports: npt.NDArray[np.int64]
    waits: Mapping[int, Entry]  # by row
    subjects: bytes  # that their grants name
    admissions: bytes  # of each data feed that they admit: its key, and the hash of the block
    acts: int  # how many of their acts there are
    votes: BarrenActs  # their idle votes; instead of a seq, each has the place of its block among the settled ones
    offsets: npt.NDArray[np.int64] = field(init=False)  # of each row, in `hashes`, counted in blocks

    def __post_init__(self) -> None:
        ends = np.cumsum(self.rows[:, COUNT])
        object.__setattr__(self, "offsets", ends - self.rows[:, COUNT])

    @classmethod
    def of(
        cls,
        end: int,
        held: int,
        tip: bytes,
        spans: Iterable[SettledSpan],
        subjects: set[bytes],
        admissions: Mapping[bytes, bytes],
        votes: BarrenActs,
    ) -> BranchCheckpoint:
        """Keep spans. No block is in two of them."""
        kept = list(spans)
        rows = [(span.first, span.start, len(span.hashes), span.shown) for span in kept]
        return cls(
            end,
            held,
            tip,
            b"".join(span.last for span in kept),
            b"".join(span.before for span in kept),
            np.array(rows, dtype=np.int64).reshape(len(rows), 4),
            b"".join(hash_ for span in kept for hash_ in span.hashes),
            np.array([lamport for span in kept for lamport in span.lamports], dtype=np.int64),
            {at: span.waits for at, span in enumerate(kept) if span.waits is not None},
            b"".join(sorted(subjects)),
            b"".join(feed + hash_ for feed, hash_ in sorted(admissions.items())),
            sum(span.shown for span in kept if span.shown > 0),
            votes,
        )

    def __len__(self) -> int:
        """Return how many rows there are, of spans and of blocks."""
        return len(self.rows) + len(self.lamports)

    def spans(self) -> Iterator[SettledSpan]:
        """Yield the rows."""
        return (self.span(at) for at in range(len(self.rows)))

    def span(self, at: int) -> SettledSpan:
        """Return one row."""
        first, start, count, shown = self.rows[at].tolist()
        low = int(self.offsets[at])
        hashes = tuple(_keys(self.hashes[low * HASH_SIZE : (low + count) * HASH_SIZE]))
        lamports = tuple(self.lamports[low : low + count].tolist())
        before = self.befores[at * HASH_SIZE : (at + 1) * HASH_SIZE]
        return SettledSpan(self.last(at), first, start, hashes, lamports, shown, self.waits.get(at), before)

    def hash_of(self, number: int) -> bytes:
        """Return the hash of the settled block at a place among all of them."""
        return self.hashes[number * HASH_SIZE : (number + 1) * HASH_SIZE]

    def hash_at(self, at: int, index: int) -> bytes:
        """Return the hash of one settled block of a row."""
        return self.hash_of(int(self.offsets[at]) + index)

    def last(self, at: int) -> bytes:
        """Return the hash of the last block of a span."""
        return self.lasts[at * HASH_SIZE : (at + 1) * HASH_SIZE]

    def firsts(self, *, settled: bool) -> dict[bytes, int]:
        """Return the first blocks of all kept spans, or of the settled ones, by the hash of the last block."""
        rows = zip(_keys(self.lasts), self.rows[:, FIRST].tolist(), self.rows[:, SHOWN].tolist(), strict=True)
        return {last: first for last, first, shown in rows if last != NO_HASH and (shown != OPEN or not settled)}

    def stamps(self, feed: bytes, at: int) -> Iterator[Stamp]:
        """Yield the stamps of the shown blocks of a row."""
        low, (_, start, _, shown) = int(self.offsets[at]), self.rows[at].tolist()
        for number, lamport in enumerate(self.lamports[low : low + max(shown, 0)].tolist()):
            yield Stamp(lamport, feed, start + number)

    def named(self) -> Iterator[bytes]:
        """Yield the subjects of grants."""
        return _keys(self.subjects)

    def admitted(self) -> dict[bytes, bytes]:
        """Return the data feeds that acts admit, each with the hash of a block that does."""
        pair = 2 * HASH_SIZE
        found = (self.admissions[at : at + pair] for at in range(0, len(self.admissions), pair))
        return {both[:HASH_SIZE]: both[HASH_SIZE:] for both in found}

    def encode(self) -> bytes:
        """Encode the checkpoint (docs/design/formats.md)."""
        waits = [u32(at) + entry.encode() for at, entry in sorted(self.waits.items())]
        parts = [u64(self.end), u64(self.held), self.tip]
        parts += [u32(len(self.rows)), self.lasts, self.befores, self.rows.astype("<i8").tobytes()]
        parts += [u32(len(self.lamports)), self.hashes, self.lamports.astype("<i8").tobytes(), u32(len(waits)), *waits]
        parts += [u32(len(self.subjects) // HASH_SIZE), self.subjects]
        parts += [u32(len(self.admissions) // (2 * HASH_SIZE)), self.admissions, u64(self.acts)]
        return b"".join([*parts, self.votes.encode()])

    @classmethod
    def decode(cls, reader: Reader, feed: bytes) -> BranchCheckpoint:
        """Decode a checkpoint. Raises `BadEncoding`."""
        end, held, tip, count = reader.u64(), reader.u64(), reader.take(HASH_SIZE), reader.u32()
        lasts, befores = reader.take(count * HASH_SIZE), reader.take(count * HASH_SIZE)
        rows = np.frombuffer(reader.take(count * 32), dtype="<i8").astype(np.int64).reshape(count, 4)
        blocks = reader.u32()
        hashes = reader.take(blocks * HASH_SIZE)
        lamports = np.frombuffer(reader.take(blocks * 8), dtype="<i8").astype(np.int64)
        waits = [(reader.u32(), decode_entries(reader.take(ENTRY_SIZE))[0]) for _ in range(reader.u32())]
        subjects = reader.take(reader.u32() * HASH_SIZE)
        admissions = reader.take(reader.u32() * 2 * HASH_SIZE)
        known = end, held, tip, lasts, befores, rows, hashes, lamports, dict(waits), subjects, admissions
        found = cls(*known, reader.u64(), BarrenActs.decode(reader, feed, blocks))
        if [at for at, _ in waits] != sorted(found.waits):
            raise BadEncoding(f"{_WHAT}: spans that wait do not ascend")
        found._check(blocks)
        return found

    def _check(self, blocks: int) -> None:
        counts, shown = self.rows[:, COUNT], self.rows[:, SHOWN]
        fits = not self.rows.size or (int(self.rows[:, :SHOWN].min()) >= 0 and int(shown.min()) >= OPEN)
        fits = fits and (not self.rows.size or int(self.rows.max()) < 1 << 62)
        fits = fits and bool((shown <= counts).all() and (counts <= blocks).all()) and int(counts.sum()) == blocks
        fits = fits and bool((counts[shown == OPEN] == 0).all()) and int(shown[shown > 0].sum()) == self.acts
        if not fits or any(at >= len(self.rows) or shown[at] in (OPEN, counts[at]) for at in self.waits):
            raise BadEncoding(f"{_WHAT}: its columns do not fit each other")


def _keys(data: bytes) -> Iterator[bytes]:
    return (data[at : at + HASH_SIZE] for at in range(0, len(data), HASH_SIZE))
