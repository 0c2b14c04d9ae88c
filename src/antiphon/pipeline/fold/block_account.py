"""What became of every block: nothing is dropped silently.

    held = control + based + applied + refused + pending + ended

The left side comes from the stores' own records, the right side from plans and from what the fold has counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from antiphon.pipeline.fold.summary import Summary
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.standings import BASED, CONTROL, ENDED, PENDING, standings
from antiphon.pipeline.plan.survey import Survey

REFUSED = "refused"
NOT_FOLDED = (CONTROL, BASED, PENDING, ENDED)


@dataclass(slots=True)
class Account:
    """The blocks of one party."""

    party: bytes
    held: int
    control: int = 0
    based: int = 0
    applied: int = 0
    refused: int = 0
    pending: int = 0
    ended: int = 0
    #: Of what is refused, pending or ended: how many blocks for which reason, by standing.
    reasons: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    waits: dict[bytes, str] = field(default_factory=dict)  # why feeds do not go on

    def add(self, standing: str, count: int, reason: str | None = None) -> None:
        """So many blocks more that stand like this."""
        setattr(self, standing, getattr(self, standing) + count)
        if reason is not None and count:
            self.reasons[standing][reason] += count

    @property
    def lost(self) -> int:
        """Blocks that nobody accounts for; other than 0 only if the pipeline is wrong, or a home changed under it."""
        return self.held - self.control - self.based - self.applied - self.refused - self.pending - self.ended


def account(survey: Survey, folded: Summary) -> dict[bytes, Account]:
    """Account for the blocks of each party of a survey.

    Blocks that are not folded are as many as the plans say, and no block is read again. Applied messages are those that
    items have counted, and each refusal is a row.
    """
    found = {plan.party: begin(plan, survey.held[plan.party], NOT_FOLDED) for plan in survey.plans}
    for party, count in folded.applied.items():
        found[party].applied += count
    for (party, reason), count in folded.refused.items():
        found[party].add(REFUSED, count, reason)
    return found


def begin(plan: PartyPlan, held: int, standing: Collection[str]) -> Account:
    """A party with what its plan says of blocks that stand in some ways; what is held is the store's word."""
    waits = {lane.feed: lane.waits for lane in plan.lanes if lane.waits}
    made = Account(plan.party, held, waits=waits)
    for _, _, low, high, name, reason in standings(plan):
        if name in standing:
            made.add(name, high - low, reason)
    return made
