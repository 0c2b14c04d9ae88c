"""`ControlLane`: the history of one control feed in a party state machine, and blocks that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.feed.block import Block
from antiphon.feed.branches import BranchBlock
from antiphon.feed.header import NO_END, NO_HASH, Entry, Flag
from antiphon.feed.span import Span
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import BarrenActs
from antiphon.halo.rights.kept_acts import KeptActs

_T = TypeVar("_T")
_AT_ONCE = 256  # that are loaded together when all are asked for


class Recallable(Sequence[_T]):
    """Values of a history in its order. Those that were let go are loaded again when they are asked for."""

    __slots__ = ("_values", "load")

    def __init__(self, load: Callable[[int, int], Sequence[_T]] | None = None) -> None:
        self._values: list[_T | None] = []
        self.load = load or _nowhere  # the values in [start, stop)

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> list[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | list[_T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self._values))
            return list(self._between(start, stop)) if step == 1 else [self[at] for at in range(start, stop, step)]
        value = self._values[index]
        if value is None:
            index %= len(self._values)
            value = self.load(index, index + 1)[0]
        return value

    def __iter__(self) -> Iterator[_T]:
        return self._between(0, len(self._values))

    def _between(self, start: int, stop: int) -> Iterator[_T]:
        at = start
        while at < stop:
            value = self._values[at]
            if value is not None:
                yield value
                at += 1
                continue
            end = at + 1
            while end < stop and end - at < _AT_ONCE and self._values[end] is None:
                end += 1
            yield from self.load(at, end)
            at = end

    def held(self, start: int = 0, stop: int | None = None) -> Iterator[_T]:
        """Yield the values in [start, stop) that were not let go."""
        return (value for value in self._values[start:stop] if value is not None)

    def extend(self, values: Iterable[_T | None]) -> None:
        """Add values at the end; `None` for those that are loaded when they are asked for."""
        self._values.extend(values)

    def put(self, place: int, value: _T | None) -> None:
        """Hold a value, or let it go."""
        self._values[place] = value

    def cut(self, end: int) -> None:
        """Drop the values from a place on."""
        del self._values[end:]


def _nowhere(start: int, stop: int) -> Sequence[_T]:
    raise LookupError(f"blocks {start} to {stop - 1} of a control feed were let go, and nobody has them")


@dataclass(slots=True)
class ControlLane:
    """The history of one control feed: its blocks up to a fork, and how many of them are delivered."""

    feed: bytes
    blocks: Recallable[Block] = field(default_factory=Recallable)
    opening: Act | None = None  # its first block, as read to find out whose it is
    known: bool = False  # acts name it in a chain from the genesis (rule 22)
    acts: Recallable[Act] = field(default_factory=Recallable)  # of the blocks that are delivered
    barren: BarrenActs | None = None  # those that give nobody anything, as columns
    kept: KeptActs | None = None  # those of a checkpoint: they count, and few of them are ever made as values
    recalled: set[int] = field(default_factory=set)  # seqs of barren acts that count again, until they are sorted anew
    sweep_end: int = 0  # up to here, barren acts were looked for
    whole: int = NO_END  # the first delivered batch that lacks a body
    seen: Sightings = field(default_factory=Sightings)
    fault: str = ""
    held: int = 0  # blocks added, also those beyond a fork
    tip: bytes = NO_HASH  # hash of the last of them
    ended: bool = False  # its store takes no more blocks of it

    @property
    def position(self) -> int:
        return len(self.acts)

    @property
    def head(self) -> bytes:
        """The hash of the last delivered block."""
        return self.blocks[self.position - 1].hash if self.position else NO_HASH

    def hash_before(self, seq: int) -> bytes:
        """Return the hash of the block of the history before a seq."""
        return self.blocks[seq - 1].hash if seq else NO_HASH

    def overlap(self, span: Span) -> Sequence[Block]:
        """Return the blocks of the history in the place of a span that follows the history; none if it does not."""
        follows = span.first < len(self.blocks) and self.hash_before(span.first) == span.previous
        return self.blocks[span.first : span.end] if follows else ()

    def batch(self) -> Sequence[Block]:
        """Return the blocks of the next batch, if they are all here: an act may go on from one to the next."""
        for stop in range(self.position, len(self.blocks)):
            if not self.blocks[stop].flags & Flag.MORE:
                return self.blocks[self.position : stop + 1]
        return []

    def is_aside(self, seq: int) -> bool:
        """True if the act of a delivered block is set aside, and not held."""
        if self.kept is not None and seq in self.kept.acts:
            return True
        return self.barren is not None and seq in self.barren and seq not in self.recalled

    def aside(self) -> list[int]:
        """Return the seqs of the barren acts that are delivered, and not held."""
        seqs = [] if self.barren is None else self.barren.seqs.tolist()
        return [seq for seq in seqs if seq < self.position and seq not in self.recalled]

    def note(self, batch: Sequence[Block]) -> None:
        """Note whether a body of the next batch is missing."""
        if any(block.body is None for block in batch):
            self.whole = min(self.whole, batch[0].seq)

    def link(self, entry: Entry) -> tuple[bytes, int]:
        """Return the hash and the lamport of the block at an entry's seq."""
        block = self.blocks[entry.seq]
        return block.hash, block.lamport


@dataclass(frozen=True, slots=True)
class Waiting:
    """A control block that is not delivered yet, and the entry that it waits for."""

    stamp: Stamp
    entry: Entry
    forked: bool  # the block held there is another: the branch of the one that it names must be shown


def beyond(block: Block, previous: bytes) -> BranchBlock:
    """Return a block of a control feed as one of a branch."""
    return BranchBlock(block.feed, block.seq, block.hash, previous, block.lamport, block.advance, block)


def linked(blocks: Iterable[Block], previous: bytes) -> Iterator[BranchBlock]:
    """Yield blocks of a control feed that follow one another as those of a branch."""
    for block in blocks:
        yield beyond(block, previous)
        previous = block.hash
