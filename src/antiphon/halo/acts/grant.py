"""What a grant is: party genesis, member admission or group admission, and what is asked of one; whose a feed is."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import (
    Cuts,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    PartyGenesis,
    Role,
    Roles,
    with_implied,
)

ANY: Roles = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a feed is, and the act that opened it."""

    identity: bytes
    device: bytes
    kind: FeedKind
    opened: Act


def subject_of(grant: Act) -> bytes:
    claim = grant.claim
    assert isinstance(claim, PartyGenesis | MemberAdmission | GroupAdmission)
    return claim.identity if isinstance(claim, PartyGenesis) else claim.subject


def given(grant: Act) -> Roles:
    claim = grant.claim
    return with_implied(claim.roles) if isinstance(claim, MemberAdmission) else ANY


def self_signers(grant: Act) -> frozenset[bytes]:
    """Whose own word is enough to give a grant back: its subject's, and for a group's the group's."""
    claim = grant.claim
    if isinstance(claim, PartyGenesis):
        return frozenset({claim.identity})
    if isinstance(claim, GroupAdmission):
        return frozenset({claim.subject, claim.group})
    return frozenset({claim.subject}) if isinstance(claim, MemberAdmission) else frozenset()


def expired(act: Act) -> bool:
    """Whether a credential had expired when it was written. Later expiry is a narrowing, or an epoch."""
    return 0 < act.expires_ms <= act.created_ms


def cut_of(cuts: Cuts, feed: bytes, genesis_feed: bytes) -> int:
    """A feed that a narrowing does not name ends at nothing; but a party keeps its genesis."""
    return max(cuts.get(feed, 0), 1) if feed == genesis_feed else cuts.get(feed, 0)
