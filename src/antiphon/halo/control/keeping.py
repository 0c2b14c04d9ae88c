"""`Keeping`: lets a party state machine go without the acts that give nobody anything, live and at the next opening.

A machine *sets aside* barren acts: their values and blocks are let go, and columns are kept of them (`BarrenActs`).
What is kept of a control feed (`KeptLane`) is saved; the next opening begins there, and reads only the other acts.
docs/design/parties.md has the rule, and why no answer changes by it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import NO_END, Flag
from antiphon.halo.acts.act import Act, Place, advance, read_history
from antiphon.halo.acts.barren_acts import GRANTS, NO_SEQS, BarrenActs, BarrenKind, row_of
from antiphon.halo.control.control_lane import ControlLane
from antiphon.halo.control.kept_lane import KeptAdmissions, KeptLane, is_plain
from antiphon.halo.credentials.claims import Continuation, FeedAdmission, GroupAdmission, MemberAdmission, Policy
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.barren import is_barren

if TYPE_CHECKING:
    from antiphon.halo.control.machine import PartyMachine

Source = Callable[[bytes, int, int], Sequence[Block]]  # the blocks [start, stop) of a feed's history
FEW = 32  # acts that are not worth keeping: to read them again costs little
_MANY = 256  # acts that are worth looking at, while the party is open
_AT_ONCE = 256  # blocks that are looked at together to find the ends of a batch
_GROWTH = 4  # a look goes over all acts that count: it waits until a fourth more are barren


@dataclass(slots=True)
class Swept:
    """Findings of a look for barren acts."""

    gone: set[bytes] = field(default_factory=set)  # hashes of the blocks of acts that are set aside now
    moved: bool = False  # these, or others that were and count again


class Keeping:
    """The barren acts of one party machine. Without a source of blocks it lets nothing go."""

    def __init__(self, machine: PartyMachine, lanes: Mapping[bytes, ControlLane]) -> None:
        self._machine = machine
        self._lanes = lanes
        self.source: Source | None = None
        self._offered: dict[bytes, KeptLane] = {}
        self._suspects: dict[bytes, list[int]] = {}  # by feed: acts that are void now, and may be so for ever
        self._batch: tuple[bytes, int, list[Act]] = (b"", 0, [])  # the last one that was read again: feed, start, acts
        self._saved = 0  # acts in what was offered or taken last

    # -- at the next opening

    def offer(self, kept: Mapping[bytes, KeptLane], source: Source) -> None:
        """Take what was kept, to begin control feeds with, and where their blocks are."""
        self._offered, self.source = dict(kept), source
        self._saved = sum(len(lane.barren) + len(lane.admissions.numbers) for lane in kept.values())

    def withdraw(self) -> None:
        """Offer no more: from now on, others wait for single blocks of control feeds by their hashes."""
        self._offered.clear()

    def begin(self, record: FeedRecord) -> ControlLane | None:
        """Return a lane that begins with what was kept of a feed; None if the feed holds other blocks than that."""
        kept, machine = self._offered.pop(record.feed, None), self._machine
        if kept is None or self.source is None or machine.has(record.feed):
            return None
        if not kept.length <= min(record.valid_length, machine.common(record.feed)) or record.start:
            return None
        last = self.source(record.feed, kept.length - 1, kept.length)[0]
        if last.hash != kept.hash or last.flags & Flag.MORE:
            return None
        lane = ControlLane(record.feed, held=kept.length, tip=kept.hash, kept=kept, barren=kept.barren)
        lane.heads, lane.steps = kept.heads.tolist(), kept.steps.tolist()
        lane.swept = kept.length
        self._let_go(lane)
        lane.blocks.extend([None] * kept.length)
        lane.unread = kept.read()
        for start, stop in _ranges(kept.needed(lane.unread)):
            for block in self.source(lane.feed, start, stop):
                lane.blocks.put(block.seq, block)
                if block.body is None:
                    lane.whole = min(lane.whole, _batch_start(lane, block.seq))
        lane.blocks.put(last.seq, last)
        return lane

    def step(self, lane: ControlLane, authority: Authority) -> list[Act] | None:
        """Deliver the next blocks of a lane of which something was kept; None if they wait for others."""
        kept, start = lane.kept, lane.position
        assert kept is not None
        stop = kept.step(start)
        for seq in _between(lane.heads, start, stop):
            if not self._machine.passes(lane, lane.blocks[seq]):
                return None
        for seq in _between(lane.heads, start, stop):
            advance(lane.seen, lane.blocks[seq])
        acts = {act.stamp.seq: act for act in kept.admissions.between(lane.feed, lane.seen, start, stop)}
        first, last = np.searchsorted(lane.unread, (start, stop))
        for low, high in _ranges(lane.unread[first:last].tolist()):
            acts |= {act.stamp.seq: act for act in self._acts(lane, low, high)}
        if not start and lane.opening is not None:
            acts[0] = replace(lane.opening, place=Place(lane.feed, 0, lane.seen.at(0)))
        lane.acts.extend([acts.get(seq) for seq in range(start, stop)])
        found = [act for _, act in sorted(acts.items())]
        authority.add_range(found, kept.barren, start, stop)
        if stop == kept.length:
            lane.kept, lane.unread = None, NO_SEQS
        return found

    # -- reading what was let go

    def _let_go(self, lane: ControlLane) -> None:
        """See to it that a lane loads the blocks and acts that it lets go."""
        assert self.source is not None
        assert lane.barren is not None
        lane.blocks.load = partial(self.source, lane.feed)
        lane.acts.load = partial(self._acts, lane)
        lane.barren.recall = partial(self._recall, lane)

    def _recall(self, lane: ControlLane, seq: int) -> Act:
        """Hold an act that was set aside again: something may rest on it."""
        act = lane.acts[seq]
        if lane.is_aside(seq):
            lane.acts.put(seq, act)
            lane.recalled.add(seq)
            self._machine.regain([act])
        return act

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

    def fill(self, authority: Authority, lane: ControlLane, stop: int = NO_END) -> None:
        """Let an authority have the acts of a history before `stop`."""
        stop = min(stop, lane.position)
        if lane.barren is None:
            authority.add(lane.acts.held(0, stop))
        else:
            acts = (act for act in lane.acts.held(0, stop) if act.stamp.seq not in lane.recalled)
            authority.add_range(acts, lane.barren, 0, stop)

    def inside(self, authority: Authority, control: Timeframe) -> None:
        """Let an authority have the acts of histories in a control timeframe."""
        for feed, lane in self._lanes.items():
            self.fill(authority, lane, control.get(feed, -1) + 1)

    def named(self, authority: Authority, lane: ControlLane, start: int = 0) -> Iterator[bytes]:
        """Yield the subjects of barren grants of a lane, from a block on, that name somebody: within the budget."""
        barren = lane.barren
        if barren is not None:
            for low, high in authority.budgets.counting(lane.feed, BarrenKind.MEMBER):
                yield from map(barren.key, barren.those(GRANTS, max(low, start), min(high, lane.position)))

    def aside(self) -> Iterator[Act]:
        """Yield the acts that are set aside now, read again."""
        found = [(lane, list(_ranges(lane.aside()))) for lane in self._lanes.values()]
        return (act for lane, ranges in found for start, stop in ranges for act in lane.acts[start:stop])

    @property
    def count(self) -> int:
        """How many acts were set aside."""
        return sum(len(lane.barren) for lane in self._lanes.values() if lane.barren is not None)

    def cut(self, lane: ControlLane, end: int) -> None:
        """A history ends before what was known of it: forget what was kept beyond."""
        if lane.barren is not None:
            known = end if lane.kept is None else min(end, lane.position)
            lane.barren = BarrenActs.of(lane.feed, (row for row in lane.barren.rows() if row.seq < known))
            self._let_go(lane)
        lane.heads, lane.steps = _between(lane.heads, 0, end), _between(lane.steps, 0, end)
        lane.swept, lane.kept = min(lane.swept, end), None
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
            if not fresh and until >= lane.position and lane.kept is None:
                continue
            for start, stop in _ranges(fresh):
                for act in lane.acts[start:stop]:
                    lane.acts.put(act.stamp.seq, act)
                    back.append(act)
            if lane.kept is not None:  # the rest is read like any other
                lane.swept, lane.kept = min(lane.swept, lane.position), None
            lane.barren = BarrenActs.of(lane.feed, (row for row in lane.barren.rows() if row.seq < until))
            lane.recalled = {seq for seq in lane.recalled if seq < until}
            self._let_go(lane)
        return back

    # -- setting aside

    def sweep(self, least: int | None = None) -> Swept:
        """Set barren acts aside, if at least so many are suspected. The machine then makes the rights anew."""
        machine = self._machine
        if self.source is None or not machine.stands_alone:
            return Swept()
        unseen = sum(lane.position - lane.swept for lane in self._lanes.values())
        if least is None and unseen < _MANY:
            return Swept()
        authority = machine.authority
        authority.settle()
        for lane in self._lanes.values():
            self._suspect(authority, lane)
        wanted = max(_MANY, self.count // _GROWTH) if least is None else least
        if sum(map(len, self._suspects.values())) < wanted:
            return Swept()
        generous = authority.untaken(generous=True)
        swept = Swept()
        for lane in self._lanes.values():
            self._set_aside(lane, authority, generous, swept)
        return swept

    def _suspect(self, authority: Authority, lane: ControlLane) -> None:
        """Note the acts of a lane, since the last look, that are void now. Those in force are never barren."""
        if lane.feed != self._machine.genesis_feed:
            fresh = (act for act in lane.acts.held(lane.swept, lane.position) if _is_void(authority, act))
            self._suspects.setdefault(lane.feed, []).extend(act.stamp.seq for act in fresh)
        lane.swept = max(lane.swept, lane.position)

    def _set_aside(self, lane: ControlLane, authority: Authority, generous: Authority, swept: Swept) -> None:
        until = self._seen_until(lane)
        suspects = self._suspects.pop(lane.feed, [])
        later = [seq for seq in suspects if seq >= until]
        if later:  # what they have seen may become history
            self._suspects[lane.feed] = later
        again = {seq for seq in lane.recalled if seq < until}
        acts = [lane.acts[seq] for seq in sorted(again.union(suspects)) if seq < until]
        gone = {act.stamp.seq for act in acts if is_barren(authority, generous, act)}
        others = (act for act in lane.acts.held() if act.continued and act.stamp.seq not in gone)
        parts = {seq for act in others for seq in range(act.stamp.seq + 1, _end(act))}  # of acts that stay
        fresh = [act for act in acts if act.stamp.seq in gone and act.stamp.seq not in parts]
        if not fresh and not again:
            return
        rows = {} if lane.barren is None else {row.seq: row for row in lane.barren.rows()}
        swept.gone |= {act.hash for act in fresh}
        swept.moved = True
        for seq in again:
            rows.pop(seq, None)
        rows |= {act.stamp.seq: row_of(act, repeated=_repeats(authority, act)) for act in fresh}
        lane.barren = BarrenActs.of(lane.feed, (rows[seq] for seq in sorted(rows)))
        lane.recalled -= again
        self._let_go(lane)
        for act in fresh:
            lane.acts.put(act.stamp.seq, None)
            if act.stamp.seq + 1 < lane.position:
                lane.blocks.put(act.stamp.seq, None)

    def _seen_until(self, lane: ControlLane, feeds: Collection[bytes] | None = None) -> int:
        """Return the first block of a lane that has seen more of some feeds, or of any, than their histories.

        It may have seen a branch. What follows a missing body does not count as history: the body may come.
        """
        for start, seen in lane.seen.steps():
            if any(seq >= self._whole(feed) for feed, seq in seen.items() if feeds is None or feed in feeds):
                return min(start, lane.whole)
        return min(lane.position, lane.whole)

    def _whole(self, feed: bytes) -> int:
        lane = self._lanes.get(feed)
        return 0 if lane is None else min(lane.position, lane.whole)

    # -- to be saved

    def kept(self) -> list[KeptLane] | None:
        """Return what is worth keeping of each control feed; None if it is little more than was saved before."""
        found, count = [], 0
        for lane in self._lanes.values():
            if lane.feed == self._machine.genesis_feed or not lane.position or lane.kept is not None:
                continue
            barren = lane.barren or BarrenActs.of(lane.feed, ())
            plain = [act for act in lane.acts.held() if is_plain(act) and act.stamp.seq not in lane.recalled]
            if len(barren) + len(plain) >= FEW:
                last = lane.blocks[lane.position - 1]
                kept = KeptAdmissions.of(plain)
                heads, steps = np.array(lane.heads, dtype=np.int64), np.array(lane.steps, dtype=np.int64)
                found.append(KeptLane(lane.feed, lane.position, last.hash, barren, kept, heads, steps))
                count += len(barren) + len(plain)
        if not self._machine.stands_alone or abs(count - self._saved) < FEW:
            return None
        self._saved = count
        return found


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
