"""Compare two plans of a party: which blocks are newly delivered, and which older blocks now count otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from antiphon.party.engine.judge import changed
from antiphon.pipeline.plan.party_plan import LanePlan, PartyPlan

#: Blocks [start, stop) by feed.
Parts = dict[bytes, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """Changed parts of data feeds. Several changed parts of one feed are widened to one that spans them."""

    delivered: Parts = field(default_factory=dict)  # newly delivered
    spoilt: Parts = field(default_factory=dict)  # newly void, no longer void, void for another reason, or withdrawn
    authored: Parts = field(default_factory=dict)  # with another author, or one with other roles or groups

    @classmethod
    def between(cls, before: PartyPlan, after: PartyPlan) -> PlanDiff:
        """Compare two plans with the same base snapshot."""
        found = cls()
        old = {lane.feed: lane for lane in before.lanes}
        for lane in after.lanes:
            known = old.get(lane.feed) or LanePlan(lane.feed, lane.start, lane.base, lane.base, lane.end, lane.base)
            both = min(known.position, lane.position)
            if known.position < lane.position:
                found.delivered[lane.feed] = known.position, lane.position
            spoilt = [(low, min(high, both)) for low, high in changed(known.voids, lane.voids) if low < both]
            if lane.position < known.position:
                spoilt.append((lane.position, known.position))
            if spoilt:
                found.spoilt[lane.feed] = min(spoilt)[0], max(high for _, high in spoilt)
            authored = _authored(known, lane, both)
            if authored is not None:
                found.authored[lane.feed] = authored
        return found


def _authored(before: LanePlan, after: LanePlan, stop: int) -> tuple[int, int] | None:
    if before.authors == after.authors:
        return None
    steps = sorted({0, *(seq for seq, _ in before.authors), *(seq for seq, _ in after.authors), stop})
    parts = [
        (low, min(high, stop))
        for low, high in pairwise(steps)
        if low < stop and before.author(low) != after.author(low)
    ]
    return (parts[0][0], parts[-1][1]) if parts else None
