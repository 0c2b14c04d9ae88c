"""The policy at a place: the last one seen there, or a tightening policy with a cut before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import OWNERS, Policy

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority

DEFAULT_POLICY = Policy()


def policy_at(authority: Authority, place: Place, limit: Stamp | None) -> Policy:
    """Return the policy at a place: the last one seen there, or a tightening policy with a cut before it."""
    current: Act | None = None
    for act in authority.policies:
        if (limit is None or act.stamp < limit) and place.sees(act.position) and authority.valid_policy(act):
            current = act
    moved = current is not None
    while moved and current is not None:
        moved = False
        for act in authority.policies:
            claim = act.claim
            assert isinstance(claim, Policy)
            if (
                act.stamp > current.stamp
                and current.position in claim.tightens
                and act.place.sees(current.position)
                and place.seq >= claim.cuts.get(place.feed, 0)
                and not authority.floors.below(act, place)
                and authority.signed_by_writer(act)
                and not expired(act)
                and authority.permits(act.place, OWNERS, current.stamp)
            ):
                current, moved = act, True
                break
    if current is None:
        return DEFAULT_POLICY
    assert isinstance(current.claim, Policy)
    return current.claim
