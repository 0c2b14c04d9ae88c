"""Law: a machine that leaves settled branches in its store gives every answer as one that has read all blocks.

Bob signs several histories of his control feed; others have seen blocks of each. Some blocks wait for ever, or until
late. A peer takes everything from a real store, in any order, and is restarted at any time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings, strategies as st
from tests.budget import budget
from tests.halo.control.test_checkpoints import LIMITS, answers, random_steps
from tests.halo.control.test_idle_votes import ForkedVoters, attestation

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import BrokenChain, Equivocation, MissingBlocks, RefusedBlocks
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.causal_delivery import Standing
from antiphon.feed.encoder import Draft
from antiphon.feed.fork import Fork
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    Equivocated,
    FeedKind,
    MemberAdmission,
    Policy,
    Role,
)
from antiphon.testing.parties import Actor, pair_of
from antiphon.testing.spans import SpanWriter

SNAPSHOT = bytes(Cid.of(b"state", DAG_CBOR))


class Pen:
    """Signs a further history of an actor's control feed, from one of its heads on."""

    def __init__(self, actor: Actor, spans: Sequence[Span], seed: int) -> None:
        self.actor = actor
        self.raw = list(spans)
        self._writer = SpanWriter(actor.control, actor.party, seed)
        last = self.raw[-1].block(self.raw[-1].count - 1)
        self._writer.record = self._writer.record.extended(
            last.seq + 1, last.hash, last.lamport, self.raw[-1].signature
        )

    def write(self, signed: Sequence[bytes], seen: Sequence[Entry]) -> None:
        drafts = [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(word)) for word in signed]
        self.raw += self._writer.extend(drafts, atomic=len(signed) > 1, seen=seen)

    def sign(self, claim: Claim, size: int = 0) -> list[bytes]:
        """Return credentials of the device, whether or not it has the right."""
        nonce = len(self.raw).to_bytes(12, "big")
        return credential.sign_all(self.actor.party, claim, [self.actor.device], nonce=nonce, size=size)


class ManyBranches(ForkedVoters):
    """The same, and Bob and others sign further histories; some of their blocks have seen other branches."""

    def __init__(self) -> None:
        super().__init__()
        self.pens: list[Pen] = []

    def fork_often(self, chance: random.Random) -> None:
        for number in range(chance.randrange(1, 7)):
            known: list[Actor | Pen] = [actor for actor in (*self.actors[1:], self.two) if actor.written]
            source = chance.choice([*known, *self.pens])
            actor = source.actor if isinstance(source, Pen) else source
            stop = len(source.raw) if chance.random() < 0.4 else chance.randrange(1, len(source.raw) + 1)
            pen = Pen(actor, source.raw[:stop], number)
            self.pens.append(pen)
            for _ in range(chance.randrange(1, 6)):
                self._write(pen, chance)

    def _write(self, pen: Pen, chance: random.Random) -> None:
        others = [raw for raw in self._raw() if raw and raw[0].feed != pen.raw[0].feed]
        seen: list[Entry] = []
        if chance.random() < 0.4:  # a block of somebody else, of whichever branch
            span = chance.choice(chance.choice(others))
            seen = [span.block(span.count - 1).entry]
        elif chance.random() < 0.2:
            seen = [Entry(chance.choice(others)[0].feed, 50, 60, bytes([chance.randrange(1, 4)]) * 32)]  # nobody's
        what, number = chance.randrange(14), chance.randrange(1000)
        if what == 0:
            signed = pen.sign(Policy(keep_epochs=number % 9))
        elif what == 1:
            signed = [pen.actor.admission(FeedKind.DATA, pair_of(f"branch data {number % 7}"))[1]]
        elif what == 2:
            signed = [b"", pen.actor.word, b""][: 1 + number % 3]
        elif what == 3:
            signed = pen.sign(Policy(tightens=True, cuts={span.feed: 1 for span in pen.raw[:1]}), number % 2)
        elif what == 4:
            signed = pen.sign(EpochRefusal(0, 1, SNAPSHOT, reason="no"))
        elif what == 5 and (forks := self._forks()):
            fork = forks[number % len(forks)]
            signed = pen.sign(Equivocated(fork.feed, fork.seq, fork.encode()))
        elif what > 9:
            signed = self._vote(pen, number)
        else:
            stranger = self.strangers[number % len(self.strangers)].identity.key
            named = stranger if number % 2 else pair_of(f"named {number % 20}").key
            signed = pen.sign(MemberAdmission(bytes(named), frozenset({Role.READER})))
        pen.write(signed, seen)

    def _vote(self, pen: Pen, number: int) -> list[bytes]:
        """Return a vote or genesis of the device, or one that others have signed."""
        told, other = attestation(1 + number % 2, number % 3), self.actors[number % len(self.actors)]
        claim: Claim = told
        if number % 5 == 0:
            claim = EpochGenesis(told.term, told.number, b"", {}, Timeframe(), told.snapshot, 5)
        elif number % 5 == 1:
            claim = EpochEndorsement(told.number, 1, other.device.key)
        elif number % 5 == 2:
            claim = EpochRefusal(told.term, told.number, told.snapshot, reason=str(number))
        if number % 7 < 4:
            return pen.sign(claim)
        pairs = [other.device, pair_of("nobody")][: 1 + number % 2]
        return [credential.sign(pen.actor.party, claim, pairs, nonce=number.to_bytes(12, "big"))]

    def spans(self) -> list[Span]:
        """Return all spans of all histories, each once."""
        spans = [span for raw in (*self._raw(), *(stranger.raw for stranger in self.strangers)) for span in raw]
        return list({(span.feed, span.hash_at(span.end - 1)): span for span in spans}.values())

    def _forks(self) -> list[Fork]:
        """Return evidence of forks, at whichever places."""
        found, known = [], dict[tuple[bytes, int, bytes], Span]()
        for span in self.spans():
            other = known.setdefault((span.feed, span.first, span.previous), span)
            if other.hash_at(span.first) != span.hash_at(span.first):
                found.append(Fork.between(other, span))
        return found

    def _raw(self) -> list[list[Span]]:
        return [*(actor.raw for actor in (*self.actors, self.two)), *(pen.raw for pen in self.pens)]


