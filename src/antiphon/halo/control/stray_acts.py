"""`StrayActs`: the acts of shown branch blocks of control feeds.

A stray act is void: its feed has ended before it. But it names feeds that others may have seen, it may be a vote, and a
final epoch may hold it, if its attesters had seen no other branch. So every peer that is shown a branch reads its acts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.core.sightings import Seen, Sightings
from antiphon.feed.block import Block
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, advance, read_batch
from antiphon.halo.acts.grant import admits
from antiphon.halo.credentials.claims import Equivocated, FeedAdmission, FeedKind, Position


class StrayActs:
    """Acts of branch blocks, by the hash of the block. Each knows the act before it on its branch."""

    def __init__(self, party: bytes) -> None:
        self._party = party
        self.by_hash: dict[bytes, Act] = {}
        self.named: dict[bytes, None] = {}  # data feeds that some stray act admits: others may have seen them
        self.reported: dict[bytes, int] = {}  # feeds whose forks stray acts prove: how many blocks are common
        self._at: dict[Position, list[Act]] = defaultdict(list)
        self._followers: dict[bytes, list[Act]] = defaultdict(list)  # by the hash of the block before
        self._counts: Counter[bytes] = Counter()
        self._logs: dict[bytes, _Log] = {}
        self._blocks: dict[bytes, Sequence[Block]] = {}
        self._grants: dict[bytes, int] = {}  # by hash: how many its feed has written before it, on its own branch

    @property
    def feeds(self) -> Collection[bytes]:
        """The control feeds that have stray acts."""
        return self._counts.keys()

    def read(self, batch: Sequence[Block], after: Act | None, grants: int) -> list[Act]:
        """Read the acts of a batch of blocks that are shown now; return those that were not known.

        `grants` is how many there are before them, if they follow a history. If two branches part inside a batch, the
        first acts of it count with the lists that they announce.
        """
        log = None if after is None else self._logs.get(after.hash)
        if after is None or log is None or log.tip != after.hash:
            log = _Log(Sightings(), {} if after is None else after.place.seen, b"")
        seen = [SeenOnBranch(advance(log.own, block), log.below) for block in batch]
        log.tip = batch[-1].hash
        self._logs[log.tip] = log
        read = read_batch(self._party, list(zip(batch, seen, strict=True)), after)
        fresh = [act for act in read if (known := self.by_hash.get(act.hash)) is None or known.claim is None]
        for at, act in enumerate(read):
            if act in fresh:
                self.drop(act.hash)
                self.keep(act, batch[at : at + 1 + act.continued], grants)
        return fresh

    def blocks(self, act: Act) -> Sequence[Block]:
        """Return the blocks of a stray act: its lists may go on in the next ones."""
        return self._blocks[act.hash]

    def keep(self, act: Act, blocks: Sequence[Block], grants: int) -> None:
        """Note an act as stray, with its blocks. If it follows a history, that has so many grants."""
        self._blocks[act.hash] = blocks
        if act.after is not None and act.after.hash in self._grants:
            grants = self._grants[act.after.hash] + admits(act.after)
        self._grants[act.hash] = grants
        self._counts[act.stamp.feed] += 1
        self._at[act.position].append(act)
        self.by_hash[act.hash] = act
        if act.after is not None:
            self._followers[act.after.hash].append(act)
        for later in self._followers.get(act.hash, ()):
            # It followed this act of a history, which may have been let go and read again. But if the list of an act
            # goes on on one of two branches only, the other branch keeps its own reading of the act.
            if later.after is not None and later.after.problem == act.problem:
                later.follow(act)
        if isinstance(act.claim, FeedAdmission) and act.claim.kind is FeedKind.DATA:
            self.named[act.claim.feed] = None
        if isinstance(act.claim, Equivocated):
            self.reported[act.claim.feed] = min(act.claim.length, self.reported.get(act.claim.feed, NO_END))

    def drop(self, hash_: bytes) -> Act | None:
        """Return the act of a block that turned out to be history; None if it was no stray."""
        act = self.by_hash.pop(hash_, None)
        if act is not None:
            self._at[act.position].remove(act)
            if act.after is not None:
                self._followers[act.after.hash].remove(act)
            self._counts[act.stamp.feed] -= 1
            if not self._counts[act.stamp.feed]:
                del self._counts[act.stamp.feed]
        return act

    def grants_before(self, act: Act) -> int:
        """Return how many grants its feed has before a stray act, from the feed's beginning on."""
        return self._grants[act.hash]

    def at(self, position: Position) -> Sequence[Act]:
        """Return the acts at a position, on whichever branches."""
        return self._at.get(position, ())


@dataclass(slots=True)
class _Log:
    """The sightings of one branch, beyond the place where it parted. The first block that follows continues it."""

    own: Sightings
    below: Seen
    tip: bytes


class SeenOnBranch(Mapping[bytes, int]):
    """The timeframe of a block on a branch: what the branch has seen, over that of the block where it parted."""

    __slots__ = ("_below", "_own")

    def __init__(self, own: Seen, below: Seen) -> None:
        self._own = own
        self._below = below

    def get(self, feed: bytes, default: Any = None, /) -> Any:
        found, at = -1, self
        while True:  # a branch of a branch of a branch …
            found = max(found, at._own.get(feed, -1))
            if not isinstance(at._below, SeenOnBranch):
                found = max(found, at._below.get(feed, -1))
                return default if found < 0 else found
            at = at._below

    def __getitem__(self, feed: bytes) -> int:
        found: int = self.get(feed, -1)
        if found < 0:
            raise KeyError(feed)
        return found

    def __contains__(self, feed: object) -> bool:
        return isinstance(feed, bytes) and self.get(feed, -1) >= 0

    def __iter__(self) -> Iterator[bytes]:
        known: dict[bytes, None] = {}
        at: Seen = self
        while isinstance(at, SeenOnBranch):
            known |= dict.fromkeys(at._own)
            at = at._below
        return iter(known | dict.fromkeys(at))

    def __len__(self) -> int:
        return sum(1 for _ in self)
