"""`ControlBlocks`: the control blocks of a party that are delivered or shown, with their acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from antiphon.core.sightings import Seen
from antiphon.feed.block import Block
from antiphon.halo.acts.act import Act
from antiphon.halo.control.control_lane import ControlLane, Recallable
from antiphon.halo.control.stray_acts import StrayActs
from antiphon.halo.credentials.claims import Position

if TYPE_CHECKING:
    from antiphon.halo.control.settled_branches import SettledBranches


class ControlBlocks:
    """The reading half of `PartyMachine`: histories of control feeds, and acts of branches."""

    settled: SettledBranches

    def __init__(self, party: bytes) -> None:
        self.parent: ControlBlocks | None = None
        self._lanes: dict[bytes, ControlLane] = {}
        self._strays = StrayActs(party)
        self.counted: list[bytes] = []  # hashes of the blocks, here and in the parent, in the order they came to count

    def _lane(self, feed: bytes) -> ControlLane | None:
        """Return a control feed of this party, or of its parent."""
        lane = self._lanes.get(feed)
        return self.parent._lane(feed) if lane is None and self.parent is not None else lane

    def has(self, feed: bytes) -> bool:
        """True if a feed is a control feed of this party itself."""
        return feed in self._lanes

    def _position(self, feed: bytes) -> int:
        lane = self._lanes.get(feed)
        return 0 if lane is None else lane.position

    def is_control(self, feed: bytes) -> bool:
        """True if a feed of this party, or of its parent, is known, and has a branch of control."""
        lane = self._lane(feed)
        return lane is not None and lane.known

    def histories(self) -> Iterator[tuple[bytes, Recallable[Act]]]:
        """Yield the control feeds of this party itself, each with the delivered acts of its history."""
        return ((feed, lane.acts) for feed, lane in self._lanes.items())

    def delivered(self, feed: bytes) -> int:
        """Return how many blocks of a control feed's history, here or in the parent, are delivered."""
        lane = self._lane(feed)
        return 0 if lane is None else lane.position

    def history(self, feed: bytes) -> Sequence[Block]:
        """Return the blocks of a control feed's history, here or in the parent."""
        return lane.blocks if (lane := self._lane(feed)) is not None else ()

    def seen_at(self, feed: bytes, seq: int) -> Seen:
        """Return what the writer of a control feed of this party had seen at a block of its history."""
        return self._lanes[feed].seen.at(seq)

    def last(self, feed: bytes) -> Act | None:
        """Return the last delivered act of a control feed of this party."""
        lane = self._lanes.get(feed)
        return lane.acts[-1] if lane is not None and lane.acts else None

    def stray(self, hash_: bytes) -> Act | None:
        """Return the act of a shown branch block, here or in the parent."""
        self.settled.recall(hash_)
        found = self._strays.by_hash.get(hash_)
        return self.parent.stray(hash_) if found is None and self.parent is not None else found

    def strays_at(self, feed: bytes, seq: int) -> list[Act]:
        """Return the stray acts at a position, by the hashes of their blocks."""
        self.settled.recall_at(feed, seq)
        own = self._strays.at(Position(feed, seq))
        above = [] if self.parent is None else self.parent.strays_at(feed, seq)
        return sorted([*own, *above], key=lambda act: act.hash)

    def block(self, act: Act) -> Block:
        """Return the control block of an act."""
        return self.blocks(act)[0]

    def blocks(self, act: Act) -> Sequence[Block]:
        """Return the control blocks of an act: its lists may go on in the next ones."""
        if self._strays.by_hash.get(act.hash) is act:
            return self._strays.blocks(act)
        return self._lanes[act.stamp.feed].blocks[act.stamp.seq : act.stamp.seq + 1 + act.continued]

    def blocks_back(self, act: Act) -> Iterator[Block]:
        """Yield the block of an act, and those before it on its branch."""
        at = act if act.hash else act.after  # a draft has no block
        seq = -1 if at is None else at.stamp.seq
        while at is not None and self._strays.by_hash.get(at.hash) is at:
            yield self.block(at)
            seq, at = at.stamp.seq - 1, at.after
        for before in range(seq, -1, -1):
            yield self._lanes[act.stamp.feed].blocks[before]
