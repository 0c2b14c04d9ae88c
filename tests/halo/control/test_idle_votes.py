"""Votes that count for nobody are set aside. They are found again when an attester of their number has signed them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from tests.attacks.work import calls
from tests.budget import budget
from tests.halo.control.test_checkpoints import (
    ForkedHostile,
    Hostile,
    answers,
    check_answers,
    check_forked_answers,
    checkpoints_of,
    declare,
    setting_aside,
)
from tests.halo.test_convergence import Script, Step, shuffled

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.keys import KeyPair
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Entry
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    Policy,
)
from antiphon.testing.parties import Actor, pair_of

Vote = EpochAttestation | EpochEndorsement | EpochRefusal


class Voters(Hostile):
    """The same, and everybody votes: attesters and others, by themselves, for each other, too early, or expired.

    Who the attesters of the first epoch are is found out late, and changes with the epochs.
    """

    def play(self, step: Step) -> None:
        actor = self.actors[step.actor % len(self.actors)]
        if step.action % 3 or not actor.written:
            super().play(step)
        elif step.number % 8 == 0:
            alice = self.actors[0]
            alice.hear(*self.actors)
            some = sorted({bytes(one.device.key) for one in self.actors[step.other % 3 :: 1 + step.other % 2]})
            alice.write(Policy(attesters=tuple(some), liars=step.number % 3 == 0))
        else:
            if step.number % 3:
                actor.hear(*self.actors)
            for number in range(1 + step.other % 4):
                vote(actor, self.actors[(step.other + number) % len(self.actors)], step.number + number)


class ForkedVoters(ForkedHostile, Voters):
    """The same, until Bob signs two histories; then those of one half vote on its epochs."""

    def apart(self, step: Step) -> None:
        super().apart(step)
        actor = self.actors[step.other % len(self.actors)]
        if step.action % 2 and actor.written and actor is not self.one:
            vote(actor, self.actors[step.actor % len(self.actors)], step.number)


def vote(actor: Actor, other: Actor, number: int) -> None:
    """Vote on a proposal, or on what nobody has declared; with one's own key, or those of others."""
    opened = actor.machine.epochs().open
    about = opened.number + (0, 0, 0, 1, 2)[number % 5]
    claim: Vote = attestation(about, number % 2)
    if number % 3 and opened.proposals:
        found = opened.proposals[number % len(opened.proposals)]
        claim = EpochAttestation(found.genesis.term, found.genesis.number, found.genesis.snapshot, found.digest)
    if number % 4 == 2:
        told = claim if isinstance(claim, EpochAttestation) and number % 5 else attestation(about, number % 2)
        if number % 16 == 6:  # what was refused is declared, by anybody
            actor.write(EpochGenesis(told.term, told.number, b"", {}, Timeframe(), told.snapshot, 5))
        elif number % 16 == 14:  # or in the name of somebody else, with the content of another
            said = EpochGenesis(told.term, told.number, b"", {}, Timeframe(), told.snapshot, 5)
            known = [found.genesis for found in opened.proposals]
            copied(actor, replace(known[0], created_ms=number) if known else said, [other.device])
        claim = EpochRefusal(told.term, told.number, told.snapshot, reason=str(number))
    elif number % 4 == 1 and not (number % 3 and opened.proposals):
        claim = EpochEndorsement(about, 1 + number % 2, other.device.key)
    if number % 7 < 4:
        actor.write(claim, [other.device] if number % 7 == 3 else [], expires_ms=int(number % 11 == 0))
    else:
        copied(actor, claim, [other.device] if number % 7 < 6 else [other.device, pair_of("nobody")])


def copied(
    actor: Actor,
    claim: Vote | EpochGenesis,
    pairs: Sequence[KeyPair],
    seen: Sequence[Entry] | None = None,
) -> None:
    """Write what others have signed."""
    actor.write_signed(credential.sign(actor.party, claim, pairs, nonce=len(actor.written).to_bytes(12, "big")), seen)


def attestation(number: int, choice: int = 0) -> EpochAttestation:
    return EpochAttestation(0, number, bytes(Cid.of(choice.to_bytes(4, "big"), DAG_CBOR)), bytes(32))


def genesis(script: Script, choice: int) -> EpochGenesis:
    """A genesis that declares what somebody else might have declared: only its snapshot is another."""
    alice = script.actors[0]
    control = Timeframe({alice.control.key: 0})
    control_hash = alice.machine.control_hash(control)
    return EpochGenesis(0, 1, b"", {}, control, attestation(1, choice).snapshot, 5, control_hash=control_hash)


