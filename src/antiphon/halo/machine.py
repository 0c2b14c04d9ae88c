"""`PartyMachine`, the party state machine: control blocks in, the party's state out.

Blocks may come in any order across feeds; an act counts when everything that its advance names is there. A blocked
feed is woken by the feed that it waits for. The state is a function of the set of acts, so the order of arrival leaves
no trace in it.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from antiphon.core.errors import BrokenChain, InvalidInput, MissingBlocks
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.fork import Fork
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.halo.act import Act, Place, Seen, advanced, read_act
from antiphon.halo.authority import NO_END, Authority
from antiphon.halo.claims import (
    EpochAttestation,
    EpochGenesis,
    GroupAdmission,
    MemberAdmission,
    PartyGenesis,
    without_implied,
)
from antiphon.halo.grant import subject_of
from antiphon.halo.state import Epoch, FeedState, GroupMember, Member, PartyState, Void
from antiphon.halo.verdict import judge, judge_data


@dataclass(slots=True)
class _Lane:
    """One control feed: the blocks that came, and how far they are delivered."""

    blocks: list[Block] = field(default_factory=list)
    delivered: int = 0
    seen: Seen = field(default_factory=dict)
    fault: str = ""
    lie: Entry | None = None  # the entry that is the fault


class Covered(enum.Enum):
    """How an advance entry about a control feed stands to what is delivered."""

    YES = "yes"
    NOT_YET = "not yet"
    LIE = "lie"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A control block that is not delivered yet, and the entry that it waits for."""

    stamp: Stamp
    entry: Entry
    forked: bool  # the block held there is another: only evidence of a fork can settle it


