"""Parties in memory: actors that write control feeds, honest or hostile, and deliveries in any order.

>>> from antiphon.halo.credentials.claims import Role
>>> rehearsal = Rehearsal()
>>> alice = rehearsal.founder("alice")
>>> bob = rehearsal.actor("bob")
>>> _ = alice.admit(bob, Role.EDITOR)
>>> bob.hear(alice)
>>> _ = bob.join()
>>> alice.hear(bob)
>>> alice.state == bob.state
True
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.block import Block
from antiphon.feed.encoder import Append, Draft, build
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.halo.acts.act import Void
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    DeviceAdmission,
    FeedAdmission,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    PartyGenesis,
    Role,
)


def pair_of(name: str) -> KeyPair:
    """A key pair that depends on the name alone."""
    return KeyPair.from_seed(sha256(name.encode()).digest())


class Rehearsal:
    """A party whose feeds are in memory. Everything in it depends on the names used, so a run can be repeated.

    With a parent it is a child of that: its actors `attend` to what actors of the parent know.
    """

    def __init__(self, name: str = "party", parent: Rehearsal | None = None) -> None:
        self.name = name
        self.parent = parent
        self.party = pair_of(name)
        self.genesis_feed = b""
        self.now_ms = 1_000_000
        self.actors: list[Actor] = []

    def founder(self, name: str, attends: Actor | None = None) -> Actor:
        """Create the actor that founds the party. In a child party, it has seen what `attends` knows."""
        actor = self.actor(name)
        self.genesis_feed = actor.control.key
        actor.reset()
        admission, signed = actor.admission(FeedKind.CONTROL, actor.control)
        claim = PartyGenesis(actor.identity.key, admission, signed)
        if self.parent is not None:
            claim = replace(claim, parent=bytes(self.parent.party.key), parent_feed=self.parent.genesis_feed)
            actor.machine.inherit(claim.parent, claim.parent_feed)
        if attends is not None:
            actor.attend(attends)
        actor.write_signed(credential.sign(self.party.key, claim, [self.party]))
        return actor

    def actor(self, name: str, device: str = "laptop", identity: KeyPair | None = None) -> Actor:
        """Create an actor: an identity with a device. A second device of the identity is another actor."""
        control = f"{name} {device} control" if self.parent is None else f"{name} {device} control of {self.name}"
        actor = Actor(self, identity or pair_of(name), pair_of(f"{name} {device}"), pair_of(control))
        self.actors.append(actor)
        return actor

    def blocks(self) -> dict[bytes, tuple[Block, ...]]:
        """All blocks written so far, by feed, with those of the parent."""
        above = {} if self.parent is None else self.parent.blocks()
        return {**above, **{actor.control.key: tuple(actor.written) for actor in self.actors if actor.written}}

    def machine(self, order: Iterable[bytes]) -> PartyMachine:
        """A fresh machine that is handed one block of the feed named, time after time."""
        machine = PartyMachine(self.party.key, self.genesis_feed)
        feeds = {feed: iter(blocks) for feed, blocks in self.blocks().items()}
        above = set() if self.parent is None else set(self.parent.blocks())
        kept: list[Block] = []  # of the parent, as long as nobody knows that it is one
        for feed in order:
            block = next(feeds[feed])
            if feed not in above:
                machine.add([block])
            else:
                kept.append(block)
            if machine.parent is not None:
                machine.parent.add(kept)
                machine.hear_parent()
                kept = []
        return machine

    def orders(self) -> Iterator[tuple[bytes, ...]]:
        """Every order in which the blocks can arrive, each feed from its first block on."""
        counts = {feed: len(blocks) for feed, blocks in self.blocks().items()}
        return _interleavings(counts)


def _interleavings(counts: Mapping[bytes, int]) -> Iterator[tuple[bytes, ...]]:
    left = {feed: count for feed, count in counts.items() if count}
    if not left:
        yield ()
    for feed in left:
        for rest in _interleavings({**left, feed: left[feed] - 1}):
            yield (feed, *rest)


class Actor:
    """A device that writes a control feed. It knows the blocks that it received, and may also write void acts."""

    def __init__(self, rehearsal: Rehearsal, identity: KeyPair, device: KeyPair, control: KeyPair) -> None:
        self._rehearsal = rehearsal
        self.identity = identity
        self.device = device
        self.control = control
        self.written: list[Block] = []
        self.raw: list[Span] = []  # the same, each under a head of its own
        self.word = credential.sign(rehearsal.party.key, DeviceAdmission(identity.key, device.key), [identity, device])
        self._record = FeedRecord(feed=control.key, party=rehearsal.party.key, writable=True)
        self._frontier: dict[bytes, Entry] = {}
        self.reset()

    def reset(self) -> None:
        self.machine = PartyMachine(self._rehearsal.party.key, self._rehearsal.genesis_feed)

    @property
    def party(self) -> bytes:
        return self._rehearsal.party.key

    @property
    def state(self) -> PartyState:
        return self.machine.state()

    @property
    def voids(self) -> tuple[Void, ...]:
        return self.machine.voids()

    # -- hearing

    def hear(self, *others: Actor) -> None:
        """Receive all blocks that the others have."""
        if self.machine.genesis_feed != self._rehearsal.genesis_feed:
            self.reset()
        for other in others:
            for actor in self._rehearsal.actors:
                upto = other.machine.length(actor.control.key)
                at = self.machine.length(actor.control.key)
                self.machine.add(actor.written[at:upto])

    def attend(self, *others: Actor) -> None:
        """In a child party: receive all blocks that actors of the parent have."""
        parent = self.machine.parent
        assert self._rehearsal.parent is not None
        assert parent is not None, "it has not heard of the genesis yet, which names the parent"
        for other in others:
            for actor in self._rehearsal.parent.actors:
                upto = other.machine.length(actor.control.key)
                parent.add(actor.written[parent.length(actor.control.key) : upto])
        self.machine.hear_parent()

    # -- writing

    def fork(self) -> Actor:
        """The same writer at this moment, to sign a second history. It has heard what this actor has heard."""
        twin = copy.copy(self)
        twin.written, twin.raw = list(self.written), list(self.raw)
        twin._frontier = dict(self._frontier)
        twin.reset()
        twin.hear(self)
        return twin

    def admission(self, kind: FeedKind, feed: KeyPair) -> tuple[FeedAdmission, bytes]:
        claim = FeedAdmission(feed.key, kind, self.identity.key, self.device.key, self.word)
        return claim, credential.sign(self._rehearsal.party.key, claim, [self.device, feed])

    def join(self, seen: Sequence[Entry] | None = None) -> Stamp:
        """Open the control feed."""
        return self.write_signed(self.admission(FeedKind.CONTROL, self.control)[1], seen)

    def open_data(self, feed: KeyPair) -> Stamp:
        return self.write_signed(self.admission(FeedKind.DATA, feed)[1])

    def admit(self, subject: Actor | bytes, *roles: Role, expires_ms: int = 0, is_group: bool = False) -> Stamp:
        key = subject.identity.key if isinstance(subject, Actor) else subject
        return self.write(MemberAdmission(bytes(key), frozenset(roles), is_group), expires_ms=expires_ms)

    def group(self, group: bytes, subject: bytes, signers: Sequence[KeyPair] = ()) -> Stamp:
        return self.write(GroupAdmission(bytes(group), bytes(subject)), signers)

    def narrow(
        self,
        subject: Actor | bytes,
        *roles: Role,
        cuts: Mapping[bytes, int] | None = None,
        signers: Sequence[KeyPair] = (),
        expired: bool = False,
        group: bytes = b"",
        seen: Sequence[Entry] | None = None,
        size: int = 0,
    ) -> Stamp:
        """Revoke (no roles) or demote the subject, or take it from one group."""
        key = subject.identity.key if isinstance(subject, Actor) else subject
        if cuts is None:
            cuts = {
                actor.control.key: self.machine.length(actor.control.key)
                for actor in self._rehearsal.actors
                if actor.identity.key == key
            }
        claim = Narrowing(bytes(key), frozenset(roles), cuts, expired, group)
        return self.write(claim, signers, seen=seen, size=size)

    def write(
        self,
        claim: Claim,
        signers: Sequence[KeyPair] = (),
        *,
        expires_ms: int = 0,
        seen: Sequence[Entry] | None = None,
        size: int = 0,
    ) -> Stamp:
        """Write a credential, permitted or not, signed by the device and these keys.

        Lists with more than `size` entries (0: more than a list may have) go on in the next blocks.
        """
        pairs = list({pair.key: pair for pair in (self.device, *signers)}.values())
        nonce = self.control.key[:8] + len(self.written).to_bytes(4, "big")
        party = self._rehearsal.party.key
        signed = credential.sign_all(party, claim, pairs, expires_ms=expires_ms, nonce=nonce, size=size)
        return self.write_batch(signed, seen)

    def write_signed(self, signed: bytes, seen: Sequence[Entry] | None = None) -> Stamp:
        """Append a block. `seen` is the timeframe that it claims to have seen; by default, all blocks it has."""
        return self.write_batch([signed], seen)

    def write_batch(self, signed: Sequence[bytes], seen: Sequence[Entry] | None = None) -> Stamp:
        """Append credentials in one batch; return the stamp of the first."""
        salt = sha256(self.control.key + bytes([len(self.written) % 256])).digest()[:16]
        append = Append(
            self.control,
            self._rehearsal.party.key,
            [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(word)) for word in signed],
            self.machine.entries() if seen is None else seen,
            atomic=len(signed) > 1,
            created_ms=self._rehearsal.now_ms,
            salts=salt * len(signed),
        )
        built = build(self._record, [append], self._frontier.get)
        self._record = built.record
        self._frontier.update(built.moved)
        blocks = [block for span in built.spans for block in span.blocks(0, span.count)]
        self.written += blocks
        self.raw += built.spans
        self.machine.add(blocks)
        return blocks[0].stamp
