"""`NameSearch`: looks for acts that name unknown feeds on the branches of forked control feeds that one peer holds.

A block may refer to a feed that no act here names: the act is beyond the fork of a control feed. The writer of the
block took the act before it knew of the fork; this device knew of the fork before, and took no more of that feed. So
the peer is asked which branches it holds of each forked control feed, and those that are missing here are requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from antiphon.core.errors import CorruptBlock
from antiphon.feed.header import Entry
from antiphon.feed.span import Span
from antiphon.mesh.message import Holding, Tip, Tips
from antiphon.mesh.replica import Replica
from antiphon.mesh.wanted_branches import WantedBlock


class NameSearch:
    """The search in what one peer holds. It is over when the peer has told, and given, all branches that it holds.

    What the peer tells is requested of the peer alone, and once: nobody else is asked for blocks that it made up.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._asked: dict[bytes, Holding] = {}  # feeds that the peer was asked about, as it had announced them then
        self._told: dict[bytes, Holding] = {}  # those of which it has told all
        self._after: dict[bytes, bytes] = {}  # feeds of which there is more to tell: the last hash that was told
        self._missing: dict[bytes, WantedBlock] = {}
        self._over: object = None  # the state of both ends in which there was nothing to ask

    @property
    def missing(self) -> Sequence[WantedBlock]:
        """The blocks that the peer holds and that are to be requested, with those that lead to them."""
        return tuple(self._missing.values())

    def feeds(self, theirs: Mapping[bytes, Holding], announced: int) -> Sequence[tuple[bytes, bytes]]:
        """Return the feeds whose branches the peer is to be asked for, and the hash behind which it goes on.

        `announced` counts what the peer has announced: while neither end has more, a search that is over costs nothing.
        """
        now = announced, self._replica.holdings.version
        if self._missing or now == self._over:
            return ()
        forked = [feed for feed, held in theirs.items() if held.control and self._may_have(held)]
        self._over = None if forked else now
        return [(feed, self._after.get(feed, b"")) for feed in forked]

    def _may_have(self, held: Holding) -> bool:
        return self._told.get(held.feed) != held and self._is_forked(held)

    def _is_forked(self, theirs: Holding) -> bool:
        mine = self._replica.holdings.get(theirs.feed)
        return theirs.fork is not None or theirs.branches > 0 or (mine is not None and mine.fork is not None)

    def ask(self, held: Holding) -> None:
        """Note that the peer is asked about a feed. What it announces later, it may not have told."""
        if held.feed not in self._after:
            self._asked[held.feed] = held

    def take(self, feed: bytes, answer: Tips) -> None:
        """Take an answer about a feed."""
        held = self._asked[feed]
        for tip in answer.tips:
            if tip != (held.length - 1, held.hash) or self._replica.holdings.ended(feed):  # else it comes with its feed
                self._want(feed, tip)
        if answer.more and answer.tips:
            self._after[feed] = answer.tips[-1].hash
        else:
            self.give_up(feed)

    def _want(self, feed: bytes, tip: Tip) -> None:
        try:
            here = self._replica.store.has_block(feed, *tip)
        except CorruptBlock:
            return  # local readers report it
        found = None if here else self._replica.branches.look_for(Entry(feed, tip.seq, 0, tip.hash))
        if found is not None:
            self._missing[found.key] = found

    def give_up(self, feed: bytes) -> None:
        """Ask no more about a feed, until the peer announces more of it: it has told all, or lacks what it told."""
        self._after.pop(feed, None)
        self._told[feed] = self._asked[feed]

    def pop(self, key: bytes) -> WantedBlock | None:
        """Return a block of the peer that was requested, which is missing no more; None if it was not missing."""
        return self._missing.pop(key, None)

    def follow(self, spans: Sequence[Span]) -> None:
        """Request also the block before spans that came, if it is missing: a long branch comes in parts."""
        if spans[0].first:
            self._want(spans[0].feed, Tip(spans[0].first - 1, spans[0].previous))
