"""`PartyMachine`, the party state machine: control blocks in, the party's state out.

Blocks may come in any order across feeds; an act counts when every block that its advance names is delivered (see
`antiphon.feed.causal_delivery`). The state is a function of the set of acts, so the order of arrival does not matter.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from antiphon.core.codec import u64
from antiphon.core.errors import BrokenChain, InvalidInput, MissingBlocks
from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.causal_delivery import CausalQueue, Standing, entry_standing
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END, Entry, Flag, Kind
from antiphon.halo.acts.act import Act, Place, Void, advance, read_act, read_batch
from antiphon.halo.control.known_feeds import KnownFeeds
from antiphon.halo.control.state import PartyState
from antiphon.halo.control.state_fold import fold_state
from antiphon.halo.credentials.claims import (
    EpochAct,
    EpochGenesis,
    GroupAdmission,
    MemberAdmission,
    PartyGenesis,
    Policy,
    Position,
    Roles,
)
from antiphon.halo.finality.epoch_chain import EpochChain, fold_epochs
from antiphon.halo.finality.epoch_values import FinalEpoch, Proposal
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.floors import Floors
from antiphon.halo.rights.verdict import judge, judge_data

_CONTROL_TAG = b"antiphon.control.v1"
AUTHORITIES_MAX = 16  # cached authorities of control timeframes
POLICIES_MAX = 1024  # cached policies of final epochs: else each new act would cost an authority for each of them


@dataclass(slots=True)
class _Lane:
    """One control feed: its blocks, and how many of them are delivered."""

    feed: bytes
    blocks: list[Block] = field(default_factory=list)
    opening: Act | None = None  # its first block, as read to find out whose it is
    known: bool = False  # acts name it in a chain from the genesis (rule 22)
    position: int = 0  # blocks delivered
    seen: Sightings = field(default_factory=Sightings)
    fault: str = ""

    def batch(self) -> list[Block]:
        """Return the blocks of the next batch, if they are all here: an act may go on from one to the next."""
        for stop in range(self.position, len(self.blocks)):
            if not self.blocks[stop].flags & Flag.MORE:
                return self.blocks[self.position : stop + 1]
        return []

    def link(self, entry: Entry) -> tuple[bytes, int]:
        """Return the hash and the lamport of the block at an entry's seq."""
        block = self.blocks[entry.seq]
        return block.hash, block.lamport


