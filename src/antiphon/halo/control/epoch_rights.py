"""`EpochRights`: the rights by the control blocks that an epoch names, and by no others (rule 9)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlocks
from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.control.checkpoints import NOTHING
from antiphon.halo.control.control_paths import ControlPaths, Strays
from antiphon.halo.credentials.claims import EpochGenesis, Policy
from antiphon.halo.finality.epoch_chain import EpochChain, fold_epochs
from antiphon.halo.finality.epoch_values import FinalEpoch, Proposal, folded
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.feed_ends import ended_feeds
from antiphon.halo.rights.floors import Floors

if TYPE_CHECKING:
    from antiphon.halo.control.machine import PartyMachine

AUTHORITIES_MAX = 8  # cached authorities of control timeframes
_Key = tuple[Timeframe, Floors, Strays]  # what rights depend on: blocks of histories, final epochs, and branches
POLICIES_MAX = 1024  # cached policies of final epochs: else each new act would cost an authority for each of them


class EpochRights:
    """Rights at control timeframes, as one party machine knows their blocks."""

    def __init__(self, machine: PartyMachine, paths: ControlPaths) -> None:
        self._machine = machine
        self._paths = paths
        self._policies: OrderedDict[tuple[bytes, ...], Policy] = OrderedDict()  # by the geneses up to one
        self._released: dict[bytes, dict[bytes, int]] = {}  # by genesis of an epoch: feeds that have ended by it
        self._at: OrderedDict[_Key, Authority] = OrderedDict()
        self._closed: set[_Key] = set()  # those of them with all blocks that their blocks have seen

    def forget(self) -> None:
        """Forget the cached rights: they hold acts that are set aside now."""
        self._at.clear()
        self._closed.clear()

    def policy_of(self, proposal: Proposal, before: Sequence[FinalEpoch]) -> Policy | str:
        """Return the policy in the control timeframe of a genesis, or why it is unknown here. It never changes."""
        key = (*(epoch.genesis for epoch in before), proposal.digest)
        found: Policy | str | None = self._policies.get(key)
        if found is None:
            found = self._find_policy(proposal, before)
            if isinstance(found, Policy):
                self._policies[key] = found
                while len(self._policies) > POLICIES_MAX:
                    self._policies.popitem(last=False)
        return found

    def _find_policy(self, proposal: Proposal, before: Sequence[FinalEpoch]) -> Policy | str:
        control = proposal.genesis.control
        strays = self._paths.of_genesis(proposal.genesis, proposal.digest, before, proposal.declarers)
        if isinstance(strays, str):
            return strays
        return self.within(control, self.floors(before), strays).policy(Place(b"", 0, dict(control)))

    def rests_on(self, genesis: Act) -> str:
        """Return why the blocks that a genesis claims to rest on are not known here, or are others; "" if they are."""
        claim, chain = genesis.claim, self._machine.epochs()
        assert isinstance(claim, EpochGenesis)
        if not claim.control_hash:
            return "it does not tell which blocks of control feeds it rests on"
        declarers = chain.open.config.declarers
        found = self._paths.of_genesis(folded(claim, chain.last), b"", chain.final, declarers, genesis)
        return found if isinstance(found, str) else ""

    def at(self, control: Timeframe, control_hash: bytes = b"") -> Authority:
        """Return the rights by these control blocks alone. Beyond a fork, the hash in the genesis tells the branch."""
        chain = self._machine.epochs()
        floors = self.floors([epoch for epoch in chain.final if control.covers(epoch.control)])
        return self.within(control, floors, self._strays(chain, control, control_hash))

    def _strays(self, chain: EpochChain, control: Timeframe, control_hash: bytes) -> Strays:
        missing = {feed for feed, seq in control.items() if seq >= self._machine.delivered(feed)}
        if not missing:
            return ()
        found: list[Strays | str] = [
            self._paths.of_epoch(epoch, chain.final[:at])
            for at, epoch in enumerate(chain.final)
            if epoch.control == control and control_hash in (b"", epoch.control_hash)
        ]
        proposals = {  # those with the same hash are found together
            proposal.genesis.control_hash or proposal.digest: proposal
            for proposal in chain.open.proposals
            if proposal.genesis.control == control and control_hash in (b"", proposal.genesis.control_hash)
        }
        found += [
            self._paths.of_genesis(one.genesis, one.digest, chain.final, one.declarers) for one in proposals.values()
        ]
        held = tuple(act for act in self._machine.held() if control.includes(*act.position))
        whole = {act.stamp.feed for act in held if control.get(act.stamp.feed) == act.stamp.seq} >= missing
        if whole and control_hash in (b"", self._paths.canonical_hash(control, held)):
            found.append(held)
        known = next((strays for strays in found if not isinstance(strays, str)), None)
        if known is None:
            names = ", ".join(f"{control[feed]} of feed {feed.hex()[:8]}" for feed in sorted(missing))
            raise MissingBlocks(f"control blocks are not here: {names}")
        return known

    def floors(self, epochs: Sequence[FinalEpoch]) -> Floors:
        """Return the floors of final epochs, with the feeds that have ended in them, if it matters which have."""
        if not self._machine.is_crowded:
            return Floors(epochs)
        released: dict[bytes, int] = {}
        for at, epoch in enumerate(epochs):
            if epoch.genesis not in self._released:
                strays = self._paths.of_epoch(epoch, epochs[:at])
                below = Floors(epochs[:at], released)
                within = self.within(epoch.control, below, () if isinstance(strays, str) else strays)
                self._released[epoch.genesis] = dict.fromkeys(ended_feeds(within), at) | released
            released = self._released[epoch.genesis]
        return Floors(epochs, released)

    def within(self, control: Timeframe, floors: Floors, strays: Strays) -> Authority:
        """Return the rights by the blocks in a control timeframe, with these branches beyond forks."""
        key = (control, floors, strays)
        if key not in self._at:
            machine = self._machine
            machine.take_back(strays)
            known = next((other for other in reversed(self._at) if self._extends(key, other)), None)
            if known is not None:
                found = self._at[known].copy()
                machine.checkpoints.inside(found, control, after=known[0])
            else:
                parent = None if machine.parent is None else machine.parent.rights._told_by(control, strays)
                found = Authority(machine.party, machine.genesis_feed, parent)
                machine.checkpoints.inside(found, control)
                found.add(act for act in strays if machine.has(act.stamp.feed))
            machine.round_forks(found, strays)
            found.stand_on(floors)
            found.settle()
            self._at[key] = found
            if not self._opening(control, NOTHING if known is None else known[0], strays):
                self._closed.add(key)
            while len(self._at) > AUTHORITIES_MAX:
                self._closed.discard(self._at.popitem(last=False)[0])
        self._at.move_to_end(key)
        return self._at[key]

    def _extends(self, wanted: _Key, known: _Key) -> bool:
        """True if wanted rights are known ones with more acts of histories, and perhaps more final epochs.

        In an open control timeframe, acts were judged without some that their writers had seen: nothing builds on it.
        """
        alone, (control, floors, strays) = self._machine.parent is None and known in self._closed, known
        return alone and wanted[2] == strays and wanted[0].covers(control) and wanted[1].begins_with(floors)

    def _inside(self, control: Timeframe, strays: Strays) -> Iterator[Act]:
        """Yield the acts of this party in a control timeframe: of histories, and of the branches that it rests on."""
        for feed, acts in self._machine.histories():
            yield from acts.held(0, control.get(feed, -1) + 1)
        yield from (act for act in strays if self._machine.has(act.stamp.feed))

    def _told_by(self, control: Timeframe, strays: Strays) -> Authority:
        """For a child: return the rights by these blocks alone, with the epochs that are final by them."""
        machine = self._machine
        own = Timeframe({feed: seq for feed, seq in control.items() if machine.has(feed)})
        kept = tuple(act for act in strays if machine.has(act.stamp.feed))
        acts = [act for act in self._inside(own, kept) if act.electoral]
        forked = {act.stamp.feed: machine.delivered(act.stamp.feed) for act in kept}
        chain = fold_epochs(machine.party, machine.genesis_feed, acts, self.policy_of, forked)
        return self.within(own, self.floors(chain.final), kept)

    def open_control(self, control: Timeframe) -> str:
        """Return why a control timeframe is not closed: a block in it has seen a block outside; "" if it is closed.

        Blocks beyond what is delivered of their feed do not matter: they were shown as a branch, and nobody may ever
        hold them as history.
        """
        parent = self._machine.parent
        return self._opening(control) or ("" if parent is None else parent.rights.open_control(control))

    def _opening(self, control: Timeframe, closed: Timeframe = NOTHING, strays: Strays = ()) -> str:
        """Return the same, without the parent; feeds that are as long in a `closed` timeframe are not looked at."""
        machine = self._machine
        fresh = ((feed, last) for feed, last in control.items() if machine.has(feed) and closed.get(feed, -1) < last)
        seen = [(feed, machine.seen_at(feed, last)) for feed, last in fresh if last < machine.delivered(feed)]
        seen += [(act.stamp.feed, act.place.seen) for act in strays if control.get(act.stamp.feed) == act.stamp.seq]
        for feed, others in seen:
            if any(control.get(other, -1) < seq < machine.delivered(other) for other, seq in others.items()):
                return f"block {control[feed]} of feed {feed.hex()[:8]} has seen more than is in it"
        return ""