def refusal(number: int, choice: int = 0, reason: str = "") -> EpochRefusal:
    return EpochRefusal(0, number, attestation(number, choice).snapshot, reason=reason)


@pytest.mark.slow
@settings(max_examples=budget(40, 2000), deadline=None)
@given(st.integers(0, 2**32))
def test_votes_that_are_set_aside_change_no_answer(seed: int) -> None:
    check_answers(Voters, seed)


@pytest.mark.slow
@settings(max_examples=budget(20, 1000), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_forks_find_votes_that_were_set_aside(seed: int, small: bool) -> None:
    check_forked_answers(ForkedVoters, seed, small=small)


def aside(script: Script) -> PartyMachine:
    """A machine that has received everything, and has set aside what gives nobody anything."""
    machine = setting_aside(script, script.rehearsal.blocks())
    for blocks in script.rehearsal.blocks().values():
        machine.add(blocks)
    machine.set_aside(1)
    return machine


def plain(script: Script) -> PartyMachine:
    return script.rehearsal.machine(shuffled(script.rehearsal, random.Random(1)))


def work_of_voting(count: int) -> tuple[int, int]:
    """Return the work of opening a party with idle votes, and that of a policy."""
    script = Script()
    alice, bob, dave = script.actors[0], script.actors[1], script.actors[3]
    alice.hear(*script.actors)
    for number in range(count):
        dave.write(attestation(1 + number % 3, number))
        copied(dave, attestation(1, number), [bob.device, pair_of("nobody")])
        dave.write(refusal(1 + number % 3, number))
        dave.write(refusal(1, 0))
        dave.write(genesis(script, number))
        copied(dave, genesis(script, number), [pair_of("nobody")])
    machine = aside(script)
    assert machine.checkpoints.count == 6 * count
    saved, feeds = checkpoints_of(machine), script.rehearsal.blocks()
    resumed: list[PartyMachine] = []
    opening = calls(lambda: resumed.append(setting_aside(script, feeds, saved)))
    alice.write(Policy(attesters=(alice.device.key,)))
    resumed[0].add(alice.written[-1:])
    later = calls(resumed[0].epochs)
    assert resumed[0].checkpoints.count == 6 * count
    return opening, later


def test_a_later_policy_and_a_later_opening_do_nothing_for_votes_of_no_attester() -> None:
    """Each was read and counted again: 10 MB of them took 182 times as long to open, and 261 times for a policy."""
    few, many = work_of_voting(100), work_of_voting(200)
    assert many[0] <= few[0] + 50
    assert many[1] <= few[1] + 50


@pytest.mark.parametrize("copies", [False, True])
def test_a_vote_counts_when_the_founder_names_its_signer_an_attester_later(copies: bool) -> None:
    """The first policy fixes who decides on the first epoch; votes that are older count, too."""
    script = Script()
    alice, bob, dave = script.actors[0], script.actors[1], script.actors[3]
    alice.write(Policy(attesters=tuple(sorted((alice.device.key, bob.device.key)))))
    first = alice.written[-1]
    alice.hear(*script.actors)
    declare(alice)
    dave.hear(alice)
    [proposal] = alice.machine.epochs().open.proposals
    claim = EpochAttestation(0, 1, proposal.genesis.snapshot, proposal.digest)
    if copies:
        copied(dave, claim, [pair_of("nobody"), bob.device], seen=[])
    else:
        bob.write(claim, seen=[])
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for feed, blocks in feeds.items():
        machine.add(blocks[: first.seq] if feed == alice.control.key else blocks)
    machine.set_aside(1)
    assert machine.checkpoints.count == 1
    machine.add(alice.written[first.seq :])
    assert len(machine.epochs().final) == 1
    assert answers(script, machine) == answers(script, plain(script))


@pytest.mark.parametrize("copied_by_another", [False, True])
def test_a_genesis_counts_when_the_founder_names_its_signer_an_attester_later(copied_by_another: bool) -> None:
    """Those of others, with the same control hash, stay aside: nobody asks them which branch an epoch rests on."""
    script = Script()
    alice, bob, dave = script.actors[0], script.actors[1], script.actors[3]
    alice.write(Policy(attesters=(bob.device.key,)))
    first = alice.written[-1]
    alice.hear(*script.actors)
    for number in range(3):
        dave.write(genesis(script, number))
    if copied_by_another:
        copied(dave, genesis(script, 0), [pair_of("nobody"), bob.device])
    else:
        bob.write(genesis(script, 0))
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for feed, blocks in feeds.items():
        machine.add(blocks[: first.seq] if feed == alice.control.key else blocks)
    machine.set_aside(1)
    assert (machine.checkpoints.count, machine.epochs().open.proposals) == (4, ())
    machine.add(alice.written[first.seq :])
    assert len(machine.epochs().final) == 1
    assert machine.checkpoints.count == 4
    assert sum(isinstance(act.claim, EpochGenesis) for act in machine.acts()) == 1
    assert answers(script, machine) == answers(script, plain(script))


def test_early_votes_wait_until_their_number_opens() -> None:
    script = Script()
    alice, bob = script.actors[:2]
    alice.write(Policy(attesters=(alice.device.key,)))
    alice.hear(*script.actors)
    declare(alice)
    alice.write(Policy(attesters=(bob.device.key,)))
    bob.hear(alice)
    bob.write(attestation(3))
    bob.write(attestation(4))
    machine = aside(script)
    assert (len(machine.epochs().final), machine.checkpoints.count) == (1, 2)
    alice.hear(*script.actors)
    declare(alice)
    machine.add(alice.written[machine.length(alice.control.key) :])
    assert (len(machine.epochs().final), machine.epochs().open.number) == (2, 3)
    assert machine.epochs().ballot.attested, "it was read again"
    assert answers(script, machine) == answers(script, plain(script))


def test_a_vote_that_may_count_stays() -> None:
    script = Script()
    alice, bob, dave = script.actors[0], script.actors[1], script.actors[3]
    alice.write(Policy(attesters=(alice.device.key, bob.device.key)))
    for number in range(3):
        bob.write(attestation(1, number))
        copied(dave, attestation(1, number), [bob.device])
    bob.write(EpochEndorsement(1, 1, dave.device.key))
    dave.write(EpochEndorsement(1, 1, dave.device.key))
    copied(dave, EpochEndorsement(1, 1, dave.device.key), [bob.device])
    assert aside(script).checkpoints.count == 2


@pytest.mark.parametrize("shared", [slice(3), slice(24, None)])
def test_a_key_that_begins_or_ends_like_that_of_an_attester_wakes_nothing(shared: slice) -> None:
    """Columns had 3 bytes of each key, which can be found: 1 MB of such votes took 5 times as long to open."""
    script = Script()
    alice, dave = script.actors[0], script.actors[3]
    like = bytearray(reversed(pair_of("nobody").key))
    like[shared] = pair_of("nobody").key[shared]
    alice.write(Policy(attesters=tuple(sorted((alice.device.key, bytes(like))))))
    dave.hear(alice)
    for number in range(3):
        copied(dave, attestation(1, number), [pair_of("nobody")])
    machine = aside(script)
    assert machine.checkpoints.count == 3
    machine.add([])
    assert machine.epochs().reasons == {}
    assert not any(isinstance(act.claim, EpochAttestation) for act in machine.acts()), "none was read again"


def test_a_refusal_is_told_once_what_it_refuses_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that came before it is found again, the first of each feed; nobody asks for the others."""
    monkeypatch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
    script = Script()
    alice, bob, dave = script.actors[0], script.actors[1], script.actors[3]
    for number in range(3):
        dave.write(refusal(1, 7, str(number)))
        bob.write(refusal(1, number))
    copied(dave, refusal(1, 7), [bob.device])
    feeds = {feed: tuple(blocks) for feed, blocks in script.rehearsal.blocks().items()}
    machine = setting_aside(script, feeds)
    for blocks in feeds.values():
        machine.add(blocks)
    machine.set_aside(1)
    assert (machine.checkpoints.count, machine.epochs().refusals) == (7, ())
    saved = checkpoints_of(machine)
    dave.write(refusal(1, 7, "again"))
    alice.write(EpochGenesis(0, 1, b"", {}, Timeframe(), refusal(1, 7).snapshot, 5), [bob.device])
    for known in (machine, setting_aside(script, script.rehearsal.blocks(), saved)):
        known.add(dave.written[known.length(dave.control.key) :])
        known.set_aside(1)
        known.add(alice.written[known.length(alice.control.key) :])
        [told] = known.epochs().refusals
        assert (told.device, told.claim.reason) == (dave.device.key, "0")
        assert answers(script, known) == answers(script, plain(script))
        assert sum(isinstance(act.claim, EpochRefusal) for act in known.acts()) == 1
