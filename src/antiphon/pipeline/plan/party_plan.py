"""The plan of a party, made before its messages are read in bulk: how far each feed counts, which blocks are void, and
who wrote them.

Rights, causal closure and cuts concern ranges of blocks, not single messages. So they are found with the code of the
live engine: the control feeds are folded, `Delivery` walks over the blocks whose timeframe advances, `Judge` and
`Authors` answer for the ranges between two such blocks. The plan is small, and goes to every executor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, CorruptBlock, InvalidInput, MissingBlob, MissingBlocks, UnknownFeed
from antiphon.core.reasons import Reason, because, text_of
from antiphon.core.timeframe import Timeframe
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import NO_END, Flag
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.party_records import ChangedFeeds, PartyRecords
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine
from antiphon.model.access import Author
from antiphon.party.engine.authority import OpenAuthority, PartyAuthority
from antiphon.party.engine.authors import Authors
from antiphon.party.engine.branch_geneses import Bounds, BranchGeneses, Candidates
from antiphon.party.engine.delivery import Delivery
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.judge import Judge
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.ports import Authority, EpochJudge, Void
from antiphon.party.epochs.rebase import lanes_after
from antiphon.party.epochs.snapshot_fold import EpochPlan
from antiphon.party.live.manager import find_genesis
from antiphon.pipeline.source.ranges import Fault
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs

NOT_ADMITTED = because(Reason.FEED_UNKNOWN, "no admission of this feed is here")
FORKED = because(Reason.FORK, "its writer signed two histories; the feed ends where they part")
FAULTY = because(Reason.FAULT, "its writer broke a rule of headers here or before; the feed ends there")


@dataclass(frozen=True, slots=True)
class LanePlan:
    """The plan of one data feed. Blocks [start, length) are held, [base, position) are delivered, the rest waits or is
    beyond the end.
    """

    feed: bytes
    start: int
    base: int  # the first block that is not in the base snapshot
    position: int  # the first block that is not delivered
    end: int  # the first block beyond the end of the feed, for all peers
    length: int
    voids: tuple[Void, ...] = ()
    authors: tuple[tuple[int, Author], ...] = ()  # pairs of the first seq and its author
    waits: str = ""  # the reason why blocks from the position on are not delivered
    ended: str = ""  # the reason for the end

    def author(self, seq: int) -> Author:
        """The author of a block."""
        at = bisect_right(self.authors, seq, key=lambda step: step[0]) - 1
        return self.authors[at][1] if at >= 0 else Author(self.feed)


@dataclass(frozen=True, slots=True)
class PartyPlan:
    """The plan of one party at one moment."""

    home: str
    party: bytes
    lanes: tuple[LanePlan, ...]
    control: Mapping[bytes, int]  # control feeds, with the number of held blocks
    other: Mapping[bytes, int]  # feeds that are not admitted, with the number of held blocks
    base: bytes = b""  # the CID of the base snapshot
    number: int = 0  # of the epoch of the base
    faults: tuple[Fault, ...] = ()
    error: str = ""  # the reason why the party cannot be planned
    epoch: EpochPlan | None = None  # set if the plan is for computing this epoch, and not the current state
    states: int = field(default=0, compare=False)  # number of items in the base snapshot
    #: By item: geneses beyond forks, and since when feeds have seen them.
    branch_geneses: Candidates = field(default_factory=dict, compare=False)
    #: For feeds without a lane, the number of blocks beyond their end or behind their first fault.
    beyond: Mapping[bytes, int] = field(default_factory=dict, compare=False)

    @property
    def anchor(self) -> Timeframe:
        """The last planned block of each feed."""
        lengths = {lane.feed: lane.length for lane in self.lanes} | dict(self.control) | dict(self.other)
        return Timeframe({feed: length - 1 for feed, length in lengths.items() if length})

    def lane(self, feed: bytes) -> LanePlan | None:
        """The plan of a data feed; None if the feed has none."""
        return next((lane for lane in self.lanes if lane.feed == feed), None)


class FrozenStore(FeedReader):
    """A feed store as it was at one moment, up to the first fault of each feed. Later writes are not in it."""

    def __init__(
        self, store: FeedReader, party: bytes, faults: Iterable[Fault] = (), until: Timeframe | None = None
    ) -> None:
        super().__init__(store._env)
        self.records = {record.feed: record for record in store.feeds(party)}  # in one transaction
        self._party = party
        if until is not None:  # the store at an earlier moment
            held = {feed: _until(record, until.get(feed)) for feed, record in self.records.items()}
            self.records = {feed: record for feed, record in held.items() if record.length}
        self.faults: dict[bytes, Fault] = {}
        for fault in sorted(faults, key=lambda fault: -fault.seq):  # the first fault of each feed wins
            record = self.records.get(fault.feed)
            if record is not None:
                self.faults[fault.feed] = replace(fault, seq=self.batch_start(record, fault.seq))

    def feeds(self, party: bytes | None = None) -> tuple[FeedRecord, ...]:
        """The frozen records of the party; the current records of other parties, for example of a parent party."""
        return tuple(self.records.values()) if party == self._party else super().feeds(party)

    def changed_feeds(self, party: bytes) -> ChangedFeeds:
        if party != self._party:
            return super().changed_feeds(party)
        return ChangedFeeds(PartyRecords.frozen(party, self.records.values()))

    def record(self, feed: bytes) -> FeedRecord:
        found = self.records.get(feed)
        if found is not None:
            return found
        now = super().record(feed)
        if now.party == self._party:
            raise UnknownFeed(f"feed {feed.hex()[:8]} was not here when this was begun")
        return now

    def runs(self, feed: bytes, start: int | None = None, stop: int | None = None) -> Iterator[tuple[Span, int, int]]:
        known = self.records.get(feed)
        length = 0 if known is None else known.valid_length
        if feed in self.faults:
            length = min(length, self.faults[feed].seq)
        return super().runs(feed, start, length if stop is None else min(stop, length))

    def batch_start(self, record: FeedRecord, end: int) -> int:
        """Round an end down to the start of its batch (rule 3)."""
        with suppress(CorruptBlock):
            while record.start < end < record.length and self.block(record.feed, end - 1).flags & Flag.MORE:
                end -= 1
        return end


@dataclass(slots=True)
class Planner:
    """Makes the plan of one party. `faults` are the findings of verification."""

    home: str
    store: FeedReader
    blobs: Blobs
    party: bytes
    faults: Sequence[Fault] = ()
    until: Timeframe | None = None  # the last block of each feed to plan; all that are held, by default
    alone: bool = False  # the party runs without credentials: every feed of it counts
    exact: bool = False  # `until` holds for control feeds too; else their current blocks are used
    _ends: dict[bytes, tuple[int, str]] = field(default_factory=dict)

    def plan(self) -> PartyPlan:
        """Plan the party. An error that prevents that is in the plan, and is not raised."""
        held = FrozenStore(self.store, self.party, self.faults, self.until)
        lengths = {feed: record.length for feed, record in held.records.items()}
        try:
            machine, authority = self._authority(held)
            base = None if machine is None else find_base(machine, self.blobs)
            delivery = self._deliver(held, authority, base)
        except AntiphonError as error:
            lanes = tuple(_unjudged(held, record) for _, record in sorted(held.records.items()))
            why = because(Reason.UNPLANNED, str(error))
            return PartyPlan(self.home, self.party, lanes, {}, {}, faults=tuple(self.faults), error=why)
        lanes = self._lanes(held, delivery, authority)
        known = {lane.feed for lane in lanes}
        control = {feed: length for feed, length in lengths.items() if feed not in known and authority.is_control(feed)}
        return PartyPlan(
            self.home,
            self.party,
            lanes,
            control,
            {feed: length for feed, length in lengths.items() if feed not in known and feed not in control},
            b"" if base is None else bytes(base.cid),
            0 if base is None else base.number,
            tuple(self.faults),
            states=0 if base is None else base.root.item_count,
            branch_geneses=dict(BranchGeneses(held).update(authority.forked(), bounds_of(delivery.lanes.values()))),
            beyond=_beyond(held, control, (record for feed, record in held.records.items() if feed not in known)),
        )

    def _authority(self, held: FrozenStore) -> tuple[PartyMachine | None, Authority]:
        """The control state of the party, and the authority over its data feeds."""
        control = held if self.exact else self.store
        machine: PartyMachine | None = None
        authority: Authority
        if self.alone:
            authority = OpenAuthority(cast(FeedStore, held), self.party)  # it writes nothing here
        else:
            genesis = find_genesis(control, self.party)
            if genesis is None:
                raise MissingBlocks(self._no_genesis(held))
            machine = PartyMachine(self.party, genesis)
            authority = PartyAuthority(control, machine)
        authority.refresh()
        return machine, authority

    def _no_genesis(self, held: FrozenStore) -> str:
        """The error text for a party without a readable genesis."""
        damaged = [text_of(fault.reason) for fault in held.faults.values() if not fault.seq]
        return "; ".join(["the party's genesis is not here, or cannot be read", *sorted(damaged)])

    def _deliver(self, held: FrozenStore, authority: Authority, base: EpochBase | None) -> Delivery:
        """Deliver all blocks that can be delivered. The lanes end up as those of the live engine would."""
        delivery = self._begin(held, authority, base)
        for feed in sorted(authority.data_feeds()):
            delivery.activate(feed)
        for feed, lane in delivery.lanes.items():
            record = held.records.get(feed)
            if record is None:
                continue
            end, why = end_of(record, authority.fork_end(feed))
            if end != NO_END:
                end = max(lane.state.base, held.batch_start(record, end))
                delivery.end_fork(feed, end)
                self._ends[feed] = end, why
            delivery.take_branches(record)
            fault = held.faults.get(feed)
            if fault is not None and fault.seq < end:  # local damage, no end for all: later blocks of others wait
                self._ends[feed] = fault.seq, fault.reason
        delivery.wake_for_control()
        for _ in delivery.pump():
            pass
        return delivery

    def _begin(self, held: FrozenStore, authority: Authority, base: EpochBase | None) -> Delivery:
        return Delivery(held, authority, [] if base is None else lanes_after(base))

    def _lanes(self, held: FrozenStore, delivery: Delivery, authority: Authority) -> tuple[LanePlan, ...]:
        waiting = {blocked.feed: blocked.reason for blocked in delivery.blocked()}
        found = []
        for feed, lane in sorted(delivery.lanes.items()):
            record = held.records.get(feed) or FeedRecord(feed, self.party)
            end, ended = self._ends.get(feed, (NO_END, ""))
            voids, authors = ranges_of(lane, authority, lane.state.position)
            found.append(
                LanePlan(
                    feed,
                    record.start,
                    lane.state.base,
                    lane.state.position,
                    end,
                    record.length,
                    voids,
                    authors,
                    waiting.get(feed, ""),
                    ended,
                )
            )
        return tuple(found)


def bounds_of(lanes: Iterable[Lane]) -> Bounds:
    """By feed: the messages of lanes outside the base."""
    return {lane.feed: (lane.state.base, lane.state.position) for lane in lanes}


def ranges_of(lane: Lane, judge: EpochJudge, stop: int) -> tuple[tuple[Void, ...], tuple[tuple[int, Author], ...]]:
    """The void ranges of a lane behind its base, and the authors of its messages, according to one judge."""
    asked = Authors(judge)
    steps: list[tuple[int, Author]] = []
    for low, high, origin, seen in lane.pieces(0, stop):
        for begin, author in asked.find(lane.feed, origin, seen):
            at = max(begin, low)
            if at < high and (not steps or steps[-1][1] != author):
                steps.append((at, author))
    return tuple(Judge(judge).voids(lane, lane.state.base, stop)), tuple(steps)


def find_base(machine: PartyMachine, blobs: Blobs) -> EpochBase | None:
    """The snapshot of the last final epoch; None if there is no epoch.

    Raise `MissingBlob` if it is incomplete: on any other base, states would differ from those of peers.
    """
    epoch = machine.epochs().last
    if epoch is None:
        return None
    base = EpochBase.load(Cid(epoch.snapshot), blobs, party=machine.party, number=epoch.number)
    wrong = base.contradicts(epoch)
    if wrong:
        raise InvalidInput(wrong)
    lacking = next(tree.missing(base.cid, blobs), None)
    if lacking is not None:
        raise MissingBlob(f"blob {lacking} of the snapshot of epoch {epoch.number} is not here", cid=lacking)
    return base


def _unjudged(held: FrozenStore, record: FeedRecord) -> LanePlan:
    """The plan of a feed of a party that cannot be planned: all readable blocks wait."""
    end, why = end_of(record, NO_END)
    fault = held.faults.get(record.feed)
    if fault is not None and fault.seq < end:
        end, why = fault.seq, fault.reason
    return LanePlan(record.feed, record.start, record.start, record.start, end, record.length, ended=why)


def _beyond(held: FrozenStore, control: Mapping[bytes, int], records: Iterable[FeedRecord]) -> dict[bytes, int]:
    found = {}
    for record in records:
        fault = held.faults.get(record.feed)
        end = record.end if fault is None or record.feed in control else min(record.end, fault.seq)
        if end < record.length:
            found[record.feed] = record.length - end
    return found


def _until(record: FeedRecord, last: int | None) -> FeedRecord:
    """A record as it was when `last` was the last block. Blocks beyond the end of the feed are kept."""
    stop = record.start if last is None else last + 1
    return record if record.end <= stop else replace(record, length=max(record.start, min(record.length, stop)))


def end_of(record: FeedRecord, fork_end: int) -> tuple[int, str]:
    """The end of a feed for all peers, and the reason."""
    end = min(record.end, fork_end)
    if end == NO_END:
        return NO_END, ""
    return end, FORKED if fork_end == end or record.why is End.FORK else FAULTY
