"""Elections in miniature: what devices have said about epochs, as short words, turned into acts for the real code.

A history holds each feed's words; a word names what its writer must have heard to say it. What a device may say next is
asked of `voting`, on the chain that `fold_epochs` makes of what it has heard: nothing of the protocol is rebuilt here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.credentials.claims import (
    Claim,
    EpochEndorsement,
    EpochGenesis,
    FeedAdmission,
    FeedKind,
    PartyGenesis,
    Policy,
)
from antiphon.halo.finality import voting
from antiphon.halo.finality.epoch_chain import EpochChain, fold_epochs
from antiphon.halo.finality.epoch_values import FinalEpoch, Proposal

PARTY = b"p" * 32
FOUNDER_FEED = b"f" * 32
NOTHING = -1  # no snapshot, no device
NOWHERE = (-1, -1)


class Word(NamedTuple):
    """One block of a control feed."""

    kind: str  # declare, attest, endorse; witness: attest what is final; open: begin a feed in place of a lost one
    number: int
    term: int = 0
    value: int = NOTHING  # which of two snapshots
    after: int = NOTHING  # declare: which snapshot of the number before it follows
    whom: int = NOTHING  # endorse: the candidate
    genesis: tuple[int, int] = NOWHERE  # attest, witness: feed and place
    accepted: tuple[int, int] = (0, NOTHING)  # endorse: the greatest term and snapshot that its writer has attested
    seen: tuple[int, ...] = ()  # of each feed, how many words its writer had heard


Feed = tuple[Word, ...]
History = tuple[Feed, ...]  # what is heard of a history is a history, too


@dataclass(frozen=True)
class Case:
    """A small party: honest attesters, and whoever else there is."""

    honest: int
    terms: tuple[int, ...]  # for each number: how many
    outsider: bool = False  # the generator is no attester, and signs two histories: one for each snapshot
    liars: int = 0  # so many more attesters do that, and policy knows that attesters may lie
    restored: bool = False  # the last attester loses its store, and opens a second feed
    shrinks: bool = False  # the second snapshot of number 1 rests on a policy that names one attester less
    witnesses: bool = False  # policy wants all to attest, also what is final
    candidates: int = 9  # who may come forward: so many of the honest, and whoever lies

    def __str__(self) -> str:
        who = f"{self.honest} honest" + f", {self.liars} liars" * bool(self.liars) + ", outsider" * self.outsider
        who += ", restored" * self.restored + ", shrinks" * self.shrinks + ", witnesses" * self.witnesses
        return f"{who}, {self.candidates if self.candidates < 9 else 'all'} come forward, terms {self.terms}"


class Stage:
    """The devices and feeds of a case, and what each may say."""

    def __init__(self, case: Case) -> None:
        self.case = case
        count = case.honest
        self.honest = list(range(count))
        rogues = list(range(count, count + (case.liars or case.outsider)))
        self.owners = [*self.honest, *[count - 1] * case.restored, *sorted(rogues * 2)]
        self.lost = count - 1 if case.restored else NOTHING  # the feed, and the device
        self.devices = [bytes([97 + at]) * 32 for at in range(count + len(rogues))]
        self.feeds = [bytes([128 + at]) * 32 for at in range(len(self.owners))]
        self.attesters = [*self.honest, *(rogues if case.liars else [])]
        self.generator = rogues[0] if rogues else 0
        self.candidates = sorted({*self.honest[: case.candidates], self.generator, *rogues})
        self.cids = {
            (number, value): bytes(Cid.of(bytes([number, value]), DAG_CBOR))
            for number in range(1, len(case.terms) + 2)
            for value in (0, 1)
        }
        self.values = {cid: value for (_, value), cid in self.cids.items()} | {b"": NOTHING}
        self.policies = {1: self._policy(self.attesters), 2: self._policy(self.attesters[: -1 if case.shrinks else 9])}
        self._acts: dict[object, Act] = {}
        self.base = self._base()

    def _policy(self, attesters: Sequence[int]) -> Policy:
        devices = tuple(self.devices[at] for at in attesters)
        wanted = len(devices) if self.case.witnesses else 0
        generator = self.devices[self.generator]
        return Policy(attesters=devices, generator=generator, liars=bool(self.case.liars), attestations_min=wanted)

    def _base(self) -> list[Act]:
        founder = FeedAdmission(FOUNDER_FEED, FeedKind.CONTROL, b"i" * 32, b"d" * 32, b"")
        first: list[Claim] = [PartyGenesis(b"i" * 32, founder, b""), *self.policies.values()]
        found = [_act(FOUNDER_FEED, seq, b"d" * 32, claim) for seq, claim in enumerate(first)]
        for feed, owner in zip(self.feeds, self.owners, strict=True):
            device = self.devices[owner]
            found.append(_act(feed, 0, device, FeedAdmission(feed, FeedKind.CONTROL, device, device, b"")))
        return found

    def is_rogue(self, feed: int) -> bool:
        return self.owners[feed] >= self.case.honest

    def empty(self) -> History:
        return ((),) * len(self.feeds)

    def members(self, history: History, number: int) -> Sequence[int]:
        """The attesters of a number, by the words alone."""
        if number < 2 or not self.case.shrinks:
            return self.attesters
        follows = {word.after for feed in history for word in feed if word.kind == "declare" and word.number == number}
        return self.attesters[:-1] if follows == {1} else self.attesters

    # -- from words to acts

    def chain(self, history: History) -> EpochChain:
        acts = [self.act(history, feed, at) for feed, words in enumerate(history) for at in range(len(words))]
        return fold_epochs(PARTY, FOUNDER_FEED, self.base + acts, self.policy_at)

    def policy_at(self, proposal: Proposal, final: Sequence[FinalEpoch]) -> Policy | str:
        return self.policies[proposal.genesis.control[FOUNDER_FEED]]

    def act(self, history: History, feed: int, at: int) -> Act:
        word = history[feed][at]
        about = self.act(history, *word.genesis) if word.genesis != NOWHERE else None
        key = (feed, at, word, about and about.digest)
        found = self._acts.get(key)
        if found is None:
            claim: Claim | None = None
            if word.kind == "declare":
                claim = self.claim(word)
            elif about is not None:
                claim = voting.attestation(about)
            elif word.kind == "endorse":
                term, value = word.accepted
                accepted = self.cids[word.number, value] if value != NOTHING else b""
                claim = EpochEndorsement(word.number, word.term, self.devices[word.whom], term, accepted)
            seen = {self.feeds[other]: length for other, length in enumerate(word.seen) if other != feed}
            seen[FOUNDER_FEED] = 2
            found = _act(self.feeds[feed], at + 1, self.devices[self.owners[feed]], claim, seen, repr(key))
            self._acts[key] = found
        return found

    def claim(self, word: Word) -> EpochGenesis:
        """What a genesis says follows from its snapshot, as it does in a party."""
        shown = 2 if word.number > 1 or word.value else 1
        control = {FOUNDER_FEED: shown}
        if self.holds_second(word):
            control[self.feeds[self.lost + 1]] = 1
        previous = self.cids[word.number - 1, word.after] if word.after != NOTHING else b""
        snapshot = self.cids[word.number, word.value]
        return EpochGenesis(word.term, word.number, previous, {}, Timeframe(control), snapshot, 0)

    def holds_second(self, genesis: Word) -> bool:
        """Of a device that was restored, the second feed is in the second snapshot of number 1, and what follows it."""
        return self.case.restored and (genesis.value if genesis.number == 1 else genesis.after) == 1

    # -- what a device may say

    def says(self, heard: History, chain: EpochChain, feed: int) -> Iterator[Word]:
        """Every word that may be the next in a feed, for a writer who has heard this. What it has seen is left out."""
        if self.is_rogue(feed):
            yield from self._lies(heard, chain, feed)
            return
        device = self.devices[self.owners[feed]]
        if self.case.restored and self.owners[feed] == self.lost:
            if feed == self.lost and heard[feed + 1]:
                return  # that device is no more
            if feed != self.lost and not heard[feed]:
                yield Word("open", 0)
                return
            if feed != self.lost and voting.forgetful(chain, device, self.feeds[feed]):
                return
        number = chain.open.number
        if self.case.witnesses:
            yield from self._witness(heard, chain, device)
        if number > len(self.case.terms):
            return
        yield from self.attests(heard, chain, device)
        for term in range(self.case.terms[number - 1]):
            yield from self.declares(heard, chain, device, term)
            for whom in self.candidates if term else ():
                yield from self.endorses(chain, device, term, whom)

    def attests(self, heard: History, chain: EpochChain, device: bytes) -> Iterator[Word]:
        for proposal in chain.open.proposals:
            if not voting.may_attest(chain, device, proposal.act):
                yield self._attest(heard, proposal.act)

    def _attest(self, heard: History, genesis: Act) -> Word:
        feed = self.feeds.index(genesis.stamp.feed)
        at = genesis.stamp.seq - 1
        word = heard[feed][at]
        return Word("attest", word.number, word.term, word.value, genesis=(feed, at))

    def _witness(self, heard: History, chain: EpochChain, device: bytes) -> Iterator[Word]:
        claim = voting.witness(chain, device)
        for feed, words in enumerate(heard):
            for at, word in enumerate(words):
                if word.kind == "declare" and claim and self.act(heard, feed, at).digest == claim.genesis:
                    yield Word("witness", word.number, word.term, word.value, genesis=(feed, at))

    def endorses(self, chain: EpochChain, device: bytes, term: int, whom: int) -> Iterator[Word]:
        if not voting.may_endorse(chain, device, term, self.devices[whom]):
            claim = voting.endorsement(chain, device, term, self.devices[whom])
            accepted = (claim.accepted_term, self.values[claim.accepted])
            yield Word("endorse", claim.number, term, whom=whom, accepted=accepted)

    def declares(self, heard: History, chain: EpochChain, device: bytes, term: int) -> Iterator[Word]:
        demand = voting.proposal(chain, device, term)
        if demand.reason:
            return
        after = self.values[chain.last.snapshot if chain.last else b""]
        for value in (0, 1) if not demand.snapshot else (self.values[demand.snapshot],):
            word = Word("declare", chain.open.number, term, value, after)
            known = not self.holds_second(word) or bool(heard[self.lost + 1])
            if known and not voting.may_declare(chain, device, self.claim(word)):
                yield word

    def _lies(self, heard: History, chain: EpochChain, feed: int) -> Iterator[Word]:
        """What one may say who has two histories: in each anything about its own snapshot, but each thing once."""
        number, said = chain.open.number, heard[feed]
        value = feed - self.owners.index(self.owners[feed])
        if number > len(self.case.terms):
            return
        after = self.values[chain.last.snapshot if chain.last else b""]
        done = {(word.kind, word.term) for word in said if word.number == number}
        for term in range(self.case.terms[number - 1]):
            if ("declare", term) not in done and self._elected(chain, self.owners[feed], term, value):
                yield Word("declare", number, term, value, after)
            if self.case.liars and term and ("endorse", term) not in done:
                for whom in self.candidates:
                    yield Word("endorse", number, term, whom=whom)
                    yield Word("endorse", number, term, whom=whom, accepted=(term - 1, value))
        for proposal in chain.open.proposals if self.case.liars else ():
            word = self._attest(heard, proposal.act)
            if word.value == value and sum(word.genesis == other.genesis for other in said) < 2:
                yield word

    def _elected(self, chain: EpochChain, device: int, term: int, value: int) -> bool:
        """A genesis that nobody would attest need not be declared."""
        if not term:
            return device == self.generator
        demand = chain.ballot.demand(chain.ballot.endorsers(term, self.devices[device]))
        return not demand.reason and self.values[demand.snapshot] in (NOTHING, value)


def _act(
    feed: bytes, seq: int, device: bytes, claim: Claim | None, seen: dict[bytes, int] | None = None, key: str = ""
) -> Act:
    digest = sha256(feed + bytes([seq]) + key.encode()).digest()
    return Act(Stamp(seq, feed, seq), Place(feed, seq, seen or {}), 0, claim, frozenset({device}), digest=digest)
