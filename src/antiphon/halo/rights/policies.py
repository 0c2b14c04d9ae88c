"""The policy at a place: the last one seen there, or a tightening policy with a cut before it."""

from __future__ import annotations

from collections.abc import Iterator
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
    current = authority.last_policy(place, limit)
    while current is not None and (tighter := next(_tighter(authority, place, current), None)):
        current = tighter
    if current is None:
        return DEFAULT_POLICY
    assert isinstance(current.claim, Policy)
    return current.claim


def _tighter(authority: Authority, place: Place, current: Act) -> Iterator[Act]:
    """Yield the policies that replace one at a place that may not have seen them. They mean all that they have seen."""
    for act in authority.tightenings(current.stamp):
        claim = act.claim
        assert isinstance(claim, Policy)
        if (
            act.place.sees(current.position)
            and place.seq >= claim.cuts.get(place.feed, 0)
            and not authority.floors.below(act, place)
            and authority.signed_by_writer(act)
            and not expired(act)
            and authority.permits(act.place, OWNERS, current.stamp)
        ):
            yield act
