"""Checks that the issuer of a grant, or of a narrowing, had the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.halo.acts.act import Act
from antiphon.halo.acts.grant import ANY, expired, self_signers, subject_of
from antiphon.halo.credentials.claims import (
    EDITORS,
    OWNERS,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    PartyGenesis,
    Role,
    Roles,
)

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority

_EXPIRERS: Roles = frozenset({Role.OWNER, Role.EPOCH_GENERATOR})
_BY_EDITORS: Roles = frozenset({Role.EDITOR, Role.READER})


def judge_grant(authority: Authority, grant: Act) -> bool:
    if authority.parent is not None and authority.inherited(grant):
        return authority.parent.valid_grant(grant)
    claim = grant.claim
    if isinstance(claim, PartyGenesis):
        return True
    if authority.past_fork(grant) or expired(grant):
        return False
    if not authority.is_control(grant.stamp.feed):
        return False
    if isinstance(claim, GroupAdmission) and claim.group in grant.signers:
        return authority.permits(grant.place, ANY, grant.stamp) and not _copied(authority, grant)
    if not authority.signed_by_writer(grant):
        return False
    if authority.permits(grant.place, OWNERS, grant.stamp):
        return True
    if isinstance(claim, MemberAdmission) and claim.roles <= _BY_EDITORS:
        policy = authority.policy(grant.place, grant.stamp)
        return policy.editors_admit and authority.permits(grant.place, EDITORS, grant.stamp)
    return False


def _copied(authority: Authority, grant: Act) -> bool:
    """True if the same signed bytes count at an older place: a removed member must not bring them back."""
    return any(
        other.digest == grant.digest and other.stamp < grant.stamp and authority.valid_grant(other)
        for other in authority.grants.get(subject_of(grant), ())
        if grant.digest
    )


def judge_binding(authority: Authority, narrowing: Act, grant: Act) -> bool:
    if authority.parent is not None and authority.inherited(narrowing):
        return authority.parent.binds(narrowing, grant)
    claim = narrowing.claim
    assert isinstance(claim, Narrowing)
    if authority.past_fork(narrowing) or expired(narrowing):
        return False
    if not authority.is_control(narrowing.stamp.feed) or not narrowing.place.sees(grant.position):
        return False
    if not authority.valid_grant(grant):
        return False
    if claim.expired and not 0 < grant.expires_ms <= narrowing.created_ms:
        return False
    if not self_signers(grant).isdisjoint(narrowing.signers):
        return True
    wanted = _EXPIRERS if claim.expired else OWNERS
    return authority.signed_by_writer(narrowing) and authority.permits(narrowing.place, wanted, grant.stamp)
