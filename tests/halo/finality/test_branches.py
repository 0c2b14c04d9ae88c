"""Which branch of a forked control feed an epoch rests on: what it says itself, not who tells it again."""

from __future__ import annotations

import pytest
from tests.halo.finality.test_epoch_chain import NOW, cid, meet, party

from antiphon.core.errors import MissingBlocks
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.core.v1 import message_pb2
from antiphon.feed.fork import Fork
from antiphon.halo.acts.act import Act
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochGenesis, EpochRefusal, Equivocated, Policy, Role
from antiphon.halo.member.genesis_checks import scrutinise
from antiphon.model.model import Discard
from antiphon.party.epochs.plan import plan_of
from antiphon.testing.parties import Actor, Rehearsal, pair_of


def forked(*, alone: bool = True) -> tuple[list[Actor], Actor]:
    """Alice decides, alone or with Eve; Bob, an owner, signs two histories, with another policy in each."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    bob, eve = rehearsal.actor("bob"), rehearsal.actor("eve")
    for actor, role in ((bob, Role.OWNER), (eve, Role.READER)):
        alice.admit(actor, role)
        actor.hear(alice)
        actor.join()
        alice.hear(actor)
    deciders = sorted(bytes(actor.device.key) for actor in ((alice,) if alone else (alice, eve)))
    alice.write(Policy(attesters=tuple(deciders), generator=bytes(alice.device.key)))
    meet(alice, bob, eve)
    other = Rehearsal()
    other.genesis_feed = rehearsal.genesis_feed
    twin = other.actor("bob")
    twin.machine.add(alice.written[:2])
    twin.join([block.entry for block in alice.written[1:2]])
    assert twin.written == bob.written[:1]
    return [alice, bob, eve], twin


def test_nobody_is_led_onto_another_branch_by_a_copy_of_the_genesis() -> None:
    (alice, bob, eve), twin = forked()
    bob.admit(pair_of("x").key, Role.READER)
    twin.write(Policy(attesters=(bytes(bob.device.key),), generator=bytes(bob.device.key)))
    alice.hear(bob)
    control = alice.machine.timeframe()
    heads = alice.machine.control_hash(control)
    claim = EpochGenesis(0, 1, b"", {}, control, cid("one"), NOW, control_hash=heads)
    alice.write(Policy(epoch_age_ms=1))  # so that the copy has the lower stamp
    alice.write(claim)
    victim = PartyMachine(alice.machine.party, alice.machine.genesis_feed)
    victim.add(alice.written[:-2])
    victim.add(twin.written)
    victim.add(eve.written)
    assert alice.written[-1].message is not None
    copy = message_pb2.Message.FromString(alice.written[-1].message).credential.SerializeToString(deterministic=True)
    eve.machine = victim  # she stands with Bob
    eve.write_signed(copy)
    victim.end_fork(bob.control.key, 1)
    victim.add(alice.written)
    assert "another branch of control feed" in victim.epochs().open.lacks
    assert victim.epochs().final == ()
    assert [epoch.number for epoch in alice.machine.epochs().final] == [1]


def test_an_attester_refuses_a_genesis_that_rests_on_other_blocks_than_it_holds() -> None:
    """Else attesters on both branches would make it final together, and each half would go on by another policy."""
    alice, _ = party("bob")
    control = alice.machine.timeframe()
    for heads in (b"", bytes(32)):
        claim = EpochGenesis(0, 1, b"", {}, control, cid("one"), NOW, control_hash=heads)
        alice.write(claim)
        assert "other blocks of control feeds" in scrutinise(alice.machine, alice.machine.acts()[-1], NOW)


def evidence(bob: Actor, twin: Actor) -> Equivocated:
    fork = Fork.between(bob.raw[1], twin.raw[1])
    return Equivocated(fork.feed, fork.seq, fork.encode())


def test_evidence_that_an_epoch_has_already_need_not_be_in_it_twice() -> None:
    """Everybody who finds a fork tells of it: an attester's own word about it must not make it refuse the epoch."""
    (alice, bob, eve), twin = forked()
    bob.admit(pair_of("x").key, Role.READER)
    twin.admit(pair_of("y").key, Role.READER)
    found = evidence(bob, twin)
    before = alice.machine.timeframe()
    alice.write(found)
    control = alice.machine.timeframe()
    eve.write(found)
    alice.hear(eve)
    assert not control.covers(alice.machine.timeframe())
    stamp = Stamp(99, alice.control.key, len(alice.written))
    told = []
    for timeframe in (control, before):
        signers = frozenset({bytes(alice.device.key)})
        act = Act(stamp, alice.machine.everything(), NOW, genesis(alice, timeframe), signers)
        told.append(scrutinise(alice.machine, act, NOW))
    assert told[0] == ""
    assert "lacks the evidence of a fork" in told[1]


