"""Grants (party genesis, member admission, group admission), and the owner of a feed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import (
    Cuts,
    FeedAdmission,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    PartyGenesis,
    Policy,
    Role,
    Roles,
    with_implied,
)

ANY: Roles = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Owner:
    """The identity and device that own a feed, and the act that opened it."""

    identity: bytes
    device: bytes
    kind: FeedKind
    opened: Act


def subject_of(grant: Act) -> bytes:
    claim = grant.claim
    assert isinstance(claim, PartyGenesis | MemberAdmission | GroupAdmission)
    return claim.identity if isinstance(claim, PartyGenesis) else claim.subject


def admits(act: Act) -> bool:
    """True if an act admits a member, or somebody to a group: it counts in the budget of its feed."""
    return isinstance(act.claim, MemberAdmission | GroupAdmission)


def given(grant: Act) -> Roles:
    claim = grant.claim
    return with_implied(claim.roles) if isinstance(claim, MemberAdmission) else ANY


def giving(act: Act) -> Act | None:
    """Return an act without what it takes away: a policy that tightens nothing; None for an act that gives nothing."""
    claim = act.claim
    if isinstance(claim, Policy):
        return replace(act, claim=replace(claim, tightens=False, cuts={}))
    return act if isinstance(claim, PartyGenesis | FeedAdmission | MemberAdmission | GroupAdmission) else None


def expired(act: Act) -> bool:
    """True if a credential had expired when it was written. Later expiry takes a narrowing or an epoch."""
    return 0 < act.expires_ms <= act.created_ms


def cut_of(cuts: Cuts, feed: bytes, genesis_feed: bytes) -> int:
    """Return the cut of a feed. A feed that is not named is cut to nothing; but a party keeps its genesis."""
    return max(cuts.get(feed, 0), 1) if feed == genesis_feed else cuts.get(feed, 0)
