"""`PartyAnswers`: what a party state machine answers about rights, by all delivered blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import NO_END, Kind
from antiphon.halo.acts.act import Act, Place, Void
from antiphon.halo.control.control_blocks import ControlBlocks
from antiphon.halo.control.control_paths import Strays
from antiphon.halo.control.known_feeds import KnownFeeds
from antiphon.halo.control.present import Present
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials.claims import EpochAct, Equivocated, Roles
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.idle_votes import branch_kind
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.verdict import PAST_CUT, judge, judge_data

if TYPE_CHECKING:
    from antiphon.halo.control.checkpoints import Checkpoints


class PartyAnswers(ControlBlocks):
    """The answering half of `PartyMachine`."""

    parent: PartyAnswers | None
    genesis_feed: bytes
    present: Present
    known_feeds: KnownFeeds
    _authority: Authority
    _acts: list[Act]
    _inherits: bool  # may have a parent; a parent has none itself
    _aside: int  # acts that were known, and are set aside
    checkpoints: Checkpoints
    _voids: tuple[PartyState, tuple[Void, ...]] | None = None  # those at a state, if somebody has asked

    @property
    @abstractmethod
    def authority(self) -> Authority:
        """Return the rights by all delivered blocks, with the floors of the final epochs."""

    @abstractmethod
    def timeframe(self) -> Timeframe:
        """Return the timeframe of all delivered control blocks, the parent's included; up to forks, or final epochs."""

    @abstractmethod
    def _own_held(self) -> Strays:
        """Return the acts beyond forks that final epochs hold, of this party itself."""

    @abstractmethod
    def epochs(self) -> EpochChain:
        """Return the final epochs, and the votes on the next number."""

    @abstractmethod
    def state(self) -> PartyState:
        """Return the state of the party by all delivered blocks."""

    @property
    def _known(self) -> int:
        return len(self._acts) + self._aside

    def held(self) -> Strays:
        """Return the acts beyond forks that final epochs hold, here and in the parent."""
        above = () if self.parent is None else self.parent.held()
        return (*above, *self._own_held())

    def common(self, feed: bytes) -> int:
        """Return how many blocks of a forked feed, here or in the parent, are common to all its branches."""
        above = NO_END if self.parent is None else self.parent.common(feed)
        return min(self._authority.common(feed), above)

    def knows(self, feed: bytes) -> bool:
        """True if a feed of this party is known: acts name it in a chain from the genesis. Others are not taken."""
        lane = self._lanes.get(feed)
        known = feed == self.genesis_feed or (lane is not None and lane.known) or feed in self._authority.feeds.admitted
        return known or feed in self._strays.named

    @property
    def known_count(self) -> int:
        """Return how many identities and data feeds are named. It grows whenever another feed becomes known."""
        above = 0 if self.parent is None else self.parent.known_count
        return len(self.known_feeds.named) + len(self._authority.feeds.admitted) + len(self._strays.named) + above

    def names(self, identity: bytes) -> bool:
        """True if control feeds of an identity are known: a grant in a known control feed has it as its subject."""
        return self.known_feeds.names(identity)

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
        try:
            return judge(self._authority, act)
        finally:
            self._authority.forget_act(act.position)

    def everything(self) -> Place:
        """Return a place that has seen all delivered blocks, in no feed in particular."""
        return Place(b"", 0, dict(self.timeframe()))

    def roles_of(self, identity: bytes) -> Roles:
        """Return the roles of an identity by all delivered blocks."""
        return self.present.roles(identity)

    def acts(self) -> tuple[Act, ...]:
        """Return all delivered acts, in force or not, but those that are set aside: void, and they take nothing."""
        return tuple(self._acts)

    @property
    def is_crowded(self) -> bool:
        """True if it matters which feeds have ended in final epochs: some device or identity has many."""
        return self._authority.budgets.crowded

    @property
    def stands_alone(self) -> bool:
        """True if a party has neither a parent nor, here, a child that looks at its acts."""
        return self._inherits and self.parent is None

    @property
    def is_unforked(self) -> bool:
        """True if no fork of a feed is known here."""
        return not self._authority.forks and not self._strays.by_hash

    @property
    def act_count(self) -> int:
        """Return how many acts are known, the parent's included."""
        return self._known + (0 if self.parent is None else self.parent.act_count)

    @property
    def fork_ends(self) -> dict[bytes, int]:
        """Return where forked feeds end, the parent's included."""
        above = {} if self.parent is None else self.parent.fork_ends
        return {**above, **self.authority.fork_ends}

    def data_feeds(self) -> Collection[bytes]:
        """Return every data feed that some act admits, in force or not, on whichever branch."""
        return dict.fromkeys((*self.authority.feeds.admitted, *self._strays.named))

    def voids(self) -> tuple[Void, ...]:
        """Return the acts that are not in force, and why, by stamp. Those that are set aside are read for it."""
        state = self.state()
        if self._voids is None or self._voids[0] is not state:
            self._voids = (state, tuple(sorted(self._find_voids())))
        return self._voids[1]

    def _counting(self) -> list[Act]:
        """Return the acts of histories that are held as values, and those that final epochs hold beyond them."""
        return [*(act for lane in self._lanes.values() for act in lane.acts.held()), *self._own_held()]

    def _find_voids(self) -> Iterator[Void]:
        epochs = self.epochs()
        acts = [*self._counting(), *(act for act in self._strays.by_hash.values() if act not in self._own_held())]
        for act in chain(acts, self.checkpoints.aside()):
            idle = isinstance(act.claim, EpochAct) and self.is_stray(act) and branch_kind(epochs, act) is not None
            if reason := PAST_CUT if idle else self.judge(act) or epochs.reason(act):
                yield Void(act.stamp, reason)
        yield from (Void(stamp, PAST_CUT) for stamp in self.settled.stamps())
        for lane in self._lanes.values():
            if lane.fault:
                yield from (Void(block.stamp, lane.fault) for block in lane.blocks[lane.position :])

    def judge(self, act: Act) -> str:
        """Return why an act is void; "" if it is in force. What is on a branch that no epoch holds is void."""
        if self.is_stray(act) and not isinstance(act.claim, EpochAct | Equivocated):
            return PAST_CUT
        return judge(self.authority, act)

    def is_stray(self, act: Act) -> bool:
        """True if an act is on a branch that no final epoch holds. The authority does not know it."""
        return self._strays.by_hash.get(act.hash) is act and act not in self.held()
