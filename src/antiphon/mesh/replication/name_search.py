"""`NameSearch`: looks for acts that name unknown feeds on the branches of forked control feeds that one peer holds.

A block may refer to a feed that no act here names: the act is beyond the fork of a control feed. The writer of the
block took the act before it knew of the fork; this device knew of the fork before, and took no more of that feed. So
the peer is asked which branches it holds of each forked control feed, and those that are missing here are requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from antiphon.feed.span import Span
from antiphon.mesh.replication.message import Holding, Tip, Tips
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.wanted_branches import WantedBlock


class NameSearch:
    """The search in what one peer holds. It is over when the peer has told, and given, all branches that it holds.

    What the peer tells is requested of the peer alone: nobody else is asked for blocks that it made up. It is asked
    about feeds that are held here: those of strangers are not searched (rule 22), and others come with their branches.
    """

    def __init__(self, replica: Replica, theirs: Mapping[bytes, Holding]) -> None:
        self._replica = replica
        self._theirs = theirs  # what the peer has announced
        self._version = 0  # of the holdings here that were looked at
        self._open: dict[bytes, None] = {}  # feeds of which the peer may hold branches that it has not told
        self._asked: dict[bytes, Holding] = {}  # feeds that the peer was asked about, as it had announced them then
        self._told: dict[bytes, Holding] = {}  # those of which it has told all
        self._after: dict[bytes, bytes] = {}  # feeds of which there is more to tell: the last hash that was told
        self._missing: dict[bytes, WantedBlock] = {}

    def missing(self) -> Sequence[WantedBlock]:
        """Return the blocks that the peer holds and that are to be requested, with those that lead to them."""
        return tuple(self._missing.values())

    def look_at(self, feed: bytes) -> None:
        """Note that the peer has announced a feed, or that its holding here has changed."""
        theirs, mine = self._theirs.get(feed), self._replica.holdings.get(feed)
        if theirs is None or mine is None or self._told.get(feed) == theirs:
            return
        if not (theirs.may_name or mine.may_name):
            return
        if theirs.fork is not None or theirs.branches or mine.fork is not None:
            self._open[feed] = None

    def feeds(self) -> Iterable[tuple[bytes, bytes]]:
        """Return the feeds whose branches the peer is to be asked for, and the hash behind which it goes on."""
        for _, held in self._replica.holdings.since(self._version):
            self.look_at(held.feed)
        self._version = self._replica.holdings.version
        return () if self._missing else ((feed, self._after.get(feed, b"")) for feed in self._open)

    def ask(self, feed: bytes) -> None:
        """Note that the peer is asked about a feed. What it announces later, it may not have told."""
        if feed not in self._after:
            self._asked[feed] = self._theirs[feed]

    def take(self, feed: bytes, answer: Tips) -> None:
        """Take an answer about a feed."""
        held = self._asked[feed]
        ended = self._replica.holdings.ended(feed)  # else the last block of its history comes with the feed
        self._want(feed, [tip for tip in answer.tips if ended or tip != (held.length - 1, held.hash)])
        if answer.more and answer.tips:
            self._after[feed] = answer.tips[-1].hash
        else:
            self.give_up(feed)

    def _want(self, feed: bytes, tips: Iterable[Tip]) -> None:
        for seq, hash_ in self._replica.store.missing(feed, tips):
            block = self._replica.branches.missing_block(feed, seq, hash_)
            self._missing[block.key] = block

    def has_come(self, block: WantedBlock) -> bool:
        """True if a block was missing, and is here now: another peer has given it."""
        if block.key not in self._missing or self._replica.store.missing(block.feed, [(block.seq, block.hash)]):
            return False
        del self._missing[block.key]
        return True

    def give_up(self, feed: bytes) -> None:
        """Ask no more about a feed, until the peer announces more of it: it has told all, or lacks what it told."""
        self._after.pop(feed, None)
        self._open.pop(feed, None)
        self._told[feed] = self._asked[feed]
        self.look_at(feed)

    def pop(self, key: bytes) -> WantedBlock | None:
        """Return a block of the peer that was requested, which is missing no more; None if it was not missing."""
        return self._missing.pop(key, None)

    def follow(self, spans: Sequence[Span]) -> None:
        """Request also the block before spans that came, if it is missing: a long branch comes in parts."""
        if spans[0].first:
            self._want(spans[0].feed, [Tip(spans[0].first - 1, spans[0].previous)])