_NO_LANE = _Lane(b"")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A control block that is not delivered yet, and the entry that it waits for."""

    stamp: Stamp
    entry: Entry
    forked: bool  # the block held there is another: only evidence of a fork can settle it


class PartyMachine:
    """The control side of one party. It needs the party key and the key of its first feed, which an invitation has.

    The machine of a child party makes a machine of the parent when its genesis names one. The caller adds the parent's
    control blocks to that, then calls `hear_parent`. A parent has no parent itself: `inherits` is False there.
    """

    def __init__(self, party: bytes, genesis_feed: bytes, *, inherits: bool = True) -> None:
        self.party = party
        self.genesis_feed = genesis_feed
        self.parent: PartyMachine | None = None
        self._inherits = inherits
        self.folded: dict[bytes, FeedRecord] = {}  # of each feed, the record up to which a store's blocks were taken
        self.strangers: dict[bytes, bytes] = {}  # control feeds in a store that were not known: their identities
        self._heard: object = None  # how far the parent was when it was last looked at
        self._lanes: dict[bytes, _Lane] = {}
        self.known_feeds = KnownFeeds(genesis_feed)
        self._queue = CausalQueue()
        self._authority = Authority(party, genesis_feed)
        self._acts: list[Act] = []
        self._known_forks: dict[bytes, int] = {}
        self._state: PartyState | None = None
        self._frame: Timeframe | None = None
        self._ends: tuple[Entry, ...] | None = None
        self._chain: EpochChain | None = None
        self._stands: EpochChain | None = None  # the chain whose floors the authority has
        self._electoral: list[Act] = []  # acts that concern epochs, open control feeds, or change the electorate
        self._spent: list[Act] = []  # grants beyond what their feeds may give, as it is now
        self._renewed: EpochChain | None = None  # the epochs from which on that was counted
        self._released: dict[bytes, dict[bytes, int]] = {}  # by genesis of an epoch: feeds that have ended by it
        self._policies: OrderedDict[tuple[bytes, ...], Policy] = OrderedDict()  # by the geneses up to one
        self._at: OrderedDict[tuple[Timeframe, Floors], Authority] = OrderedDict()

    # -- in

    def length(self, feed: bytes) -> int:
        """Return how many blocks of a feed have been added."""
        lane = self._lanes.get(feed)
        return 0 if lane is None else len(lane.blocks)

    def add(self, blocks: Iterable[Block]) -> int:
        """Add blocks of control feeds, each feed from its first block on; returns how many acts became known."""
        try:
            self._take(blocks)
        finally:
            if self._queue.ready.keys() & self._authority.forks.keys():
                self._forked()
            fresh = self._deliver()
            self._renew()
        return fresh

    def _take(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            lane = self._lanes.setdefault(block.feed, _Lane(block.feed))
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
            if not block.seq:
                lane.opening = read_act(self.party, block, {})
                lane.known = self.known_feeds.welcomes(lane.opening) or self.known_feeds.wait(lane.opening)
            if lane.fault:
                self._changed()
            if (block.feed, block.seq) == (self.genesis_feed, 0):
                self._begin(block)
            self._queue.wake(block.feed)

    def _begin(self, genesis: Block) -> None:
        """Read the parent from the genesis, which waits for the parent's control blocks that it has seen."""
        act = read_act(self.party, genesis, {})
        if isinstance(act.claim, PartyGenesis) and act.claim.parent and self.party in act.signers:
            self.inherit(act.claim.parent, act.claim.parent_feed)

    def inherit(self, party: bytes, genesis_feed: bytes) -> None:
        """Make a machine of the parent party."""
        if self._inherits and self.parent is None:
            self.parent = PartyMachine(party, genesis_feed, inherits=False)
            self.hear_parent()

    def hear_parent(self) -> None:
        """Look again at blocks and answers that depend on the parent's control feeds: these may have grown."""
        parent = self.parent
        if parent is None:
            return
        heard = (parent.act_count, dict(parent.authority.fork_ends))
        if heard == self._heard:
            return
        self._heard = heard
        self._authority.parent = parent.authority
        self._authority.forget()
        self._state = self._chain = None
        self.known_feeds.parent = parent.known_feeds
        self._meet(self.known_feeds.met(parent.known_feeds.named))
        self._queue.wake_waiters_where(lambda feed: feed not in self._lanes)
        self._queue.doubt(self._lanes.values())
        self._deliver()

    def add_fork(self, evidence: bytes) -> None:
        """Add the store's evidence that a feed's writer signed two histories."""
        fork = Fork.decode(evidence)
        if fork.party != self.party:
            raise InvalidInput(f"this evidence is about a feed of party {fork.party.hex()[:8]}, not of this one")
        self.end_fork(fork.feed, fork.seq)

    def end_fork(self, feed: bytes, length: int) -> None:
        """Note that a feed is forked, and that its first `length` blocks are common to all branches."""
        if length < self._authority.forks.get(feed, {}).get(None, NO_END):
            self._authority.fork(feed, length)
            self._changed()
            self._forked()
            self._deliver()

    def _forked(self) -> None:
        """Settle where forked feeds end, rounded down to whole batches, and wake the feeds that wait for cut blocks."""
        self._round(self._authority)
        ends = {feed: self._authority.common(feed) for feed in self._authority.forks}
        moved = {feed for feed, end in ends.items() if self._known_forks.get(feed) != end}
        self._known_forks = ends
        if moved:
            self._changed()
            self._queue.wake_waiters_where(moved.__contains__)
            self._queue.doubt(self._lanes.values())

    def _round(self, authority: Authority) -> None:
        for feed, told in authority.forks.items():
            lane = self._lanes.get(feed)
            for position, end in list(told.items()):
                start = end
                while lane is not None and 0 < start <= len(lane.blocks) and lane.blocks[start - 1].flags & Flag.MORE:
                    start -= 1
                if start < end:
                    authority.fork(feed, start, position)

    def _changed(self, acts: Sequence[Act] = ()) -> None:
        """Forget cached answers. Without any act about epochs, most acts do not change the chain of epochs."""
        self._state = self._frame = self._ends = None
        fresh = [act for act in acts if act.admission or isinstance(act.claim, EpochAct | Policy | PartyGenesis)]
        self._electoral.extend(fresh)
        if fresh or (self._chain is not None and (self._chain.final or self._chain.open.proposals)):
            self._chain = None

    def _deliver(self) -> int:
        """Deliver every block that can be; returns how many acts became known."""
        fresh = 0
        for acts in self._queue.deliver(self._advance):
            self._authority.add(acts)
            self._acts.extend(acts)
            self._hear(acts)
            self._changed(acts)
            fresh += len(acts)
            self._forked()
        return fresh

    def _advance(self, feed: bytes) -> Iterator[list[Act]]:
        lane = self._lanes[feed]
        acts = []
        while lane.known and (batch := lane.batch()) and not lane.fault:
            if not all(self._queue.passes(lane, block.seq, block.advance, self.standing) for block in batch):
                break
            read = [(block, advance(lane.seen, block)) for block in batch]
            if not lane.position and lane.opening is not None:
                acts.append(replace(lane.opening, place=Place(feed, 0, read[0][1])))
                read = read[1:]
            acts += read_batch(self.party, read)
            lane.position += len(batch)
        if lane.fault:
            self._changed()
        if acts:
            yield acts

    def standing(self, entry: Entry) -> Standing:
        """Compare an advance entry with the control feed that it names, of this party or of its parent."""
        lane = self._lane(entry.feed) or _NO_LANE
        return entry_standing(entry, lane.position, self.common(entry.feed), lane.link)

    def _lane(self, feed: bytes) -> _Lane | None:
        """Return a control feed of this party, or of its parent."""
        lane = self._lanes.get(feed)
        return self.parent._lane(feed) if lane is None and self.parent is not None else lane

    def common(self, feed: bytes) -> int:
        """Return how many blocks of a forked feed, here or in the parent, are common to all its branches."""
        above = NO_END if self.parent is None else self.parent.common(feed)
        return min(self._authority.common(feed), above)

    def is_control(self, feed: bytes) -> bool:
        """True if a feed is a known control feed of this party, or of its parent."""
        lane = self._lane(feed)
        return lane is not None and lane.known

    def knows(self, feed: bytes) -> bool:
        """True if a feed of this party is known: acts name it in a chain from the genesis. Others are not taken."""
        lane = self._lanes.get(feed)
        return feed == self.genesis_feed or (lane is not None and lane.known) or self._authority.names(feed)

    def names(self, identity: bytes) -> bool:
        """True if control feeds of an identity are known: a grant in a known control feed has it as its subject."""
        return self.known_feeds.names(identity)

    @property
    def known_count(self) -> int:
        """Return how many identities and data feeds are named. It grows whenever another feed becomes known."""
        above = 0 if self.parent is None else self.parent.known_count
        return len(self.known_feeds.named) + len(self._authority.admitted()) + above

    def _hear(self, acts: Iterable[Act]) -> None:
        """Take note of whom acts name, except those beyond what their feeds may give."""
        heard: list[Act] = []
        for act in acts:
            gives = isinstance(act.claim, MemberAdmission | GroupAdmission)
            (self._spent if gives and self._authority.budgets.spent(act) else heard).append(act)
        self._meet(self.known_feeds.hear(heard))

    def _renew(self) -> None:
        """Count what feeds have given from the last final epoch on: acts that were beyond it may count now."""
        while self._authority.budgets.exhausted and self._renewed is not self.epochs():
            self._renewed = self.epochs()
            self.authority.settle()
            spent, self._spent = self._spent, []
            self._hear(spent)
            self._deliver()

    def _floors(self, epochs: Sequence[FinalEpoch]) -> Floors:
        """Return the floors of final epochs, with the feeds that have ended in them, if it matters which have."""
        if not self._authority.budgets.crowded:
            return Floors(epochs)
        released: dict[bytes, int] = {}
        for at, epoch in enumerate(epochs):
            if epoch.genesis not in self._released:
                within = self._within(epoch.control, Floors(epochs[:at], released))
                ended = {feed: at for feed, owner in within.admissions() if within.has_ended(feed, owner)}
                self._released[epoch.genesis] = ended | released
            released = self._released[epoch.genesis]
        return Floors(epochs, released)

    def _meet(self, feeds: Iterable[bytes]) -> None:
        """Deliver control feeds that have become known."""
        for feed in feeds:
            self._lanes[feed].known = True
            self._queue.wake(feed)

    # -- epochs

    def epochs(self) -> EpochChain:
        """Return the final epochs, and the votes on the next number."""
        if self._chain is None:
            self._chain = fold_epochs(self.party, self.genesis_feed, self._electoral, self._policy_of)
        return self._chain

    def control_hash(self, control: Timeframe) -> bytes:
        """Hash the blocks that a control timeframe names: of a forked feed, peers may hold different ones."""
        digest = sha256(_CONTROL_TAG)
        for feed, seq in control.items():
            lane = self._lane(feed)
            if lane is None or lane.position <= seq:
                raise MissingBlocks(f"block {seq} of control feed {feed.hex()[:8]} is not here")
            digest.update(feed + u64(seq) + lane.blocks[seq].hash)
        return digest.digest()

    def _policy_of(self, proposal: Proposal, before: Sequence[FinalEpoch]) -> Policy | str:
        """Return the policy in the control timeframe of a genesis, or why it is unknown here. It never changes."""
        key = (*(epoch.genesis for epoch in before), proposal.digest)
        found: Policy | str | None = self._policies.get(key)
        if found is None:
            found = self._find_policy(proposal.genesis, before)
            if isinstance(found, Policy):
                self._policies[key] = found
                while len(self._policies) > POLICIES_MAX:
                    self._policies.popitem(last=False)
        return found

    def _find_policy(self, genesis: EpochGenesis, before: Sequence[FinalEpoch]) -> Policy | str:
        control = genesis.control
        for feed, seq in self.timeframe().missing(control).items():
            return f"block {seq} of control feed {feed.hex()[:8]} is not here"
        if genesis.control_hash and genesis.control_hash != self.control_hash(control):
            doubtful = [feed.hex()[:8] for feed, seq in control.items() if seq >= self.common(feed)]
            return f"another branch of control feed {', '.join(doubtful) or '?'} is held here than the epoch knows"
        return self._within(control, self._floors(before)).policy(Place(b"", 0, dict(control)))

    def at(self, control: Timeframe) -> Authority:
        """Return the rights by these control blocks alone: they judge the messages of an epoch (rule 9)."""
        missing = self.timeframe().missing(control)
        if missing:
            raise MissingBlocks(f"control blocks are not here: {missing!r}")
        return self._within(control, self._floors([e for e in self.epochs().final if control.covers(e.control)]))

    def _within(self, control: Timeframe, floors: Floors) -> Authority:
        key = (control, floors)
        if key not in self._at:
            parent = None if self.parent is None else self.parent._told_by(control)
            found = Authority(self.party, self.genesis_feed, parent)
            found.add(act for act in self._acts if control.includes(act.stamp.feed, act.stamp.seq))
            self._round(found)
            found.stand_on(floors)
            found.settle()
            self._at[key] = found
            while len(self._at) > AUTHORITIES_MAX:
                self._at.popitem(last=False)
        self._at.move_to_end(key)
        return self._at[key]

    def _told_by(self, control: Timeframe) -> Authority:
        """For a child: return the rights by these blocks alone, with the epochs that are final by them."""
        own = Timeframe({feed: seq for feed, seq in control.items() if feed in self._lanes})
        acts = [act for act in self._electoral if own.includes(*act.position)]
        final = fold_epochs(self.party, self.genesis_feed, acts, self._policy_of).final
        return self._within(own, self._floors(final))

    def open_control(self, control: Timeframe) -> str:
        """Return why a control timeframe is not closed: a block in it has seen a block outside; "" if it is closed."""
        for act in self._acts:
            if control.get(act.stamp.feed, -1) == act.stamp.seq:
                for feed, seq in act.place.seen.items():
                    known = self.is_control(feed) and seq < self.common(feed)
                    if known and control.get(feed, -1) < seq:
                        return f"block {act.stamp.seq} of feed {act.stamp.feed.hex()[:8]} has seen more than is in it"
        return "" if self.parent is None else self.parent.open_control(control)

    # -- out

    def state(self) -> PartyState:
        """Return the state of the party by all delivered blocks."""
        if self._state is None:
            self._state = self._fold()
        return self._state

    def waiting(self) -> tuple[Waiting, ...]:
        """Return the next block of each blocked feed, and the entry that it waits for."""
        found = []
        for feed, entry in sorted(self._queue.waits_for.items()):
            lane, other = self._lanes[feed], self._lane(entry.feed) or _NO_LANE
            found.append(Waiting(lane.blocks[lane.position].stamp, entry, other.position > entry.seq))
        return tuple(found)

    def timeframe(self) -> Timeframe:
        """Return the timeframe of all delivered control blocks, the parent's included."""
        if self._frame is None or self.parent is not None:
            lanes = [*self._lanes.items(), *(self.parent._lanes.items() if self.parent is not None else ())]
            self._frame = Timeframe({feed: lane.position - 1 for feed, lane in lanes if lane.position})
        return self._frame

    def entries(self) -> tuple[Entry, ...]:
        """Return an entry for the last delivered block of each control feed: the advance of one's own next block."""
        if self._ends is None:
            lasts = [lane.blocks[lane.position - 1] for lane in self._lanes.values() if lane.position]
            self._ends = tuple([block.entry for block in lasts])
        return self._ends if self.parent is None else self._ends + self.parent.entries()

    def judge_data(self, feed: bytes, seq: int, seen: Mapping[bytes, int], kind: Kind = Kind.MUTATION) -> str:
        """Return why a data message is void for want of rights in its own timeframe; "" if it is not."""
        self.authority.settle()
        return judge_data(self._authority, Place(feed, seq, seen), kind)

    def author(self, feed: bytes, seq: int, seen: Mapping[bytes, int]) -> tuple[bytes, tuple[bytes, ...], bool]:
        """Return the author of a data message in its own timeframe: the identity, its groups, and if it is an owner."""
        self.authority.settle()
        return self._authority.author(Place(feed, seq, seen))

    def erased(self, feed: bytes) -> frozenset[int]:
        """Return the messages of a data feed that an erasure has made void."""
        return self.authority.erased(feed)

    def preview(self, act: Act) -> str:
        """Return why an act would be void if it were written now; "" if it would be in force."""
        self.authority.settle()
        return self._authority.without_memory(act.position, lambda: judge(self._authority, act))

    def everything(self) -> Place:
        """Return a place that has seen all delivered blocks, in no feed in particular."""
        return Place(b"", 0, dict(self.timeframe()))

    def roles_of(self, identity: bytes) -> Roles:
        """Return the roles of an identity by all delivered blocks."""
        self._authority.settle()
        return self._authority.roles(identity, self.everything())

    def acts(self) -> tuple[Act, ...]:
        """Return all delivered acts, in force or not."""
        return tuple(self._acts)

    def block(self, position: Position) -> Block:
        """Return the control block at a position."""
        return self._lanes[position.feed].blocks[position.seq]

    @property
    def act_count(self) -> int:
        """Return how many acts are known, the parent's included."""
        return len(self._acts) + (0 if self.parent is None else self.parent.act_count)

    @property
    def fork_ends(self) -> dict[bytes, int]:
        """Return where forked feeds end, the parent's included."""
        above = {} if self.parent is None else self.parent.fork_ends
        return {**above, **self.authority.fork_ends}

    @property
    def authority(self) -> Authority:
        """Return the rights by all delivered blocks, with the floors of the final epochs."""
        chain = self.epochs()
        if chain is not self._stands:
            self._authority.stand_on(self._floors(chain.final))
            self._stands = chain
        return self._authority

    def _fold(self) -> PartyState:
        faults = [
            Void(block.stamp, lane.fault)
            for lane in self._lanes.values()
            if lane.fault
            for block in lane.blocks[lane.position :]
        ]
        return fold_state(self.party, self.authority, self.epochs(), self._acts, self.everything(), faults)
