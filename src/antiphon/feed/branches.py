"""`Branches`: blocks that are no part of a feed's history, and which of them are shown.

A writer that forks its feed leaves blocks beyond the fork, and others know its other branch. Nobody applies them, but
honest members may have seen them, and refer to them by hash. Such a block is *shown* when signed headers lead to it
from a delivered block, from the feed's beginning or from inside the cut of the final epoch, each with a lamport at most
one above that of the block before it and of its entries, which count in turn (rule 23). So a lamport costs its writer
one signed block for each step, and a claim alone is worth nothing.

Whether a block is shown depends on the blocks that lead to it alone. So `Branches` need not hold the others: a block
that is asked for is fetched from the store, if the engine says how, and the blocks before it when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from antiphon.feed.block import Block
from antiphon.feed.causal_delivery import COVERED, WAITING, CausalQueue, Link, Standing, lie_of
from antiphon.feed.header import Entry
from antiphon.feed.rules import well_formed
from antiphon.feed.span import Span


@dataclass(slots=True, eq=False)
class BranchBlock:
    """One block of a branch. Once it is shown, only its place, hash and lamport are needed."""

    feed: bytes
    seq: int
    hash: bytes
    previous: bytes  # hash of the block before it
    lamport: int
    entries: tuple[Entry, ...]
    block: Block | None = None  # whole, in a control feed: its act is void, but names feeds, and may be a vote
    shown: bool = False
    fault: str = ""

    @property
    def whole(self) -> Block:
        """The whole block, of a control feed."""
        assert self.block is not None
        return self.block

    @property
    def before(self) -> Entry:
        """An entry for the block before it; its lamport is not known."""
        return Entry(self.feed, self.seq - 1, 0, self.previous)


def branch_blocks(span: Span, *, whole: bool = False) -> Iterator[BranchBlock]:
    """Yield the blocks of a span with hashes, without those from the first malformed header on."""
    previous = span.previous
    for block in span.blocks(0, well_formed(span)):
        kept = block if whole else None
        yield BranchBlock(block.feed, block.seq, block.hash, previous, block.lamport, block.advance, kept)
        previous = block.hash


class Settled(Protocol):
    """Branch blocks that an engine knows without holding them."""

    def holds(self, hash_: bytes) -> bool:
        """True if a block is settled."""

    def shown(self, entry: Entry) -> int | None:
        """Return the lamport of the settled block that an entry names, if that is shown; else None."""

    def first_waiting(self, hash_: bytes) -> bytes:
        """Return the first block that waits, of those that lead to a settled block in its span; "" if none does."""


Fetch = Callable[[Entry], Sequence[Span]]  # the spans of the store, if any, with the branch block that an entry names


class Branches:
    """The branch blocks of one engine, by hash. They are looked at in its `CausalQueue`, each under its hash."""

    def __init__(self, queue: CausalQueue, fetch: Fetch | None = None) -> None:
        self._queue = queue
        self._fetch = fetch
        self.settled: Settled | None = None
        self.blocks: dict[bytes, BranchBlock] = {}
        self._next: dict[tuple[bytes, bytes], bytes] = {}  # feed and hash of a block → the first that came after it
        self.parted: dict[bytes, int] = {}  # feeds with two different blocks after one: the least seq of such

    def add_span(self, span: Span, *, whole: bool = False) -> None:
        """Add the blocks of a span; known ones change nothing."""
        self.add(branch_blocks(span, whole=whole))

    def hold(self, block: BranchBlock, *, shown: bool) -> None:
        """Hold a settled block again."""
        if shown:
            block.shown, block.entries = True, ()
        self.blocks[block.hash] = block
        self._next.setdefault((block.feed, block.previous), block.hash)

    def add(self, blocks: Iterable[BranchBlock]) -> None:
        """Add blocks in any order; known ones change nothing."""
        for block in blocks:
            if block.hash not in self.blocks and not (self.settled and self.settled.holds(block.hash)):
                self.blocks[block.hash] = block
                self._queue.wake(block.hash)
                self._next.setdefault((block.feed, block.previous), block.hash)
                self.compare(block.feed, block.seq, block.previous, block.hash)

    def compare(self, feed: bytes, seq: int, previous: bytes, hash_: bytes) -> None:
        """Note a fork if another block of a branch is here after the same block: both are signed."""
        if self._next.get((feed, previous), hash_) != hash_:
            self.parted[feed] = min(seq, self.parted.get(feed, seq))

    def shown(self, entry: Entry) -> int | None:
        """Return the lamport of the block that an entry names, if that is shown; else None."""
        block = self.blocks.get(entry.hash)
        if block is None:  # if it is in the store, it is looked at later, and wakes those that wait for it
            self._seek(entry)
            return self.settled.shown(entry) if self.settled else None
        if not block.shown or (block.feed, block.seq) != (entry.feed, entry.seq):
            return None
        return block.lamport

    def _seek(self, entry: Entry) -> None:
        for span in () if self._fetch is None else self._fetch(entry):
            self.add_span(span)

    def seek_again(self, feed: bytes) -> None:
        """Fetch the blocks of a feed that others wait for: more blocks of it may be in the store than before.

        A liar's entry may put a true hash at another place, so a block is named by its place and its hash.
        """
        wanted = {(entry.seq, entry.hash): entry for entry in self._queue.waits_for.values() if entry.feed == feed}
        for entry in wanted.values():
            if entry.hash not in self.blocks:
                self._seek(entry)

    def show(
        self,
        block: BranchBlock,
        standing: Callable[[Entry], Standing],
        position: int,
        read_link: Link,
        base: int = 0,
        base_lamport: int = 0,
        head: bytes | None = None,
    ) -> bool:
        """True if a block is shown now, and was not before; else it waits, or has a fault.

        `standing` judges its entries. The rest describes the history of its own feed, as in `entry_standing`. `head` is
        the hash of its last delivered block, None if the history has ended: a block that follows it is no branch, but
        history that is still to come.
        """
        if block.shown or block.fault:
            return False
        if block.seq == position and block.previous == head:
            self._queue.sleep(block.hash, Entry(block.feed, block.seq, block.lamport, block.hash))
            return False
        before = block.before
        bound = 0 if block.seq == 0 else self._bound(before, position, read_link, base, base_lamport)
        if bound is None:  # first, so that of a chain of blocks only one waits for another feed
            self._queue.sleep(block.hash, before)
            return False
        greatest = 0
        for entry in block.entries:
            found = standing(entry)
            if found is WAITING:
                self._queue.sleep(block.hash, entry)
                return False
            if found is not COVERED:
                block.fault = lie_of(block.seq, entry)
                return False
            greatest = max(greatest, entry.lamport)
        if block.lamport > max(bound, greatest) + 1 and 0 <= before.seq < base:
            # Inside the cut, the block before may be above the root's lamport, on a branch that is shown later.
            self._queue.sleep(block.hash, before)
            return False
        if block.lamport > max(bound, greatest) + 1:
            block.fault = f"block {block.seq}: its lamport is above what it has seen"
            return False
        block.shown, block.entries = True, ()
        return True

    def _bound(self, before: Entry, position: int, read_link: Link, base: int, base_lamport: int) -> int | None:
        """Return the lamport that the block before may have at most; None if that is not here yet."""
        known = self.shown(before)
        if before.seq < base:
            return max(base_lamport, known or 0)
        if known is None and before.seq < position:
            found, lamport = read_link(before)
            known = lamport if found == before.hash else None
        return known

    def doubt(self) -> None:
        """Check blocks with faults again, as `CausalQueue.doubt` does."""
        for block in self.blocks.values():
            if block.fault:
                block.fault = ""
                self._queue.wake(block.hash)

    def obstacle(self, entry: Entry) -> Entry | None:
        """Return the block that is missing for an entry to count: itself, or one that leads to it; None if none is."""
        while True:
            block = self.blocks.get(entry.hash)
            if block is None and self.settled and self.settled.holds(entry.hash):
                waited = self._queue.waits_for.get(self.settled.first_waiting(entry.hash))
                if waited is None:
                    return None
                entry = waited
                continue
            if block is None:
                return entry
            waited = self._queue.waits_for.get(block.hash)
            if block.shown or waited is None or waited.hash == block.hash:
                return None
            entry = waited
