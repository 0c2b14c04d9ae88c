"""Whatever is said about epochs, by whomever, and in whichever order it arrives: peers with the same acts agree.

And what was final before some act came is final after it, as long as no attester lies.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import credential_of
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import (
    EpochAct,
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    Erasure,
    Policy,
    Position,
    Role,
)
from antiphon.halo.finality.voting import attestation, endorsement, may_attest, may_declare, may_endorse, proposal
from antiphon.testing.parties import Actor, Rehearsal

pytestmark = pytest.mark.slow

CIDS = [bytes(Cid.of(bytes([at]), DAG_CBOR)) for at in range(3)]
STEPS = st.lists(st.tuples(*(st.integers(0, 1_000_000) for _ in range(4))), min_size=5, max_size=budget(25, 60))


class Script:
    """Plays numbers as what three devices do: a founder, two owners; honest ones keep the rules of voting."""

    def __init__(self, *, honest: bool) -> None:
        self.honest = honest
        self.rehearsal = Rehearsal()
        alice = self.rehearsal.founder("alice")
        self.actors = [alice, *(self.rehearsal.actor(name) for name in ("bob", "carol"))]
        for actor in self.actors[1:]:
            alice.admit(actor, Role.OWNER)
            actor.hear(alice)
            actor.join()
            alice.hear(actor)
        self.devices = sorted(bytes(actor.device.key) for actor in self.actors)
        alice.write(Policy(attesters=tuple(self.devices), generator=bytes(alice.device.key)))
        for actor in self.actors:
            actor.hear(alice)

    def play(self, steps: list[tuple[int, int, int, int]]) -> None:
        for action, who, other, number in steps:
            actor = self.actors[who % 3]
            kind = action % 10
            if kind < 3:
                actor.hear(self.actors[other % 3])
            elif kind == 9:
                self.meddle(actor, other, number)
            elif self.honest:
                self.vote(actor, kind, other, number)
            else:
                self.lie(actor, kind, other, number)

    def vote(self, actor: Actor, kind: int, other: int, number: int) -> None:
        chain, device = actor.machine.epochs(), bytes(actor.device.key)
        if kind < 5:
            for found in chain.open.proposals:
                if not may_attest(chain, device, found.act):
                    actor.write(attestation(found.act))
                    return
        elif kind < 7:
            term, candidate = 1 + number % 3, self.devices[other % 3]
            if not may_endorse(chain, device, term, candidate):
                actor.write(endorsement(chain, device, term, candidate))
        else:
            term = 0 if device == chain.open.config.generator else 1 + number % 3
            claim = self.genesis(actor, term, proposal(chain, device, term).snapshot or CIDS[other % 3])
            if not may_declare(chain, device, claim):
                actor.write(claim)

    def genesis(self, actor: Actor, term: int, snapshot: bytes) -> EpochGenesis:
        chain = actor.machine.epochs()
        for found in chain.open.proposals:
            if found.genesis.snapshot == snapshot and not found.reason:
                again = found.genesis
                return EpochGenesis(
                    term, again.number, again.previous, again.cut, again.control, snapshot, again.created_ms
                )
        last = chain.last
        control = actor.machine.timeframe()
        return EpochGenesis(term, chain.open.number, last.snapshot if last else b"", {}, control, snapshot, 5)

    def lie(self, actor: Actor, kind: int, other: int, number: int) -> None:
        acts = [act for act in actor.machine.acts() if isinstance(act.claim, EpochGenesis)]
        term, epoch = number % 3, 1 + number // 3 % 2
        if kind < 5 and acts:
            actor.write(attestation(acts[other % len(acts)]))
        elif kind < 6:
            actor.write(EpochAttestation(term, epoch, CIDS[other % 3], bytes(32)))
        elif kind < 7:
            actor.write(EpochEndorsement(epoch, term + 1, self.devices[other % 3], term, CIDS[number % 3]))
        else:
            control = actor.machine.timeframe() if other % 2 else Timeframe()
            previous = CIDS[number % 3] if epoch > 1 else b""
            actor.write(EpochGenesis(term, epoch, previous, {}, control, CIDS[other % 3], number % 5))

    def meddle(self, actor: Actor, other: int, number: int) -> None:
        said = [act for act in actor.machine.acts() if isinstance(act.claim, EpochAct)]
        if said and number % 4:
            actor.write_signed(credential_of(actor.machine.block(said[other % len(said)])))
        elif number % 3 == 0:
            actor.narrow(self.actors[other % 3], cuts={})
        elif number % 3 == 1:
            devices = tuple(self.devices[: 1 + other % 3])
            actor.write(Policy(attesters=devices, liars=bool(number % 2)))
        else:
            actor.write(Erasure((Position(bytes(self.actors[other % 3].control.key), 1),)))


def check_arrival(script: Script, order: st.DataObject) -> None:
    """Hand everything to a new machine in some order, and compare with one that got it feed by feed."""
    left = {feed: list(blocks) for feed, blocks in script.rehearsal.blocks().items()}
    plain = PartyMachine(script.rehearsal.party.key, script.rehearsal.genesis_feed)
    for blocks in left.values():
        plain.add(blocks)
    machine = PartyMachine(script.rehearsal.party.key, script.rehearsal.genesis_feed)
    before = machine.epochs().final
    while left:
        feed = order.draw(st.sampled_from(sorted(left)))
        count = order.draw(st.integers(1, len(left[feed])))
        machine.add(left[feed][:count])
        del left[feed][:count]
        if not left[feed]:
            del left[feed]
        chain = machine.epochs()
        if script.honest:
            assert chain.conflict == ""
            assert chain.final[: len(before)] == before
        before = chain.final
    assert machine.epochs() == plain.epochs()
    assert machine.state() == plain.state()
    assert machine.state().digest == plain.state().digest


@settings(max_examples=budget(60, 600), deadline=None)
@given(STEPS, st.data())
def test_honest_attesters_agree_in_any_order_of_arrival_and_nothing_final_moves(
    steps: list[tuple[int, int, int, int]], order: st.DataObject
) -> None:
    script = Script(honest=True)
    script.play(steps)
    check_arrival(script, order)


@settings(max_examples=budget(60, 600), deadline=None)
@given(STEPS, st.data())
def test_whatever_is_written_peers_with_the_same_acts_agree(
    steps: list[tuple[int, int, int, int]], order: st.DataObject
) -> None:
    script = Script(honest=False)
    script.play(steps)
    check_arrival(script, order)