class Peer:
    """A peer with a store and a file of checkpoints in memory."""

    def __init__(self, script: ManyBranches, folder: Path) -> None:
        self._script = script
        self.store = FeedStore.open(folder, durable=False)
        self.saved = b""
        self.machine = self.fresh()

    def fresh(self) -> PartyMachine:
        return PartyMachine(self._script.rehearsal.party.key, self._script.rehearsal.genesis_feed)

    def take(self, span: Span) -> None:
        """Take a span as a session does."""
        try:
            self.store.ingest(span)
        except Equivocation:  # it is kept
            pass
        except MissingBlocks:
            if len(span.hashes) and span.hashes[0] % 3 == 0:  # else it comes again
                self.store.ingest_branch([span])
        except (BrokenChain, RefusedBlocks):
            self.store.ingest_branch([span])

    def look(self) -> None:
        fold_control_feeds(self.machine, self.store)
        self.machine.checkpoints.withdraw()

    def restart(self) -> None:
        lanes = self.machine.checkpoints.collect()
        if lanes is not None:
            self.saved = encode_checkpoints(self.machine.party, lanes)
        self.machine = self.fresh()
        saved = decode_checkpoints(self.machine.party, self.saved) if self.saved else {}
        self.machine.checkpoints.offer(saved, self.blocks, self.store)
        self.look()

    def blocks(self, feed: bytes, start: int, stop: int) -> Sequence[Block]:
        return [block for span in self.store.held(feed, start, stop) for block in span.blocks(0, span.count)]

    def wanted(self) -> list[object]:
        """Return the answers of a machine that reads everything anew."""
        machine = self.fresh()
        fold_control_feeds(machine, self.store)
        return everything(self._script, machine)


def everything(script: ManyBranches, machine: PartyMachine) -> list[object]:
    """Return every kind of answer, and last the acts of all branches, for which settled ones are read again."""
    *others, _ = answers(script, machine)
    named = [block.entry for span in script.spans() for block in span.blocks(0, span.count)]
    standing = [machine.standing(entry) for entry in named]
    waiting = [entry for entry, found in zip(named, standing, strict=True) if found is Standing.WAITING]
    obstacles = [machine.obstacle(entry) for entry in waiting]
    wanted = sorted(machine.wanted())
    strays = {
        act.hash: (
            act.stamp,
            act.claim,
            act.problem,
            dict(act.place.seen),
            None if act.after is None else act.after.hash,
        )
        for entry in named
        for act in machine.strays_at(entry.feed, entry.seq)
    }
    acts = sorted(act.hash for act in (*machine.acts(), *machine.checkpoints.aside()))
    return [*others, standing, obstacles, wanted, strays, acts, machine.act_count]


def scripted(seed: int) -> tuple[ManyBranches, random.Random]:
    chance, script = random.Random(seed), ManyBranches()
    for step in random_steps(chance, 12):
        script.play(step)
    script.part()
    for step in random_steps(chance, 15):
        script.apart(step)
    script.fork_often(chance)
    return script, chance


def arrivals(spans: Sequence[Span], chance: random.Random) -> Iterator[Span]:
    """Yield spans about in the order of their places, and then all again: a history that lacks blocks asks for them."""
    yield from sorted(spans, key=lambda span: (span.first + chance.randrange(4), chance.random()))
    yield from sorted(spans, key=lambda span: (span.first, chance.random()))


def play(seed: int, folder: Path) -> int:
    """Run a history with restarts. Return how many settled blocks there were at restarts, in all."""
    script, chance = scripted(seed)
    peer, count = Peer(script, folder), 0
    rate = chance.choice([0.05, 0.2])
    with peer.store:
        for span in arrivals(script.spans(), chance):
            peer.take(span)
            if chance.random() < 0.3:
                peer.look()
            if chance.random() < 0.1:
                peer.machine.set_aside(1)
            if chance.random() < rate:
                peer.look()
                peer.restart()
                count += sum(1 for _ in peer.machine.settled.stamps())
                if chance.random() < 0.3:
                    assert everything(script, peer.machine) == peer.wanted()
        peer.look()
        wanted = peer.wanted()
        for _ in range(2):
            peer.restart()
            count += sum(1 for _ in peer.machine.settled.stamps())
        assert answers(script, peer.machine)[:-1] == wanted[: len(answers(script, peer.machine)) - 1]
        peer.restart()
        assert everything(script, peer.machine) == wanted
        peer.restart()
        assert everything(script, peer.machine) == wanted
    return count


@pytest.mark.slow
@settings(max_examples=budget(25, 2000), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
@example(524288, True)  # a history was cut further back after its branches were settled
@example(1971706763, True)  # a feed waited with a block that its history had lost to a fork
@example(938, False)  # a verdict that was saved outlived an act that sorts before it
def test_what_is_settled_changes_no_answer(seed: int, small: bool) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
        for name in LIMITS if small else ():
            patch.setattr(f"antiphon.halo.rights.budgets.{name}", 2)
        assert play(seed, Path(folder)) >= 0
