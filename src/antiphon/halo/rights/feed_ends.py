"""Feed ends: a revocation that leaves a writer without any role ends its feeds permanently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import Owner
from antiphon.halo.credentials.claims import (
    OWNERS,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    PartyGenesis,
    Position,
)
from antiphon.halo.rights.inheritance import cut_at

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority


def ending_cuts(authority: Authority, feed: bytes, owner: Owner, limit: Stamp | None) -> Iterator[int]:
    """Yield the cuts of revocations that left the feed's writer without any role: an ended feed never opens again."""
    opening = owner.opened.place
    for subject in authority.above(owner.identity, None, limit):
        for grant in authority.older(subject, limit):
            for narrowing in authority.narrowings_of(grant):
                claim = narrowing.claim
                assert isinstance(claim, Narrowing)
                if claim.roles or opening.sees(narrowing.position) or not authority.binds(narrowing, grant):
                    continue
                cut = cut_at(authority, narrowing, grant, feed)
                cut = max(cut, authority.floors.of(narrowing.position, feed))
                after = After(feed, cut, narrowing.place.seen, authority, narrowing)
                # The issuer can only have meant groups that it had seen the writer in.
                meant = subject in authority.above(owner.identity, narrowing.place, limit)
                if meant and not authority.roles(owner.identity, after, limit):
                    yield cut


@dataclass(frozen=True, slots=True)
class After(Place):
    """The view of a narrowing's issuer, and the grants that it had not seen and could not have taken."""

    authority: Authority
    narrowing: Act

    def sees(self, position: Position) -> bool:
        narrowing, authority = self.narrowing, self.authority
        if Place.sees(self, position) or narrowing.place.sees(position) or position == narrowing.position:
            return True
        act = authority.act(position)
        if act is None or not isinstance(act.claim, PartyGenesis | MemberAdmission | GroupAdmission):
            return False
        if act.place.sees(narrowing.position):
            return False
        apart = authority.inherited(narrowing) and not authority.inherited(act)  # a parent never sees its child
        return apart or not authority.permits(narrowing.place, OWNERS, act.stamp)
