"""Which branch of a forked control feed an epoch rests on: what it says itself, not who tells it again."""

from __future__ import annotations

from tests.halo.finality.test_epoch_chain import NOW, cid, meet, party

from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.core.v1 import message_pb2
from antiphon.feed.fork import Fork
from antiphon.halo.acts.act import Act
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochGenesis, Equivocated, Policy, Role
from antiphon.halo.member.genesis_checks import scrutinise
from antiphon.testing.parties import Actor, Rehearsal, pair_of


def forked() -> tuple[list[Actor], Actor]:
    """Alice decides alone; Bob, an owner, signs two histories of his control feed, with another policy in each."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    bob, eve = rehearsal.actor("bob"), rehearsal.actor("eve")
    for actor, role in ((bob, Role.OWNER), (eve, Role.READER)):
        alice.admit(actor, role)
        actor.hear(alice)
        actor.join()
        alice.hear(actor)
    alice.write(Policy(attesters=(bytes(alice.device.key),), generator=bytes(alice.device.key)))
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


def genesis(actor: Actor, control: Timeframe) -> EpochGenesis:
    heads = actor.machine.control_hash(control)
    return EpochGenesis(0, 1, b"", {}, control, cid("one"), NOW, control_hash=heads)
