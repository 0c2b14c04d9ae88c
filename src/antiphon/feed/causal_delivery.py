"""Causal delivery, for control feeds and data feeds alike: a block is delivered after every block that it has seen.

`entry_standing` compares one advance entry with the feed that it names. `CausalQueue` holds the feeds to look at next.
It puts a feed whose next block is blocked to sleep under the block that it waits for; growth of that feed up to there,
or a branch block that is shown, wakes it, so nothing scans, and n feeds that wait for a far block are not looked at
with each block that comes before it. The callers keep the blocks and the positions: `PartyMachine` those of
control feeds, `Delivery` those of data feeds. Blocks that are no part of a feed's history are in `feed.branches`. The
set of delivered blocks does not depend on the order of arrival.
"""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol, TypeVar

from antiphon.core.reasons import Reason, because
from antiphon.feed.header import Entry

T = TypeVar("T")
Link = Callable[[Entry], tuple[bytes, int]]
Shown = Callable[[Entry], int | None]


class Standing(enum.Enum):
    """How an advance entry relates to the delivered and the shown blocks."""

    COVERED = "covered"
    WAITING = "waiting"  # for blocks, or until the branch that it names is shown
    LIE = "lie"  # its lamport is not that of the block it names: for everybody, the feed ends there


COVERED, WAITING, LIE = Standing  # looking up a member in its class costs more than the comparison


class Cursor(Protocol):
    """The part of a feed's delivery state that this module reads and writes."""

    feed: bytes
    fault: str  # why the feed ends before its next block; empty if it does not


def entry_standing(
    entry: Entry, position: int, read_link: Link, shown: Shown, base: int = 0, base_lamport: int = 0
) -> Standing:
    """Compare an entry with the feed that it names. No claim is believed: the block itself must be here (rule 23).

    The first `position` blocks of that feed's history are delivered. Its first `base` blocks, the last of them with
    `base_lamport`, are in the snapshot of an epoch. `read_link` returns the hash and the lamport of the delivered block
    at the entry's seq, `shown` the lamport of the block of a branch that it names, or None if that is not shown.
    """
    seq = entry.seq
    if seq < base:  # joiners know nothing else of the blocks inside the cut, and everybody judges as they do (rule 2)
        # Above the root's lamport it names another branch: never a fault, for its writer may be honest.
        return COVERED if entry.lamport <= base_lamport or shown(entry) == entry.lamport else WAITING
    if seq < position:
        found, lamport = read_link(entry)
        if found == entry.hash:
            return COVERED if lamport == entry.lamport else LIE
    known = shown(entry)
    if known is None:
        return WAITING
    return COVERED if known == entry.lamport else LIE


