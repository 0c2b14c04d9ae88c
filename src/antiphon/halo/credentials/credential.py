"""Credentials: claims signed over "antiphon.cred.v1" ‖ party ‖ payload, the payload being the bytes as they came.

The party key is in the signature and in the payload, so a credential of one party is worthless in another.

>>> from antiphon.core.keys import KeyPair
>>> from antiphon.halo.credentials.claims import MemberAdmission, Role
>>> party, owner, guest = (KeyPair.from_seed(bytes([n]) * 32) for n in (1, 2, 3))
>>> signed = sign(party.key, MemberAdmission(guest.key, frozenset({Role.READER})), [owner])
>>> credential = read(party.key, signed)
>>> credential.claim.subject == guest.key, credential.signers == {owner.key}
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import cast

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, BadSignature, TooLarge
from antiphon.core.keys import KeyPair, verify
from antiphon.core.v1 import credential_pb2 as pb, message_pb2
from antiphon.feed.fork import Fork
from antiphon.feed.limits import EVIDENCE_SIZE_MAX
from antiphon.halo.credentials import epoch_codec, fields, lists
from antiphon.halo.credentials.claims import (
    Claim,
    Continuation,
    DeviceAdmission,
    Equivocated,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    PartyGenesis,
)

TAG = b"antiphon.cred.v1"
SIGNATURES_MAX = 8
NONCE_MAX = 32
CREDENTIAL_SIZE_MAX = EVIDENCE_SIZE_MAX + 4096


@dataclass(frozen=True, slots=True)
class Credential:
    """A claim, and the keys that have signed it; every signature was checked."""

    claim: Claim
    signers: frozenset[bytes]
    expires_ms: int
    nonce: bytes
    rest: bytes  # of lists that go on in the next blocks; empty if the claim is whole
    digest: bytes = field(compare=False)  # of the payload as it came: the same wherever a copy of it stands


def sign_all(
    party: bytes,
    claim: Claim,
    pairs: Sequence[KeyPair],
    *,
    expires_ms: int = 0,
    nonce: bytes = b"",
    size: int = 0,
) -> list[bytes]:
    """Sign a claim that may have long lists: they go on in further credentials, for the next blocks of one batch."""
    first, parts = lists.split(claim, size)
    rest = lists.rest_of(parts) if parts else b""
    signed = [sign(party, first, pairs, expires_ms=expires_ms, nonce=nonce, rest=rest)]
    return signed + [sign(party, part, pairs) for part in parts]


def sign(
    party: bytes,
    claim: Claim,
    pairs: Iterable[KeyPair],
    *,
    expires_ms: int = 0,
    nonce: bytes = b"",
    rest: bytes = b"",
) -> bytes:
    """Sign a claim with these keys. The nonce tells the credential from an earlier one with the same claim."""
    payload = pb.Credential(party=party, expires_ms=expires_ms, nonce=nonce, rest=rest)
    _write(payload, claim)
    raw = payload.SerializeToString(deterministic=True)
    signatures = [
        pb.Signature(key=pair.key, signature=pair.sign(TAG + party + raw))
        for pair in sorted(pairs, key=lambda pair: pair.key)
    ]
    return pb.SignedCredential(payload=raw, signatures=signatures).SerializeToString(deterministic=True)


def message_of(signed: bytes) -> bytes:
    """Wrap a signed credential as the message of a control block."""
    message = message_pb2.Message(credential=pb.SignedCredential.FromString(signed))
    return message.SerializeToString(deterministic=True)


def read(party: bytes, data: bytes) -> Credential:
    """Read a credential of `party` from bytes that may be hostile. Refuses it unless every signature is right."""
    if len(data) > CREDENTIAL_SIZE_MAX:
        raise TooLarge(f"credential: {len(data)} bytes, at most {CREDENTIAL_SIZE_MAX} are allowed")
    signed = pb.SignedCredential()
    _parse(signed, data)
    return _read(party, signed)


def _read(party: bytes, signed: pb.SignedCredential, only: str = "") -> Credential:
    """Read a credential. `only` names the one claim allowed inside: else credentials could be nested without end."""
    keys = [signature.key for signature in signed.signatures]
    if not 0 < len(keys) <= SIGNATURES_MAX or keys != sorted(set(keys)):
        raise BadEncoding(f"credential: {len(keys)} signatures; 1 to {SIGNATURES_MAX} by ascending key are allowed")
    message = TAG + party + signed.payload
    for signature in signed.signatures:
        if not verify(signature.key, message, signature.signature):
            raise BadSignature(f"credential: the signature of {signature.key.hex()[:8]} is not right for this party")
    payload = pb.Credential()
    _parse(payload, signed.payload)
    if payload.party != party:
        raise BadEncoding(f"credential: it is one of party {payload.party.hex()[:8]}, worthless in {party.hex()[:8]}")
    if only and payload.WhichOneof("claim") != only:
        raise BadEncoding(f"credential: it holds another one, which must be the admission of a {only}")
    expires_ms = fields.time_ms(payload.expires_ms)
    if len(payload.nonce) > NONCE_MAX:
        raise TooLarge(f"credential: a nonce of {len(payload.nonce)} bytes, at most {NONCE_MAX} are allowed")
    if len(payload.rest) not in (0, sha256().digest_size):
        raise BadEncoding("credential: what its lists go on with is named by a digest")
    signers = frozenset(keys)
    claim = _claim(party, payload)
    _check_signers(claim, signers)
    return Credential(claim, signers, expires_ms, payload.nonce, payload.rest, sha256(signed.payload).digest())


def _check_signers(claim: Claim, signers: frozenset[bytes]) -> None:
    """Check that a claim about a key is signed by that key too: nobody can claim somebody else's key."""
    wanted: tuple[bytes, ...] = ()
    if isinstance(claim, DeviceAdmission):
        wanted = (claim.identity, claim.device)
    elif isinstance(claim, FeedAdmission):
        wanted = (claim.device, claim.feed)
    for key in wanted:
        if key not in signers:
            raise BadSignature(
                f"credential: an admission lacks the signature of {key.hex()[:8]}, whom it admits or names"
            )


