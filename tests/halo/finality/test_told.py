"""Words about epochs that somebody tells again, for those who hold another branch of the feed that they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.halo.finality.test_epoch_chain import NOW, cid, declare, meet, numbers, party, why

from antiphon.core.v1 import message_pb2
from antiphon.feed.block import Block
from antiphon.feed.header import Entry
from antiphon.halo.acts.act import Act
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochEndorsement, EpochGenesis, Policy, Role
from antiphon.halo.finality.voting import attestation, may_attest, may_declare, proposal
from antiphon.halo.member.genesis_checks import scrutinise
from antiphon.testing.parties import Actor, Rehearsal


def signed(block: Block) -> bytes:
    assert block.message is not None
    return message_pb2.Message.FromString(block.message).credential.SerializeToString(deterministic=True)


def tell(actor: Actor, block: Block, seen: Sequence[Entry] | None = None) -> Act:
    actor.write_signed(signed(block), seen)
    return actor.machine.acts()[-1]


def without(actor: Actor, *kept: tuple[Actor, int | None]) -> PartyMachine:
    """A machine that has these many blocks of each actor's feed, and knows that the first one's is forked there."""
    machine = PartyMachine(actor.machine.party, actor.machine.genesis_feed)
    for other, count in kept:
        if count is not None:
            machine.end_fork(other.control.key, count)
    for other, count in kept:
        machine.add(other.written[:count])
    return machine


def knowing(actor: Actor, forked: Actor, count: int) -> Actor:
    """The actor, once it knows that another's feed is forked: its entries go no further than the fork."""
    actor.machine.end_fork(forked.control.key, count)
    return actor


# -- votes


def test_a_genesis_told_again_counts_as_the_vote_of_who_signed_it() -> None:
    alice, bob, carol = party("bob", "carol")
    length = len(alice.written)
    genesis = declare(alice)
    bob.hear(alice)
    knowing(bob, alice, length).write(attestation(genesis), seen=carol.machine.entries())
    assert numbers(bob) == [1]
    tell(bob, alice.written[-1])
    other = without(carol, (alice, length), (bob, None), (carol, None))
    assert [epoch.snapshot for epoch in other.epochs().final] == [cid("state")]
    assert other.epochs().votes == bob.machine.epochs().votes


def test_an_attestation_told_again_counts_as_its_signers() -> None:
    alice, bob, carol = party("bob", "carol")
    length = len(bob.written)
    genesis = declare(alice)
    bob.hear(alice)
    bob.write(attestation(genesis))
    meet(alice, bob, carol)
    other = without(carol, (bob, length), (alice, None), (carol, None))
    assert other.epochs().final == (), "Bob's vote stands on a branch that is not here"
    tell(knowing(carol, bob, length), bob.written[-1])
    other.add(carol.written[-1:])
    assert [epoch.snapshot for epoch in other.epochs().final] == [cid("state")]


def test_what_is_told_twice_is_not_said_twice() -> None:
    """If attesters may lie, a second word makes final, and nobody but the attester can say it."""
    actors = alice, bob, carol = party("bob", "carol", liars=True)
    genesis = declare(alice)
    meet(*actors)
    bob.write(attestation(genesis))
    carol.write(attestation(genesis))
    meet(*actors)
    for _ in range(2):
        for block in (alice.written[-1], bob.written[-1]):
            tell(carol, block)
    carol.write(attestation(genesis))
    meet(*actors)
    assert numbers(alice) == []
    (found,) = alice.machine.epochs().open.proposals
    assert found.confirmed == (bytes(carol.device.key),)


def test_a_second_word_told_again_counts_as_the_second() -> None:
    actors = alice, bob, carol = party("bob", "carol", liars=True)
    genesis = declare(alice)
    meet(*actors)
    for _ in range(2):
        for actor in (bob, carol):
            actor.write(attestation(genesis))
    meet(*actors)
    length = len(alice.written)
    alice.write(attestation(genesis))
    bob.hear(alice)
    assert numbers(bob) == [1]
    tell(knowing(bob, alice, length), alice.written[-1])
    other = without(carol, (alice, length), (bob, None), (carol, None))
    assert len(other.epochs().final) == 1


def test_the_same_word_written_twice_is_one_word_wherever_it_stands() -> None:
    """A liar repeats one attestation on a branch of its own feed. Who is told of it can only be told of one word."""
    actors = alice, bob, carol = party("bob", "carol", liars=True)
    genesis = declare(alice)
    meet(*actors)
    for actor in (bob, carol):
        actor.write(attestation(genesis))
    meet(*actors)
    for actor in (alice, bob):
        actor.write(attestation(genesis))
    carol.write_signed(signed(carol.written[-1]))
    meet(*actors)
    for actor in actors:
        assert numbers(actor) == []
    carol.write(attestation(genesis))
    assert numbers(carol) == [1]


def test_a_vote_that_contradicts_what_is_before_it_does_not_count_when_its_feed_is_found_to_be_forked() -> None:
    """Else it counts with one fork and not with the next one, and a final epoch is given up."""
    actors = alice, bob, carol = party("bob", "carol", liars=True)
    genesis = declare(alice)
    meet(*actors)
    for actor in (alice, bob, bob):
        actor.write(attestation(genesis))
    carol.write(EpochEndorsement(1, 1, bytes(bob.device.key)))
    promised = len(carol.written)
    for _ in range(3):
        carol.write(attestation(genesis))
    meet(*actors)
    assert numbers(alice) == []
    for common in range(len(carol.written) - 1, promised - 1, -1):
        assert numbers(knowing(alice, carol, common)) == []
    assert numbers(knowing(alice, carol, promised - 1)) == []


