"""Idle votes on the branches of a control feed: left in the store, and read when they may count.

Each test compares a machine that was opened with a checkpoint with one that has read everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.codec import u64
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import PublicKey
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.header import Flag, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.control import checkpoints
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    MemberAdmission,
    Narrowing,
    Policy,
    Role,
)
from antiphon.testing.parties import Actor, Rehearsal, pair_of
from antiphon.testing.spans import Forged, hostile_span

SNAPSHOT = bytes(Cid.of(b"snapshot", DAG_CBOR))


class Home:
    """The store of a member, and Mallory, an owner who signs branches of her control feed beyond its first block."""

    def __init__(self, folder: Path) -> None:
        self.rehearsal = Rehearsal()
        self.alice, self.mallory = self.rehearsal.founder("alice"), self.rehearsal.actor("mallory")
        self.alice.admit(self.mallory, Role.OWNER)
        self.mallory.hear(self.alice)
        self.mallory.join()
        self.mallory.admit(pair_of("guest").key, Role.READER)
        self.alice.hear(self.mallory)
        self.store = FeedStore.open(folder / "feeds", durable=False)
        self._taken: dict[bytes, int] = {}
        self.take()

    def take(self) -> None:
        """Store what was written in the histories."""
        for actor in (self.alice, self.mallory):
            for span in actor.raw[self._taken.get(actor.control.key, 0) :]:
                self.store.ingest(span)
            self._taken[actor.control.key] = len(actor.raw)

    def branch(self, *blocks: Forged, after: Block | None = None) -> Span:
        """Sign blocks of Mallory's control feed that follow its first block, or another one."""
        after = self.mallory.raw[0].block(0) if after is None else after
        party, place = self.rehearsal.party.key, after.seq + 1
        return hostile_span(
            self.mallory.control, party, blocks, first=place, previous=after.hash, lamport=after.lamport
        )

    def word(self, claim: Claim, nonce: bytes) -> bytes:
        return credential.sign(self.rehearsal.party.key, claim, [self.mallory.device], nonce=nonce)

    def machine(self, saved: bytes = b"") -> PartyMachine:
        """Open the party, perhaps with a checkpoint."""

        def blocks(feed: bytes, start: int, stop: int) -> list[Block]:
            return [block for span in self.store.held(feed, start, stop) for block in span.blocks(0, span.count)]

        machine = PartyMachine(self.rehearsal.party.key, self.rehearsal.genesis_feed)
        known = decode_checkpoints(machine.party, saved) if saved else {}
        machine.checkpoints.offer(known, blocks, self.store)
        self.hear(machine)
        machine.checkpoints.withdraw()
        return machine

    def hear(self, machine: PartyMachine) -> None:
        fold_control_feeds(machine, self.store)

    def resumed(self) -> PartyMachine:
        """Open the party with a checkpoint of what a machine finds that reads everything."""
        machine = self.machine()
        lanes = machine.checkpoints.collect()
        assert lanes is not None
        return self.machine(encode_checkpoints(machine.party, lanes))


def forged(word: bytes, flags: int = 0, salt: bytes = bytes(16)) -> Forged:
    body = salt + credential.message_of(word)
    return Forged(body=body, kind=int(Kind.CREDENTIAL), item=SYSTEM_ITEM, flags=flags)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr(checkpoints, "FEW", 1)
    home = Home(tmp_path)
    yield home
    home.store.close()


