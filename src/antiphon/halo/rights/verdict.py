"""The verdict on each act: in force, or void with a reason that a user can read. One void act hurts no other."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.core.reasons import Reason, because, code_of
from antiphon.core.sightings import Marks
from antiphon.feed.header import Kind
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import ANY, Owner
from antiphon.halo.credentials.claims import (
    EDITORS,
    OWNERS,
    WRITERS,
    Claim,
    Continuation,
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
from antiphon.halo.limits import DEVICE_FEEDS_MAX, EDITOR_ADMISSIONS_MAX, GIVEN_MAX, IDENTITY_DEVICES_MAX
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.authorship import NOT_ERASABLE, erasable
from antiphon.halo.rights.grant_checks import may_take, means
from antiphon.halo.rights.inheritance import may_end

_NO_OWN_ADMISSION = because(Reason.NO_ADMISSION, "its feed does not begin with its own admission")
_EXPIRED = because(Reason.ACT_EXPIRED, "it had expired when it was written")
PAST_CUT = because(Reason.PAST_CUT, "it stands past the cut of its feed")
_NOT_ADMITTED = because(Reason.NO_ADMISSION, "its feed's first block has not seen an admission of its identity")
_NOT_THE_GENESIS = because(Reason.ACT_GENESIS, "it is not the genesis of this party")
_NOT_IN_PARENT = because(Reason.ROLE, "its founder may not write in the parent party")
_MAY_NOT_ADMIT = because(Reason.ADMITS, "its issuer may not admit this")
_MAY_NOT_TAKE = because(Reason.NARROWS, "its issuer may not take from any admission of its subject that it has seen")
_MAY_NOT_END = because(Reason.ENDS_DEVICE, "only an identity, or a device for itself, may end its feeds")
_UNSIGNED = because(Reason.ACT_UNSIGNED, "it is not signed by the device that wrote it")
_OWNERS_ONLY = because(Reason.ROLE, "only owners set the policy")
_DEVICE_ALONE = because(Reason.ADMITS, "it admits a device by itself; a device is admitted with a feed")
_FEED_TAKEN = because(Reason.FEED_TAKEN, "it admits a feed that is another's, or was admitted before")
_NOT_A_MEMBER = because(Reason.NOT_MEMBER, "its device's identity is not a member")
_ITEM_MESSAGES_ONLY = because(Reason.ITEM_MESSAGES_ONLY, "a data feed holds item messages only")
_NO_DATA_FEED = because(Reason.NO_ADMISSION, "its feed is not admitted as a data feed")
_UNSEEN_ADMISSION = because(Reason.NO_ADMISSION, "it has not seen the admission of its feed")
_TOO_MANY_FEEDS = because(
    Reason.BUDGET,
    f"its device has {DEVICE_FEEDS_MAX} feeds of this kind that are older, or its identity {IDENTITY_DEVICES_MAX} "
    "devices",
)
_SPENT = because(Reason.BUDGET, f"its feed has given {GIVEN_MAX} times before it since the last final epoch")
_EDITOR_SPENT = because(
    Reason.BUDGET,
    f"its feed has admitted {EDITOR_ADMISSIONS_MAX} members before since the last final epoch, and is not an owner's",
)
_NO_ROLE = because(Reason.ROLE, "its writer is not an owner or editor")
LOST_RIGHT = because(Reason.LOST, "its writer had the right to it, and lost it")
_TAKEN = frozenset({Reason.PAST_CUT, Reason.LOST, Reason.ERASED, Reason.BUDGET})


def was_taken(reason: str) -> bool:
    """True if a data message that is void for this reason was right when it was written, by what its writer had seen.

    Since then something was taken away: a cut, the end of a feed, an erasure or older feeds make it void.
    """
    return code_of(reason) in _TAKEN


def judge(authority: Authority, act: Act) -> str:
    """Return why an act is void; "" if it is in force."""
    claim = act.claim
    if claim is None:
        return act.problem
    if isinstance(claim, Continuation):
        return ""  # it is a part of the act before it
    if isinstance(claim, Equivocated):
        return ""  # it proves itself
    if isinstance(claim, EpochAct):
        return ""  # the chain of epochs decides: no narrowing changes a final epoch
    owner = authority.owner(act.stamp.feed)
    if owner is None or owner.kind is not FeedKind.CONTROL:
        return _NO_OWN_ADMISSION
    # Grants and policies count by older grants; an identity's own claims count at any place.
    limit = act.stamp if isinstance(claim, MemberAdmission | GroupAdmission | Policy) else None
    own_word = isinstance(claim, FeedEnd) or (isinstance(claim, Narrowing) and owner.identity in act.signers)
    if not own_word and not authority.alive(act.place, limit):
        return _why_dead(authority, act.place)
    if 0 < act.expires_ms <= act.created_ms:
        return _EXPIRED
    return _judge_claim(authority, act, claim)


def _why_dead(authority: Authority, place: Place) -> str:
    owner = authority.owner(place.feed)
    if owner is not None and not authority.budgets.counts(place.feed, owner):
        return _TOO_MANY_FEEDS
    if place.seq >= authority.end(place.feed) > 0 or place.seq >= authority.static_end(place.feed):
        return PAST_CUT
    return _NOT_ADMITTED


def _judge_claim(authority: Authority, act: Act, claim: Claim) -> str:
    signed = authority.signed_by_writer(act)
    if isinstance(claim, PartyGenesis):
        if act is not authority.genesis:
            return _NOT_THE_GENESIS
        may = not claim.parent or authority.permits(act.place, WRITERS)
        return "" if may else _NOT_IN_PARENT
    if isinstance(claim, FeedAdmission):
        return _judge_feed(authority, act, claim)
    if isinstance(claim, MemberAdmission | GroupAdmission):
        return "" if authority.valid_grant(act) else _why_not_given(authority, act)
    if isinstance(claim, Narrowing):
        # It may take nothing now: what it means may be void, or taken by others, and come back.
        seen = authority.seen_last(claim.subject, claim.group, act.place)
        may = any(means(authority, act, grant) and may_take(authority, act, grant) for grant in seen)
        return "" if may else _MAY_NOT_TAKE
    if isinstance(claim, FeedEnd):
        # It may end nothing now: the feeds of the device may come later.
        return "" if may_end(authority.home(act), act, claim) else _MAY_NOT_END
    if not signed:
        return _UNSIGNED
    if isinstance(claim, Policy):
        return "" if authority.permits(act.place, OWNERS, act.stamp) else _OWNERS_ONLY
    if isinstance(claim, Erasure):
        taken = any(erasable(authority, act, position) for position in claim.positions)
        return "" if taken else NOT_ERASABLE
    return _DEVICE_ALONE


def _judge_feed(authority: Authority, act: Act, claim: FeedAdmission) -> str:
    owner = authority.owner(claim.feed)
    if owner is None or owner.opened is not act:
        if claim.kind is FeedKind.DATA and authority.budgets.spent(act):
            return _SPENT
        counts = authority.budgets.counts(claim.feed, Owner(claim.identity, claim.device, claim.kind, act))
        return _FEED_TAKEN if counts else _TOO_MANY_FEEDS
    return "" if authority.permits(act.place, ANY) else _NOT_A_MEMBER


def _why_not_given(authority: Authority, act: Act) -> str:
    if authority.budgets.spent(act):
        return _SPENT
    return _EDITOR_SPENT if authority.budgets.overspent_by_editor(act) else _MAY_NOT_ADMIT


def judge_data(authority: Authority, place: Place, kind: Kind) -> str:
    """Return why a data message at this place is void for want of rights; "" if its writer had them."""
    if kind is Kind.CREDENTIAL:
        return _ITEM_MESSAGES_ONLY
    owner = authority.owner(place.feed)
    if owner is None or owner.kind is not FeedKind.DATA:
        if not authority.untaken(place.feed).permits(place, EDITORS):
            return _NO_DATA_FEED
        return _TOO_MANY_FEEDS if authority.feeds.is_crowded_out(place.feed) else LOST_RIGHT
    alive = authority.alive(place)
    if not alive and not place.sees(owner.opened.position):
        return _UNSEEN_ADMISSION
    if authority.parent is None:  # as `permits` would, which asks once more whether the feed is alive
        may = alive and not EDITORS.isdisjoint(authority.roles(owner.identity, place))
    else:
        may = alive and authority.permits(place, EDITORS)
    if may:
        return ""
    if not authority.untaken(place.feed).permits(place, EDITORS):
        return _NO_ROLE
    return LOST_RIGHT if alive else PAST_CUT


def acts_about(authority: Authority, feed: bytes, *, untaken: bool = False) -> Marks | None:
    """Return the acts that can tell apart two places of a data feed with the same seq; None if any act can.

    `judge_data` and the author of a message ask a place only whether it has seen the opening of its feed, and how many
    acts of each run that give to, or take from, its writer and the groups of its writer. Why a message is void also
    depends on what its writer had been given if nothing were ever taken: on the same acts of the `untaken` rights.
    """
    if authority.parent is not None:
        return None
    if untaken:
        authority = authority.untaken(feed)
    owner = authority.owner(feed)
    if owner is None:
        return ()
    found: list[tuple[bytes, Sequence[int]]] = [(owner.opened.stamp.feed, (owner.opened.stamp.seq,))]
    for subject in authority.above(owner.identity, None, None):
        found += [(run.feed, run.seqs) for run in authority.runs(subject)]
        found += [(run.feed, run.seqs) for run in authority.narrowing_runs(subject)]
    return found
