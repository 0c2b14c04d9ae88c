"""Plan homes again from the resume points of the last run: verify only new blocks, and resume delivery in each lane.

The resume point of a party is valid as long as its feeds still have the blocks that they had. One hash per feed shows
that. A party whose resume point is not valid is read in full, and its step says why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import SparkSession

from antiphon.core.errors import CorruptBlock, MissingBlocks, UnknownFeed
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import BodyState
from antiphon.feed.header import NO_END
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.delivery import Delivery
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.ports import Authority, LaneState
from antiphon.pipeline.plan.party_plan import FrozenStore, LanePlan, PartyPlan, Planner, end_of
from antiphon.pipeline.plan.resume_point import Head, ResumePoint
from antiphon.pipeline.plan.survey import verify_and_plan
from antiphon.pipeline.session.stage_events import VERIFY, Tell, silent
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.source.home import open_blobs, open_feeds
from antiphon.pipeline.source.inventory import Inventory, PartyInventory, take_inventory
from antiphon.pipeline.source.ranges import RANGE_BLOCKS, Fault, Limits, Range, divide_ranges

NEW = "the party is new here"
HAD_ERROR = "nothing could be said of the party before"
OTHER_BASE = "the party is based on another epoch"
OTHER_CODE = "code for other models is here than was then"
BODIES_CAME = "bodies of messages came that were not here"
BODIES_WENT = "bodies of messages were erased"
MANY_BODILESS = "too many messages have no bodies here to look up each one"
MENDED = "a feed can be read where it could not"
DAMAGED = "a feed cannot be read any more where it could"

BODILESS_MAX = 100_000  # messages of a party without bodies that are looked up one by one

#: By party, the (feed, seq) of messages without bodies. More than `BODILESS_MAX` entries mean "too many to look up".
Bodiless = Mapping[bytes, Collection[tuple[bytes, int]]]


@dataclass(frozen=True, slots=True)
class PartyStep:
    """One party of a run: its resume points before and now, and why it must be read in full, if it must."""

    now: ResumePoint
    before: ResumePoint | None = None
    full_reason: str = ""
    held: int = 0  # number of blocks in the records of the store

    @property
    def plan(self) -> PartyPlan:
        return self.now.plan

    @property
    def new_blocks(self) -> int:
        """Number of blocks that came since the last run."""
        had = {} if self.before is None else self.before.anchor
        return sum(max(0, seq - had.get(feed, -1)) for feed, seq in self.now.anchor.items())

    @property
    def unchanged(self) -> bool:
        """True if the plan is the same as in the last run."""
        return not self.full_reason and self.before is not None and self.before.plan == self.now.plan


@dataclass(frozen=True, slots=True)
class ReplanRequest:
    """The request to the worker that takes the inventory: homes, limits, and the resume points to validate."""

    homes: tuple[str, ...]
    limits: Limits
    known: Mapping[bytes, ResumePoint]
    bodiless: Bodiless
    models: str
    damaged: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class ListedParty:
    """A party of the inventory, and why its resume point is not valid; empty if it is."""

    listed: PartyInventory
    full_reason: str

    @property
    def party(self) -> bytes:
        return self.listed.party


class PlanTask(NamedTuple):
    """A party to plan, in a worker."""

    home: str
    party: bytes
    faults: tuple[Fault, ...]
    until: Timeframe
    exact: bool
    before: ResumePoint | None
    models: str

    @property
    def blocks(self) -> int:
        """Number of new blocks."""
        had = {} if self.before is None else self.before.anchor
        return sum(max(0, seq - had.get(feed, -1)) for feed, seq in self.until.items())


def replan_parties(
    spark: SparkSession,
    homes: Sequence[str],
    known: Mapping[bytes, ResumePoint],
    models: str,
    *,
    parties: Collection[bytes] = (),
    bodiless: Bodiless | None = None,
    until: Timeframe | None = None,
    blocks: int = RANGE_BLOCKS,
    tell: Tell = silent,
    damaged: Collection[bytes] = (),
) -> list[PartyStep]:
    """Verify new blocks of some homes, and plan their parties. Blocks beyond the anchor `until` are ignored.

    Parties in `damaged` are read in full: blocks that were verified cannot be read any more. `homes` are absolute
    paths, because workers open them.
    """
    if until is not None:  # the tables may be ahead of the caller
        for progress in known.values():
            until = until.merge(progress.anchor)
    asked = ReplanRequest(
        tuple(homes),
        Limits(parties=frozenset(map(bytes, parties)), until=until),
        dict(known),
        bodiless or {},
        models,
        frozenset(damaged),
    )
    found, listed = in_workers(spark, _look, [asked])[0]
    listed.check(parties)
    new = [one for some in found for one in _unverified(some, known)]
    tell(VERIFY, sum(one.count for one in new))
    # A batch of a stream may use later control blocks than it reads, or else its base might be an epoch that is gone.
    exact = until is None
    tasks = [
        PlanTask(
            some.listed.home,
            some.party,
            (),
            some.listed.anchor if until is None else until,
            exact,
            None if some.full_reason or known[some.party].plan.error else known[some.party],
            models,
        )
        for some in found
    ]
    plans = verify_and_plan(spark, divide_ranges(new, blocks), _plan, tasks)
    return [_step(some, now, known.get(some.party)) for some, now in zip(found, plans, strict=True)]


def _step(found: ListedParty, now: ResumePoint, before: ResumePoint | None) -> PartyStep:
    reason = found.full_reason
    if not reason and before is not None:
        if before.plan.error:
            reason = "" if now.plan == before.plan else HAD_ERROR
        elif (now.plan.base, now.plan.number) != (before.plan.base, before.plan.number):
            reason = OTHER_BASE
        elif now.plan.error:
            reason = now.plan.error
        elif now.erased != before.erased:
            reason = BODIES_WENT
        elif set(before.plan.faults) - set(now.plan.faults):
            reason = MENDED
        elif {lane.feed for lane in before.plan.lanes} - {lane.feed for lane in now.plan.lanes}:
            reason = "a feed is no longer admitted"
    return PartyStep(now, before, reason, found.listed.held)


def _unverified(found: ListedParty, known: Mapping[bytes, ResumePoint]) -> list[Range]:
    heads: Mapping[bytes, Head] = {} if found.full_reason else known[found.party].heads
    ranges = [
        replace(one, start=max(one.start, heads[one.feed][0])) if one.feed in heads else one
        for one in found.listed.ranges
    ]
    return [one for one in ranges if one.start < one.stop]


# -- in Spark's workers


def _look(asked: ReplanRequest) -> tuple[list[ListedParty], Inventory]:
    listed = take_inventory((asked.homes, asked.limits))
    found = []
    for home in asked.homes:
        with open_feeds(home) as store:
            here = (one for one in listed.parties if one.home == home)
            found += [ListedParty(one, _why_afresh(store, asked, one.party)) for one in here]
    return found, listed


def _why_afresh(store: FeedReader, asked: ReplanRequest, party: bytes) -> str:
    before = asked.known.get(party)
    if before is None:
        return NEW
    if party in asked.damaged:
        return DAMAGED
    if before.models != asked.models:
        return OTHER_CODE
    for feed, head in before.heads.items():
        wrong = _why_other(store, feed, head)
        if wrong:
            return f"feed {feed.hex()[:8]} {wrong}"
    if len(asked.bodiless.get(party, ())) > BODILESS_MAX:
        return MANY_BODILESS
    came = (_body_of(store, feed, seq) is BodyState.PRESENT for feed, seq in asked.bodiless.get(party, ()))
    return BODIES_CAME if any(came) else ""


def _why_other(store: FeedReader, feed: bytes, head: Head) -> str:
    """The reason why a feed is not the one that was verified; empty if it is."""
    length, last = head
    try:
        record = store.record(feed)
        if record.valid_length < length:
            return f"ends at block {record.valid_length}; {length} were read"
        if record.start > length:
            return f"begins at block {record.start}; {length} were read, and those between are pruned"
        now = record.start_hash if record.start == length else store.block(feed, length - 1).hash
    except UnknownFeed:
        return "is gone"
    except CorruptBlock as error:
        return f"cannot be read any more where it was: {error}"
    return "" if not length or now == last else "holds other blocks than were read"


def _body_of(store: FeedReader, feed: bytes, seq: int) -> BodyState:
    try:
        return store.block(feed, seq).state
    except (MissingBlocks, UnknownFeed, CorruptBlock):
        return BodyState.LEFT_OUT


def _plan(task: PlanTask) -> ResumePoint:
    faults = sorted(task.faults, key=lambda fault: (fault.feed, fault.seq))
    with open_feeds(task.home) as store, open_blobs(task.home) as blobs:
        planner = ResumedPlanner(
            task.home, store, blobs, task.party, faults, task.until, exact=task.exact, before=task.before
        )
        return planner.progress(task.models)


@dataclass(slots=True)
class ResumedPlanner(Planner):
    """A planner that resumes delivery in the lanes of a resume point, unless a delivered block is withdrawn."""

    before: ResumePoint | None = None
    kept: tuple[LaneState, ...] = ()
    erased: int = 0

    def progress(self, models: str) -> ResumePoint:
        """Plan the party, and return its new resume point."""
        plan = self.plan()
        return ResumePoint(plan, self.kept, self._heads(plan), self.erased, models)

    def _begin(self, held: FrozenStore, authority: Authority, base: EpochBase | None) -> Delivery:
        if self.before is not None and self._holds(self.before, held, authority, base):
            return Delivery(held, authority, self.before.lanes)
        return Planner._begin(self, held, authority, base)

    def _holds(self, before: ResumePoint, held: FrozenStore, authority: Authority, base: EpochBase | None) -> bool:
        """True if all delivered blocks still count. A fork or damage withdraws the blocks beyond it."""
        cuts = {} if base is None else base.feeds
        if before.plan.base != (b"" if base is None else bytes(base.cid)):
            return False
        admitted = {*authority.data_feeds(), *cuts}
        for lane in before.plan.lanes:
            record = held.records.get(lane.feed)
            if lane.feed not in admitted:
                return False
            if record is not None:
                fault = held.faults.get(lane.feed)
                end = min(end_of(record, authority.fork_end(lane.feed))[0], NO_END if fault is None else fault.seq)
                if end < lane.position and lane.position > lane.base:
                    return False
        return True

    def _lanes(self, held: FrozenStore, delivery: Delivery, authority: Authority) -> tuple[LanePlan, ...]:
        self.kept = tuple(lane.state for _, lane in sorted(delivery.lanes.items()))
        for feed in delivery.lanes:
            seqs = authority.erased(feed)  # pruned blocks included
            self.erased += sum(_body_of(self.store, feed, seq) is not BodyState.PRESENT for seq in seqs)
        return Planner._lanes(self, held, delivery, authority)

    def _heads(self, plan: PartyPlan) -> dict[bytes, Head]:
        """The verified length of each feed, up to its first fault, with the hash of its last block."""
        held = FrozenStore(self.store, self.party, self.faults, self.until)
        firsts = {feed: fault.seq for feed, fault in _first(plan.faults).items()}
        heads: dict[bytes, Head] = {}
        for feed, record in held.records.items():
            length = max(record.start, min(record.valid_length, firsts.get(feed, record.valid_length)))
            last = record.start_hash if length == record.start else self.store.block(feed, length - 1).hash
            heads[feed] = length, last
        return heads


def _first(faults: Iterable[Fault]) -> dict[bytes, Fault]:
    found: dict[bytes, Fault] = {}
    for fault in sorted(faults, key=lambda fault: -fault.seq):
        found[fault.feed] = fault
    return found
