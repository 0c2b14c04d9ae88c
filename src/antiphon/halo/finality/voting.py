"""Voting rules of one device about the open number, as a function of the chain, above all of its own votes.

A device's votes are in its control feeds, so a crash forgets none, and these rules keep it from contradicting itself.
This module does not check a snapshot, nor what a genesis leaves out: see `halo.member.genesis_checks`.
"""

from __future__ import annotations

from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import EpochAttestation, EpochEndorsement, EpochGenesis, ModelKey
from antiphon.halo.finality.ballot import Choice, Demand
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import Proposal


def find(chain: EpochChain, act: Act) -> Proposal | None:
    """Return the proposal of an act for the open number."""
    return next((proposal for proposal in chain.open.proposals if proposal.digest == act.digest), None)


def may_attest(chain: EpochChain, device: bytes, genesis: Act) -> str:
    """Return why a device may not attest a genesis; "" if it may, or may confirm it."""
    proposal = find(chain, genesis)
    if proposal is None:
        return chain.reason(genesis) or f"it is no genesis of epoch {chain.open.number}, which is the open one"
    if proposal.reason:
        return proposal.reason
    claim, config = proposal.genesis, chain.open.config
    choice = Choice(claim.term, claim.snapshot, proposal.digest)
    reason = _may_vote(chain, device, choice)
    if reason:
        return reason
    if choice not in chain.own(device).attested.get(claim.term, set()):
        return _same_content(chain, claim)
    if not config.policy.liars or choice in chain.own(device).confirmed:
        return "this device has attested it"
    seen = len(proposal.attested)
    return "" if seen >= config.quorum else f"{seen} of {config.quorum} attestations that are needed are here"


def _may_vote(chain: EpochChain, device: bytes, choice: Choice) -> str:
    own = chain.own(device)
    if device not in chain.open.config.attesters:
        return f"device {device.hex()[:8]} is no attester of epoch {chain.open.number}"
    if choice.term < own.promised:
        return f"this device has endorsed term {own.promised}, and so attests nothing in an earlier one"
    if own.attested.get(choice.term, set()) - {choice}:
        return f"this device has attested something else for epoch {chain.open.number} in term {choice.term}"
    return ""


def _same_content(chain: EpochChain, claim: EpochGenesis) -> str:
    """Return why a genesis that declares a snapshot again differs in cut, control timeframe, time or models.

    Only geneses that an honest attester has computed count: a false cut under a right snapshot must not stop anybody.
    """
    for other in chain.open.proposals:
        same = not other.reason and other.genesis.snapshot == claim.snapshot and _is_computed(chain, other)
        if same and content(other.genesis) != content(claim):
            return "the same snapshot was declared with another cut, control timeframe, time or models"
    return ""


def _is_computed(chain: EpochChain, proposal: Proposal) -> bool:
    """True if an honest device has attested a snapshot."""
    return len(proposal.attested) > chain.open.config.liars_max


def declared(chain: EpochChain, snapshot: bytes) -> EpochGenesis | None:
    """Return the genesis of an attested snapshot: a genesis that declares it again has the same content."""
    known = [found for found in chain.open.proposals if found.genesis.snapshot == snapshot and found.attested]
    best = max(known, key=lambda found: (len(found.attested), not found.reason), default=None)
    return None if best is None else best.genesis


def content(
    genesis: EpochGenesis,
) -> tuple[bytes, tuple[tuple[bytes, int], ...], bytes, bytes, int, tuple[ModelKey, ...]]:
    """Return the parts of a genesis that do not depend on its term."""
    cut = tuple(sorted(genesis.cut.items()))
    return genesis.previous, cut, genesis.control.encode(), genesis.control_hash, genesis.created_ms, genesis.models


def attestation(genesis: Act) -> EpochAttestation:
    """Make an attestation of a genesis."""
    claim = genesis.claim
    assert isinstance(claim, EpochGenesis)
    return EpochAttestation(claim.term, claim.number, claim.snapshot, genesis.digest)