def test_a_genesis_whose_list_goes_on_where_two_branches_part_is_read_at_each_opening(home: Home) -> None:
    """On one branch its list does not go on, and that was all that was read again when Mallory became an attester."""
    mallory, party = home.mallory, home.rehearsal.party.key
    control = Timeframe({home.alice.control.key: 1, mallory.control.key: 0})
    hash_ = home.alice.machine.control_hash(control)
    genesis = EpochGenesis(0, 1, b"", {}, control, SNAPSHOT, 5, control_hash=hash_)
    first, *rest = credential.sign_all(party, genesis, [mallory.device], nonce=b"v", size=1)
    other = home.word(MemberAdmission(bytes(pair_of("other").key), frozenset({Role.READER})), b"w")
    spans: list[Span] = []
    for number in count():  # until the branch without the list sorts first
        salt = number.to_bytes(16, "big")
        flags = [int(Flag.CONTINUED | Flag.MORE)] * (len(rest) - 1) + [int(Flag.CONTINUED)]
        goes_on = [forged(word, flag, salt) for word, flag in zip(rest, flags, strict=True)]
        whole = home.branch(forged(first, Flag.MORE), *goes_on)
        cut_off = home.branch(forged(first, Flag.MORE), forged(other, Flag.CONTINUED, salt))
        spans = [cut_off, whole]
        if cut_off.hash_at(cut_off.end - 1) < whole.hash_at(whole.end - 1):
            break
    for span in spans:
        home.store.ingest_branch([span])
    resumed = home.resumed()
    home.alice.write(Policy(attesters=(mallory.device.key,)))
    home.take()
    home.hear(resumed)
    assert len(home.machine().epochs().final) == 1
    assert resumed.epochs().final == home.machine().epochs().final


def test_a_vote_is_read_again_if_its_feed_turns_out_to_be_of_another_device(home: Home) -> None:
    """Mallory signs a second first block, by another device: her vote is a copy then, and counts for who signed it."""
    mallory, rehearsal = home.mallory, home.rehearsal
    first = mallory.raw[0].block(0)
    home.store.ingest_branch([home.branch(forged(home.word(EpochAttestation(0, 1, SNAPSHOT, b"7" * 32), b"v")))])
    resumed = home.resumed()
    assert len(list(resumed.settled.stamps())) > 1
    spans: list[Span] = []
    while not spans or spans[0].hash_at(0) > first.hash:  # until the other device has the lesser hash
        rehearsal.now_ms += 1
        other = Actor(rehearsal, mallory.identity, pair_of("mallory phone"), mallory.control)
        other.machine.add(home.alice.written)
        other.join()
        spans = other.raw
    home.store.ingest_branch(spans)
    home.hear(resumed)
    home.alice.write(Policy(attesters=(mallory.device.key,)))
    home.take()
    home.hear(resumed)
    plain = home.machine().epochs().ballot
    assert [set(voters) for voters in plain.attested.values()] == [{mallory.device.key}]
    assert resumed.epochs().ballot.attested == plain.attested


def test_one_refusal_makes_no_opening_read_its_branch(home: Home) -> None:
    """The first refusal of a declared epoch was kept: everything that followed it was read again at each opening."""
    alice = home.alice
    control = alice.machine.timeframe()
    hash_ = alice.machine.control_hash(control)
    alice.write(EpochGenesis(0, 1, b"", {}, control, SNAPSHOT, 5, control_hash=hash_))
    home.take()
    spans = [home.branch(forged(home.word(EpochRefusal(0, 1, SNAPSHOT, reason="no"), b"v")))]
    for number in range(6):
        admission = MemberAdmission(bytes(pair_of(f"guest {number}").key), frozenset({Role.READER}))
        spans.append(home.branch(forged(home.word(admission, bytes([number]))), after=spans[-1].block(0)))
    for span in spans:
        home.store.ingest_branch([span])
    resumed = home.resumed()
    assert len(list(resumed.settled.stamps())) == len(spans)
    assert resumed.epochs().refused == home.machine().epochs().refused == {}
    assert resumed.voids() == home.machine().voids()