def test_before_a_policy_only_the_first_feed_itself_can_tell_who_decides() -> None:
    """Bob tells a genesis of Alice's to one who has not heard of the policy that she set before it."""
    alice, bob = party("bob", policy=False)
    meet(alice, bob)
    length = len(alice.written)
    alice.write(Policy(attesters=tuple(sorted(bytes(actor.device.key) for actor in (alice, bob)))))
    before = bob.machine.entries()
    claim = genesis_of(bob)
    alice.write(claim)
    bob.write_signed(signed(alice.written[-1]), before)
    other = PartyMachine(bob.machine.party, bob.machine.genesis_feed)
    other.add(alice.written[:length])
    other.add(bob.written)
    assert other.epochs().final == ()
    other.add(alice.written[length:])
    assert other.epochs().final == ()


def test_a_device_that_was_restored_learns_from_others_what_it_has_said() -> None:
    alice, bob, carol, dora, erin = party("bob", "carol", "dora", "erin")
    genesis = declare(alice)
    bob.hear(alice)
    length = len(bob.written)
    bob.write(attestation(genesis))
    carol.hear(alice, bob)
    tell(knowing(carol, bob, length), bob.written[-1])
    machine = without(bob, (bob, length), *((actor, None) for actor in (alice, carol, dora, erin)))
    assert machine.epochs().own(bytes(bob.device.key)).attested


# -- rights


def genesis_of(actor: Actor) -> EpochGenesis:
    control = actor.machine.timeframe()
    heads = actor.machine.control_hash(control)
    return EpochGenesis(0, 1, b"", {}, control, cid("one"), NOW, control_hash=heads)


def generator_party() -> tuple[Rehearsal, Actor, Actor, Actor]:
    """Alice, Carol and Dora attest, Bob only generates; Eve is a reader."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    bob, carol, eve, dora = (rehearsal.actor(name) for name in ("bob", "carol", "eve", "dora"))
    roles = {bob: Role.EPOCH_GENERATOR, carol: Role.EDITOR, eve: Role.READER, dora: Role.EDITOR}
    for actor, role in roles.items():
        alice.admit(actor, role)
        actor.hear(alice)
        actor.join()
        alice.hear(actor)
    attesters = tuple(sorted(bytes(actor.device.key) for actor in (alice, carol, dora)))
    alice.write(Policy(attesters=attesters, generator=bytes(bob.device.key)))
    meet(alice, *roles)
    return rehearsal, alice, bob, eve


def test_a_reader_who_tells_a_genesis_again_does_not_get_it_refused() -> None:
    """Eve's copy has a lower stamp than Bob's own block, so it is the one that is found first."""
    _, alice, bob, eve = generator_party()
    claim = genesis_of(bob)
    seen = bob.machine.entries()
    bob.write(Policy())  # void; his next block has a greater lamport
    bob.write(claim)
    eve.write_signed(signed(bob.written[-1]), seen)
    alice.hear(bob, eve)
    (found,) = alice.machine.epochs().open.proposals
    assert found.act.stamp.feed == eve.control.key, "or this test shows nothing"
    assert scrutinise(alice.machine, found.act, NOW) == ""


def test_an_owner_who_tells_a_genesis_again_lends_its_writer_no_right() -> None:
    _, alice, bob, _ = generator_party()
    alice.narrow(bob)
    bob.hear(alice)
    claim = genesis_of(bob)
    bob.write(claim)
    copy = tell(alice, bob.written[-1])
    assert "has not the role" in scrutinise(alice.machine, copy, NOW)


# -- takeovers


def test_a_proposer_that_lacks_the_genesis_it_must_declare_again_says_so() -> None:
    """Carol's endorsers have attested a genesis that stands on a branch of Bob's feed that she does not hold."""
    _, alice, bob, _ = generator_party()
    length = len(bob.written)
    genesis = declare(bob, "one")
    alice.hear(bob)
    knowing(alice, bob, length).write(attestation(genesis))
    carol = alice._rehearsal.actors[2]
    device = bytes(carol.device.key)
    alice.write(EpochEndorsement(1, 1, device, 0, cid("one")))
    others = [(actor, length if actor is bob else None) for actor in (bob, *alice._rehearsal.actors)]
    carol.machine = without(carol, *others)
    carol.write(EpochEndorsement(1, 1, device))
    chain = carol.machine.epochs()
    assert "is not here" in proposal(chain, device, 1).reason


def test_another_cut_under_the_same_snapshot_keeps_nobody_from_attesting() -> None:
    """Bob, who generates, puts a false cut under the snapshot that Alice has attested: none may be stopped by that."""
    rehearsal, alice, bob, eve = generator_party()
    carol = rehearsal.actors[2]
    genesis = declare(bob, "one")
    alice.hear(bob)
    alice.write(attestation(genesis))
    twin = EpochGenesis(0, 1, b"", {}, eve.machine.timeframe(), cid("one"), NOW - 1)
    eve.hear(bob)
    eve.write(twin, [bob.device])
    carol.hear(alice, bob, eve)
    chain, device = carol.machine.epochs(), bytes(carol.device.key)
    assert len(chain.open.proposals) == 2
    assert may_attest(chain, device, genesis) == ""
    false = next(found for found in chain.open.proposals if found.digest != genesis.digest)
    assert "with another cut" in may_attest(chain, device, false.act)
    for actor in (alice, carol):
        actor.write(EpochEndorsement(1, 1, device, 0, cid("one") if actor is alice else b""))
    carol.hear(alice)
    chain = carol.machine.epochs()
    assert proposal(chain, device, 1) == (cid("one"), "")
    assert isinstance(genesis.claim, EpochGenesis)
    again = replace(genesis.claim, term=1)
    assert may_declare(chain, device, again) == ""
    assert why(carol, genesis) == ""