class CausalQueue:
    """The feeds to look at next, and the feeds that wait for others. Branch blocks are in it under their hashes.

    `delivered` returns how many blocks of a feed's history this queue has delivered; 0 of feeds that it does not have.
    """

    def __init__(self, delivered: Callable[[bytes], int], feeds: Iterable[bytes] = ()) -> None:
        self.ready: OrderedDict[bytes, None] = OrderedDict.fromkeys(feeds)
        self.waits_for: dict[bytes, Entry] = {}  # by blocked feed: the first entry of its next block that waits
        self._delivered = delivered
        self._by_block: dict[bytes, set[bytes]] = defaultdict(set)  # hash of the block waited for → feeds that wait
        self._by_feed: dict[bytes, _Waiters] = defaultdict(_Waiters)  # feed waited for → feeds that wait

    def wake(self, *feeds: bytes) -> None:
        """Look at these feeds again: they may have grown."""
        for feed in feeds:
            self.ready[feed] = None

    def sleep(self, feed: bytes, entry: Entry) -> None:
        """Let a feed wait for the block that an entry names."""
        self.waits_for[feed] = entry
        self._by_block[entry.hash].add(feed)
        if entry.seq >= self._delivered(entry.feed):  # else it is on another branch, and growth is no news
            self._by_feed[entry.feed].add(entry.seq, feed)

    def wake_waiters(self, blocks: Iterable[bytes]) -> None:
        """Look again at the feeds that wait for these blocks, by hash: they were delivered elsewhere, or are shown."""
        for block in blocks:
            if block in self._by_block:
                self.wake(*sorted(self._by_block[block]))

    def wake_ended(self, feed: bytes) -> None:
        """Look again at the feeds that wait for further blocks of a feed: its history has ended, and does not grow."""
        waiters = self._by_feed.get(feed)
        if waiters is not None:
            self.wake(*waiters.all())

    def wake_all(self) -> None:
        """Look again at all feeds that wait: an epoch became final."""
        self.wake(*sorted(self.waits_for))

    def doubt(self, cursors: Iterable[Cursor]) -> None:
        """Check feeds with faults again: a wrong entry about a block is no fault once an epoch holds that block."""
        for cursor in cursors:
            if cursor.fault:
                cursor.fault = ""
                self.wake(cursor.feed)

    def passes(self, cursor: Cursor, seq: int, entries: Iterable[Entry], standing: Callable[[Entry], Standing]) -> bool:
        """True if block `seq` can be delivered; if not, its feed is put to sleep, or ends with a fault."""
        for entry in entries:
            found = standing(entry)
            if found is COVERED:
                continue
            if found is WAITING:
                self.sleep(cursor.feed, entry)
            else:
                cursor.fault = lie_of(seq, entry)
            return False
        return True

    def deliver(self, advance: Callable[[bytes], Iterable[T]]) -> Iterator[T]:
        """Yield everything that can be delivered now, in a causal order.

        `advance` delivers the blocks of one feed that `passes` lets through, and yields them in runs.
        """
        while self.ready:
            feed, _ = self.ready.popitem(last=False)
            self._rise(feed)
            grew = False
            for run in advance(feed):
                grew = True
                yield run
            if grew:
                self._wake_grown(feed)

    def _wake_grown(self, feed: bytes) -> None:
        """Look again at the feeds that wait for what is delivered now of this one, or for this branch block."""
        if self._by_block:
            self.wake_waiters([feed])
        waiters = self._by_feed.get(feed)
        if waiters is not None:
            self.wake(*waiters.below(self._delivered(feed)))

    def _rise(self, feed: bytes) -> None:
        """Let a feed wait no longer."""
        entry = self.waits_for.pop(feed, None)
        if entry is None:
            return
        others = self._by_block[entry.hash]
        others.discard(feed)
        if not others:
            del self._by_block[entry.hash]
        waiters = self._by_feed.get(entry.feed)
        if waiters is not None and not waiters.remove(entry.seq, feed):
            del self._by_feed[entry.feed]


class _Waiters:
    """The feeds that wait for blocks of one feed, by the seq of the block."""

    __slots__ = ("_at", "_seqs")

    def __init__(self) -> None:
        self._at: dict[int, set[bytes]] = {}
        self._seqs: list[int] = []  # a heap; it may have seqs that nobody waits for any more

    def add(self, seq: int, feed: bytes) -> None:
        """Let a feed wait for a block."""
        if seq not in self._at:
            self._at[seq] = set()
            heappush(self._seqs, seq)
        self._at[seq].add(feed)

    def remove(self, seq: int, feed: bytes) -> bool:
        """Let a feed wait no longer. False if no feed waits now."""
        others = self._at.get(seq)
        if others is not None:
            others.discard(feed)
            if not others:
                del self._at[seq]
                if len(self._seqs) > 2 * len(self._at) + 8:
                    self._seqs = list(self._at)
                    heapify(self._seqs)
        return bool(self._at)

    def all(self) -> list[bytes]:
        """Return the feeds that wait."""
        return sorted(set().union(*self._at.values()))

    def below(self, length: int) -> list[bytes]:
        """Take out the feeds that wait for one of the first `length` blocks."""
        found: set[bytes] = set()
        while self._seqs and self._seqs[0] < length:
            found |= self._at.pop(heappop(self._seqs), set())
        return sorted(found)


def lie_of(seq: int, entry: Entry) -> str:
    """Return the fault of a block with a false entry. The hash fixes the lamport, so everybody finds this lie."""
    wrong = f"block {seq}: its entry for feed {entry.feed.hex()[:8]} tells a wrong lamport"
    return because(Reason.LAMPORT, wrong)