def test_an_epoch_holds_the_branch_that_it_rests_on_whichever_branch_came_first(home: Home) -> None:
    """The list of a narrowing goes on on one branch, and the epoch rests on the other: it took Bob's role or not."""
    mallory, alice, party = home.mallory, home.alice, home.rehearsal.party.key
    bob = bytes(pair_of("bob").key)
    alice.write(MemberAdmission(bob, frozenset({Role.EDITOR})))
    narrowing = Narrowing(bob, frozenset(), {bytes([number]) * 32: 1 for number in range(1, 4)})
    first, *rest = credential.sign_all(party, narrowing, [mallory.device], nonce=b"v", size=1)
    flags = [int(Flag.CONTINUED | Flag.MORE)] * (len(rest) - 1) + [int(Flag.CONTINUED)]
    begin = replace(forged(first, Flag.MORE), advance=(alice.written[-1].entry,))
    whole = home.branch(begin, *[forged(word, flag) for word, flag in zip(rest, flags, strict=True)])
    other = home.word(MemberAdmission(bytes(pair_of("other").key), frozenset({Role.READER})), b"w")
    cut_off = home.branch(begin, forged(other, Flag.CONTINUED))
    tip = cut_off.block(1)
    control = Timeframe({alice.control.key: len(alice.written) - 1, mallory.control.key: tip.seq})
    hashes = {alice.control.key: alice.written[-1].hash, mallory.control.key: tip.hash}
    digest = sha256(b"antiphon.control.v1")
    for feed, seq in control.items():
        digest.update(feed + u64(seq) + hashes[PublicKey(feed)])
    alice.machine.show(cut_off)
    alice.machine.end_fork(mallory.control.key, 1)
    feeds = (mallory.control.key, alice.control.key)
    seen = [*(entry for entry in alice.machine.entries() if entry.feed not in feeds), tip.entry]
    alice.write(EpochGenesis(0, 1, b"", {}, control, SNAPSHOT, 5, control_hash=digest.digest()), seen=seen)
    states = []
    for branches in ((cut_off, whole), (whole, cut_off)):
        machine = PartyMachine(party, home.rehearsal.genesis_feed)
        machine.add(alice.written[:-1])
        machine.add(mallory.written)
        machine.end_fork(mallory.control.key, 1)
        for span in branches:
            machine.show(span)
        machine.add(alice.written[-1:])
        assert len(machine.epochs().final) == 1
        states.append(machine.state())
    assert states[0] == states[1]
    assert states[0].member(bob) is not None


def test_refusals_beyond_a_fork_are_told_to_nobody_whenever_the_fork_is_heard_of(home: Home) -> None:
    """Nothing was proposed, so the chain of epochs stayed as it was when the fork became known."""
    alice, mallory = home.alice, home.mallory
    alice.write(EpochEndorsement(1, 1, alice.device.key))
    control = alice.machine.timeframe()
    hash_ = alice.machine.control_hash(control)
    alice.write(EpochGenesis(0, 1, b"", {}, control, SNAPSHOT, 5, control_hash=hash_))
    end = len(mallory.written)
    mallory.write(EpochRefusal(0, 1, SNAPSHOT, reason="no"))
    chains = []
    for is_early in (True, False):
        machine = PartyMachine(home.rehearsal.party.key, home.rehearsal.genesis_feed)
        machine.add(alice.written)
        machine.add(mallory.written[:end])
        if is_early:
            machine.add(mallory.written[end:])
            assert len(machine.epochs().refusals) == 1
        machine.end_fork(mallory.control.key, end)
        machine.add(mallory.written[end:] if not is_early else ())
        chains.append(machine.epochs())
    assert chains[0] == chains[1]
    assert chains[0].refusals == ()


def test_a_vote_with_an_expiry_counts_for_nobody(home: Home) -> None:
    """It counted on its branch, and the copies by which others learn of it had expired: they were repeated for ever."""
    alice = home.alice
    control = alice.machine.timeframe()
    hash_ = alice.machine.control_hash(control)
    genesis = EpochGenesis(0, 1, b"", {}, control, SNAPSHOT, 5, control_hash=hash_)
    alice.write(genesis, expires_ms=home.rehearsal.now_ms + 10**9)
    assert alice.machine.epochs().final == ()
    assert [void.stamp.seq for void in alice.machine.voids()] == [len(alice.written) - 1]
    alice.write(genesis)
    assert len(alice.machine.epochs().final) == 1
