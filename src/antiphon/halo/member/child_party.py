"""Child parties: found one, and repeat in it the narrowings and device ends of its parent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.errors import InvalidInput, NotAuthorised
from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import OWNERS, WRITERS, FeedEnd, Narrowing
from antiphon.halo.keys.identity import Identity
from antiphon.halo.member.cuts import open_lengths
from antiphon.halo.rights.grant_checks import binds

if TYPE_CHECKING:
    from antiphon.halo.member.membership import Membership


def inherit(member: Membership, parent: Membership, founder: Identity) -> None:
    """Link a new child to its parent. The child's genesis then has seen all control blocks of the parent held here."""
    if parent.machine.parent is not None:
        raise InvalidInput(f"party {parent.party.short} is a child itself, and has no children; ask its parent")
    member.machine.inherit(parent.party, parent.genesis_feed)
    member.refresh()
    authority = member.machine.authority
    authority.settle()
    if not authority.roles(founder.key, member.machine.everything()) & WRITERS:
        raise NotAuthorised(
            f"identity {founder.key.short} is no owner or editor of party {parent.party.short}: nothing that it writes "
            "in a child would count"
        )


def echo(member: Membership, identity: Identity | None) -> list[Stamp]:
    """Repeat narrowings and device ends of the parent with the cuts held here, where no act in the child does yet.

    An owner echoes narrowings. An identity echoes the end of its device, with the identity's key.
    """
    parent = member.machine.parent
    if parent is None or member.control is None:
        return []
    member.refresh()
    written = []
    for act in sorted(parent.acts(), key=lambda act: act.stamp):
        if isinstance(act.claim, Narrowing):
            written += _narrowing(member, act, act.claim)
        elif isinstance(act.claim, FeedEnd) and identity is not None and act.claim.identity == identity.key:
            written += _device(member, act, act.claim, identity)
    return written


def _narrowing(member: Membership, act: Act, claim: Narrowing) -> list[Stamp]:
    authority = member.machine.authority
    authority.settle()
    resting = [  # also feeds whose own admission lies past the end of another, as it is now
        (feed, owner)
        for feed, owner in authority.feeds
        if feed not in claim.cuts and not owner.opened.place.sees(act.position)
        if claim.subject in authority.above(owner.identity, None, None)
    ]
    again = replace(claim, cuts=open_lengths(member, resting), expired=False, echo=True)
    draft = member.draft(again, frozenset({bytes(member.device.key)}))
    # A second echo would change nothing: feeds that the first one does not name have ended, and the least cut holds.
    wanted = any(
        binds(authority, act, grant)
        and authority.permits(draft.place, OWNERS, grant.stamp)
        and authority.echoes(act, grant) is None
        for grant in authority.grants_to(claim.subject)
    )
    return [member.write_claim(again)] if resting and wanted else []


def _device(member: Membership, act: Act, claim: FeedEnd, identity: Identity) -> list[Stamp]:
    authority = member.machine.authority
    feeds = any(owner.device == claim.device for _, owner in authority.feeds)
    known = any(
        end.place.sees(act.position) and not authority.inherited(end) for end in authority.device_ends(claim.device)
    )
    return [member.end_device(claim.device, identity)] if feeds and not known else []
