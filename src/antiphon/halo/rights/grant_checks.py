"""Checks that the issuer of a grant, or of a narrowing, had the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.grant import expired, subject_of
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
    if authority.past_fork(grant) or expired(grant) or grant.stamp.feed not in authority.feeds.controls:
        return False
    if authority.budgets.spent(grant):
        return False
    roles = authority.writer_roles(grant.place, grant.stamp)
    if authority.signed_by_writer(grant) and not OWNERS.isdisjoint(roles):
        return True
    if isinstance(claim, GroupAdmission):
        # Any key may be called a group's, also that of an identity: it lets others in only if a grant says that it is.
        return (
            claim.group in grant.signers
            and _is_group(authority, claim.group, grant)
            and bool(roles)
            and (authority.generous or not _copied(authority, grant))
        )
    if not authority.signed_by_writer(grant) or not isinstance(claim, MemberAdmission):
        return False
    if claim.is_group or not claim.roles <= _BY_EDITORS or authority.budgets.overspent_by_editor(grant):
        return False
    if EDITORS.isdisjoint(roles):
        return False
    return authority.generous or authority.policy(grant.place, grant.stamp).editors_admit


def _is_group(authority: Authority, group: bytes, grant: Act) -> bool:
    """True if a key was admitted as that of a group, by older grants that the issuer of a grant had seen.

    What was taken from the group since does not matter: whom its key lets in has no more than the group itself.
    """
    runs = authority.runs(group)
    return any(run.key.is_group and run.older(grant.stamp) and run.seen(grant.place) for run in runs)


def _copied(authority: Authority, grant: Act) -> bool:
    """True if the same signed bytes count at an older place: a removed member must not bring them back."""
    return any(
        authority.valid_grant(other)
        for other in authority.granted.copies.get(grant.digest, ())
        if grant.digest and other.stamp < grant.stamp
    )


def means(authority: Authority, narrowing: Act, grant: Act) -> bool:
    """True if a narrowing means a grant, if it has seen it."""
    claim = narrowing.claim
    assert isinstance(claim, Narrowing)
    if claim.subject != subject_of(grant):
        return False
    if claim.group and not (isinstance(grant.claim, GroupAdmission) and grant.claim.group == claim.group):
        return False
    return not claim.echo or authority.inherited(grant)


def may_take(authority: Authority, narrowing: Act, grant: Act) -> bool:
    """True if the issuer of a narrowing may take from a grant, valid or void, that it means and has seen.

    Its right must be older than the grant; or the subject, or the group that is named, has signed.
    """
    if authority.parent is not None and authority.inherited(narrowing):
        return may_take(authority.parent, narrowing, grant)
    claim = narrowing.claim
    assert isinstance(claim, Narrowing)
    late = claim.expired and not 0 < grant.expires_ms <= narrowing.created_ms
    return may_take_at_all(authority, narrowing, grant.stamp, own_word_only=late)


def may_take_at_all(
    authority: Authority, narrowing: Act, limit: Stamp | None = None, *, own_word_only: bool = False
) -> bool:
    """True if the issuer of a narrowing may take from grants older than `limit`, if there are any."""
    claim = narrowing.claim
    assert isinstance(claim, Narrowing)
    if authority.past_fork(narrowing) or expired(narrowing) or narrowing.stamp.feed not in authority.feeds.controls:
        return False
    if claim.subject in narrowing.signers or (claim.group and claim.group in narrowing.signers):
        return True
    wanted = _EXPIRERS if claim.expired else OWNERS
    allowed = not own_word_only and authority.signed_by_writer(narrowing)
    return allowed and authority.permits(narrowing.place, wanted, limit)


def binds(authority: Authority, narrowing: Act, grant: Act) -> bool:
    """True if a narrowing takes from a grant: it has seen it, and its issuer's right is older than the grant."""
    if authority.parent is not None and authority.inherited(narrowing) and not authority.inherited(grant):
        return False
    return (
        means(authority, narrowing, grant)
        and narrowing.place.sees(grant.position)
        and authority.valid_grant(grant)
        and may_take(authority, narrowing, grant)
    )