def witness(chain: EpochChain, device: bytes) -> EpochAttestation | None:
    """Make a late attestation of the last final epoch, if policy wants more of them than a quorum.

    Joiners that cannot recompute the epoch wait for them. Only late attesters can give them: the number is decided.
    """
    last = chain.last
    if last is None or len(chain.votes[-1]) >= chain.open.config.policy.attestations_min:
        return None
    if device not in chain.decided[-1].attesters or device in chain.votes[-1]:
        return None
    return EpochAttestation(last.term, last.number, last.snapshot, last.genesis)


def may_endorse(chain: EpochChain, device: bytes, term: int, candidate: bytes) -> str:
    """Return why a device may not endorse a candidate for a term of the open number; "" if it may."""
    own, config = chain.own(device), chain.open.config
    if device not in config.attesters:
        return f"device {device.hex()[:8]} is no attester of epoch {config.number}"
    if candidate not in (*config.attesters, config.generator):
        return f"device {candidate.hex()[:8]} is neither an attester nor the generator of epoch {config.number}"
    if term < 1:
        return "term 0 needs no endorsement"
    if term <= own.promised:
        return f"this device has endorsed somebody for term {own.promised}"
    last = max(own.attested, default=-1)
    return f"this device has attested something in term {last}" if last >= term else ""


def endorsement(chain: EpochChain, device: bytes, term: int, candidate: bytes) -> EpochEndorsement:
    """Make an endorsement that names what the device has attested."""
    accepted = chain.own(device).accepted(confirmed=chain.open.config.policy.liars)
    return EpochEndorsement(chain.open.number, term, candidate, *accepted)


def proposal(chain: EpochChain, device: bytes, term: int) -> Demand:
    """Return what a device must declare as the proposer of a term: a snapshot, any, or why it may declare none."""
    config, own = chain.open.config, chain.own(device)
    if term in own.declared:
        return Demand(b"", f"this device has declared epoch {config.number} in term {term}")
    if device in config.attesters and term < own.promised:
        return Demand(b"", f"this device has endorsed term {own.promised}, and so declares nothing in an earlier one")
    if term:
        demand = chain.ballot.demand(chain.ballot.endorsers(term, device))
        if demand.snapshot and declared(chain, demand.snapshot) is None:
            return Demand(b"", "the genesis that its endorsers attested, and that must be declared again, is not here")
        return demand
    if device != config.generator:
        return Demand(b"", f"term 0 of epoch {config.number} is that of device {config.generator.hex()[:8]}")
    return Demand(b"")


def may_declare(chain: EpochChain, device: bytes, genesis: EpochGenesis) -> str:
    """Return why a device may not declare a genesis; "" if it may. `fold_epochs` checks what it must have seen."""
    if genesis.number != chain.open.number:
        return f"epoch {chain.open.number} is the open one, not {genesis.number}"
    demand = proposal(chain, device, genesis.term)
    if demand.reason:
        return demand.reason
    if demand.snapshot not in (b"", genesis.snapshot):
        return "its endorsers have attested another snapshot, which must be declared again"
    if device in chain.open.config.attesters and chain.own(device).attested.get(genesis.term):
        return f"this device has attested something in term {genesis.term}"
    return _same_content(chain, genesis)


def forgetful(chain: EpochChain, device: bytes, feed: bytes, *, recovered: bool = False) -> str:
    """Return why a device may have forgotten votes: its store was restored, and its old feed may hold more.

    After the first epoch that holds the new feed, the old one does not matter.
    """
    others = [other for other, of in chain.feeds.items() if of == device and other != feed]
    if recovered or not others or (chain.last is not None and feed in chain.last.control):
        return ""
    return (
        f"this device has another control feed, {others[0].hex()[:8]}, and may have forgotten what it said there about "
        f"epoch {chain.open.number}; sync with the other attesters, then call `party.epochs.recover()`"
    )
