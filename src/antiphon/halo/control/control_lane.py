"""`ControlLane`: the history of one control feed in a party state machine, and blocks that wait."""

from __future__ import annotations

from dataclasses import dataclass, field

from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.feed.block import Block
from antiphon.feed.branches import BranchBlock
from antiphon.feed.header import NO_HASH, Entry, Flag
from antiphon.halo.acts.act import Act


@dataclass(slots=True)
class ControlLane:
    """The history of one control feed: its blocks up to a fork, and how many of them are delivered."""

    feed: bytes
    blocks: list[Block] = field(default_factory=list)
    opening: Act | None = None  # its first block, as read to find out whose it is
    known: bool = False  # acts name it in a chain from the genesis (rule 22)
    acts: list[Act] = field(default_factory=list)  # of the blocks that are delivered
    seen: Sightings = field(default_factory=Sightings)
    fault: str = ""
    held: int = 0  # blocks added, also those beyond a fork
    tip: bytes = NO_HASH  # hash of the last of them

    @property
    def position(self) -> int:
        return len(self.acts)

    def batch(self) -> list[Block]:
        """Return the blocks of the next batch, if they are all here: an act may go on from one to the next."""
        for stop in range(self.position, len(self.blocks)):
            if not self.blocks[stop].flags & Flag.MORE:
                return self.blocks[self.position : stop + 1]
        return []

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
