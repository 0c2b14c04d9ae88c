"""`PartyMachine`, the party state machine: control blocks in, the party's state out.

Blocks may come in any order across feeds; an act counts when every block that its advance names is delivered or shown
(see `antiphon.feed.causal_delivery`). The state is a function of the set of acts, so the order of arrival does not
matter. A feed's *history* ends where its writer forked it; what is held beyond, and other branches, are in `Branches`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from antiphon.core.errors import BrokenChain, InvalidInput, MissingBlocks
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.branches import BranchBlock, Branches
from antiphon.feed.causal_delivery import CausalQueue, Standing, entry_standing
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END, NO_HASH, Entry, Flag
from antiphon.feed.rules import well_formed
from antiphon.feed.span import Span
from antiphon.feed.store.ingest import begins_control
from antiphon.halo.acts.act import Act, Place, advance, read_act, read_history
from antiphon.halo.acts.grant import admits
from antiphon.halo.control.checkpoints import Checkpoints
from antiphon.halo.control.control_lane import ControlLane, Waiting, beyond, linked
from antiphon.halo.control.control_paths import ControlPaths, Strays
from antiphon.halo.control.epoch_rights import EpochRights
from antiphon.halo.control.known_feeds import KnownFeeds
from antiphon.halo.control.party_answers import PartyAnswers
from antiphon.halo.control.present import Present
from antiphon.halo.control.settled_branches import SettledBranches
from antiphon.halo.control.state import PartyState
from antiphon.halo.control.state_fold import fold_state
from antiphon.halo.control.taken_feeds import TakenFeeds
from antiphon.halo.credentials.claims import EpochAct, Equivocated, PartyGenesis, Position
from antiphon.halo.finality.epoch_chain import EpochChain, fold_epochs
from antiphon.halo.rights.authority import Authority


class PartyMachine(PartyAnswers):
    """The control side of one party. It needs the party key and the key of its first feed, which an invitation has.

    The machine of a child party makes a machine of the parent when its genesis names one. The caller adds the parent's
    control blocks to that, then calls `hear_parent`. A parent has no parent itself: `inherits` is False there.
    """

    def __init__(self, party: bytes, genesis_feed: bytes, *, inherits: bool = True) -> None:
        self.party = party
        self.genesis_feed = genesis_feed
        super().__init__(party)
        self.parent: PartyMachine | None = None
        self._inherits = inherits
        self.taken = TakenFeeds()
        self._data_begins: set[bytes] = set()  # feeds of which a branch of data was shown
        self._heard: object = None  # how far the parent was when it was last looked at
        self._heard_count = 0  # blocks of the parent whose waiters were woken
        self.known_feeds = KnownFeeds(genesis_feed)
        self._queue = CausalQueue(self._position)
        self._branches = Branches(self._queue)
        self._paths = ControlPaths(self)
        self._held: Strays = ()  # stray acts that the final epochs hold: they are in force
        self.evident: dict[bytes, int] = {}  # forked feeds, by evidence here: how many blocks are common
        self._authority = Authority(party, genesis_feed)
        self._outdated = False  # acts of the authority have turned out to be beyond a fork
        self._acts: list[Act] = []
        self._aside = 0  # acts that were known, and are set aside
        self.settled = SettledBranches(self, self._lanes, self._queue, self._branches, self._strays)
        self._branches.settled = self.settled
        self.checkpoints = Checkpoints(self, self._lanes)
        self.known_forks: dict[bytes, int] = {}  # where the histories of forked feeds end
        self._state: PartyState | None = None
        self.present = Present(self)
        self._frame: Timeframe | None = None
        self._ends: tuple[Entry, ...] | None = None
        self._chain: EpochChain | None = None
        self._stands: EpochChain | None = None  # the chain whose floors the authority has
        self._electoral: list[Act] = []  # acts that concern epochs, open control feeds, or change the electorate
        self._spent: list[Act] = []  # grants beyond what their feeds may give, as it is now
        self._renewed: Sequence[bytes] | None = None  # geneses of the epochs from which on that was counted
        self.rights = EpochRights(self, self._paths)

    # -- in

    def length(self, feed: bytes) -> int:
        """Return how many blocks of a feed have been added."""
        lane = self._lanes.get(feed)
        return 0 if lane is None else lane.held

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
            lane = self._lanes.setdefault(block.feed, ControlLane(block.feed))
            if block.seq < lane.held:
                known = block.hash in self._branches.blocks or self.settled.holds(block.hash)
                if not known and (block.seq >= len(lane.blocks) or lane.blocks[block.seq].hash != block.hash):
                    raise BrokenChain(
                        f"control feed {block.feed.hex()[:8]}: block {block.seq} differs from the one held; hand in "
                        "the evidence of the fork, and the other branch with `show`",
                        feed=block.feed,
                        seq=block.seq,
                    )
                continue
            if block.seq > lane.held:
                raise MissingBlocks(
                    f"control feed {block.feed.hex()[:8]}: block {lane.held} comes next, not {block.seq}"
                )
            if block.seq < self._authority.common(block.feed):
                self._branches.compare(block.feed, block.seq, lane.tip, block.hash)
                lane.blocks.extend([block])
            else:
                self._branches.add([beyond(block, lane.tip)])
            lane.held, lane.tip = lane.held + 1, block.hash
            if not block.seq:
                self._open(lane, block)
            if lane.fault:
                self._changed()
            if (block.feed, block.seq) == (self.genesis_feed, 0):
                self._begin(block)
            self._note_fork(block.feed, self._branches.parted.get(block.feed, NO_END))
            self._queue.wake(block.feed)

    def _open(self, lane: ControlLane, block: Block) -> None:
        """Read a first block of a feed, of whichever branch: the feed is known if it names a known identity."""
        lane.opening = read_act(self.party, block, {})
        if lane.feed in self._data_begins:
            self._note_fork(lane.feed, 0)
        if not lane.known and (self.known_feeds.welcomes(lane.opening) or self.known_feeds.wait(lane.opening)):
            self._meet([lane.feed])

    def show(self, span: Span, *, ended: bool = False, kept: bool = False, held: bool = False) -> int:
        """Add blocks of another branch, or beyond the fault that `ended` a feed; returns how many acts became known.

        `kept`: the store keeps the span under its last block; `held`: as blocks that follow the history.
        """
        lane = self._lanes.setdefault(span.feed, ControlLane(span.feed))
        if ended and not lane.ended:
            lane.ended = True
            self._queue.wake_ended(span.feed)
        if not span.first and not begins_control(span):  # a branch of data: entries about it are no matter of control
            self._data_begins.add(span.feed)
            if lane.opening is not None or lane.held:
                self._note_fork(span.feed, 0)
        else:
            count = well_formed(span)
            if not span.first and count:
                self._open(lane, span.block(0))
            self._branches.add_span(span, whole=True)
            if not held:
                self.settled.note(span, count, kept=kept)
            for block in lane.overlap(span):
                self._branches.compare(span.feed, block.seq, lane.hash_before(block.seq), block.hash)
            self._note_fork(span.feed, self._branches.parted.get(span.feed, NO_END))
        fresh = self._deliver()
        self._renew()
        return fresh

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
        heard = (parent.act_count, dict(parent.authority.fork_ends), parent.authority, parent.authority.version)
        if heard == self._heard:
            return
        self._heard = heard
        self._authority.parent = parent.authority
        self._authority.forget()
        self._state = self._chain = None
        self.known_feeds.parent = parent.known_feeds
        self._meet(self.known_feeds.met(parent.known_feeds.named))
        fresh, self._heard_count = parent.counted[self._heard_count :], len(parent.counted)
        self.counted += fresh
        self._queue.wake_waiters(fresh)
        self._deliver()
        self._renew()

    def add_fork(self, evidence: bytes) -> None:
        """Add the store's evidence that a feed's writer signed two histories."""
        fork = Fork.decode(evidence)
        if fork.party != self.party:
            raise InvalidInput(f"this evidence is about a feed of party {fork.party.hex()[:8]}, not of this one")
        self.end_fork(fork.feed, fork.seq)

    def end_fork(self, feed: bytes, length: int) -> None:
        """Note that a feed is forked, and that its first `length` blocks are common to all branches."""
        if self._note_fork(feed, length):
            self._deliver()
            self._renew()

    def _note_fork(self, feed: bytes, length: int) -> bool:
        if length >= self.evident.get(feed, NO_END):
            return False
        self.evident[feed] = length
        self._authority.fork(feed, length)
        self._changed()
        self._forked()
        return True

    def _forked(self) -> None:
        """Settle where forked feeds end, rounded down to whole batches: what is beyond is no history."""
        self._round_own()
        self._authority.forks_moved = False
        ends = {feed: self._authority.common(feed) for feed in self._authority.forks}
        moved = [feed for feed, end in ends.items() if self.known_forks.get(feed) != end]
        self.known_forks = ends
        for feed in moved:
            lane = self._lanes.get(feed)
            if lane is not None and ends[feed] < len(lane.blocks):
                self._shorten(lane, ends[feed])
            self._queue.wake_ended(feed)
        if moved:
            self._renewed = None
            self._changed()

    def _shorten(self, lane: ControlLane, end: int) -> None:
        """Take back the part of a history that is beyond a fork. It is a branch like any other, and stays shown."""
        previous = lane.blocks[end - 1].hash if end else NO_HASH
        self._branches.add(linked(lane.blocks[end:], previous))
        before = lane.acts[end - 1] if 0 < end < lane.position else None
        acts, grants = lane.acts[end:], self._authority.budgets.grants_before(lane.feed, end)
        self.regain([act for act in acts if lane.is_aside(act.stamp.seq)])
        for act in acts:
            act.follow(before)
            before = act
            self._strays.keep(act, lane.blocks[act.stamp.seq : act.stamp.seq + 1 + act.continued], grants)
            self._branches.blocks[act.hash].shown = True
        self._queue.wake_waiters([act.hash for act in acts])  # some may have been delivered just now
        self.checkpoints.cut(lane, end)
        lane.blocks.cut(end)
        lane.acts.cut(end)
        lane.fault = ""
        self._queue.wake(lane.feed)  # its next block is a branch block now, and may wait by itself
        self._outdate()
        self._paths.forget()

    def round_forks(self, authority: Authority, strays: Strays = ()) -> None:
        """Round the ends of forked feeds down to whole batches, by histories and these acts beyond them."""
        beyond = {act.position: act for act in strays}
        for feed, told in authority.forks.items():
            for position, end in list(told.items()):
                start = end
                while start > 0 and self._opens(feed, start - 1, beyond):
                    start -= 1
                if start < end:
                    authority.fork(feed, start, position)

    def _opens(self, feed: bytes, seq: int, beyond: Mapping[Position, Act]) -> bool:
        """True if a block is in the middle of a batch."""
        lane, act = self._lanes.get(feed), beyond.get(Position(feed, seq))
        if act is not None:
            return bool(self.block(act).flags & Flag.MORE)
        return lane is not None and seq < len(lane.blocks) and bool(lane.blocks[seq].flags & Flag.MORE)

    def _round_own(self) -> None:
        """Round the ends of forked feeds by all acts. A history that was shortened has lost its batch marks."""
        authority = self._authority
        self.round_forks(authority)
        for feed, known in self.known_forks.items():
            told = authority.forks.get(feed)
            if told and feed in self._lanes and min(told.values()) > known:
                authority.fork(feed, known, min(told, key=lambda position: told[position]))

    def _changed(self, acts: Sequence[Act] = ()) -> None:
        """Forget cached answers. Without any act about epochs, most acts do not change the chain of epochs."""
        self._state = self._frame = self._ends = None
        fresh = [act for act in acts if act.electoral]
        self._electoral.extend(fresh)
        if fresh or (self._chain is not None and self._chain.may_move):
            self._chain = None

    def _deliver(self) -> int:
        """Deliver and show every block that can be; returns how many acts became known."""
        before = self._known
        for feed in self._queue.deliver(self._advance):
            if self._authority.forks_moved or feed in self._authority.forks:
                self._forked()
        return self._known - before

    def _advance(self, feed: bytes) -> Iterator[bytes]:
        if feed not in self._lanes:
            self.settled.recall(feed)
            yield from self._look(self._branches.blocks[feed])
            return
        lane = self._lanes[feed]
        acts: list[Act] = []
        fresh: list[Act] = []
        while lane.known and (batch := lane.batch()) and not lane.fault:
            if not all(self.passes(lane, block) for block in batch):
                break
            lane.note(batch)
            read = [(block, advance(lane.seen, block)) for block in batch]
            found = [act for block in batch if (act := self._strays.drop(block.hash))]  # it came as a branch before
            if found:  # an epoch may have held it beyond the history
                self._paths.forget()
                self._outdate()
            if len(found) < len(batch):
                found = []
                if not lane.position and lane.opening is not None and lane.opening.hash == batch[0].hash:
                    found, read = [replace(lane.opening, place=Place(feed, 0, read[0][1]))], read[1:]
                found += read_history(self.party, read) if read else []
                fresh += found
            acts += found
            lane.acts.extend(found)
            self.counted += [block.hash for block in batch]
        if lane.fault:
            self._changed()
            self._queue.wake_ended(feed)
        if acts:
            self._authority.add(acts)
            self._learn(fresh)
            yield feed

    def passes(self, lane: ControlLane, block: Block) -> bool:
        """True if a block of a history can be delivered; if not, its feed waits, or ends with a fault."""
        return self._queue.passes(lane, block.seq, block.advance, self.standing)

    def _look(self, found: BranchBlock) -> Iterator[bytes]:
        """Show a branch block, if all that leads to it is here, and read its act."""
        lane = self._lanes[found.feed]
        ended = lane.fault or lane.ended or lane.position >= self.known_forks.get(found.feed, NO_END)
        head = None if ended else lane.head
        if not lane.known or not self._branches.show(found, self.standing, lane.position, lane.link, head=head):
            return
        self.counted.append(found.hash)
        if found.seq < len(lane.blocks):  # it is history: otherwise the fork would be known
            yield found.feed
            return
        acts = [] if found.whole.flags & Flag.MORE else self.read_stray(lane, found)
        for act in acts:
            if isinstance(act.claim, Equivocated):
                self._authority.fork(act.claim.feed, act.claim.length)
        self._learn(acts)
        yield found.feed

    def read_stray(self, lane: ControlLane, last: BranchBlock) -> list[Act]:
        """Read the acts of a batch on a branch, which ends with this block."""
        at, batch = last, [last.whole]
        self.settled.recall(at.previous)
        while at.seq > lane.position and (before := self._branches.blocks[at.previous]).whole.flags & Flag.MORE:
            at = before
            batch.append(at.whole)
            self.settled.recall(at.previous)
        after = self._strays.by_hash.get(at.previous) or (lane.acts[at.seq - 1] if at.seq else None)
        return self._strays.read(batch[::-1], after, self._authority.budgets.grants_before(last.feed, at.seq))

    def _learn(self, acts: Sequence[Act]) -> None:
        self._acts.extend(acts)
        self._paths.note(acts)
        self._hear(acts)
        self._changed(acts)

    def standing(self, entry: Entry) -> Standing:
        """Compare an advance entry with the control feed that it names, of this party or of its parent."""
        lane = self._lanes.get(entry.feed)
        if lane is None:
            return Standing.WAITING if self.parent is None else self.parent.standing(entry)
        return entry_standing(entry, lane.position, lane.link, self._branches.shown)

    def wanted(self) -> Iterator[Entry]:
        """Yield the blocks, perhaps of other branches, that are missing for waiting blocks to be delivered."""
        for feed in sorted(self._lanes.keys() & self._queue.waits_for.keys()):
            missing = self.obstacle(self._queue.waits_for[feed])
            if missing is not None:
                yield missing

    def obstacle(self, entry: Entry) -> Entry | None:
        """Return the block that is missing for an entry about a control feed to count."""
        if entry.feed not in self._lanes and self.parent is not None:
            return self.parent.obstacle(entry)
        missing = self._branches.obstacle(entry)
        if missing is None or missing.feed in self._lanes or self.parent is None:
            return missing
        return self.parent.obstacle(missing)

    def _hear(self, acts: Iterable[Act]) -> None:
        """Take note of whom acts name, except those beyond what their feeds may give."""
        heard: list[Act] = []
        counts = self._authority.budgets.exhausted or bool(self._strays.by_hash)  # else nobody has given that much
        for act in acts:
            spent = (
                counts and admits(act) and act.stamp.seq < self._authority.common(act.stamp.feed)
            )  # beyond a fork, all name
            spent = spent and self._authority.budgets.grants_spent(*act.position, self._grants_before)
            (self._spent if spent else heard).append(act)
        self._meet(self.known_feeds.hear(heard))

    def _grants_before(self, feed: bytes, seq: int) -> int:
        """Return how many grants a feed has before a block that all its branches have in common."""
        if seq <= self._position(feed):
            return self._authority.budgets.grants_before(feed, seq)
        return self._strays.grants_before(self._strays.at(Position(feed, seq))[0])

    def _renew(self) -> None:
        """Hear grants that named nobody: final epochs begin a new count, and they may be beyond a fork."""
        while self._spent or self._authority.budgets.exhausted:
            epochs = [epoch.genesis for epoch in self.epochs().final]
            if self._renewed == epochs:
                return
            self._renewed = epochs
            self.authority.settle()
            spent, self._spent = self._spent, []
            self._hear(spent)
            for lane in self._lanes.values():
                self._meet(self.known_feeds.name(self.checkpoints.named(self._authority, lane)))
            self._deliver()

    def _meet(self, feeds: Iterable[bytes]) -> None:
        """Deliver control feeds that have become known."""
        fresh = {feed for feed in feeds if not self._lanes[feed].known}
        for feed in fresh:
            self._lanes[feed].known = True
            self._queue.wake(feed)
        if fresh:
            self._queue.wake(*(block.hash for block in self._branches.blocks.values() if block.feed in fresh))

    # -- epochs

    def epochs(self) -> EpochChain:
        """Return the final epochs, and the votes on the next number."""
        while self._chain is None:
            count, forked = len(self._electoral), {feed: self._position(feed) for feed in self._strays.feeds}
            chain = fold_epochs(self.party, self.genesis_feed, self._electoral, self.rights.policy_of, forked)
            self.checkpoints.wake_votes(chain)
            if len(self._electoral) == count:  # else votes that were set aside may count
                self._chain = chain
        return self._chain

    def control_hash(self, control: Timeframe) -> bytes:
        """Hash the blocks that a control timeframe names: of a forked feed, there are several at one position."""
        return self._paths.canonical_hash(control, self.held())

    def at(self, control: Timeframe, control_hash: bytes = b"") -> Authority:
        """Return the rights by these control blocks alone: they judge the messages of an epoch (rule 9)."""
        return self.rights.at(control, control_hash)

    def state(self) -> PartyState:
        """Return the state of the party by all delivered blocks."""
        if self._state is None:
            self._state = fold_state(self.party, self.authority, self.epochs(), self._counting(), self.everything())
        return self._state

    def waiting(self) -> tuple[Waiting, ...]:
        """Return the next block of each blocked feed, and the entry that it waits for."""
        found = []
        for feed in sorted(self._lanes.keys() & self._queue.waits_for.keys()):
            lane, entry = self._lanes[feed], self._queue.waits_for[feed]
            forked = self.delivered(entry.feed) > entry.seq or entry.seq >= self.common(entry.feed)
            found.append(Waiting(lane.blocks[lane.position].stamp, entry, forked))
        return tuple(found)

    def timeframe(self) -> Timeframe:
        """Return the timeframe of all delivered control blocks, the parent's included; up to forks, or final epochs."""
        if self._frame is None or self.parent is not None:
            held = {act.stamp.feed: act.stamp.seq for act in self.held()}
            lanes = [*self._lanes.items(), *(self.parent._lanes.items() if self.parent is not None else ())]
            self._frame = Timeframe({feed: lane.position - 1 for feed, lane in lanes if lane.position} | held)
        return self._frame

    def _own_held(self) -> Strays:
        self._settle()
        return self._held

    def entries(self) -> tuple[Entry, ...]:
        """Return an entry for the last delivered block of each control feed: the advance of one's own next block."""
        held = {act.stamp.feed: self.block(act).entry for act in self._own_held()}
        if self._ends is None:
            lasts = [lane.blocks[lane.position - 1] for lane in self._lanes.values() if lane.position]
            self._ends = (*(block.entry for block in lasts if block.feed not in held), *held.values())
        return self._ends if self.parent is None else self._ends + self.parent.entries()

    @property
    def authority(self) -> Authority:
        """Return the rights by all delivered blocks, with the floors of the final epochs."""
        self._settle()
        return self._authority

    def _settle(self) -> None:
        """Let the authority have the acts that count now."""
        chain = self.epochs()
        if chain is not self._stands or self._outdated:
            held = self._find_held(chain)
            self.take_back(held)
            if self._outdated or held != self._held:
                self._held, self._outdated = held, False
                self._begin_again()
            self._authority.stand_on(self.rights.floors(chain.final))
            self._stands = chain

    def _find_held(self, chain: EpochChain) -> Strays:
        if not self._strays.by_hash and not self.settled:
            return ()
        held = tuple(act for act in self._paths.held_by(chain) if act.stamp.feed in self._lanes)
        if self.delivered(self.genesis_feed) or any(act.stamp.feed == self.genesis_feed for act in held):
            return held
        return (*self.strays_at(self.genesis_feed, 0)[:1], *held)  # a party keeps its genesis

    def _outdate(self) -> None:
        """Note that acts are elsewhere now, in a history, beyond it or set aside: no rights of before are built on."""
        self._outdated = True
        self.rights.forget()

    def _begin_again(self) -> None:
        """Make the rights anew: acts have turned out to be beyond a fork, or an epoch holds others than before."""
        before = self._authority
        self.rights.forget()
        self._authority = made = Authority(self.party, self.genesis_feed, before.parent, before.version)
        for feed, length in self.evident.items():
            made.fork(feed, length)
        for lane in self._lanes.values():
            self.checkpoints.fill(made, lane)
        made.add(self._held)
        for act in self._strays.by_hash.values():
            if isinstance(act.claim, Equivocated) and act not in self._held:
                made.fork(act.claim.feed, act.claim.length)
        self._round_own()
        self._state = self._frame = self._ends = None

    def take_back(self, strays: Strays) -> None:
        """Hold acts again that were set aside, if they may have seen these acts, which are beyond histories."""
        back = self.checkpoints.take_back({act.stamp.feed for act in strays})
        if back:
            self.regain(back)
            self._outdate()

    def regain(self, acts: Sequence[Act]) -> None:
        """Know acts as values again that were set aside."""
        self.know_again(acts)
        if spent := [act for act in acts if admits(act)]:
            self._spent += spent
            self._renewed = None

    def know_again(self, acts: Sequence[Act]) -> None:
        """Count acts among those that are held as values."""
        self._acts += acts
        self._aside -= len(acts)
        votes = [act for act in acts if isinstance(act.claim, EpochAct)]
        self._electoral += votes
        self._paths.note(votes)
        self._chain = None if votes else self._chain

    def to_be_read(self) -> Iterator[Act]:
        """Yield the acts of branches that say more than whom they name, by what is known now."""
        yield from (*self._own_held(), *self._spent)

    def set_aside(self, least: int | None = None) -> None:
        """Let go of the acts that are void for ever, if there are many of them (`Checkpoints`). No answer changes."""
        sweep = self.checkpoints.sweep(least)
        if sweep.moved:
            self._aside += len(sweep.gone)
            self._paths.drop(act for act in self._electoral if act.hash in sweep.gone)
            for acts in (self._acts, self._electoral, self._spent):
                acts[:] = [act for act in acts if act.hash not in sweep.gone]
            self._chain = None  # it holds on to votes that are set aside
            self._begin_again()
            self._authority.stand_on(self.rights.floors(self.epochs().final))

    def resume(self, records: Mapping[bytes, FeedRecord]) -> None:
        """Begin control feeds with their checkpoints, if the store still holds the blocks of all of them."""
        restored = self.checkpoints.restore(records) if not self._lanes else []
        self._lanes |= {lane.feed: lane for lane, _ in restored}
        for lane, acts in restored:
            self.checkpoints.fill(self._authority, lane)
            self._aside += lane.position - len(acts)
        for lane, acts in restored:
            self._learn(acts)
            self._meet(self.known_feeds.name(self.checkpoints.named(self._authority, lane)))
        if restored:
            if self._authority.forks_moved:
                self._forked()
            self.checkpoints.presume()
            for feed, saved in self.checkpoints.branches.items():
                if self.settled.restore(feed, saved):
                    self._aside += saved.acts
                    self._meet(self.known_feeds.name(saved.named()))
            self._deliver()
            self._renew()
