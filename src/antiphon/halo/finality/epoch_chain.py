"""The chain of final epochs, as a function of the set of acts alone.

Each number is decided once, by devices that the final epoch before it has fixed. So nothing that comes later can change
a final epoch: no narrowing, no fork, no policy. docs/design/epochs.md has the rules and the reasons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from antiphon.core.reasons import Reason, because
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import name_of
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import (
    EpochAct,
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    PartyGenesis,
    Policy,
    Position,
)
from antiphon.halo.finality.ballot import NO_FORKS, Ballot, Choice, Lengths, Own, by_feed, uncounted
from antiphon.halo.finality.epoch_values import EpochConfig, FinalEpoch, OpenNumber, Proposal, Refused, folded

#: The policy in the control timeframe of an epoch, given those before it; or why this peer cannot tell.
PolicyAt = Callable[[Proposal, Sequence[FinalEpoch]], Policy | str]

#: By control hash and timeframe: the first genesis in each feed whose writer has seen all those control blocks.
Witnesses = Mapping[tuple[bytes, bytes], Mapping[bytes, int]]


@dataclass(frozen=True, slots=True)
class EpochChain:
    """The final epochs, and the votes on the next number. Equal on all peers that hold the same acts."""

    party: bytes
    final: tuple[FinalEpoch, ...]  # numbers 1, 2, 3 …
    open: OpenNumber
    votes: tuple[tuple[bytes, ...], ...]  # for each final epoch: the devices that have attested its snapshot
    conflict: str = ""  # more attesters have lied than the policy allows for
    refusals: tuple[Refused, ...] = ()  # of epochs that somebody has declared, by stamp
    reasons: Mapping[bytes, str] = field(compare=False, repr=False, kw_only=True)  # by block: branches share stamps
    ballot: Ballot = field(compare=False, repr=False, kw_only=True)
    feeds: Mapping[bytes, bytes] = field(compare=False, repr=False, kw_only=True)  # control feed → device
    decided: tuple[EpochConfig, ...] = field(compare=False, repr=False, kw_only=True)  # electorates of final epochs
    won: Mapping[tuple[int, bytes], tuple[bytes, ...]] = field(compare=False, repr=False, kw_only=True)
    """Every genesis that has a quorum, by number and digest, and the devices that have attested it."""
    witnesses: Witnesses = field(compare=False, repr=False, kw_only=True)  # among the geneses of the open number
    declared: Collection[bytes] = field(compare=False, repr=False, kw_only=True)
    """Epochs, by name, that somebody has declared who can: of final numbers, and of the open one."""
    refused: Mapping[tuple[bytes, bytes], int] = field(compare=False, repr=False, kw_only=True)
    """By control feed and name of an epoch: the first refusal in the history of that feed."""

    @property
    def may_move(self) -> bool:
        """True if acts that are not about epochs may change it: by rights, or by where a feed ends."""
        return bool(self.final or self.open.proposals or self.refused)

    @property
    def last(self) -> FinalEpoch | None:
        return self.final[-1] if self.final else None

    def reason(self, act: Act) -> str:
        """Return why an act does not count; "" if it does."""
        return self.reasons.get(act.hash) or self._uncounted(act)

    def electorate(self, number: int) -> EpochConfig | None:
        """Return who decides on a number; None if the one before it is not final."""
        return (*self.decided, self.open.config)[number - 1] if number <= self.open.number else None

    def _uncounted(self, act: Act) -> str:
        """Return why a vote counts for nobody. Those that are set aside are not among the acts of the chain."""
        claim = act.claim
        if not isinstance(claim, EpochAct):
            return ""
        config = self.electorate(claim.number)
        if config is None:
            return _early(claim.number, self.open.number)
        return uncounted(act, self.feeds.get(act.stamp.feed), config)

    def differs(self, number: int, snapshot: bytes) -> bool:
        """True if another snapshot than this one is final for a number: only if attesters have lied."""
        return 0 < number <= len(self.final) and self.final[number - 1].snapshot != snapshot

    def own(self, device: bytes) -> Own:
        """Return the votes of a device about the open number."""
        return self.ballot.own(device)


def fold_epochs(
    party: bytes, genesis_feed: bytes, acts: Iterable[Act], policy_at: PolicyAt, forked: Lengths = NO_FORKS
) -> EpochChain:
    """Fold a set of acts into the chain of epochs. Of `forked` control feeds, acts of several branches are in it."""
    return _Fold(party, genesis_feed, acts, policy_at, forked).chain()


class _Fold:
    def __init__(
        self,
        party: bytes,
        genesis_feed: bytes,
        acts: Iterable[Act],
        policy_at: PolicyAt,
        forked: Lengths,
    ) -> None:
        self._party = party
        self._forked = forked
        self._genesis_feed = genesis_feed
        self._policy_at = policy_at
        self._devices: dict[bytes, bytes] = {}
        self._numbers: dict[int, list[Act]] = defaultdict(list)
        self._refusals: list[Act] = []
        self._first: list[Act] = []  # acts of the genesis feed that fix the first electorate
        self._founder = b""
        for act in sorted(acts, key=lambda act: act.hash) if forked else acts:
            if act.admission is not None:
                self._devices.setdefault(act.stamp.feed, act.admission.device)
            claim = act.claim
            if isinstance(claim, PartyGenesis) and act.position == (genesis_feed, 0):
                self._founder = self._founder or claim.admission.device
            if isinstance(claim, EpochGenesis | EpochAttestation | EpochEndorsement):
                self._numbers[claim.number].append(act)
            elif isinstance(claim, EpochRefusal):
                self._refusals.append(act)
            if act.stamp.feed == genesis_feed:
                self._first.append(act)
        self._void: dict[Act, str] = {}

    def chain(self) -> EpochChain:
        final: list[FinalEpoch] = []
        votes: list[tuple[bytes, ...]] = []
        conflicts: list[str] = []
        decided: list[EpochConfig] = []
        quorate: dict[tuple[int, bytes], tuple[bytes, ...]] = {}
        config = self._first_config()
        lacks = ""
        while True:
            ballot = self._ballot(config)
            witnesses = self._witnesses(config, final[-1] if final else None)
            proposals = self._proposals(ballot, final[-1] if final else None, witnesses)
            won = [proposal for proposal in proposals if self._won(ballot, proposal)]
            if not won:
                break
            quorate |= {(config.number, proposal.digest): proposal.attested for proposal in won}
            first, policy = self._take(won, final, ballot)
            if isinstance(policy, str):
                lacks = policy
                break
            final.append(FinalEpoch.of(first))
            if any(FinalEpoch.of(proposal) != final[-1] for proposal in won):
                conflicts.append(f"two geneses of epoch {config.number} have a quorum: attesters have lied")
            votes.append(self._settle(ballot, proposals, first.genesis))
            decided.append(config)
            config = EpochConfig.of(config.number + 1, self._party, policy, self._founder, self._genesis_feed)
        declared, refused = self._declared((*decided, config)), self._first_refusals()
        opened = OpenNumber(
            config,
            tuple(proposals),
            tuple(sorted(ballot.endorsements, key=lambda endorsed: endorsed.stamp)),
            lacks,
        )
        for proposal in proposals:
            self._refuse(proposal.act, proposal.reason)
        for number in [number for number in self._numbers if number > config.number]:
            for act in self._numbers[number]:
                self._refuse(act, _early(number, config.number))
        return EpochChain(
            self._party,
            tuple(final),
            opened,
            tuple(votes),
            "; ".join(conflicts),
            tuple(sorted(self._heard(refused.values(), declared), key=lambda found: found.stamp)),
            reasons={act.hash: reason for act, reason in self._void.items()},
            ballot=ballot,
            feeds=self._devices,
            decided=tuple(decided),
            won=quorate,
            witnesses=witnesses,
            declared=declared,
            refused={key: act.stamp.seq for key, act in refused.items()},
        )

    def _declared(self, configs: Iterable[EpochConfig]) -> frozenset[bytes]:
        acts = chain.from_iterable(map(self._geneses, configs))
        return frozenset(name_of(act.claim) for act in acts if isinstance(act.claim, EpochGenesis))

    def _first_refusals(self) -> dict[tuple[bytes, bytes], Act]:
        """Return the first refusal of each epoch in the history of each feed. Nobody is told of those beyond a fork."""
        found: dict[tuple[bytes, bytes], Act] = {}
        for act in self._refusals:
            feed, seq = act.position
            if seq < self._forked.get(feed, NO_END) and may_refuse(act, self._devices.get(feed)):
                assert isinstance(act.claim, EpochRefusal)
                key = feed, name_of(act.claim)
                if seq < found.setdefault(key, act).stamp.seq:
                    found[key] = act
        return found

    def _heard(self, refusals: Iterable[Act], declared: Collection[bytes]) -> Iterator[Refused]:
        """Yield the refusals of what was declared."""
        for act in refusals:
            assert isinstance(act.claim, EpochRefusal)
            if name_of(act.claim) in declared:
                yield Refused(act.stamp, self._devices[act.stamp.feed], act.claim)

    def _first_config(self) -> EpochConfig:
        """Return the first electorate: by the genesis feed's first policy, if no act about epochs precedes it there."""
        for act in sorted(self._first, key=lambda act: (act.stamp.seq, act.hash)):
            if isinstance(act.claim, EpochGenesis | EpochAttestation | EpochEndorsement):
                break
            if isinstance(act.claim, Policy) and self._founder in act.signers and not expired(act):
                return EpochConfig.of(1, self._party, act.claim, self._founder, self._genesis_feed)
        return EpochConfig.of(1, self._party, None, self._founder, self._genesis_feed)

    def _ballot(self, config: EpochConfig) -> Ballot:
        known = [act for act in self._numbers.get(config.number, ()) if act.stamp.feed in self._devices]
        for act in self._numbers.get(config.number, ()):
            self._refuse(act, uncounted(act, self._devices.get(act.stamp.feed), config))
        ballot = Ballot(config, by_feed((act for act in known if not act.expires_ms), self._forked), self._devices)
        for act in known:
            self._refuse(act, ballot.void.get(act, ""))
        return ballot

    def _refuse(self, act: Act, reason: str) -> None:
        if reason:
            self._void.setdefault(act, reason)

    # -- geneses

    def _geneses(self, config: EpochConfig) -> Iterator[Act]:
        """Yield the geneses of a number that somebody has signed who can declare it."""
        for act in self._numbers.get(config.number, ()):
            if isinstance(act.claim, EpochGenesis) and not uncounted(act, self._devices.get(act.stamp.feed), config):
                yield act

    def _witnesses(self, config: EpochConfig, previous: FinalEpoch | None) -> Witnesses:
        found: dict[tuple[bytes, bytes], dict[bytes, int]] = defaultdict(dict)
        for act in self._geneses(config):
            claim, (feed, seq) = act.claim, act.position
            assert isinstance(claim, EpochGenesis)
            if claim.control_hash and _sees_control(act, claim, previous):
                first = found[claim.control_hash, claim.control.encode()]
                first[feed] = min(seq, first.get(feed, seq))
        return found

    def _proposals(self, ballot: Ballot, previous: FinalEpoch | None, witnesses: Witnesses) -> list[Proposal]:
        """Return the geneses, one for each digest. A copy whose causes are not here does no harm."""
        found: dict[bytes, Proposal] = {}
        for act in sorted(self._numbers.get(ballot.config.number, ()), key=lambda act: (act.stamp, act.hash)):
            if isinstance(act.claim, EpochGenesis) and act not in self._void:
                proposal = self._proposal(act, act.claim, ballot, previous, witnesses)
                known = found.setdefault(act.digest, proposal)
                if (proposal.sound, not proposal.reason) > (known.sound, not known.reason):
                    found[act.digest] = proposal
        return sorted(found.values(), key=lambda proposal: proposal.stamp)

    def _proposal(
        self, act: Act, claim: EpochGenesis, ballot: Ballot, previous: FinalEpoch | None, witnesses: Witnesses
    ) -> Proposal:
        config, device = ballot.config, self._devices[act.stamp.feed]
        problem = genesis_problem(act, claim, config, previous, witnesses)
        if act in ballot.repeated:
            problem = because(Reason.EPOCH_VOTE, "its device had declared another genesis in this term before")
        takeover = _proposer_problem(act, claim, ballot)
        # If attesters may lie, the honest ones of a quorum have checked the takeover. An observer who holds another
        # branch of a liar's feed cannot check it, and must still accept the final epoch.
        sound = not problem and (not takeover or (config.policy.liars and claim.term > 0))
        choice = Choice(claim.term, claim.snapshot, act.digest)
        return Proposal(
            act.stamp,
            folded(claim, previous),
            act.digest,
            device if device in act.signers else min(act.signers),
            problem or takeover,
            sound,
            tuple(sorted(ballot.attested.get(choice, ()))),
            tuple(sorted(ballot.confirmed.get(choice, ()))),
            config.declarers,
            act,
        )

    def _won(self, ballot: Ballot, proposal: Proposal) -> bool:
        claim = proposal.genesis
        votes = ballot.votes(Choice(claim.term, claim.snapshot, proposal.digest))
        return proposal.sound and len(votes) >= ballot.config.quorum

    def _take(
        self, won: Sequence[Proposal], final: Sequence[FinalEpoch], ballot: Ballot
    ) -> tuple[Proposal, Policy | str]:
        """Return the genesis that holds. A snapshot may be final in several terms; of two (a lie), take the least."""
        choices = {one.digest: Choice(one.genesis.term, one.genesis.snapshot, one.digest) for one in won}
        ordered = sorted(won, key=lambda one: (choices[one.digest] not in ballot.first, one.genesis.term, one.digest))
        policies = [self._policy_at(proposal, final) for proposal in ordered]
        told = zip(ordered, policies, strict=True)
        return next((pair for pair in told if not isinstance(pair[1], str)), (ordered[0], policies[0]))

    def _settle(self, ballot: Ballot, proposals: Sequence[Proposal], won: EpochGenesis) -> tuple[bytes, ...]:
        """Note the verdicts on the other geneses, and the devices that have attested the final snapshot."""
        for proposal in proposals:
            other = because(Reason.EPOCH_DECIDED, f"epoch {won.number} is final with another snapshot")
            differs = proposal.genesis.snapshot != won.snapshot
            self._refuse(proposal.act, proposal.reason or (other if differs else ""))
        attested = [devices for choice, devices in ballot.attested.items() if choice.snapshot == won.snapshot]
        # A device may endorse a later term before it learns that this one is final. Joiners still use its attestation.
        late = [(device, act) for choice, device, act in ballot.late if choice.snapshot == won.snapshot]
        for _, act in late:
            self._void.pop(act, None)
        return tuple(sorted(set().union(*attested, {device for device, _ in late})))


