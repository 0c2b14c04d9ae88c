"""The account of blocks: what became of every block that a home holds. Nothing is dropped silently.

    held = control + based + applied + refused + pending + ended

The left side comes from the records of the feed stores, the right side from plans and from what the fold counted.
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
NOT_FOLDED = (CONTROL, BASED, PENDING, ENDED)  # standings of blocks that the fold does not read


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
    #: By standing (refused, pending, ended): the number of blocks for each reason.
    reasons: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    waits: dict[bytes, str] = field(default_factory=dict)  # by feed: why its next block is not delivered

    def add(self, standing: str, count: int, reason: str | None = None) -> None:
        """Count blocks with this standing."""
        setattr(self, standing, getattr(self, standing) + count)
        if reason is not None and count:
            self.reasons[standing][reason] += count

    @property
    def lost(self) -> int:
        """Number of blocks in no category. Not 0 only if the pipeline is wrong, or a home changed during the run."""
        return self.held - self.control - self.based - self.applied - self.refused - self.pending - self.ended


def account(survey: Survey, folded: Summary) -> dict[bytes, Account]:
    """Return the account of each party of a survey.

    The numbers of blocks that are not folded come from the plans; no block is read again. Applied is the sum of the
    messages that items count, and each refusal is a row of the fold.
    """
    found = {plan.party: planned_account(plan, survey.held[plan.party], NOT_FOLDED) for plan in survey.plans}
    for party, count in folded.applied.items():
        found[party].applied += count
    for (party, reason), count in folded.refused.items():
        found[party].add(REFUSED, count, reason)
    return found


def planned_account(plan: PartyPlan, held: int, standing: Collection[str]) -> Account:
    """Return the account of a party with the blocks that its plan counts, for the given standings."""
    waits = {lane.feed: lane.waits for lane in plan.lanes if lane.waits}
    made = Account(plan.party, held, waits=waits)
    for _, _, low, high, name, reason in standings(plan):
        if name in standing:
            made.add(name, high - low, reason)
    return made