def genesis(actor: Actor, control: Timeframe, snapshot: bytes = b"") -> EpochGenesis:
    heads = actor.machine.control_hash(control)
    return EpochGenesis(0, 1, b"", {}, control, snapshot or cid("one"), NOW, control_hash=heads)


def two_proposals(*, alone: bool) -> tuple[PartyMachine, list[EpochGenesis]]:
    """Alice and Eve declare an epoch each, with one control timeframe, and have seen another branch of Bob's feed."""
    (alice, bob, eve), _ = forked(alone=alone)
    twin = bob.fork()
    bob.write(Policy(message_count=1))
    twin.write(Policy(message_count=2))
    control = bob.machine.timeframe()
    geneses: list[EpochGenesis] = []
    for actor, branch in ((alice, bob), (eve, twin)):
        actor.machine.add(branch.written)
        geneses.append(genesis(actor, control, cid(f"{len(geneses)}")))
        actor.write(geneses[-1])
    return shown(bob, twin, alice, eve), geneses


def shown(bob: Actor, twin: Actor, *others: Actor) -> PartyMachine:
    """A machine that has both branches, and all that others wrote."""
    machine = PartyMachine(bob.machine.party, bob.machine.genesis_feed)
    for actor in (*others, bob):
        machine.add(actor.written)
    machine.show(twin.raw[-1])
    return machine


def test_a_plan_is_judged_on_the_branch_that_its_genesis_rests_on() -> None:
    """Both name the same positions: without the hash, the first that was found was taken for both."""
    machine, geneses = two_proposals(alone=False)
    assert len({found.control_hash for found in geneses}) == 2
    assert [plan_of(machine, found).discard for found in geneses] == [Discard(NOW, 0, 1), Discard(NOW, 0, 2)]
    assert [plan_of(machine, found).control_hash for found in geneses] == [found.control_hash for found in geneses]


def test_a_branch_that_no_epoch_holds_is_not_taken_for_the_one_that_is_final() -> None:
    machine, geneses = two_proposals(alone=True)
    assert len(machine.epochs().final) == 1
    assert plan_of(machine, geneses[0]).discard == Discard(NOW, 0, 1)
    with pytest.raises(MissingBlocks):
        plan_of(machine, geneses[1])


def test_the_verdict_on_one_branch_is_not_that_on_the_other() -> None:
    """Two acts of one feed have the same stamp, on two branches: one is about an epoch that cannot come yet."""
    (alice, bob, eve), _ = forked()
    twin = bob.fork()
    bob.write(EpochRefusal(0, 1, cid("one"), reason="no"))
    twin.write(EpochRefusal(0, 9, cid("one"), reason="no"))
    machine = shown(bob, twin, alice, eve)
    told = {act.claim.number: act for act in machine.acts() if isinstance(act.claim, EpochRefusal)}
    one, other = told[1], told[9]
    assert one.stamp == other.stamp
    assert "not final yet" in machine.epochs().reason(other)
    assert "not final yet" not in machine.epochs().reason(one)
