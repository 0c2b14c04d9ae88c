"""Causal delivery, for control feeds and data feeds alike: a block is delivered after every block that it has seen.

`entry_standing` compares one advance entry with the feed that it names. `CausalQueue` holds the feeds to look at next.
It puts a feed whose next block is blocked to sleep under the feed that it waits for; growth of that feed wakes it, so
nothing scans. The callers keep the blocks and the positions: `PartyMachine` those of control feeds, `Delivery` those of
data feeds. The set of delivered blocks does not depend on the order of arrival.
"""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from antiphon.core.reasons import Reason, because
from antiphon.feed.header import Entry

T = TypeVar("T")


class Standing(enum.Enum):
    """How an advance entry relates to the delivered blocks."""

    COVERED = "covered"
    WAITING = "waiting"  # for blocks, or for the evidence of a fork
    LIE = "lie"  # its lamport is not that of the block it names: for everybody, the feed ends there


COVERED, WAITING, LIE = Standing  # looking up a member in its class costs more than the comparison


class Cursor(Protocol):
    """The part of a feed's delivery state that this module reads and writes."""

    feed: bytes
    fault: str  # why the feed ends before its next block; empty if it does not


def entry_standing(
    entry: Entry,
    position: int,
    end: int,
    read_link: Callable[[Entry], tuple[bytes, int]],
    base: int = 0,
    base_lamport: int = 0,
) -> Standing:
    """Compare an entry with the feed that it names.

    The first `position` blocks of that feed are delivered. It is forked at `end` (`NO_END` if it is not). Its first
    `base` blocks, the last of them with `base_lamport`, are in the snapshot of an epoch. `read_link` returns the hash
    and the lamport of the delivered block at the entry's seq.
    """
    seq = entry.seq
    if seq < base:  # joiners know nothing else of the blocks inside the cut, and everybody judges as they do (rule 2)
        return COVERED if entry.lamport <= base_lamport else LIE
    if seq >= end:  # no two peers hold the same blocks beyond a fork, so nobody waits for them
        return COVERED if position >= end else WAITING
    if seq >= position:
        return WAITING
    found, lamport = read_link(entry)
    if found != entry.hash:
        return WAITING  # for the evidence of a fork
    return COVERED if lamport == entry.lamport else LIE


class CausalQueue:
    """The feeds to look at next, and the feeds that wait for others."""

    def __init__(self, feeds: Iterable[bytes] = ()) -> None:
        self.ready: OrderedDict[bytes, None] = OrderedDict.fromkeys(feeds)
        self.waits_for: dict[bytes, Entry] = {}  # by blocked feed: the first entry of its next block that waits
        self._asleep: dict[bytes, set[bytes]] = defaultdict(set)  # feed waited for → feeds that wait

    def wake(self, *feeds: bytes) -> None:
        """Look at these feeds again: they may have grown."""
        for feed in feeds:
            self.ready[feed] = None

    def wake_waiters(self, feed: bytes) -> None:
        """Look again at the feeds that wait for this one: it was delivered further, or is cut."""
        self.wake(*sorted(self._asleep.pop(feed, ())))

    def wake_waiters_where(self, changed: Callable[[bytes], bool]) -> None:
        """Look again at the feeds that wait for any feed for which `changed` is true."""
        for feed in [feed for feed in self._asleep if changed(feed)]:
            self.wake_waiters(feed)

    def doubt(self, cursors: Iterable[Cursor]) -> None:
        """Check feeds with faults again: a wrong entry about a feed is no fault if that feed has forked before it."""
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
                self.waits_for[cursor.feed] = entry
                self._asleep[entry.feed].add(cursor.feed)
            else:  # the hash fixes the lamport, so everybody finds this lie
                wrong = f"block {seq}: its entry for feed {entry.feed.hex()[:8]} tells a wrong lamport"
                cursor.fault = because(Reason.LAMPORT, wrong)
            return False
        return True

    def deliver(self, advance: Callable[[bytes], Iterable[T]]) -> Iterator[T]:
        """Yield everything that can be delivered now, in a causal order.

        `advance` delivers the blocks of one feed that `passes` lets through, and yields them in runs.
        """
        while self.ready:
            feed, _ = self.ready.popitem(last=False)
            self.waits_for.pop(feed, None)
            grew = False
            for run in advance(feed):
                grew = True
                yield run
            if grew and feed in self._asleep:
                self.wake_waiters(feed)
