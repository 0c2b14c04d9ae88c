"""The verdict on each act: in force, or void with a reason that a user can read. One void act hurts no other."""

from __future__ import annotations

from antiphon.feed.header import Kind
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import ANY
from antiphon.halo.credentials.claims import (
    EDITORS,
    OWNERS,
    WRITERS,
    Claim,
    EpochAct,
    Equivocated,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    PartyGenesis,
    Policy,
)
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.authorship import NOT_ERASABLE, erasable


def judge(authority: Authority, act: Act) -> str:
    """Return why an act is void; "" if it is in force."""
    claim = act.claim
    if claim is None:
        return act.problem
    if isinstance(claim, Equivocated):
        return ""  # it proves itself
    if isinstance(claim, EpochAct):
        return ""  # the chain of epochs decides: no narrowing changes a final epoch
    owner = authority.owner(act.stamp.feed)
    if owner is None or owner.kind is not FeedKind.CONTROL:
        return "its feed does not begin with its own admission"
    # Grants and policies count by older grants; an identity's own claims count at any place.
    limit = act.stamp if isinstance(claim, MemberAdmission | GroupAdmission | Policy) else None
    own_word = isinstance(claim, FeedEnd) or (isinstance(claim, Narrowing) and owner.identity in act.signers)
    if not own_word and not authority.alive(act.place, limit):
        return _why_dead(authority, act.place)
    if 0 < act.expires_ms <= act.created_ms:
        return "it had expired when it was written"
    return _judge_claim(authority, act, claim)


def _why_dead(authority: Authority, place: Place) -> str:
    if place.seq >= authority.end(place.feed) > 0 or place.seq >= authority.static_end(place.feed):
        return "it stands past the cut of its feed"
    return "its feed's first block has not seen an admission of its identity"


def _judge_claim(authority: Authority, act: Act, claim: Claim) -> str:
    signed = authority.signed_by_writer(act)
    if isinstance(claim, PartyGenesis):
        if act is not authority.genesis:
            return "it is not the genesis of this party"
        may = not claim.parent or authority.permits(act.place, WRITERS)
        return "" if may else "its founder may not write in the parent party"
    if isinstance(claim, FeedAdmission):
        return _judge_feed(authority, act, claim)
    if isinstance(claim, MemberAdmission | GroupAdmission):
        return "" if authority.valid_grant(act) else "its issuer may not admit this"
    if isinstance(claim, Narrowing):
        named = [authority.act(position) for position in claim.admissions]
        bound = any(grant is not None and authority.binds(act, grant) for grant in named)
        return "" if bound else "its issuer may not take from any of the admissions that it names"
    if isinstance(claim, FeedEnd):
        owners = [owner for owner in authority.owners().values() if owner.device == claim.device]
        ended = any(authority.ends_device(act, claim, owner) for owner in owners)
        return "" if ended else "only an identity, or a device for itself, may end its feeds"
    if not signed:
        return "it is not signed by the device that wrote it"
    if isinstance(claim, Policy):
        return "" if authority.permits(act.place, OWNERS, act.stamp) else "only owners set the policy"
    if isinstance(claim, Erasure):
        taken = any(erasable(authority, act, position) for position in claim.positions)
        return "" if taken else NOT_ERASABLE
    return "it admits a device by itself; a device is admitted with a feed"


def _judge_feed(authority: Authority, act: Act, claim: FeedAdmission) -> str:
    owner = authority.owner(claim.feed)
    if owner is None or owner.opened is not act:
        return "it admits a feed that is another's, or was admitted before"
    return "" if authority.permits(act.place, ANY) else "its device's identity is not a member"


def judge_data(authority: Authority, place: Place, kind: Kind) -> str:
    """Return why a data message at this place is void for want of rights; "" if its writer had them."""
    if kind is Kind.CREDENTIAL:
        return "a data feed holds item messages only"
    owner = authority.owner(place.feed)
    if owner is None or owner.kind is not FeedKind.DATA:
        return "its feed is not admitted as a data feed"
    if not authority.alive(place):
        if not place.sees(owner.opened.position):
            return "it has not seen the admission of its feed"
        return "it stands past the cut of its feed"
    if authority.parent is None:  # as `permits` would, which asks once more whether the feed is alive
        may = not EDITORS.isdisjoint(authority.roles(owner.identity, place))
    else:
        may = authority.permits(place, EDITORS)
    return "" if may else "its writer is not an owner or editor"