class PartyMachine:
    """The control side of one party. It needs the party key and the key of its first feed, which an invitation has."""

    def __init__(self, party: bytes, genesis_feed: bytes) -> None:
        self.party = party
        self.genesis_feed = genesis_feed
        self._lanes: dict[bytes, _Lane] = {}
        self._asleep: dict[bytes, set[bytes]] = defaultdict(set)  # feed waited for → feeds that wait
        self._authority = Authority(party, genesis_feed)
        self._acts: list[Act] = []
        self._known_forks: dict[bytes, int] = {}
        self._state: PartyState | None = None

    # -- in

    def length(self, feed: bytes) -> int:
        """How many blocks of a feed have been taken: where to go on."""
        lane = self._lanes.get(feed)
        return 0 if lane is None else len(lane.blocks)

    def add(self, blocks: Iterable[Block]) -> int:
        """Take blocks of control feeds, each feed from its first block on; returns how many acts became known."""
        woken: set[bytes] = set()
        try:
            self._take(blocks, woken)
        finally:
            if woken & self._authority.fork_ends.keys():
                woken |= self._forked()
            fresh = self._deliver(woken)
        return fresh

    def _take(self, blocks: Iterable[Block], woken: set[bytes]) -> None:
        for block in blocks:
            lane = self._lanes.setdefault(block.feed, _Lane())
            if block.seq < len(lane.blocks):
                if lane.blocks[block.seq].hash != block.hash:
                    raise BrokenChain(
                        f"control feed {block.feed.hex()[:8]}: block {block.seq} differs from the one held; hand in "
                        "the evidence of the fork",
                        feed=block.feed,
                        seq=block.seq,
                    )
                continue
            if block.seq > len(lane.blocks):
                raise MissingBlocks(
                    f"control feed {block.feed.hex()[:8]}: block {len(lane.blocks)} comes next, not {block.seq}"
                )
            lane.blocks.append(block)
            if lane.fault:
                self._state = None
            woken.add(block.feed)

    def add_fork(self, evidence: bytes) -> None:
        """Take evidence that a feed's writer signed two histories, as the store kept it."""
        fork = Fork.decode(evidence)
        if fork.party != self.party:
            raise InvalidInput(f"this evidence is about a feed of party {fork.party.hex()[:8]}, not of this one")
        self.end_fork(fork.feed, fork.seq)

    def end_fork(self, feed: bytes, length: int) -> None:
        """A feed is forked, and this many of its blocks are common to all branches."""
        if length < self._authority.fork_ends.get(feed, NO_END):
            self._authority.fork(feed, length)
            self._state = None
            self._deliver(self._forked())

    def _forked(self) -> set[bytes]:
        """Settle where forked feeds end, a batch being cut whole, and wake those who wait for what is gone."""
        for feed, end in list(self._authority.fork_ends.items()):
            lane, start = self._lanes.get(feed), end
            while lane is not None and 0 < start <= len(lane.blocks) and lane.blocks[start - 1].flags & Flag.MORE:
                start -= 1
            if start < end:
                self._authority.fork(feed, start)
        ends = self._authority.fork_ends
        moved = {feed for feed, end in ends.items() if self._known_forks.get(feed) != end}
        self._known_forks = dict(ends)
        woken: set[bytes] = set()
        for feed in moved:
            self._state = None
            woken |= self._asleep.pop(feed, set())
        for feed, lane in self._lanes.items():
            if lane.lie is not None and lane.lie.seq >= ends.get(lane.lie.feed, NO_END):
                lane.fault, lane.lie = "", None
                woken.add(feed)
        return woken

    def _deliver(self, ready: set[bytes]) -> int:
        """Deliver what can be, waking feeds as those they wait for move."""
        fresh = 0
        while ready:
            feed = min(ready)
            ready.discard(feed)
            lane = self._lanes[feed]
            acts = []
            while lane.delivered < len(lane.blocks) and not lane.fault:
                block = lane.blocks[lane.delivered]
                blocking = self._blocking(lane, block)
                if lane.fault:
                    self._state = None
                    break
                if blocking is not None:
                    self._asleep[blocking.feed].add(feed)
                    break
                if block.advance:
                    lane.seen = advanced(lane.seen, block.advance)
                acts.append(read_act(self.party, block, lane.seen))
                lane.delivered += 1
            if acts:
                self._authority.add(acts)
                self._acts.extend(acts)
                self._state = None
                fresh += len(acts)
                ready |= self._asleep.pop(feed, set())
                ready |= self._forked()
        return fresh

    def _blocking(self, lane: _Lane, block: Block) -> Entry | None:
        """The first entry that is not covered."""
        for entry in block.advance:
            covered = self.covered(entry)
            if covered is Covered.NOT_YET:
                return entry
            if covered is Covered.LIE:
                # The hash fixes the lamport, so everybody finds this lie, and for everybody the feed ends here.
                lane.lie = entry
                lane.fault = f"block {block.seq}: its entry for feed {entry.feed.hex()[:8]} tells a wrong lamport"
                return None
        return None

    def covered(self, entry: Entry) -> Covered:
        """How an entry stands to what is delivered. One beyond a fork is covered: no two peers hold the same there."""
        other = self._lanes.get(entry.feed)
        end = self._authority.fork_ends.get(entry.feed, NO_END)
        if entry.seq >= end:
            return Covered.NOT_YET if end and (other is None or other.delivered < end) else Covered.YES
        if other is None or other.delivered <= entry.seq or other.blocks[entry.seq].hash != entry.hash:
            return Covered.NOT_YET
        return Covered.YES if other.blocks[entry.seq].lamport == entry.lamport else Covered.LIE

    # -- out

    def state(self) -> PartyState:
        """The state after everything delivered so far."""
        if self._state is None:
            self._state = self._fold()
        return self._state

    def waiting(self) -> tuple[Waiting, ...]:
        """The next block of each feed that cannot be delivered yet."""
        found = []
        for _, lane in sorted(self._lanes.items()):
            if lane.delivered < len(lane.blocks) and not lane.fault:
                block = lane.blocks[lane.delivered]
                entry = self._blocking(lane, block)
                if entry is not None:
                    other = self._lanes.get(entry.feed)
                    found.append(Waiting(block.stamp, entry, other is not None and other.delivered > entry.seq))
        return tuple(found)

    def timeframe(self) -> Timeframe:
        """What is delivered of each control feed."""
        return Timeframe({feed: lane.delivered - 1 for feed, lane in self._lanes.items() if lane.delivered})

    def entries(self) -> tuple[Entry, ...]:
        """The last delivered block of each control feed, for the advance of one's own next block."""
        return tuple(lane.blocks[lane.delivered - 1].entry for lane in self._lanes.values() if lane.delivered)

    def judge_data(self, feed: bytes, seq: int, seen: Mapping[bytes, int], kind: Kind = Kind.MUTATION) -> str:
        """Why a data message is void for want of rights, by the control state in its own timeframe; "" if it is not."""
        self._authority.settle()
        return judge_data(self._authority, Place(feed, seq, seen), kind)

    def author(self, feed: bytes, seq: int, seen: Mapping[bytes, int]) -> tuple[bytes, tuple[bytes, ...], bool]:
        """Whose a data message is in its own timeframe: the identity, the groups it is in, whether it is an owner."""
        self._authority.settle()
        return self._authority.author(Place(feed, seq, seen))

    def preview(self, act: Act) -> str:
        """Why an act would be void if it were written now; "" if it would be in force."""
        self._authority.settle()
        return self._authority.without_memory(act.position, lambda: judge(self._authority, act))

    def everything(self) -> Place:
        """A place of all that is delivered, from no feed in particular."""
        return Place(b"", 0, dict(self.timeframe()))

    def acts(self) -> tuple[Act, ...]:
        """Everything delivered, in force or not."""
        return tuple(self._acts)

    @property
    def act_count(self) -> int:
        return len(self._acts)

    @property
    def authority(self) -> Authority:
        return self._authority

    def _fold(self) -> PartyState:
        authority, now = self._authority, self.everything()
        authority.settle()
        acts = sorted(self._acts, key=lambda act: act.stamp)
        verdicts = [(act, judge(authority, act)) for act in acts]
        voids = [Void(act.stamp, reason) for act, reason in verdicts if reason]
        for _, lane in sorted(self._lanes.items()):
            if lane.fault:
                voids += [Void(block.stamp, lane.fault) for block in lane.blocks[lane.delivered :]]
        force = [act for act, reason in verdicts if not reason]
        attestations = [
            (owner.identity, act.claim)
            for act in force
            if isinstance(act.claim, EpochAttestation) and (owner := authority.owner(act.stamp.feed)) is not None
        ]
        return PartyState(
            party=self.party,
            members=self._members(force, now),
            groups=self._groups(force, now),
            feeds=self._feeds(),
            policy=authority.policy(now),
            epochs=tuple(_epoch(act, act.claim, attestations) for act in force if isinstance(act.claim, EpochGenesis)),
            attestations=tuple(dict.fromkeys(attestations)),  # saying it twice is saying it once
            voids=tuple(sorted(voids, key=lambda void: void.stamp)),
        )

    def _members(self, force: list[Act], now: Place) -> tuple[Member, ...]:
        since: dict[bytes, Stamp] = {}
        for act in force:
            grants = isinstance(act.claim, PartyGenesis | MemberAdmission | GroupAdmission)
            if grants and self._authority.left(act, now):
                since.setdefault(subject_of(act), act.stamp)
        roles = {subject: without_implied(self._authority.roles(subject, now)) for subject in since}
        return tuple(Member(subject, roles[subject], since[subject]) for subject in sorted(since) if roles[subject])

    def _groups(self, force: list[Act], now: Place) -> tuple[GroupMember, ...]:
        pairs = {
            (act.claim.group, act.claim.subject)
            for act in force
            if isinstance(act.claim, GroupAdmission) and self._authority.left(act, now)
        }
        return tuple(GroupMember(group, subject) for group, subject in sorted(pairs))

    def _feeds(self) -> tuple[FeedState, ...]:
        """The feeds of which something counts; where an admission is void, peers need not know of the feed."""
        feeds = []
        for feed, owner in sorted(self._authority.owners().items()):
            end = self._authority.end(feed)
            if self._authority.alive(owner.opened.place) and end > 0:
                feeds.append(FeedState(feed, owner.kind, owner.identity, owner.device, None if end == NO_END else end))
        return tuple(feeds)


def _epoch(act: Act, claim: EpochGenesis, attestations: list[tuple[bytes, EpochAttestation]]) -> Epoch:
    same = (claim.term, claim.number, claim.snapshot)
    found = {who for who, by in attestations if (by.term, by.number, by.snapshot) == same}
    return Epoch(act.stamp, claim, tuple(sorted(found)))
