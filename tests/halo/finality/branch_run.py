"""Random histories of members that sign several branches of their control feeds, and of honest members that vote.

Each honest actor has a party machine, and the liars' feeds as a store would: a history, and branches that it was given
or asked for by hash. Liars fork, vote twice, copy what others said, and show each branch to whom they like. At the end
all honest actors hear each other, and repeat what others may lack (`fork_reports`): then they agree.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import cast

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import MissingBlocks
from antiphon.core.stamp import Stamp
from antiphon.feed.block import Block
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END
from antiphon.feed.span import Span
from antiphon.halo.acts.act import credential_of
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Claim, EpochAct, EpochEndorsement, EpochGenesis, Policy, Role
from antiphon.halo.finality.epoch_values import FinalEpoch, moved
from antiphon.halo.finality.voting import (
    attestation,
    declared,
    endorsement,
    may_attest,
    may_declare,
    may_endorse,
    proposal,
)
from antiphon.halo.member.fork_reports import publish_forks, untold
from antiphon.halo.member.genesis_checks import scrutinise
from antiphon.halo.member.membership import Membership
from antiphon.testing.parties import Actor, Rehearsal

SNAPSHOTS = [bytes(Cid.of(bytes([number]), DAG_CBOR)) for number in range(2)]
TERMS_MAX = 3


class Reporter:
    """What `fork_reports` asks of a member, for an actor without a store."""

    control = None

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self.machine, self.device, self.party = actor.machine, actor.device, actor.party

    def write_claim(self, claim: Claim) -> Stamp:
        return self._actor.write(claim)


class Witness:
    """An honest actor, and the feeds of the liars as its store has them."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.histories: dict[bytes, list[Block]] = defaultdict(list)
        self.forks: dict[bytes, int] = {}  # liars' feeds → how many blocks are common
        self.final: tuple[FinalEpoch, ...] = ()

    @property
    def machine(self) -> PartyMachine:
        return self.actor.machine

    def end(self, feed: bytes, length: int) -> None:
        """Note a fork."""
        if length < self.forks.get(feed, NO_END):
            self.forks[feed] = length
            self.machine.end_fork(feed, length)

    def take(self, liar: Actor, stop: int) -> None:
        """Receive a branch up to a block: as history if it continues that, else as a branch."""
        feed, branch = bytes(liar.control.key), liar.written[:stop]
        held = self.histories[feed]
        common = common_length(held, branch)
        if common == len(held):
            more = branch[common : max(common, self.forks.get(feed, stop))]
            self.machine.add(more)
            held += more
            common += len(more)
        elif common < len(branch):
            self.end(feed, common)
        for span in spans_of(liar, common, stop):
            self.machine.show(span)


def common_length(one: list[Block], other: list[Block]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine.hash != theirs.hash), min(len(one), len(other)))


def spans_of(liar: Actor, start: int, stop: int) -> list[Span]:
    return [span for span in liar.raw if start <= span.first < stop]