def may_refuse(act: Act, device: bytes | None) -> bool:
    """True if a refusal is one by the device in whose feed it is."""
    return device in act.signers and not expired(act)


def genesis_problem(
    act: Act, claim: EpochGenesis, config: EpochConfig, previous: FinalEpoch | None, witnesses: Witnesses
) -> str:
    """Return what is wrong with a genesis, as it is written, and against the epoch that it follows; "" if nothing."""
    if claim.previous != (previous.snapshot if previous else b""):
        return _unfit(f"it does not follow the final epoch {config.number - 1}")
    # Who declares a snapshot again may not have seen blocks in it that are beyond a fork, but a genesis that has.
    known = witnesses.get((claim.control_hash, claim.control.encode()), {})
    if not _sees_control(act, claim, previous) and not any(act.place.sees(Position(*at)) for at in known.items()):
        return _unfit("neither it nor a genesis that it has seen has seen all of its control timeframe")
    if previous is None:
        return ""
    if any(seq < previous.control.get(feed, -1) for feed, seq in claim.control.items()):
        return _unfit(f"its control timeframe is behind that of epoch {previous.number}")
    if any(length < previous.cut.get(feed, 0) for feed, length in claim.cut.items()):
        return _unfit(f"its cut is behind that of epoch {previous.number}")
    if claim.created_ms < previous.created_ms:
        return _unfit(f"it was created before epoch {previous.number}")
    return ""


