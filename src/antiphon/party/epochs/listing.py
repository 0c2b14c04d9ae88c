"""List a party's epochs for people: final or proposed, who has attested, who has refused and why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from antiphon.core.cid import Cid
from antiphon.core.keys import PublicKey
from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochGenesis
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import FinalEpoch


@dataclass(frozen=True, slots=True)
class Voter:
    """A device that votes, and its identity."""

    device: PublicKey
    identity: PublicKey


@dataclass(frozen=True, slots=True)
class Objection:
    """A refusal: its voter, the reason, and the snapshot that the voter computed instead, if any."""

    voter: Voter
    reason: str
    computed: Cid | None


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """A final or proposed epoch, with its votes."""

    number: int
    term: int
    final: bool
    snapshot: Cid
    created_ms: int
    messages: int  # of all data feeds, from their beginnings to the cut
    declared_by: Voter
    attested: tuple[Voter, ...]
    refused: tuple[Objection, ...]
    reason: str = ""  # why a proposal does not count
    needed: int = 0  # how many attestations make a proposal final


def list_epochs(machine: PartyMachine) -> list[EpochRecord]:
    """Return the final epochs by number, then the proposals for the next number."""
    return _Listing(machine).all()


def has_refused(chain: EpochChain, device: bytes, genesis: EpochGenesis | FinalEpoch) -> bool:
    """True if a device has refused this proposal, or final epoch."""
    wanted = genesis.number, genesis.term, genesis.snapshot
    told = (found.claim for found in chain.refusals if found.device == device)
    return any((claim.number, claim.term, claim.snapshot) == wanted for claim in told)


def genesis_to_refuse(machine: PartyMachine, device: bytes, epoch: FinalEpoch) -> Act | None:
    """Return the genesis of a final epoch that a device disagrees with; None if it has published that refusal.

    A device computes the disagreement again at each start, and publishes it once.
    """
    if has_refused(machine.epochs(), device, epoch):
        return None
    return next((act for act in machine.acts() if act.stamp == epoch.declared), None)


class _Listing:
    def __init__(self, machine: PartyMachine) -> None:
        self._chain = machine.epochs()
        self._identities = {owner.device: owner.identity for owner in machine.authority.feeds.controls.values()}
        self._refused: dict[tuple[int, bytes], list[Objection]] = defaultdict(list)
        for found in self._chain.refusals:
            claim = found.claim
            objection = Objection(
                self._voter(found.device), claim.reason, Cid(claim.computed) if claim.computed else None
            )
            self._refused[claim.number, claim.snapshot].append(objection)

    def all(self) -> list[EpochRecord]:
        final = [
            self._record(epoch, epoch.term, epoch.declared, votes)
            for epoch, votes in zip(self._chain.final, self._chain.votes, strict=True)
        ]
        opened = self._chain.open
        return final + [
            self._record(
                found.genesis,
                found.genesis.term,
                found.stamp,
                found.attested,
                reason=found.reason,
                needed=opened.config.quorum,
            )
            for found in opened.proposals
        ]

    def _record(
        self,
        epoch: FinalEpoch | EpochGenesis,
        term: int,
        declared: Stamp,
        votes: tuple[bytes, ...],
        *,
        reason: str = "",
        needed: int = 0,
    ) -> EpochRecord:
        return EpochRecord(
            number=epoch.number,
            term=term,
            final=isinstance(epoch, FinalEpoch),
            snapshot=Cid(epoch.snapshot),
            created_ms=epoch.created_ms,
            messages=sum(epoch.cut.values()),
            declared_by=self._voter(self._chain.feeds[declared.feed]),
            attested=tuple(map(self._voter, votes)),
            refused=tuple(self._refused.get((epoch.number, epoch.snapshot), ())),  # also of a final one
            reason=reason,
            needed=needed,
        )

    def _voter(self, device: bytes) -> Voter:
        return Voter(PublicKey(device), PublicKey(self._identities.get(device, device)))
