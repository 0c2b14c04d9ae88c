"""Authorities: `PartyAuthority` asks the control state of a party; `OpenAuthority` accepts every feed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from antiphon.core.errors import NotAuthorised
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.sightings import Marks, Seen
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.causal_delivery import Standing
from antiphon.feed.header import NO_END, Entry, Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.reader import FeedReader
from antiphon.feed.writer import FeedWriter
from antiphon.halo.acts.act import Place
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.known_feeds import find_identity
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import WRITERS
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.halo.member.membership import Membership
from antiphon.halo.rights.authority import Authority as PartyRights
from antiphon.halo.rights.verdict import acts_about, judge_data
from antiphon.model.access import Author
from antiphon.party.engine.lane import FAR
from antiphon.party.engine.ports import EpochJudge


class OpenAuthority:
    """Authority without credentials: every feed of the party counts. For stores that run without HALO."""

    def __init__(self, store: FeedStore, party: bytes, pair: KeyPair | None = None) -> None:
        self._store = store
        self._party = PublicKey(party)
        self._writer = FeedWriter.open(store, pair, party) if pair is not None else None
        self._changed = store.changed_feeds(party)
        self._feeds: set[bytes] = set()

    def refresh(self) -> bool:
        """Read which feeds of the party are new. True if there are any."""
        before = len(self._feeds)
        self._feeds.update(record.feed for record in self._changed.take())
        return len(self._feeds) > before

    def look(self) -> None:
        """Do nothing: every feed is known."""

    @property
    def known_count(self) -> int:
        """Return 0: nothing names feeds."""
        return 0

    def knows(self, feed: bytes) -> bool:
        """Return True: every feed is known."""
        return True

    def find_identity(self, first: Block) -> bytes:
        """Return the feed itself."""
        return first.feed

    def names(self, identity: bytes) -> bool:
        """Return True: every feed is known."""
        return True

    def data_feeds(self) -> Collection[bytes]:
        """Return all feeds of the party, as of the last `refresh`."""
        return self._feeds

    def is_control(self, feed: bytes) -> bool:
        """Return False: there are no control feeds."""
        return False

    def is_control_block(self, entry: Entry) -> bool:
        """Return False: there are no control feeds."""
        return False

    def standing(self, entry: Entry) -> Standing:
        """Return `WAITING`: no control feed is known."""
        return Standing.WAITING

    def counted(self, after: int) -> Sequence[bytes]:
        """Return nothing: there are no control feeds."""
        return ()

    def obstacle(self, entry: Entry) -> Entry | None:
        """Return the entry: no control feed is known."""
        return entry

    def wanted(self) -> Iterable[Entry]:
        """Return nothing: there are no control feeds."""
        return ()

    def fork_end(self, feed: bytes) -> int:
        """Return `NO_END`: peers agree on no end of a forked feed."""
        return NO_END

    def rights(self) -> object:
        """Return a constant: verdicts never change."""
        return ()

    def entries(self) -> Sequence[Entry]:
        """Return no entries: there are no control blocks."""
        return ()

    def verdict(self, feed: bytes, seq: int, seen: Seen, kind: Kind = Kind.MUTATION) -> str:
        """Return an empty reason: every message counts."""
        return ""

    def lasting(self) -> bool:
        """Return True: no right is ever taken away."""
        return True

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author:
        """Return the feed itself as the author of its messages."""
        return Author(feed)

    def acts_about(self, feed: bytes, *, untaken: bool = False) -> Marks | None:
        """Return nothing: every message counts."""
        return ()

    def erased(self, feed: bytes) -> frozenset[int]:
        """Return an empty set: no message is erased."""
        return frozenset()

    def forked(self) -> Collection[bytes]:
        """Return an empty set: peers agree on no fork."""
        return ()

    def final_epochs(self) -> Sequence[FinalEpoch]:
        """Return nothing: there are no epochs."""
        return ()

    def trusts(self, epoch: FinalEpoch) -> bool:
        """True, for no epoch is asked for."""
        return True

    def epoch_judge(self, control: Timeframe, control_hash: bytes = b"") -> EpochJudge:
        """Return this authority, whose verdicts are the same in every timeframe."""
        return self

    def wrote(self, before: int, after: int) -> None:
        """Do nothing: no control state is cached."""

    def device_at_rest(self) -> bytes:
        """Return nothing: any feed of the store may become one of the party."""
        return b""

    def is_device(self, device: bytes) -> bool:
        """Return False."""
        return False

    def writer(self) -> FeedWriter:
        """Return the writer of the feed of the given key pair. Raises `NotAuthorised` without one."""
        if self._writer is None:
            raise NotAuthorised(f"party {self._party.short}: no key was given to write with; open it with a key pair")
        return self._writer


class PartyAuthority:
    """Authority of the credentials in the control feeds of a party, folded by its `PartyMachine`."""

    def __init__(self, store: FeedReader, machine: PartyMachine | None, membership: Membership | None = None) -> None:
        self._store = store
        self._own_machine = machine
        self._membership = membership
        self._data: set[bytes] = set()
        self._transaction = -1
        self._known: tuple[int, int] | None = None  # act count and version of rights at the last `refresh`
        self._forks: dict[bytes, int] = {}
        self._may_write: tuple[int, int] | None = None  # (act count, version of rights) with which it may

    @classmethod
    def of(cls, store: FeedStore, membership: Membership) -> PartyAuthority:
        """Make the authority of a device that is, or may become, a member."""
        return cls(store, None, membership)

    @property
    def _machine(self) -> PartyMachine:
        machine = self._own_machine
        if machine is None:
            assert self._membership is not None
            machine = self._own_machine = self._membership.machine  # reads the control feeds
        return machine

    def refresh(self) -> bool:
        """Read new control blocks. True if acts, rights or the ends of forked feeds have changed."""
        self.look()
        forks = self._machine.fork_ends
        # An act that came on a branch is known already when it becomes history: then only the rights change.
        known = self._machine.act_count, self._machine.authority.version
        changed = (known, forks) != (self._known, self._forks)
        self._known, self._forks = known, forks
        return changed

    def look(self) -> None:
        """Read new control blocks. The next `refresh` still tells that they came."""
        now = self._store.transaction
        if self._membership is not None:
            self._membership.refresh()  # cheap if nothing is new
        elif now != self._transaction:
            fold_control_feeds(self._machine, self._store, self._data)
            self._transaction = now

    @property
    def known_count(self) -> int:
        """Return how many identities and data feeds are named."""
        return self._machine.known_count

    def knows(self, feed: bytes) -> bool:
        """True if a feed is known: a data feed, or a control feed with blocks here."""
        return self._machine.knows(feed)

    def find_identity(self, first: Block) -> bytes:
        """Return the identity whose control feed begins with this block; "" if it begins none."""
        return find_identity(self._machine.party, first)

    def names(self, identity: bytes) -> bool:
        """True if control feeds of an identity are known: a grant in a known control feed has it as its subject."""
        return self._machine.names(identity)

    def data_feeds(self) -> Collection[bytes]:
        """Return the admitted data feeds, also those whose admission is void."""
        # Includes feeds whose admission is void: messages of others may have seen theirs, and would wait for ever.
        return self._machine.data_feeds()

    def is_control(self, feed: bytes) -> bool:
        """True for a feed of the party that has a branch of control."""
        return self._machine.is_control(feed)

    def is_control_block(self, entry: Entry) -> bool:
        """True if an entry names a block of control that is delivered or shown."""
        return self._machine.standing(entry) is not Standing.WAITING

    def standing(self, entry: Entry) -> Standing:
        """Check an advance entry about a control feed."""
        return self._machine.standing(entry)

    def counted(self, after: int) -> Sequence[bytes]:
        """Return the hashes of the control blocks that entries may name, without the first `after` of them."""
        return self._machine.counted[after:]

    def obstacle(self, entry: Entry) -> Entry | None:
        """Return the block that is missing for an entry about a control feed to count."""
        return self._machine.obstacle(entry)

    def wanted(self) -> Iterable[Entry]:
        """Return control blocks that are missing for waiting control blocks to count."""
        return self._machine.wanted()

    def fork_end(self, feed: bytes) -> int:
        """Return where a forked data feed ends on every peer; `NO_END` if it is not forked."""
        return self._forks.get(feed, NO_END)

    def rights(self) -> object:
        """Return the version of the rights, which changes whenever a verdict may change, except by erasure."""
        return self._machine.authority.version

    def entries(self) -> Sequence[Entry]:
        """Return the control blocks that the next message of this device has seen."""
        return self._machine.entries()

    def verdict(self, feed: bytes, seq: int, seen: Seen, kind: Kind = Kind.MUTATION) -> str:
        """Return why a message is void in its own timeframe; empty if it counts."""
        return self._machine.judge_data(feed, seq, seen, kind)

    def lasting(self) -> bool:
        """True if no right was ever taken away."""
        return self._machine.authority.lasting

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author:
        """Return the author of a message, by its own timeframe."""
        return Author(*self._machine.author(feed, seq, seen))

    def acts_about(self, feed: bytes, *, untaken: bool = False) -> Marks | None:
        """Return the acts that messages of a feed are judged by, if their writer had seen them."""
        self._machine.authority.settle()
        return acts_about(self._machine.authority, feed, untaken=untaken)

    def erased(self, feed: bytes) -> frozenset[int]:
        """Return the seqs of erased messages of a feed."""
        return self._machine.erased(feed)

    def forked(self) -> Collection[bytes]:
        """Return the feeds whose writers are known to have signed two histories."""
        return self._forks

    def final_epochs(self) -> Sequence[FinalEpoch]:
        """Return the final epochs: 1, 2, 3 …"""
        return self._machine.epochs().final

    def trusts(self, epoch: FinalEpoch) -> bool:
        """True if a final epoch has the attestations that the policy demands."""
        policy = self._machine.at(epoch.control, epoch.control_hash).policy(Place(b"", 0, dict(epoch.control)))
        return len(self._machine.epochs().votes[epoch.number - 1]) >= policy.attestations_min

    def epoch_judge(self, control: Timeframe, control_hash: bytes = b"") -> EpochJudge:
        """Return the judge of messages by the control state at this timeframe, on the branch that the hash tells."""
        return _AtEpoch(self._machine.at(control, control_hash))

    def wrote(self, before: int, after: int) -> None:
        """Skip this device's own write to its data feed in the next `refresh`, if no other write came between."""
        if after != before + 1:
            return  # there was another write in between
        if self._transaction == before:
            self._transaction = after
        if self._membership is not None:
            self._membership.skip(before, after)

    def device_at_rest(self) -> bytes:
        """Return this device and its feeds, if its party can rest until a feed changes; else ""."""
        if self._membership is None:
            return b""
        self.look()
        known = self._machine.act_count, self._machine.authority.version
        told = (known, self._machine.fork_ends) == (self._known, self._forks)
        return self._membership.device_at_rest() if told and not self._forks else b""

    def is_device(self, device: bytes) -> bool:
        """True if this is the same device, and it still has the keys of these feeds. No control block is read."""
        return self._membership is not None and self._membership.is_device(device)

    def writer(self) -> FeedWriter:
        """Return the writer of this device's data feed. Raises `NotAuthorised` if it may not write."""
        if self._membership is None:
            raise NotAuthorised(f"party {self._machine.party.hex()[:8]} is only read here; open it as a member")
        self._membership.refresh()
        party, state = self._membership.party, self._membership.machine
        rights = state.act_count, state.authority.version
        if self._membership.data is not None and rights == self._may_write:
            return self._membership.data_writer()
        if barred := self._membership.why_barred():
            raise NotAuthorised(barred)
        roles = state.roles_of(self._membership.device.identity)
        if not roles & WRITERS:  # before a feed is opened that could not be used
            raise NotAuthorised(
                f"party {party.short}: this device's identity is no owner or editor; ask an owner for a role"
            )
        writer = self._membership.data_writer()
        seq = self._store.record(writer.feed).length
        seen = {entry.feed: entry.seq for entry in state.entries()}
        reason = state.judge_data(writer.feed, seq, seen)
        if reason:
            raise NotAuthorised(
                f"party {party.short}: this device may not write: {reason}; ask an owner of the party for a role"
            )
        if not state.judge_data(writer.feed, FAR, seen):  # valid for all later messages with this timeframe
            self._may_write = state.act_count, state.authority.version
        return writer


class _AtEpoch:
    """Judge of the messages of an epoch: the control state that the epoch names."""

    def __init__(self, authority: PartyRights) -> None:
        self._authority = authority

    def verdict(self, feed: bytes, seq: int, seen: Seen) -> str:
        return judge_data(self._authority, Place(feed, seq, seen), Kind.MUTATION)

    def lasting(self) -> bool:
        return self._authority.lasting

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author:
        return Author(*self._authority.author(Place(feed, seq, seen)))

    def acts_about(self, feed: bytes, *, untaken: bool = False) -> Marks | None:
        return acts_about(self._authority, feed, untaken=untaken)

    def erased(self, feed: bytes) -> frozenset[int]:
        return self._authority.erased(feed)
