"""Claims about epochs, and the policy that they follow, to protobuf and back."""

from __future__ import annotations

from antiphon.core.errors import BadEncoding
from antiphon.core.timeframe import Timeframe
from antiphon.core.v1 import credential_pb2 as pb
from antiphon.halo.credentials import fields
from antiphon.halo.credentials.claims import (
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    Erasure,
    ModelKey,
    Policy,
)

EpochClaim = Policy | EpochGenesis | EpochAttestation | EpochRefusal | EpochEndorsement | Erasure
DIGEST_SIZE = 32


def write(payload: pb.Credential, claim: EpochClaim) -> None:
    """Put a claim into a payload."""
    if isinstance(claim, Policy):
        _write_policy(payload.policy, claim)
    elif isinstance(claim, EpochGenesis):
        genesis = payload.epoch_genesis
        genesis.term, genesis.number, genesis.previous = claim.term, claim.number, claim.previous
        genesis.cut.extend(fields.cuts_out(claim.cut))
        genesis.control.extend(fields.cuts_out({feed: seq + 1 for feed, seq in claim.control.items()}))
        genesis.snapshot, genesis.created_ms = claim.snapshot, claim.created_ms
        genesis.control_hash = claim.control_hash
        genesis.models.extend(pb.ModelKey(name=name, version=of, codec=codec) for name, of, codec in claim.models)
    elif isinstance(claim, EpochAttestation):
        attestation = payload.epoch_attestation
        attestation.term, attestation.number, attestation.snapshot = claim.term, claim.number, claim.snapshot
        attestation.genesis = claim.genesis
    elif isinstance(claim, EpochRefusal):
        refusal = payload.epoch_refusal
        refusal.term, refusal.number, refusal.snapshot = claim.term, claim.number, claim.snapshot
        refusal.computed, refusal.reason = claim.computed, claim.reason
    elif isinstance(claim, EpochEndorsement):
        endorsement = payload.epoch_endorsement
        endorsement.number, endorsement.term, endorsement.candidate = claim.number, claim.term, claim.candidate
        endorsement.accepted_term, endorsement.accepted = claim.accepted_term, claim.accepted
    else:
        payload.erasure.SetInParent()
        payload.erasure.positions.extend(fields.positions_out(claim.positions))


def _write_policy(policy: pb.Policy, claim: Policy) -> None:
    policy.SetInParent()
    policy.editors_admit, policy.generator = claim.editors_admit, claim.generator
    policy.attesters.extend(sorted(claim.attesters))
    policy.attestations_min = claim.attestations_min
    policy.tightens = claim.tightens
    policy.cuts.extend(fields.cuts_out(claim.cuts))
    policy.liars, policy.silent_ms, policy.skew_ms = claim.liars, claim.silent_ms, claim.skew_ms
    policy.epoch_messages, policy.epoch_bytes = claim.epoch_messages, claim.epoch_bytes
    policy.epoch_age_ms, policy.epoch_idle_ms = claim.epoch_age_ms, claim.epoch_idle_ms
    policy.message_age_ms, policy.message_count = claim.message_age_ms, claim.message_count
    policy.deleted_epochs, policy.keep_epochs = claim.deleted_epochs, claim.keep_epochs


def read(payload: pb.Credential, which: str) -> EpochClaim | None:
    """Read and check the claim of a payload; None if it is of another kind."""
    if which == "policy":
        return _policy(payload.policy)
    if which == "epoch_genesis":
        return _genesis(payload.epoch_genesis)
    if which == "epoch_attestation":
        attestation = payload.epoch_attestation
        if len(attestation.genesis) != DIGEST_SIZE:
            raise BadEncoding("credential: an attestation names the digest of a genesis")
        return EpochAttestation(
            fields.number(attestation.term),
            _from_one(attestation.number),
            fields.cid(attestation.snapshot),
            attestation.genesis,
        )
    if which == "epoch_refusal":
        refusal = payload.epoch_refusal
        return EpochRefusal(
            fields.number(refusal.term),
            _from_one(refusal.number),
            fields.cid(refusal.snapshot),
            fields.cid_or_none(refusal.computed),
            fields.text(refusal.reason),
        )
    if which == "epoch_endorsement":
        return _endorsement(payload.epoch_endorsement)
    return Erasure(fields.positions(payload.erasure.positions)) if which == "erasure" else None


def _from_one(value: int) -> int:
    if not value:
        raise BadEncoding("credential: epochs, and the terms that are endorsed, are numbered from 1 on")
    return fields.number(value)


def _endorsement(endorsement: pb.EpochEndorsement) -> EpochEndorsement:
    found = EpochEndorsement(
        _from_one(endorsement.number),
        _from_one(endorsement.term),
        fields.key(endorsement.candidate),
        fields.number(endorsement.accepted_term),
        fields.cid_or_none(endorsement.accepted),
    )
    if found.accepted_term >= found.term or (found.accepted_term and not found.accepted):
        raise BadEncoding("credential: an endorsement names what was attested in an earlier term, or nothing")
    return found


def _genesis(genesis: pb.EpochGenesis) -> EpochGenesis:
    models = tuple(ModelKey(fields.text(key.name), key.version, key.codec) for key in fields.bounded(genesis.models))
    if list(models) != sorted({(key.name, key.version): key for key in models}.values()):
        raise BadEncoding("credential: models do not ascend, or one is named twice")
    if len(genesis.control_hash) not in (0, DIGEST_SIZE):
        raise BadEncoding("credential: an epoch names its control blocks by a digest")
    return EpochGenesis(
        fields.number(genesis.term),
        _from_one(genesis.number),
        fields.cid_or_none(genesis.previous),
        fields.cuts(genesis.cut),
        Timeframe({feed: length - 1 for feed, length in fields.control(genesis.control).items()}),
        fields.cid(genesis.snapshot),
        fields.time_ms(genesis.created_ms),
        models,
        genesis.control_hash,
    )


def _policy(policy: pb.Policy) -> Policy:
    attesters = tuple(fields.key(key) for key in fields.bounded(policy.attesters))
    if list(attesters) != sorted(set(attesters)):
        raise BadEncoding("credential: attesters do not ascend")
    return Policy(
        policy.editors_admit,
        fields.key(policy.generator) if policy.generator else b"",
        attesters,
        policy.attestations_min,
        policy.tightens,
        fields.cuts(policy.cuts),
        policy.liars,
        *map(
            fields.number,
            (
                policy.silent_ms,
                policy.skew_ms,
                policy.epoch_messages,
                policy.epoch_bytes,
                policy.epoch_age_ms,
                policy.epoch_idle_ms,
                policy.message_age_ms,
                policy.message_count,
                policy.deleted_epochs,
                policy.keep_epochs,
            ),
        ),
    )
