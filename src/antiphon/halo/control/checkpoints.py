"""`Checkpoints`: lets a party machine go without the acts that give nobody anything, live and at the next opening.

A machine *sets aside* barren acts: their values and blocks are let go, and columns are kept of them (`BarrenActs`).
A checkpoint of a control feed (`LaneCheckpoint`) is saved; the next opening begins there, and reads the other acts.
docs/design/parties.md has the rule, and why no answer changes by it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.codec import Reader
from antiphon.core.sightings import Sightings
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import NO_END, Flag
from antiphon.halo.acts.act import Act, read_history
from antiphon.halo.acts.act_columns import TAKING, ActColumns, fits_columns, stays_columns
from antiphon.halo.acts.barren_acts import GRANTS, VOTES, BarrenActs, BarrenKind, row_of
from antiphon.halo.acts.grant import admits
from antiphon.halo.control.branch_checkpoint import BranchCheckpoint
from antiphon.halo.control.control_lane import ControlLane
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint
from antiphon.halo.control.settled_branches import BranchSource
from antiphon.halo.credentials.claims import (
    Continuation,
    DeviceAdmission,
    Equivocated,
    FeedAdmission,
    FeedEnd,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    Policy,
    Position,
)
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.idle_votes import idle_kind, woken
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.barren import is_barren, repeats_evidence, spent_kind
from antiphon.halo.rights.grant_checks import may_take_at_all
from antiphon.halo.rights.inheritance import may_end
from antiphon.halo.rights.kept_acts import KeptActs

if TYPE_CHECKING:
    from antiphon.halo.control.machine import PartyMachine

Source = Callable[[bytes, int, int], Sequence[Block]]  # the blocks [start, stop) of a feed's history
FEW = 32  # acts that are not worth a checkpoint: to read them again costs little
_MANY = 256  # acts that are worth looking at, while the party is open
_AT_ONCE = 256  # blocks that are looked at together to find the ends of a batch
NOTHING = Timeframe()
_TAKES = np.isin(np.arange(256), TAKING)  # by the kind of a claim in columns
_GROWTH = 8  # a look judges all acts that are held: it waits until an eighth more have come, and an eighth may go


@dataclass(slots=True)
class Sweep:
    """Findings of a look for barren acts."""

    gone: set[bytes] = field(default_factory=set)  # hashes of the blocks of acts that are set aside now
    moved: bool = False  # these, or others that were and count again


class Checkpoints:
    """The barren acts of one party machine. Without a source of blocks it lets nothing go."""

    def __init__(self, machine: PartyMachine, lanes: Mapping[bytes, ControlLane]) -> None:
        self._machine = machine
        self._lanes = lanes
        self.source: Source | None = None
        self._offered: dict[bytes, LaneCheckpoint] = {}
        self.branches: dict[bytes, BranchCheckpoint] = {}  # of the feeds that were restored
        self._suspects: dict[bytes, list[int]] = {}  # by feed: acts that are void now, and may be so for ever
        self._batch: tuple[bytes, int, list[Act]] = (b"", 0, [])  # the last one that was read again: feed, start, acts
        self._takings = 0  # acts since the last move that take, and are values
        self._saved = 0  # acts in what was offered or taken last
        self._verdicts: dict[Position, bool] | None = {}  # what was saved: which grants and policies are in force

    # -- at the next opening

    def offer(
        self, saved: Mapping[bytes, LaneCheckpoint], source: Source, branches: BranchSource | None = None
    ) -> None:
        """Take checkpoints, to begin control feeds with, and where their blocks and their branches are."""
        self._offered, self.source, self._machine.settled.source = dict(saved), source, branches
        self._saved = sum(map(len, saved.values()))

    def withdraw(self) -> None:
        """Offer no more: from now on, others wait for single blocks of control feeds by their hashes."""
        self._offered.clear()

    @property
    def offered(self) -> Collection[bytes]:
        """The feeds whose checkpoints were offered, and not used yet."""
        return self._offered.keys()

    def restore(self, records: Mapping[bytes, FeedRecord]) -> list[tuple[ControlLane, list[Act]]]:
        """Return lanes that begin with the checkpoints, each with its acts that count; none if a block is another.

        Blocks in them have seen only each other, and branches that are here, so all of them are delivered together.
        """
        offered, self._offered = self._offered, {}
        branches = {feed: saved.branches for feed, saved in offered.items() if saved.branches is not None}
        tips = {feed: self._tip(saved, records.get(feed)) for feed, saved in offered.items() if saved.length}
        fits = all(self._machine.settled.fits(records.get(feed), saved) for feed, saved in branches.items())
        if not fits or None in tips.values():
            self._saved = -FEW  # they are saved anew
            return []
        self.branches = branches
        found = [self._begin(offered[feed], tip) for feed, tip in tips.items() if tip is not None]
        for lane, _ in found:
            lane.ended = records[lane.feed].why is End.FAULT
        return found

    def _tip(self, saved: LaneCheckpoint, record: FeedRecord | None) -> Block | None:
        """Return the last block of a checkpoint; None if a feed holds another one there."""
        if record is None or record.start or self.source is None:
            return None
        if saved.length > min(record.valid_length, self._machine.common(saved.feed)):
            return None
        tip = self.source(saved.feed, saved.length - 1, saved.length)[0]
        return tip if tip.hash == saved.hash and not tip.flags & Flag.MORE else None

    def _begin(self, saved: LaneCheckpoint, tip: Block) -> tuple[ControlLane, list[Act]]:
        assert self.source is not None
        lane = ControlLane(saved.feed, known=True, held=saved.length, tip=saved.hash)
        lane.barren, lane.seen, lane.sweep_end = saved.barren, saved.seen, saved.length
        self._let_go(lane)
        lane.blocks.extend([None] * saved.length)
        ranges = list(_ranges(saved.live()))
        for start, stop in ranges:
            for block in self.source(lane.feed, start, stop):
                lane.blocks.put(block.seq, block)
                if block.body is None:
                    lane.whole = min(lane.whole, _batch_start(lane, block.seq))
        lane.blocks.put(tip.seq, tip)
        lane.acts.extend([None] * saved.length)
        acts = [act for start, stop in ranges for act in self._acts(lane, start, stop)]
        takes = _TAKES[saved.acts.says]
        acts += saved.acts.only(~takes).between(lane.feed, lane.seen, 0, saved.length)
        acts.sort(key=_seq)
        for act in acts:
            lane.acts.put(act.stamp.seq, act)
        if saved.valid is None or self._verdicts is None:
            self._verdicts = None
        else:
            valid = set(saved.valid.tolist())
            self._verdicts |= {act.position: act.stamp.seq in valid for act in acts if gives(act)}
        lane.opening = acts[0]
        lane.kept = _kept(lane, saved.acts.only(takes)) if bool(takes.any()) else None
        return lane, acts

    def presume(self) -> None:
        """Let the machine have the verdicts that were saved, if it has the very acts that they were found by."""
        if self._verdicts and self._machine.is_unforked:
            self._machine.authority.presume(self._verdicts)
            self._machine.authority.settle()  # at once: a later act that sorts before these has all verdicts forgotten
        self._verdicts = None

    # -- reading what was let go

    def _let_go(self, lane: ControlLane) -> None:
        """See to it that a lane loads the blocks and acts that it lets go."""
        assert self.source is not None
        assert lane.barren is not None
        lane.blocks.load = partial(self.source, lane.feed)
        lane.acts.load = partial(self._load, lane)
        lane.barren.recall = partial(self._recall, lane)

    def _recall(self, lane: ControlLane, seq: int) -> Act:
        """Hold an act that was set aside again: something may rest on it."""
        act = lane.acts[seq]
        if lane.is_aside(seq):
            lane.acts.put(seq, act)
            lane.recalled.add(seq)
            self._machine.regain([act])
        return act

    def _load(self, lane: ControlLane, start: int, stop: int) -> list[Act]:
        """Return the acts [start, stop) of a history, which are not held: from columns, or from their blocks."""
        if lane.kept is None:
            return self._acts(lane, start, stop)
        found = list(lane.kept.between(start, stop))
        kept = {act.stamp.seq for act in found}
        for low, high in _ranges(seq for seq in range(start, stop) if seq not in kept):
            found += self._acts(lane, low, high)
        return sorted(found, key=_seq)

    def _acts(self, lane: ControlLane, start: int, stop: int) -> list[Act]:
        """Read the acts [start, stop) of a history from their blocks, in whole batches.

        The last batch is remembered: it may have thousands of acts, which are asked for one by one.
        """
        feed, first, acts = self._batch
        found = acts[start - first : stop - first] if feed == lane.feed and start >= first else []
        start += len(found)
        if start == stop:
            return found
        low = at = _batch_start(lane, start)
        blocks = lane.blocks[low:stop]
        while blocks[-1].flags & Flag.MORE:
            rest = lane.blocks[low + len(blocks) : low + len(blocks) + _AT_ONCE]
            blocks += rest[: next((n for n, block in enumerate(rest, 1) if not block.flags & Flag.MORE), None)]
        read: list[Act] = []
        for block in blocks:
            if not block.flags & Flag.MORE:
                batch = blocks[at - low : block.seq + 1 - low]
                acts = read_history(self._machine.party, [(one, lane.seen.at(one.seq)) for one in batch])
                self._batch = (lane.feed, at, acts)
                read += acts
                at = block.seq + 1
        return found + read[start - low : stop - low]

    # -- in use

    def fill(self, authority: Authority, lane: ControlLane, start: int = 0, stop: int = NO_END) -> None:
        """Let an authority have the acts of a history in [start, stop)."""
        stop = min(stop, lane.position)
        if start >= stop:
            return
        if lane.barren is None:
            authority.add(lane.acts.held(start, stop))
        else:
            acts = (act for act in lane.acts.held(start, stop) if act.stamp.seq not in lane.recalled)
            authority.add_range(acts, lane.barren, lane.kept, start, stop)

    def inside(self, authority: Authority, control: Timeframe, after: Timeframe = NOTHING) -> None:
        """Let an authority have the acts of histories in a control timeframe, and not in another."""
        for feed, lane in self._lanes.items():
            self.fill(authority, lane, after.get(feed, -1) + 1, control.get(feed, -1) + 1)

    def named(self, authority: Authority, lane: ControlLane, start: int = 0) -> Iterator[bytes]:
        """Yield the subjects of barren grants of a lane, from a block on, that name somebody: within the budget."""
        barren = lane.barren
        if barren is not None:
            for low, high in authority.budgets.counting(lane.feed, BarrenKind.MEMBER):
                yield from map(barren.key, barren.those(GRANTS, max(low, start), min(high, lane.position)))

    def wake_votes(self, chain: EpochChain) -> None:
        """Hold votes again that were set aside, or are on settled branches, and may count by this chain of epochs."""
        self._machine.settled.wake(chain)
        for lane in self._lanes.values():
            if lane.barren is not None and not lane.barren.kinds.isdisjoint(VOTES):
                fresh = [seq for seq in woken(chain, lane.barren) if seq < lane.position and lane.is_aside(seq)]
                back = [act for start, stop in _ranges(sorted(fresh)) for act in lane.acts[start:stop]]
                for act in back:
                    lane.acts.put(act.stamp.seq, act)
                lane.recalled.update(fresh)
                self._machine.regain(back)

    def aside(self) -> Iterator[Act]:
        """Yield the acts that are not held as values, read again."""
        found = [(lane, list(_ranges(lane.aside()))) for lane in self._lanes.values()]
        barren = (act for lane, ranges in found for start, stop in ranges for act in lane.acts[start:stop])
        return chain(barren, self.kept())

    def kept(self, after: Timeframe = NOTHING) -> Iterator[Act]:
        """Yield the acts that take, outside a control timeframe, and are not held as values."""
        for feed, lane in self._lanes.items():
            if lane.kept is not None:
                yield from lane.kept.between(after.get(feed, -1) + 1, lane.position)

    @property
    def count(self) -> int:
        """How many acts were set aside."""
        return sum(len(lane.barren) for lane in self._lanes.values() if lane.barren is not None)

    def cut(self, lane: ControlLane, end: int) -> None:
        """A history ends before what was known of it: forget what is beyond."""
        if lane.barren is not None:
            lane.barren = lane.barren.before(end)
            self._let_go(lane)
        if lane.kept is not None:
            lane.kept = lane.kept.before(end)
        lane.sweep_end = min(lane.sweep_end, end)
        lane.recalled = {seq for seq in lane.recalled if seq < end}
        self._suspects[lane.feed] = _between(self._suspects.get(lane.feed, []), 0, end)
        self._batch = (b"", 0, [])

    def take_back(self, feeds: Collection[bytes]) -> list[Act]:
        """Hold acts again that were set aside, and have seen more of some feeds than their histories.

        The rights that are asked for hold acts of another branch there, perhaps, than the writers of these had seen.
        """
        back: list[Act] = []
        for lane in self._lanes.values() if feeds else ():
            if lane.barren is None:
                continue
            until = self._seen_until(lane, feeds)
            fresh = [seq for seq in lane.aside() if seq >= until]
            if not fresh and until >= lane.position:
                continue
            for start, stop in _ranges(fresh):
                for act in lane.acts[start:stop]:
                    lane.acts.put(act.stamp.seq, act)
                    back.append(act)
            lane.barren = lane.barren.before(until)
            lane.recalled = {seq for seq in lane.recalled if seq < until}
            self._let_go(lane)
        return back

    # -- setting aside

    def sweep(self, least: int | None = None) -> Sweep:
        """Set barren acts aside and keep others as columns, if there are at least so many.

        The machine then makes the rights anew.
        """
        machine = self._machine
        if self.source is None or not machine.stands_alone:
            return Sweep()
        unseen = sum(lane.position - lane.sweep_end for lane in self._lanes.values())
        held = sum(lane.position for lane in self._lanes.values()) - self.count
        if least is None and unseen < max(_MANY, held // _GROWTH):
            return Sweep()
        if not unseen and not any(self._suspects.values()) and not any(lane.recalled for lane in self._lanes.values()):
            return Sweep()
        authority, chain = machine.authority, machine.epochs()
        authority.settle()
        for lane in self._lanes.values():
            self._suspect(authority, chain, lane)
        kept = sum(len(lane.kept.acts) for lane in self._lanes.values() if lane.kept is not None)
        wanted = max(_MANY, (self.count + kept) // _GROWTH) if least is None else least
        suspects = sum(map(len, self._suspects.values()))
        if suspects + self._takings < wanted:
            return Sweep()
        sweep, self._takings = Sweep(), 0
        if suspects or any(lane.recalled for lane in self._lanes.values()):
            generous = authority.untaken(generous=True)
            for lane in self._lanes.values():
                self._set_aside(lane, authority, generous, sweep)
        for lane in self._lanes.values():
            self._keep(lane, sweep)
        return sweep

    def _suspect(self, authority: Authority, chain: EpochChain, lane: ControlLane) -> None:
        """Note the acts of a lane, since the last look, that are void now. Those in force are never barren."""
        self._takings += sum(map(stays_columns, lane.acts.held(lane.sweep_end, lane.position)))
        if lane.feed != self._machine.genesis_feed:
            acts = lane.acts.held(lane.sweep_end, lane.position)
            fresh = (act for act in acts if _is_void(authority, act) or idle_kind(chain, act) is not None)
            self._suspects.setdefault(lane.feed, []).extend(act.stamp.seq for act in fresh)
        lane.sweep_end = max(lane.sweep_end, lane.position)

    def _set_aside(self, lane: ControlLane, authority: Authority, generous: Authority, sweep: Sweep) -> None:
        until, chain = self._seen_until(lane), self._machine.epochs()
        suspects = self._suspects.pop(lane.feed, [])
        later = [seq for seq in suspects if seq >= until]
        if later:  # what they have seen may become history
            self._suspects[lane.feed] = later
        again = {seq for seq in lane.recalled if seq < until}
        acts = [lane.acts[seq] for seq in sorted(again.union(suspects)) if seq < until]
        gone = {act.stamp.seq for act in acts if is_barren(authority, generous, act)}
        rest = [act for act in acts if act.stamp.seq not in gone]
        found = ((act.stamp.seq, spent_kind(authority, generous, act) or idle_kind(chain, act)) for act in rest)
        kinds = {seq: kind for seq, kind in found if kind is not None}
        gone |= kinds.keys()
        others = (act for act in lane.acts.held() if act.continued and act.stamp.seq not in gone)
        parts = {seq for act in others for seq in range(act.stamp.seq + 1, _end(act))}  # of acts that stay
        fresh = [act for act in acts if act.stamp.seq in gone and act.stamp.seq not in parts]
        if not fresh and not again:
            return
        rows = {} if lane.barren is None else {row.seq: row for row in lane.barren.rows()}
        sweep.gone |= {act.hash for act in fresh}
        sweep.moved = True
        for seq in again:
            rows.pop(seq, None)
        for act in fresh:
            rows[act.stamp.seq] = row_of(act, repeated=_repeats(authority, act), kind=kinds.get(act.stamp.seq))
        lane.barren = BarrenActs.of(lane.feed, (rows[seq] for seq in sorted(rows)))
        lane.recalled -= again
        self._let_go(lane)
        _drop(lane, fresh)

    def _keep(self, lane: ControlLane, sweep: Sweep) -> None:
        """Make columns of the acts of a lane that take, as an opening does."""
        suspects = {*lane.recalled, *self._suspects.get(lane.feed, ())}  # these may be set aside later
        acts = [act for act in lane.acts.held() if stays_columns(act) and act.stamp.seq not in suspects]
        if acts:
            lane.kept = _kept(lane, ActColumns.of(acts, None if lane.kept is None else lane.kept.acts))
            lane.barren = lane.barren or BarrenActs.of(lane.feed, ())
            self._let_go(lane)
            _drop(lane, acts)
            sweep.gone |= {act.hash for act in acts}
            sweep.moved = True

    def _seen_until(self, lane: ControlLane, feeds: Collection[bytes] | None = None) -> int:
        """Return the first block of a lane that has seen more of some feeds, or of any, than their histories.

        It may have seen a branch. What follows a missing body does not count as history: the body may come.
        """
        wanted = (feed for feed in lane.seen.feeds() if feeds is None or feed in feeds)
        found = (lane.seen.first_seeing(feed, self._whole(feed)) for feed in wanted)
        return min(lane.position, lane.whole, *(seq for seq in found if seq is not None))

    def _whole(self, feed: bytes) -> int:
        lane = self._lanes.get(feed)
        return 0 if lane is None else min(lane.position, lane.whole)

    # -- to be saved

    def collect(self) -> list[LaneCheckpoint] | None:
        """Return the checkpoints of all control feeds, if they save much; None if it is little more than before."""
        if not self._machine.stands_alone or not self._machine.settled.all_kept:
            return None
        live = {act.hash for act in self._machine.to_be_read()}
        branches = {feed: self._machine.settled.collect(lane, live) for feed, lane in self._lanes.items()}
        count = sum(self._rows(lane, lane.position) for lane in self._lanes.values())
        count += sum(len(found) for found in branches.values() if found is not None)
        count = 0 if count < FEW else count
        if abs(count - self._saved) < FEW:
            return None
        self._saved = count
        judged = self._machine.is_unforked and all(lane.position <= lane.whole for lane in self._lanes.values())
        found = [(lane, branches[feed]) for feed, lane in self._lanes.items() if count]
        known = [(lane, beyond) for lane, beyond in found if lane.position or beyond is not None]
        return [self._checkpoint(lane, beyond, judged=judged) for lane, beyond in known]

    def _rows(self, lane: ControlLane, length: int) -> int:
        """Return about how many rows a checkpoint of a lane has."""
        kept = 0 if lane.kept is None else int(np.count_nonzero(lane.kept.acts.seqs < length))
        barren = 0 if lane.barren is None else int(np.count_nonzero(lane.barren.seqs < length))
        return kept + barren + len(_fitting(lane, length)) + bisect_left(lane.seen.starts, length)

    def _checkpoint(self, lane: ControlLane, branches: BranchCheckpoint | None, *, judged: bool) -> LaneCheckpoint:
        length = lane.position
        barren = BarrenActs.of(lane.feed, ()) if lane.barren is None else lane.barren.before(length)
        kept = None if lane.kept is None else lane.kept.acts.before(length)
        seen = Sightings.decode(Reader(lane.seen.encode(length), "sightings"))
        columns, valid = ActColumns.of(_fitting(lane, length), kept), None
        if judged:
            authority = self._machine.authority
            authority.settle()
            given = (act for act in lane.acts.held() if gives(act) and authority.is_valid(act))
            valid = np.array([act.stamp.seq for act in given], dtype=np.int64)
        return LaneCheckpoint(lane.feed, length, lane.head, barren, columns, seen, valid, branches)


def gives(act: Act) -> bool:
    """True for an act whose verdict is saved: a grant, or a policy."""
    return admits(act) or isinstance(act.claim, Policy)


def _fitting(lane: ControlLane, length: int) -> list[Act]:
    """Return the acts of a lane, of those that are held, that columns can hold."""
    return [act for act in lane.acts.held(0, length) if fits_columns(act) and act.stamp.seq not in lane.recalled]


def _kept(lane: ControlLane, columns: ActColumns) -> KeptActs:
    first = lane.acts[0]
    return KeptActs(lane.feed, b"" if first.admission is None else first.admission.device, columns, lane.seen)


def _drop(lane: ControlLane, acts: Iterable[Act]) -> None:
    """Let go of acts of a lane, and of their blocks."""
    for act in acts:
        lane.acts.put(act.stamp.seq, None)
        if act.stamp.seq + 1 < lane.position:
            lane.blocks.put(act.stamp.seq, None)


def _seq(act: Act) -> int:
    return act.stamp.seq


def _batch_start(lane: ControlLane, seq: int) -> int:
    """Return the first block of the batch that a block belongs to."""
    count = 1
    while seq:
        for block in reversed(lane.blocks[max(0, seq - count) : seq]):
            if not block.flags & Flag.MORE:
                return seq
            seq -= 1
        count = min(2 * count, _AT_ONCE)
    return seq


def _is_void(authority: Authority, act: Act) -> bool:
    claim = act.claim
    if claim is None or isinstance(claim, Continuation):
        return True
    if isinstance(claim, Policy):
        return not authority.valid_policy(act)
    if isinstance(claim, MemberAdmission | GroupAdmission):
        return not authority.valid_grant(act)
    if isinstance(claim, Narrowing):
        return not may_take_at_all(authority, act)
    if isinstance(claim, FeedEnd):
        return not may_end(authority, act, claim)
    if isinstance(claim, DeviceAdmission):
        return True
    if isinstance(claim, Equivocated):
        return repeats_evidence(authority, act, claim)
    return isinstance(claim, FeedAdmission) and bool(act.stamp.seq) and authority.feeds.is_spent(act, claim)


def _repeats(authority: Authority, act: Act) -> bool:
    return isinstance(act.claim, FeedAdmission) and authority.feeds.is_repeated(act, act.claim)


def _end(act: Act) -> int:
    return act.stamp.seq + 1 + act.continued


def _between(seqs: Sequence[int], start: int, stop: int) -> list[int]:
    """Return the seqs, of an ascending list, in [start, stop)."""
    return list(seqs[bisect_left(seqs, start) : bisect_left(seqs, stop)])


def _ranges(seqs: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges [start, stop) of seqs that follow one another."""
    start = stop = -1
    for seq in seqs:
        if seq != stop:
            if stop > start:
                yield start, stop
            start = seq
        stop = seq + 1
    if stop > start:
        yield start, stop