class BranchRun:
    """A party of attesters, some of whom lie; everything in it depends on the seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        honest, liars = self.chance.choice([(3, 1), (3, 1), (5, 2)])
        self.restless = self.chance.choice([0, 0.02, 0.1, 0.3])  # how often an honest member opens another term
        rehearsal = Rehearsal()
        alice = rehearsal.founder("alice")
        actors = [alice, *(rehearsal.actor(f"member {number}") for number in range(1, honest + liars))]
        for actor in actors[1:]:
            alice.admit(actor, Role.OWNER if self.chance.random() < 0.5 else Role.EDITOR)
            actor.hear(alice)
            actor.join()
            alice.hear(actor)
        self.devices = sorted(bytes(actor.device.key) for actor in actors)
        generator = self.chance.choice([*self.devices, b""])
        alice.write(Policy(attesters=tuple(self.devices), generator=generator, liars=True))
        for actor in actors:
            actor.hear(*actors)
        self.witnesses = [Witness(actor) for actor in actors[:honest]]
        self.branches = {bytes(liar.control.key): [liar] for liar in actors[honest:]}
        for witness in self.witnesses:
            for liar in actors[honest:]:
                witness.histories[bytes(liar.control.key)] = list(liar.written)

    def play(self, steps: int) -> int:
        """Let things happen, then let everybody hear everything. Returns how many epochs are final for all."""
        chance = self.chance
        for _ in range(steps):
            kind, witness = chance.random(), chance.choice(self.witnesses)
            if kind < 0.4:
                self.hear(witness, chance.choice(self.witnesses))
            elif kind < 0.7:
                self.vote(witness.actor)
            elif kind < 0.91:
                self.lie(chance.choice(list(self.branches.values())))
            elif kind < 0.93:
                self.publish(witness)
            else:
                liar = chance.choice(chance.choice(list(self.branches.values())))
                witness.take(liar, len(liar.written))
                self.fetch(witness.machine)
            self.check()
        for _ in range(12):
            for witness in self.witnesses:
                for other in self.witnesses:
                    self.hear(witness, other)
            told = sum(self.publish(witness) for witness in self.witnesses)
            self.check()
            if not told:
                return self.agree()
        raise AssertionError("they repeat without end")

    # -- honest members

    def hear(self, witness: Witness, other: Witness) -> None:
        """Receive what another honest member holds, and ask it for what is missing, by hash."""
        machine = witness.machine
        for giver in self.witnesses:
            own = giver.actor.control.key
            machine.add(giver.actor.written[machine.length(own) : other.machine.length(own)])
        for feed, liars in self.branches.items():
            for known in other.forks.items():
                witness.end(*known)
            held = other.histories[feed]
            liar = next(liar for liar in liars if common_length(liar.written, held) == len(held))
            mine = witness.histories[feed]
            common = common_length(mine, held)
            if common < min(len(mine), len(held)):
                witness.end(feed, common)
                other.end(feed, common)
            elif len(held) > common:
                witness.take(liar, min(len(held), max(common, witness.forks.get(feed, NO_END))))
        self.fetch(machine, witness)

    def fetch(self, machine: PartyMachine, witness: Witness | None = None) -> None:
        """Get the blocks of liars that are missing for what waits."""
        places = {
            block.hash: (liar, at)
            for liars in self.branches.values()
            for liar in liars
            for at, block in enumerate(liar.written)
        }
        asked: set[bytes] = set()
        while wanted := [entry for entry in machine.wanted() if entry.hash in places and entry.hash not in asked]:
            for entry in wanted:
                asked.add(entry.hash)
                liar, at = places[entry.hash]
                if witness is not None:
                    witness.take(liar, at + 1)
                else:
                    for span in spans_of(liar, 0, at + 1):
                        machine.show(span)

    def vote(self, actor: Actor) -> None:
        """Attest, declare or endorse, as an honest device may."""
        chain, device = actor.machine.epochs(), bytes(actor.device.key)
        proposals = list(chain.open.proposals)
        self.chance.shuffle(proposals)
        with suppress(MissingBlocks):
            for found in proposals:
                if not may_attest(chain, device, found.act) and not scrutinise(actor.machine, found.act, 10):
                    actor.write(attestation(found.act))
                    return
            for term in range(TERMS_MAX, -1, -1):
                demand = proposal(chain, device, term)
                if demand.reason or (not term and self.chance.random() < 0.3):
                    continue
                claim = self.genesis(actor, term, demand.snapshot or self.chance.choice(SNAPSHOTS))
                if not may_declare(chain, device, claim):
                    actor.write(moved(claim, chain.last))
                    return
        if self.chance.random() < self.restless:
            opened = [found.claim.term for found in chain.open.endorsements if found.claim.term <= TERMS_MAX]
            term = max([1, chain.own(device).promised + 1, *opened])
            candidate = self.devices[(chain.open.number + term) % len(self.devices)]
            if term <= TERMS_MAX and not may_endorse(chain, device, term, candidate):
                actor.write(endorsement(chain, device, term, candidate))

    def genesis(self, actor: Actor, term: int, snapshot: bytes) -> EpochGenesis:
        chain, control = actor.machine.epochs(), actor.machine.timeframe()
        again = declared(chain, snapshot)
        if again is not None and term:
            return replace(again, term=term)
        previous = chain.last.snapshot if chain.last is not None else b""
        hash_ = actor.machine.control_hash(control)
        return EpochGenesis(term, chain.open.number, previous, {}, control, snapshot, 5, control_hash=hash_)

    def publish(self, witness: Witness) -> int:
        """Publish evidence, and repeat what others may lack; returns how much was written."""
        member = cast(Membership, Reporter(witness.actor))
        told = publish_forks(member, self.evidence(witness))
        words = untold(member)
        for word in words:
            witness.actor.write_batch(word)
        return len(told) + len(words)

    def evidence(self, witness: Witness) -> Iterable[Fork]:
        for feed, common in witness.forks.items():
            parted = [liar for liar in self.branches[feed] if len(liar.written) > common]
            spans = {liar.raw[common].hash_at(common): liar.raw[common] for liar in parted}
            beginnings = defaultdict(list)
            for span in spans.values():
                beginnings[span.previous].append(span)
            for one, other, *_ in (found for found in beginnings.values() if len(found) > 1):
                yield Fork.between(one, other)
                break

    # -- liars

    def lie(self, branches: list[Actor]) -> None:
        """Let a liar fork, hear what an honest member has, or say something on one of its branches."""
        chance, liar, kind = self.chance, self.chance.choice(branches), self.chance.random()
        if kind < 0.2 and len(branches) < 4:
            twin = liar.fork()
            for entry in liar.machine.entries():
                self.inform(twin, entry.feed, entry.seq + 1)
            self.fetch(twin.machine)
            branches.append(twin)
        elif kind < 0.45:
            for witness in self.witnesses:
                feed = witness.actor.control.key
                self.inform(liar, feed, chance.choice(self.witnesses).machine.length(feed))
            self.fetch(liar.machine)
        else:
            with suppress(MissingBlocks):
                self.say(liar, (kind - 0.45) / 0.55)

    def inform(self, liar: Actor, feed: bytes, upto: int) -> None:
        for witness in self.witnesses:
            if witness.actor.control.key == feed:
                liar.machine.add(witness.actor.written[liar.machine.length(feed) : upto])

    def say(self, liar: Actor, kind: float) -> None:
        """Write a vote, a copy, a policy or a genesis, allowed or not."""
        chance, machine = self.chance, liar.machine
        acts = [act for act in machine.acts() if isinstance(act.claim, EpochAct)]
        geneses = [act for act in acts if isinstance(act.claim, EpochGenesis)]
        term = chance.randrange(TERMS_MAX)
        if kind < 0.45 and geneses:
            liar.write(attestation(chance.choice(geneses)))
        elif kind < 0.6 and acts:
            liar.write_signed(credential_of(machine.block(chance.choice(acts))))
        elif kind < 0.72:
            accepted = chance.choice([*SNAPSHOTS, b""])
            candidate = chance.choice(self.devices)
            liar.write(EpochEndorsement(machine.epochs().open.number, term + 1, candidate, term, accepted))
        elif kind < 0.82:
            liar.write(Policy(attesters=tuple(self.devices), liars=True, epoch_age_ms=chance.randrange(3)))
        else:
            liar.write(self.genesis(liar, term, chance.choice(SNAPSHOTS)))

    # -- laws

    def check(self) -> None:
        """No honest member sees two final epochs of a number, or gives up one."""
        for witness in self.witnesses:
            chain = witness.machine.epochs()
            assert not chain.conflict, chain.conflict
            assert chain.final[: len(witness.final)] == witness.final, "a final epoch was given up"
            witness.final = tuple(chain.final)

    def agree(self) -> int:
        """All honest members have one history and one state, and nothing of theirs waits."""
        assert [found for witness in self.witnesses for found in witness.machine.waiting()] == []
        assert len({tuple(epoch.genesis for epoch in witness.final) for witness in self.witnesses}) == 1
        assert len({witness.machine.state().digest for witness in self.witnesses}) == 1
        return len(self.witnesses[0].final)