# -- to protobuf


def _write(payload: pb.Credential, claim: Claim) -> None:
    if isinstance(claim, PartyGenesis):
        payload.party_genesis.identity = claim.identity
        payload.party_genesis.admission.ParseFromString(claim.admission_credential)
        payload.party_genesis.parent, payload.party_genesis.parent_feed = claim.parent, claim.parent_feed
    elif isinstance(claim, DeviceAdmission):
        payload.device.identity, payload.device.device = claim.identity, claim.device
    elif isinstance(claim, FeedAdmission):
        payload.feed.feed, payload.feed.kind = claim.feed, cast(pb.FeedKind, int(claim.kind))
        payload.feed.device.ParseFromString(claim.device_credential)
    elif isinstance(claim, MemberAdmission):
        payload.member.subject = claim.subject
        payload.member.roles.extend(fields.role_numbers(claim.roles))
        payload.member.is_group = claim.is_group
    elif isinstance(claim, GroupAdmission):
        payload.group.group, payload.group.subject = claim.group, claim.subject
        payload.group.is_group = claim.is_group
    elif isinstance(claim, Narrowing):
        payload.narrowing.subject, payload.narrowing.group = claim.subject, claim.group
        payload.narrowing.roles.extend(fields.role_numbers(claim.roles))
        payload.narrowing.cuts.extend(fields.cuts_out(claim.cuts))
        payload.narrowing.expired, payload.narrowing.echo = claim.expired, claim.echo
    elif isinstance(claim, FeedEnd):
        payload.feed_end.identity, payload.feed_end.device = claim.identity, claim.device
        payload.feed_end.cuts.extend(fields.cuts_out(claim.cuts))
    elif isinstance(claim, Continuation):
        payload.continuation.cuts.extend(fields.cuts_out(claim.cuts))
        payload.continuation.control.extend(fields.cuts_out(claim.control))
    elif isinstance(claim, Equivocated):
        payload.equivocation.evidence = claim.evidence
    else:
        epoch_codec.write(payload, claim)


# -- from protobuf


def _claim(party: bytes, payload: pb.Credential) -> Claim:
    which = payload.WhichOneof("claim")
    if which == "party_genesis":
        return _genesis(party, payload.party_genesis)
    if which == "device":
        return DeviceAdmission(fields.key(payload.device.identity), fields.key(payload.device.device))
    if which == "feed":
        return _feed(party, payload.feed)
    if which == "member":
        member = payload.member
        return MemberAdmission(fields.key(member.subject), fields.roles(member.roles, least=1), member.is_group)
    if which == "group":
        group = payload.group
        return GroupAdmission(fields.key(group.group), fields.key(group.subject), group.is_group)
    if which == "narrowing":
        narrowing = payload.narrowing
        return Narrowing(
            fields.key(narrowing.subject),
            fields.roles(narrowing.roles),
            fields.cuts(narrowing.cuts),
            narrowing.expired,
            fields.key(narrowing.group) if narrowing.group else b"",
            narrowing.echo,
        )
    if which == "feed_end":
        return FeedEnd(
            fields.key(payload.feed_end.identity),
            fields.key(payload.feed_end.device),
            fields.cuts(payload.feed_end.cuts),
        )
    if which == "continuation":
        return Continuation(fields.cuts(payload.continuation.cuts), fields.control(payload.continuation.control))
    if which == "equivocation":
        fork = Fork.decode(payload.equivocation.evidence)
        if fork.party != party:
            raise BadEncoding("credential: evidence about a feed of another party")
        return Equivocated(fork.feed, fork.seq, payload.equivocation.evidence)
    found = epoch_codec.read(payload, which or "")
    if found is None:
        raise BadEncoding("credential: it makes no claim that this version knows")
    return found


def _genesis(party: bytes, genesis: pb.PartyGenesis) -> PartyGenesis:
    inner = _read(party, genesis.admission, only="feed").claim
    if not isinstance(inner, FeedAdmission) or inner.identity != genesis.identity:
        raise BadEncoding("credential: a party genesis must hold the admission of the founder's feed")
    signed = genesis.admission.SerializeToString(deterministic=True)
    if not genesis.parent and not genesis.parent_feed:
        return PartyGenesis(inner.identity, inner, signed)
    if genesis.parent == party:
        raise BadEncoding("credential: a party cannot be its own parent")
    return PartyGenesis(inner.identity, inner, signed, fields.key(genesis.parent), fields.key(genesis.parent_feed))


def _feed(party: bytes, admission: pb.FeedAdmission) -> FeedAdmission:
    inner = _read(party, admission.device, only="device").claim
    if not isinstance(inner, DeviceAdmission):
        raise BadEncoding("credential: a feed admission must hold the admission of its device")
    try:
        kind = FeedKind(int(admission.kind))
    except ValueError:
        raise BadEncoding(f"credential: unknown kind of feed {int(admission.kind)}") from None
    raw = admission.device.SerializeToString(deterministic=True)
    return FeedAdmission(fields.key(admission.feed), kind, inner.identity, inner.device, raw)


def _parse(message: pb.SignedCredential | pb.Credential, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise BadEncoding(f"credential: not a protobuf message of its kind: {error}") from None
