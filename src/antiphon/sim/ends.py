"""Where the writes of the revoked end, by the founder's own words: the simulator's account, not the authority's."""

from __future__ import annotations

from typing import NamedTuple

from antiphon.halo.act import Act
from antiphon.halo.claims import Cuts, MemberAdmission, Narrowing, Position
from antiphon.sim.peer import SimPeer
from antiphon.sim.workload import Written


class Revoked(NamedTuple):
    """A revocation that stands in the founder's control feed."""

    position: Position
    cuts: Cuts


class Ends:
    """Made when all is quiet, from the control feed of the founder, who never lies."""

    def __init__(self, founder: SimPeer, peers: dict[str, SimPeer]) -> None:
        acts = [act for act in founder.member.machine.acts() if act.stamp.feed == founder.genesis_feed]
        names = {bytes(peer.identity.key): name for name, peer in peers.items()}
        self._final = founder.epochs.chain().final
        self._revoked: dict[str, Revoked] = {}
        for act in sorted(acts, key=lambda act: act.stamp.seq):
            for name in _subjects(act, acts, names):
                if isinstance(act.claim, Narrowing):
                    self._revoked.setdefault(name, Revoked(act.position, act.claim.cuts))
                else:  # admitted again: what was ended stays so, and new feeds begin
                    self._revoked.pop(name, None)

    @property
    def names(self) -> set[str]:
        """Who is revoked."""
        return set(self._revoked)

    def counts(self, written: Written) -> bool:
        """Whether a write counts. What was final before the revocation was heard of stays so."""
        revoked = self._revoked.get(written.peer)
        if revoked is None:
            return True
        feed = bytes(written.stamp.feed)
        before = [epoch for epoch in self._final if epoch.control.get(revoked.position.feed, -1) < revoked.position.seq]
        end = max([revoked.cuts.get(feed, 0), *(epoch.cut.get(feed, 0) for epoch in before)])
        return written.stamp.seq < end


def _subjects(act: Act, acts: list[Act], names: dict[bytes, str]) -> set[str]:
    """Whom an act of the founder admits or revokes."""
    claim = act.claim
    if isinstance(claim, MemberAdmission):
        return {names[claim.subject]} if claim.subject in names else set()
    if not isinstance(claim, Narrowing) or claim.roles:
        return set()
    named = [other.claim for other in acts if other.position in claim.admissions]
    return {names[grant.subject] for grant in named if isinstance(grant, MemberAdmission) and grant.subject in names}
