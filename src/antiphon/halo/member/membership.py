"""`Membership`: one device in a party. It opens the device's feeds and writes its credentials.

>>> from antiphon.core.ports import SystemRandomness
>>> from antiphon.feed.store.feed_store import FeedStore
>>> from antiphon.halo.keys.identity import new_device, new_identity
>>> from antiphon.halo.keys.key_store import KeyStore
>>> from antiphon.halo.keys.key_file import Protection
>>> keys = KeyStore.create("keys", protection=Protection.UNPROTECTED)
>>> alice, recovery_phrase = new_identity(keys, "Alice", SystemRandomness())
>>> laptop = new_device(keys, "laptop", alice.key)
>>> with FeedStore.open("feeds") as store:
...     party = Membership.found(store, keys, alice, laptop)
...     [member.subject == alice.key for member in party.state.members]
[True]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import perf_counter

from antiphon.core.errors import InvalidInput, NotAuthorised, UnknownFeed, UnknownKey
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.core.ports import Clock, Randomness, SystemClock, SystemRandomness
from antiphon.core.reasons import Reason, because
from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.feed.block import Block
from antiphon.feed.encoder import Draft, Written
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.halo.acts.act import Act, Place, Void, advance
from antiphon.halo.control.checkpoint_file import CheckpointFile
from antiphon.halo.control.checkpoints import FEW
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    Continuation,
    DeviceAdmission,
    EpochGenesis,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    PartyGenesis,
    Policy,
    Position,
    Role,
    Roles,
)
from antiphon.halo.keys.identity import Device, Identity, load_identity
from antiphon.halo.keys.key_file import KeyKind
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.limits import DEVICE_FEEDS_MAX
from antiphon.halo.member import child_party, device_proof, votes
from antiphon.halo.member.cuts import earlier, open_lengths, with_own
from antiphon.halo.member.fork_reports import publish_forks, untold
from antiphon.halo.member.late_opening import LateOpening
from antiphon.halo.member.own_feeds import OwnFeeds


class Membership(OwnFeeds):
    """A party as one device holds it: the state machine over the store's control feeds, and the device's own feeds."""

    def __init__(
        self,
        store: FeedStore,
        keys: KeyStore,
        device: Device,
        party: bytes,
        genesis_feed: bytes,
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        super().__init__(store, keys, device, party, genesis_feed)
        self._randomness = randomness or SystemRandomness()
        self._clock = clock or SystemClock()
        self._checkpoint: CheckpointFile | None = None
        self._refreshed = -1  # the store's last transaction that was looked at
        self._published: tuple[int, list[bytes]] = (-1, [])  # acts and evidence that were looked at for forks
        self._data_feeds: set[bytes] = set()
        self.seconds: dict[bytes, float] = defaultdict(float)  # by control feed: spent reading its acts; for operators
        self._charged: dict[bytes, int] = {}  # by control feed: acts whose reading is in `seconds`
        self.recovered = False  # the operator asserts that all blocks of a replaced control feed are here

    # -- beginning

    @classmethod
    def found(
        cls,
        store: FeedStore,
        keys: KeyStore,
        identity: Identity,
        device: Device,
        *,
        parent: Membership | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> Membership:
        """Found a party, or a child of `parent`. The genesis key signs the genesis once and is discarded."""
        genesis = KeyPair.generate(randomness or SystemRandomness())
        feed = keys.generate(KeyKind.FEED, f"control of {genesis.key.short}", owner=device.key)
        self = cls(store, keys, device, genesis.key, feed.key, clock=clock, randomness=randomness)
        admission, signed = self._admission(FeedKind.CONTROL, feed, self.vouch(identity))
        claim = PartyGenesis(identity.key, admission, signed)
        if parent is not None:
            claim = replace(claim, parent=bytes(parent.party), parent_feed=bytes(parent.genesis_feed))
            child_party.inherit(self, parent, identity)
        self.control = FeedWriter.open(store, feed, self.party)
        self._append(credential.sign(self.party, claim, [genesis]))
        return self

    @classmethod
    def open(
        cls,
        store: FeedStore,
        keys: KeyStore,
        device: Device,
        party: bytes,
        genesis_feed: bytes,
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        checkpoint: CheckpointFile | None = None,
        at_once: bool = True,
    ) -> Membership:
        """Open a party that the store has blocks of. The device continues its own feeds; `join` opens new ones.

        Unless `at_once`, its control feeds are read when something asks for them.
        """
        self = cls(store, keys, device, party, genesis_feed, clock=clock, randomness=randomness)
        self._to_open = LateOpening(partial(self._begin, checkpoint))
        if at_once:
            self._to_open()
        return self

    def _begin(self, checkpoint: CheckpointFile | None) -> None:
        """Read the control feeds, and find this device's own feeds."""
        self._machine, self._refreshed = PartyMachine(self.party, self.genesis_feed), -1
        if checkpoint is not None:
            self.attach_checkpoint(checkpoint)
        self.refresh()
        self.save_checkpoint()
        self.control, self.data = self.find(FeedKind.CONTROL), self.find(FeedKind.DATA)

    def vouch(self, identity: Identity) -> bytes:
        """Return the identity's credential for this device in the party. Only this needs the identity's private key."""
        return device_proof.vouch(self.party, identity, self.device)

    def join(self, device_credential: bytes | None = None) -> Stamp:
        """Open this device's control feed. Its first block carries the identity's credential for the device (`vouch`).

        The identity must be a member as far as this peer knows. Call it also after a backup was restored: the old feed
        is retired then, and the credential in it is used again.
        """
        if self.control is not None:
            raise InvalidInput(
                f"this device has its control feed {self.control.feed.short} in party {self.party.short}"
            )
        word = device_credential or self._known_word()
        self.refresh()
        self._check_room(FeedKind.CONTROL)
        feed = self._keys.generate(KeyKind.FEED, f"control of {self.party.short}", owner=self.device.key)
        admission, signed = self._admission(FeedKind.CONTROL, feed, word)
        place = Place(feed.key, 0, dict(self.machine.timeframe()))
        self.machine.authority.settle()
        if not self.machine.authority.roles(admission.identity, place):
            raise NotAuthorised(
                f"identity {admission.identity.hex()[:8]} is no member of party {self.party.short} as far as is known "
                "here; ask an owner to admit it, and fetch the control feeds"
            )
        self.control = FeedWriter.open(self._store, feed, self.party)
        return self._append(signed)

    def open_data_feed(self) -> FeedWriter:
        """Return the writer of this device's data feed, whose next message has seen all control blocks held here."""
        writer = self.data_writer()
        writer.see(*self.machine.entries())
        return writer

    def data_writer(self) -> FeedWriter:
        """Return this device's data feed; open it, and admit it in the control feed, if there is none."""
        self.refresh()
        if self.data is None:
            self._check_room(FeedKind.DATA)
            feed = self._keys.generate(KeyKind.FEED, f"data of {self.party.short}", owner=self.device.key)
            _, signed = self._admission(FeedKind.DATA, feed, self._known_word())
            data = FeedWriter.open(self._store, feed, self.party)  # before its admission: see `OwnFeeds.find`
            self._append(signed)
            self.data = data
        return self.data

    def _check_room(self, kind: FeedKind) -> None:
        """Refuse to open a feed that would not count, since this device has opened too many before."""
        if not self.machine.authority.budgets.room(self.device.key, kind):
            raise NotAuthorised(
                f"device {self.device.key.short} has opened {DEVICE_FEEDS_MAX} feeds of this kind in party "
                f"{self.party.short}, and no more count; let the identity vouch for a new device, and end this one"
            )

    def write(self, drafts: Sequence[Draft], *, atomic: bool = False) -> Written:
        """Append item messages to this device's data feed. They have seen all control blocks held here."""
        return self.open_data_feed().extend(drafts, atomic=atomic)

    def in_force(self, feed: bytes) -> Iterator[Block]:
        """Yield the blocks of a data feed that count, each judged in its own timeframe and by all cuts known here."""
        self.refresh()
        seen = Sightings()
        for block in self._store.read(feed):
            if not self.machine.judge_data(feed, block.seq, advance(seen, block), block.kind):
                yield block

    # -- acts

    def admit(self, subject: bytes, roles: Iterable[Role], *, expires_ms: int = 0, is_group: bool = False) -> Stamp:
        """Admit an identity or a group, or give it further roles. Admitting twice is the same as once.

        If it `is_group`, whoever has its key may take others into it (`admit_to_group`). Only owners may say so.
        """
        wanted = frozenset(roles)
        self.refresh()
        authority, now = self.machine.authority, self.machine.everything()
        authority.settle()
        for run in authority.runs(subject):
            last = run.acts[-1]
            same = isinstance(last.claim, MemberAdmission) and last.claim.is_group >= is_group
            if same and not last.expires_ms and not expires_ms and wanted <= authority.left(last, now):
                return last.stamp
        return self.write_claim(MemberAdmission(bytes(subject), wanted, is_group), expires_ms=expires_ms)

    def admit_to_group(self, group: bytes, subject: bytes, group_pair: KeyPair | None = None) -> Stamp:
        """Make an identity or group part of a group, by an owner's right or with the group's own key."""
        return self.write_claim(GroupAdmission(bytes(group), bytes(subject)), [group_pair] if group_pair else [])

    def revoke(
        self,
        subject: bytes,
        *,
        identity: Identity | None = None,
        expired: bool = False,
        before: Stamp | None = None,
    ) -> Stamp:
        """End a membership, and cut its feeds at the blocks held here. With its own `identity`, a subject leaves.

        With `before`, only what was written before that message stays, as far as no final epoch holds more.
        """
        return self._narrow(subject, frozenset(), identity, expired, before)

    def demote(self, subject: bytes, roles: Iterable[Role]) -> Stamp:
        """Reduce a member to these roles. Feeds are cut at the blocks held here."""
        return self._narrow(subject, frozenset(roles), None, False)

    def remove_from_group(self, group: bytes, subject: bytes, group_pair: KeyPair | None = None) -> Stamp:
        """End a subject's place in a group, and cut its feeds at the blocks held here."""
        self.look_around()
        claim = Narrowing(bytes(subject), frozenset(), self._cuts(subject), group=bytes(group))
        return self.write_claim(claim, [group_pair] if group_pair else [])

    def end_device(self, device: bytes, identity: Identity | None = None, *, before: Stamp | None = None) -> Stamp:
        """End a device's feeds at the blocks held here: another device in the name of its identity, or this device.

        With `before`, only what was written before that message stays, as far as no final epoch holds more.
        """
        self.look_around()
        ended = [found for found in self.machine.authority.feeds if found[1].device == device]
        if ended and all(owner.identity != self.device.identity for _, owner in ended):
            raise NotAuthorised(f"{device.hex()[:8]} is a device of another identity; only its identity can end it")
        cuts = open_lengths(self, ended)
        cuts = cuts if before is None else earlier(self, self._store, cuts, before)
        claim = FeedEnd(self.device.identity, bytes(device), with_own(self, cuts))
        return self.write_claim(claim, [identity.pair] if identity else [])

    def set_policy(self, policy: Policy) -> Stamp:
        """Set the policy. It replaces all that are known here, with cuts (`tightened`), so that nobody can ignore it.

        Attesters and generator are devices (see `devices`) with a control feed here.
        """
        self.look_around()
        known = set(self.machine.epochs().feeds.values())
        for device in (*policy.attesters, *([policy.generator] if policy.generator else [])):
            if device not in known:
                raise InvalidInput(
                    f"{device.hex()[:8]} is no device with a control feed in party {self.party.short}; name those that "
                    "`devices` gives for an identity, once they have joined"
                )
        return self.write_claim(policy if policy.tightens else self.tightened(policy))

    def devices(self, identity: bytes) -> tuple[bytes, ...]:
        """Return the devices of an identity whose control feeds are open, to name them in a policy."""
        self.refresh()
        authority = self.machine.authority
        found = {
            owner.device
            for feed, owner in authority.owners().items()
            if (owner.identity, owner.kind) == (identity, FeedKind.CONTROL) and authority.end(feed) == NO_END
        }
        return tuple(sorted(found))

    def tightened(self, policy: Policy) -> Policy:
        """Return the policy with cuts, so that it also holds for blocks past those held here that have not seen it."""
        self.refresh()
        feeds = self.machine.authority.owners().items()  # only in control feeds does anybody ask for the policy
        control = ((feed, owner) for feed, owner in feeds if owner.kind is FeedKind.CONTROL)
        return replace(policy, tightens=True, cuts=open_lengths(self, control))

    # -- epochs

    def declare(self, genesis: EpochGenesis, *, recovered: bool = False) -> Stamp:
        """Declare an epoch, as the proposer of its term. If this device is an attester, it thereby attests it."""
        return votes.declare(self, genesis, recovered=recovered)

    def attest(self, genesis: Act, *, recovered: bool = False) -> Stamp:
        """Attest a genesis whose snapshot this device has computed; again, to confirm it, if attesters may lie.

        `recovered` asserts that a device with a new control feed has received all that it wrote in the old one.
        """
        return votes.attest(self, genesis, recovered=recovered)

    def endorse(self, term: int, candidate: bytes, *, recovered: bool = False) -> Stamp:
        """Endorse a device, or this one itself, as the proposer of a term of the open number."""
        return votes.endorse(self, term, candidate, recovered=recovered)

    def refuse(self, genesis: Act, reason: str, computed: bytes = b"") -> Stamp:
        """Publish why this device does not attest a genesis, and the snapshot that it has computed instead."""
        return votes.refuse(self, genesis, reason, computed)

    def erase(self, *positions: Position, identity: Identity | None = None) -> Stamp:
        """Make data messages void everywhere: one's own, or any as an owner. Messages in a final epoch stay in it.

        The device alone may erase messages of its own feeds. Any other message takes the identity's key: the one given,
        or the one in the key store.
        """
        self.refresh()
        final = self.machine.epochs().last
        if final is not None and all(position.seq < final.length(position.feed) for position in positions):
            raise InvalidInput(
                f"epoch {final.number} holds these messages, and what it holds is final; change the item instead"
            )
        if identity is None:
            with suppress(UnknownKey):
                identity = load_identity(self._keys, self.device.identity)
        pairs = [identity.pair] if identity else []
        for position in sorted(positions) if len(positions) > 1 else ():
            self._check_claim(Erasure((position,)), pairs)
        return self.write_claim(Erasure(tuple(sorted(positions))), pairs)

    def echo(self, identity: Identity | None = None) -> list[Stamp]:
        """In a child party, repeat the narrowings and device ends of the parent that this device may repeat."""
        return child_party.echo(self, identity)

    def publish_forks(self) -> list[Stamp]:
        """Publish the forks known here that no control block common to all members proves yet.

        Also repeat credentials about epochs that others need and may not hold, since they stand past a fork.
        """
        self.refresh()
        self.machine.authority.settle()
        if not self.is_heard:
            return []
        known = (self.machine.act_count, self._store.forks())
        if known == self._published or not (known[1] or self.machine.fork_ends):
            return []
        stamps = publish_forks(self, map(Fork.decode, known[1])) + [self._append(*words) for words in untold(self)]
        self._published = (self.machine.act_count, known[1])
        return stamps

    # -- reading

    def holds(self, feed: bytes) -> bool:
        """True if blocks of a feed are here."""
        try:
            return self._store.record(feed).length > 0
        except UnknownFeed:
            return False

    def refresh(self) -> int:
        """Fold new control blocks of the store into the machine; returns how many acts became known."""
        self._to_open()
        now = self._store.transaction
        if now == self._refreshed:
            return 0
        began = perf_counter()
        fresh = fold_control_feeds(self.machine, self._store, self._data_feeds)
        self.machine.checkpoints.withdraw()
        self._refreshed = now
        if fresh:
            each = (perf_counter() - began) / fresh
            for feed, acts in self.machine.histories():
                grown = len(acts) - self._charged.get(feed, 0)
                if grown:
                    self.seconds[feed] += each * max(0, grown)
                    self._charged[feed] = len(acts)
        return fresh

    def attach_checkpoint(self, checkpoint: CheckpointFile) -> None:
        """Let go of acts that are void for ever, and keep in a file which they are."""
        self._checkpoint = checkpoint
        self.machine.checkpoints.offer(checkpoint.load(), self._blocks, self._store)

    def save_checkpoint(self) -> None:
        """Save what was found out about control feeds with many void acts, for the next opening."""
        if self._checkpoint is not None:
            self.machine.set_aside(FEW)
            lanes = self.machine.checkpoints.collect()
            if lanes is not None:
                self._checkpoint.save(lanes)

    def _blocks(self, feed: bytes, start: int, stop: int) -> list[Block]:
        if stop == start + 1:
            return [self._store.block(feed, start, past_end=True)]
        return [block for span in self._store.held(feed, start, stop) for block in span.blocks(0, span.count)]

    def look_around(self) -> None:
        """Fold new control blocks, and see to it that this device's next act has seen all of them.

        One header names 4,096 feeds. If more have moved, empty acts go ahead of it: an act that takes something away
        means all that it has seen.
        """
        self.refresh()
        entries = self.machine.entries()
        if self.control is not None:
            self.control.see(*entries)
            for _ in entries:
                if not self.control.behind:
                    break
                self._append(credential.sign(self.party, Continuation({}), [self.device.pair]))

    def skip(self, before: int, after: int) -> None:
        """Skip a change of the store, between these transactions, that was to a data feed only."""
        if self._refreshed == before:
            self._refreshed = after

    @property
    def state(self) -> PartyState:
        """Current state of the party, including new control blocks."""
        self.refresh()
        return self.machine.state()

    @property
    def voids(self) -> tuple[Void, ...]:
        """The acts that are not in force now, and why, by stamp."""
        self.refresh()
        return self.machine.voids()

    # -- inside

    def _narrow(
        self, subject: bytes, roles: Roles, identity: Identity | None, expired: bool, before: Stamp | None = None
    ) -> Stamp:
        self.look_around()
        if not self.machine.authority.was_granted(subject):
            raise InvalidInput(f"{subject.hex()[:8]} is not admitted to party {self.party.short}, and never was")
        claim = Narrowing(bytes(subject), roles, self._cuts(subject, before), expired)
        return self.write_claim(claim, [identity.pair] if identity else [])

    def _cuts(self, subject: bytes, before: Stamp | None = None) -> dict[bytes, int]:
        """Return the length held of every feed whose writer's rights rest on the subject; with `before`, up to that.

        Feeds of others, whose rights rest on the subject as a group, are cut where they stand.
        """
        authority, rests = self.machine.authority, dict[bytes, bool]()
        feeds = []
        for feed, owner in authority.owners().items():
            if owner.identity not in rests:
                rests[owner.identity] = subject in authority.above(owner.identity, None, None)
            if rests[owner.identity]:
                feeds.append((feed, owner))
        cuts = open_lengths(self, feeds)
        if before is not None:
            own = {feed for feed, owner in feeds if owner.identity == subject}
            cuts |= earlier(self, self._store, {feed: cuts[feed] for feed in own & cuts.keys()}, before)
        return with_own(self, cuts)

    def lengths(self) -> Mapping[bytes, int]:
        """Return how many blocks of each feed are held; 0 for other feeds."""
        return defaultdict(int, ((record.feed, record.valid_length) for record in self._store.feeds(self.party)))

    def _admission(self, kind: FeedKind, feed: KeyPair, word: bytes) -> tuple[FeedAdmission, bytes]:
        vouched = credential.read(self.party, word).claim
        if not isinstance(vouched, DeviceAdmission) or vouched.device != self.device.key:
            raise InvalidInput(f"this is no identity's word for device {self.device.key.short} in this party")
        claim = FeedAdmission(feed.key, kind, vouched.identity, vouched.device, word)
        return claim, credential.sign(self.party, claim, [self.device.pair, feed])

    def _known_word(self) -> bytes:
        for owner in self.machine.authority.owners().values():
            admission = owner.opened.admission
            if owner.device == self.device.key and admission is not None:
                return admission.device_credential
        raise UnknownKey(
            f"no identity has vouched for device {self.device.key.short} in party {self.party.short}; let the identity "
            "do so (`vouch`) and hand that in"
        )

    def write_claim(self, claim: Claim, others: Sequence[KeyPair] = (), *, expires_ms: int = 0) -> Stamp:
        """Write a credential, if it would be in force."""
        self.refresh()
        self._check_claim(claim, others, expires_ms)
        pairs = {pair.key: pair for pair in (self.device.pair, *others)}
        nonce = self._randomness.bytes(16)
        signed = credential.sign_all(self.party, claim, list(pairs.values()), expires_ms=expires_ms, nonce=nonce)
        for word in signed:
            credential.read(self.party, word)  # do not write a credential that others would refuse to read
        return self._append(*signed)

    def _check_claim(self, claim: Claim, others: Sequence[KeyPair], expires_ms: int = 0) -> None:
        """Raise `NotAuthorised` if a claim that this device and these keys sign would be void."""
        signers = frozenset({bytes(pair.key) for pair in (self.device.pair, *others)})
        reason = self.machine.preview(self.draft(claim, signers, expires_ms))
        if reason:
            raise NotAuthorised(self.why_barred() or f"party {self.party.short}: this would not be in force: {reason}")

    def draft(self, claim: Claim, signers: frozenset[bytes], expires_ms: int = 0) -> Act:
        """Return the act that a claim would become if it were written now."""
        if self.control is None:
            raise NotAuthorised(self.why_barred())
        seen, seq = self.machine.entries(), self.machine.length(self.control.feed)
        last = self.machine.last(self.control.feed)
        place = {} if last is None else dict(last.place.seen)  # which may be beyond a fork that was found since
        for entry in seen:
            if entry.feed != self.control.feed:
                place[entry.feed] = max(entry.seq, place.get(entry.feed, -1))
        return Act(
            Stamp(1 + max((entry.lamport for entry in seen), default=0), self.control.feed, seq),
            Place(self.control.feed, seq, place),
            self.now_ms(),
            claim,
            signers,
            expires_ms,
            after=last,
        )

    @property
    def is_heard(self) -> bool:
        """True if this device has a control feed here that has not ended: not by a revocation, nor by a fork."""
        return self.control is not None and self.machine.authority.end(self.control.feed) == NO_END

    def why_barred(self) -> str:
        """Return why this device can write nothing in the party, the same before and after a restart; "" if it can."""
        party, device, authority = f"party {self.party.short}", self.device, self.machine.authority
        if not self.machine.roles_of(device.identity):
            why = because(Reason.NOT_MEMBER, f"identity {device.identity.short} is no member as far as is known here")
            return f"{party}: {why}; ask an owner to admit it, and sync"
        if self.control is not None:
            owner = authority.owner(bytes(self.control.feed))
            if owner is None or not authority.has_ended(bytes(self.control.feed), owner):
                return ""
        mine = [(feed, owner) for feed, owner in authority.owners().items() if owner.device == device.key]
        if any(authority.has_ended(feed, owner) for feed, owner in mine):
            why = because(Reason.PAST_CUT, f"the feeds of device {device.key.short} have ended")
            return f"{party}: {why}; let its identity vouch for it again (`join`), or for a new device"
        return f"{party}: this device has no feed in it; `join` it first"

    def now_ms(self) -> int:
        """Return the time of this device's clock in milliseconds."""
        return self._clock.now_ms()

    def _append(self, *signed: bytes) -> Stamp:
        """Append credentials in one batch; return the stamp of the first."""
        if self.control is None:
            raise NotAuthorised(self.why_barred())
        self.control.see(*self.machine.entries())
        drafts = [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(word)) for word in signed]
        stamps = self.control.extend(drafts, atomic=len(drafts) > 1)
        self.refresh()
        return stamps[0]
