"""Credentials: what is signed, what is refused, and that every claim survives the way to bytes and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import AntiphonError, BadEncoding, BadSignature, TooLarge
from antiphon.core.timeframe import Timeframe
from antiphon.core.v1 import credential_pb2 as pb
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    DeviceAdmission,
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    ModelKey,
    Narrowing,
    PartyGenesis,
    Policy,
    Position,
    Role,
)
from antiphon.testing.parties import pair_of

PARTY, ISSUER, OTHER, FEED = (pair_of(name) for name in ("party", "issuer", "other", "feed"))
WORD = credential.sign(PARTY.key, DeviceAdmission(ISSUER.key, OTHER.key), [ISSUER, OTHER])
ADMISSION = FeedAdmission(FEED.key, FeedKind.CONTROL, ISSUER.key, OTHER.key, WORD)
ADMITTED = credential.sign(PARTY.key, ADMISSION, [OTHER, FEED])
SNAPSHOT = bytes(Cid.of(b"state", DAG_CBOR))
MODELS = (ModelKey("antiphon/object", 1, 1), ModelKey("antiphon/object", 2, 1), ModelKey("antiphon/text", 1, 3))

CLAIMS: list[Claim] = [
    DeviceAdmission(ISSUER.key, OTHER.key),
    ADMISSION,
    PartyGenesis(ISSUER.key, ADMISSION, ADMITTED),
    MemberAdmission(OTHER.key, frozenset({Role.OWNER, Role.READER})),
    GroupAdmission(OTHER.key, FEED.key),
    GroupAdmission(OTHER.key, FEED.key, is_group=True),
    Narrowing(FEED.key, frozenset({Role.EDITOR}), {FEED.key: 9, OTHER.key: 0}, True, OTHER.key, True),
    Narrowing(OTHER.key, frozenset(), {}),
    FeedEnd(ISSUER.key, OTHER.key, {FEED.key: 4}),
    Policy(),
    Policy(True, OTHER.key, tuple(sorted((OTHER.key, FEED.key))), 2, True, {FEED.key: 7}),
    Policy(False, b"", (), 0, False, {}, True, *range(1, 11)),
    EpochGenesis(1, 2, SNAPSHOT, {FEED.key: 5, OTHER.key: 0}, Timeframe({FEED.key: 5}), SNAPSHOT, 99, MODELS),
    EpochGenesis(0, 1, b"", {}, Timeframe(), SNAPSHOT, 0),
    EpochAttestation(1, 2, SNAPSHOT, bytes(32)),
    EpochRefusal(1, 2, SNAPSHOT, SNAPSHOT, "it has another CID"),
    EpochRefusal(0, 1, SNAPSHOT),
    EpochEndorsement(2, 3, OTHER.key, 2, SNAPSHOT),
    EpochEndorsement(2, 1, OTHER.key),
    Erasure((Position(FEED.key, 3), Position(FEED.key, 4))),
    Erasure(()),
]
SIGNERS = [PARTY, ISSUER, OTHER, FEED]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: type(claim).__name__)
def test_a_claim_survives_the_way_to_bytes_and_back(claim: Claim) -> None:
    found = credential.read(PARTY.key, credential.sign(PARTY.key, claim, SIGNERS, expires_ms=17))
    assert found.claim == claim
    assert found.signers == {pair.key for pair in SIGNERS}
    assert found.expires_ms == 17


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: type(claim).__name__)
def test_the_bytes_of_a_claim_are_canonical(claim: Claim) -> None:
    signed = credential.sign(PARTY.key, claim, SIGNERS)
    assert credential.sign(PARTY.key, credential.read(PARTY.key, signed).claim, reversed(SIGNERS)) == signed


def test_one_flipped_bit_anywhere_is_refused() -> None:
    signed = credential.sign(PARTY.key, CLAIMS[5], [ISSUER])
    for at in range(len(signed)):
        for bit in (1, 128):
            broken = signed[:at] + bytes((signed[at] ^ bit,)) + signed[at + 1 :]
            with pytest.raises(AntiphonError):
                credential.read(PARTY.key, broken)


def test_a_signature_for_another_party_does_not_count() -> None:
    signed = credential.sign(OTHER.key, MemberAdmission(FEED.key, frozenset({Role.OWNER})), [ISSUER])
    with pytest.raises(BadSignature):
        credential.read(PARTY.key, signed)


def test_a_payload_of_another_party_does_not_count_even_if_signed_for_this_one() -> None:
    payload = pb.Credential(party=OTHER.key, member=pb.MemberAdmission(subject=FEED.key, roles=[pb.ROLE_OWNER]))
    raw = payload.SerializeToString()
    signature = ISSUER.sign(credential.TAG + PARTY.key + raw)
    signed = pb.SignedCredential(payload=raw, signatures=[pb.Signature(key=ISSUER.key, signature=signature)])
    with pytest.raises(BadEncoding, match="worthless"):
        credential.read(PARTY.key, signed.SerializeToString())


@pytest.mark.parametrize(
    ("claim", "signers"),
    [
        (DeviceAdmission(ISSUER.key, OTHER.key), [ISSUER]),
        (DeviceAdmission(ISSUER.key, OTHER.key), [OTHER]),
        (ADMISSION, [OTHER]),
        (ADMISSION, [FEED]),
    ],
)
def test_an_admission_needs_the_word_of_both_sides(claim: Claim, signers: list[object]) -> None:
    with pytest.raises(BadSignature, match="lacks the signature"):
        credential.read(PARTY.key, credential.sign(PARTY.key, claim, signers))  # type: ignore[arg-type]


def test_nothing_unsigned_and_nothing_signed_by_a_crowd() -> None:
    unsigned = pb.SignedCredential(payload=pb.Credential(party=PARTY.key).SerializeToString())
    with pytest.raises(BadEncoding, match="signatures"):
        credential.read(PARTY.key, unsigned.SerializeToString())
    crowd = [pair_of(f"signer {n}") for n in range(credential.SIGNATURES_MAX + 1)]
    with pytest.raises(BadEncoding, match="signatures"):
        credential.read(PARTY.key, credential.sign(PARTY.key, CLAIMS[3], crowd))


def test_what_is_too_large_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(TooLarge):
        credential.read(PARTY.key, bytes(credential.CREDENTIAL_SIZE_MAX + 1))


def signed_payload(payload: pb.Credential) -> bytes:
    payload.party = PARTY.key
    raw = payload.SerializeToString()
    signature = ISSUER.sign(credential.TAG + PARTY.key + raw)
    return pb.SignedCredential(
        payload=raw, signatures=[pb.Signature(key=ISSUER.key, signature=signature)]
    ).SerializeToString()


@pytest.mark.parametrize(
    "payload",
    [
        pb.Credential(),
        pb.Credential(member=pb.MemberAdmission(subject=b"short", roles=[pb.ROLE_OWNER])),
        pb.Credential(member=pb.MemberAdmission(subject=FEED.key)),
        pb.Credential(member=pb.MemberAdmission(subject=FEED.key, roles=[pb.ROLE_READER, pb.ROLE_OWNER])),
        pb.Credential(member=pb.MemberAdmission(subject=FEED.key, roles=[pb.ROLE_UNSPECIFIED])),
        pb.Credential(expires_ms=-1, group=pb.GroupAdmission(group=FEED.key, subject=FEED.key)),
        pb.Credential(narrowing=pb.Narrowing(subject=FEED.key, cuts=[pb.Cut(feed=FEED.key, length=1)] * 2)),
        pb.Credential(narrowing=pb.Narrowing(subject=b"x")),
        pb.Credential(policy=pb.Policy(attesters=[FEED.key, FEED.key])),
        pb.Credential(epoch_genesis=pb.EpochGenesis(number=1, snapshot=b"x", control=[])),
        pb.Credential(epoch_genesis=pb.EpochGenesis(number=1, snapshot=SNAPSHOT, control=[pb.Cut(feed=FEED.key)])),
        pb.Credential(epoch_genesis=pb.EpochGenesis(snapshot=SNAPSHOT, control=[])),
        pb.Credential(
            epoch_genesis=pb.EpochGenesis(number=1, snapshot=SNAPSHOT, control=[], models=[pb.ModelKey(name="a")] * 2)
        ),
        pb.Credential(epoch_attestation=pb.EpochAttestation(number=1, snapshot=SNAPSHOT)),
        pb.Credential(epoch_attestation=pb.EpochAttestation(snapshot=SNAPSHOT, genesis=bytes(32))),
        pb.Credential(epoch_refusal=pb.EpochRefusal(number=1, snapshot=SNAPSHOT, reason="x" * 2000)),
        pb.Credential(epoch_refusal=pb.EpochRefusal(number=1, snapshot=SNAPSHOT, computed=b"x")),
        pb.Credential(epoch_endorsement=pb.EpochEndorsement(number=1, candidate=FEED.key)),
        pb.Credential(epoch_endorsement=pb.EpochEndorsement(number=1, term=1, candidate=b"x")),
        pb.Credential(
            epoch_endorsement=pb.EpochEndorsement(
                number=1, term=1, candidate=FEED.key, accepted_term=1, accepted=SNAPSHOT
            )
        ),
        pb.Credential(erasure=pb.Erasure(positions=[pb.Position(feed=FEED.key)] * 2)),
        pb.Credential(equivocation=pb.Equivocation(evidence=b"x")),
        pb.Credential(feed=pb.FeedAdmission(feed=FEED.key, kind=pb.FEED_KIND_DATA)),
        pb.Credential(party_genesis=pb.PartyGenesis(identity=FEED.key)),
    ],
    ids=range(24),
)
def test_claims_that_are_not_well_formed_are_refused(payload: pb.Credential) -> None:
    with pytest.raises(AntiphonError):
        credential.read(PARTY.key, signed_payload(payload))


def test_a_child_names_its_parent_and_that_ones_first_feed_and_not_itself() -> None:
    child = replace(PartyGenesis(ISSUER.key, ADMISSION, ADMITTED), parent=FEED.key, parent_feed=ISSUER.key)
    assert credential.read(PARTY.key, credential.sign(PARTY.key, child, [PARTY])).claim == child
    for parent, feed in ((FEED.key, b""), (b"", FEED.key), (b"short", FEED.key), (PARTY.key, FEED.key)):
        wrong = replace(child, parent=parent, parent_feed=feed)
        with pytest.raises(AntiphonError):
            credential.read(PARTY.key, credential.sign(PARTY.key, wrong, [PARTY]))


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(AntiphonError):
        credential.read(PARTY.key, data)
