"""Whose a message is at its place, and which messages were erased by those who may."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import OWNERS, Erasure, FeedKind, GroupAdmission, Position

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority

GROUPS_MAX = 256  # that count for the author of a message


def author_at(authority: Authority, place: Place) -> tuple[bytes, tuple[bytes, ...], bool]:
    """Whose a message is at its place: the identity, the groups that it is in there, whether it is an owner."""
    owner = authority.owner(place.feed)
    if owner is None:
        return place.feed, (), False
    groups: dict[bytes, bool] = {}
    for last in (False, True):  # anybody may take anybody into groups of their own: those come last, and not all
        fresh = deque([owner.identity, *groups])
        while fresh:
            for grant in authority.older(fresh.popleft(), None):
                group = grant.claim.group if isinstance(grant.claim, GroupAdmission) else b""
                wanted = group and group not in groups and (last or group not in grant.signers)
                if wanted and len(groups) < GROUPS_MAX and place.sees(grant.position) and authority.left(grant, place):
                    groups[group] = True
                    fresh.append(group)
    return owner.identity, tuple(sorted(groups)), authority.permits(place, OWNERS)


def erasable(authority: Authority, act: Act, position: Position) -> bool:
    """Whether an erasure takes a message: it is an owner's, or that of the identity whose feed it is."""
    if not authority.signed_by_writer(act) or expired(act) or not authority.alive(act.place):
        return False
    erased, writer = authority.owner(position.feed), authority.owner(act.stamp.feed)
    if erased is None or writer is None or erased.kind is not FeedKind.DATA:
        return False
    return erased.identity == writer.identity or authority.permits(act.place, OWNERS)


def erased_in(authority: Authority, feed: bytes) -> frozenset[int]:
    """The messages of a data feed that are void by an erasure. What an epoch held before it stays in its base."""
    return frozenset(
        position.seq
        for act in authority.erasures
        if isinstance(act.claim, Erasure)
        for position in act.claim.positions
        if position.feed == feed
        and position.seq >= authority.floors.of(act.position, feed)
        and erasable(authority, act, position)
    )