def _sees_control(act: Act, claim: EpochGenesis, previous: FinalEpoch | None) -> bool:
    """True if a genesis has itself seen all of its control timeframe, and of that of the epoch before."""
    return all(
        seq < act.stamp.seq if feed == act.stamp.feed else act.place.seen.get(feed, -1) >= seq
        for feed, seq in chain(claim.control.items(), previous.control.items() if previous else ())
    )


def _early(number: int, opened: int) -> str:
    return because(Reason.EPOCH_EARLY, f"it is about epoch {number}, but epoch {opened} is not final yet")


def _unfit(text: str) -> str:
    return because(Reason.EPOCH_GENESIS, text)


def _proposer_problem(act: Act, claim: EpochGenesis, ballot: Ballot) -> str:
    """Return why a genesis is not by the proposer of its term, or not the one that it had to declare; "" if it is."""
    config = ballot.config
    if not claim.term:
        if config.generator in act.signers:
            return ""
        other = f"term 0 of epoch {config.number} is that of device {config.generator.hex()[:8]}, not of its writer"
        return because(Reason.EPOCH_PROPOSER, other)
    named = {found.claim.candidate for found in ballot.endorsements if found.claim.term == claim.term}
    for device in sorted(named & act.signers):
        demand = ballot.demand(ballot.endorsers(claim.term, device, act.place))
        if demand.reason:
            continue
        if demand.snapshot in (b"", claim.snapshot):
            return ""
        return because(
            Reason.EPOCH_PROPOSER, "it declares another snapshot than the one that its endorsers have attested"
        )
    return because(
        Reason.EPOCH_PROPOSER, f"no quorum of attesters that it has seen endorsed its writer for term {claim.term}"
    )
