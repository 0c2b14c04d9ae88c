"""Survey homes: verify their feeds and plan their parties in Spark's workers. The result is small.

Stage `blocks` reads the blocks of a survey as a DataFrame.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from pyspark.sql import DataFrame, SparkSession

from antiphon.core.errors import UnknownParty
from antiphon.core.timeframe import Timeframe
from antiphon.pipeline.plan.party_plan import PartyPlan, Planner
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.session.stage_events import VERIFY, Tell, silent
from antiphon.pipeline.session.tasks import in_workers, tasks_for
from antiphon.pipeline.source.home import open_blobs, open_feeds, write_anchor
from antiphon.pipeline.source.inventory import absolute_paths, take_inventory
from antiphon.pipeline.source.ranges import RANGE_BLOCKS, Fault, Limits, Range, divide_ranges, read_ranges

#: Columns of blocks that the later stages need.
NEEDED = ("party", "feed", "seq", "lamport", "kind", "created_ms", "item", "message", "fault")
PARTY_BLOCKS = 12_000  # planning a party takes at least as long as verifying so many blocks

Result = TypeVar("Result")
Request = TypeVar("Request", bound="PlanRequest")


@dataclass(frozen=True, slots=True)
class Survey:
    """Homes at one moment: the plan of each party, with the faults of its feeds."""

    homes: tuple[str, ...]
    plans: tuple[PartyPlan, ...]
    held: Mapping[bytes, int] = field(default_factory=dict)  # number of blocks in the stores' records, by party

    @property
    def anchor(self) -> Timeframe:
        """The last surveyed block of each feed."""
        return Timeframe({feed: seq for plan in self.plans for feed, seq in plan.anchor.items()})

    def plan(self, party: bytes) -> PartyPlan:
        """The plan of a party."""
        for plan in self.plans:
            if plan.party == party:
                return plan
        raise UnknownParty(f"party {party.hex()[:8]} is not in {', '.join(self.homes)}, or was not requested")


def survey(
    spark: SparkSession,
    homes: str | Path | Sequence[str | Path],
    parties: Collection[bytes] = (),
    *,
    verify: bool = True,
    blocks: int = RANGE_BLOCKS,
    open_parties: Collection[bytes] = (),
    tell: Tell = silent,
) -> Survey:
    """Survey some parties of one or several homes; all parties by default.

    With `verify`, every hash, link, body, head and header is checked. Rules that depend on other blocks of the party
    are the planner's. `open_parties` run without credentials: every feed of theirs counts, as with an `OpenAuthority`.
    """
    wanted = Limits(parties=frozenset(map(bytes, parties)))
    (found,) = in_workers(spark, take_inventory, [(absolute_paths(homes), wanted)])
    found.check(parties)
    tell(VERIFY, sum(one.held for one in found.parties))
    alone = frozenset(map(bytes, open_parties))
    known = sorted(found.parties, key=lambda one: (one.party, one.home))
    # The anchor excludes blocks that came after the inventory.
    asked = [_Asked(one.home, one.party, (), one.anchor, one.party in alone) for one in known]
    ranges = [one for some in known for one in some.ranges] if verify else []
    plans = verify_and_plan(spark, divide_ranges(ranges, blocks), _plan, asked)
    return Survey(found.homes, tuple(plans), {one.party: one.held for one in known})


def blocks(spark: SparkSession, survey: Survey, columns: Sequence[str] = NEEDED) -> DataFrame:
    """Stage `blocks`: the blocks of a survey, without later ones. Reading them checks only the store's
    checksums, because the survey has verified them.
    """
    reader = prepare(spark).read.format("antiphon").option("columns", ",".join(columns)).option("verify", "false")
    return reader.option("until", write_anchor(survey.anchor)).load(list(survey.homes))


class PlanRequest(Protocol):
    """A party to plan, with the faults that verification has found."""

    @property
    def party(self) -> bytes: ...
    @property
    def blocks(self) -> int: ...  # not planned before
    def _replace(self, *, faults: tuple[Fault, ...]) -> Self: ...


def verify_and_plan(
    spark: SparkSession, tasks: Sequence[tuple[Range, ...]], plan: Callable[[Request], Result], asked: Sequence[Request]
) -> list[Result]:
    """Verify ranges and plan parties. Return the plans in the order of `asked`.

    Both run at the same time: each party is planned as if it had no faults, which is the common case, and planned again
    if verification finds some. The first planning reads unverified blocks, so any exception of it is ignored, and the
    party is planned again.
    """
    jobs: list[Callable[[], Any]] = [partial(_at_first, plan, one) for one in asked]
    jobs += [partial(verify_task, task) for task in tasks]
    # A party is planned by a single task, however large it is.
    weights = [PARTY_BLOCKS + one.blocks // 3 for one in asked]
    weights += [sum(one.count for one in task) for task in tasks]
    done = in_workers(spark, _call, jobs, tasks_for(spark, sum(weights)), weights)
    faults: dict[bytes, list[Fault]] = defaultdict(list)
    for told in done[len(asked) :]:
        for fault in told:
            faults[fault.party].append(fault)
    plans = {at: made for at, made in enumerate(done[: len(asked)]) if made is not None}
    again = [at for at, one in enumerate(asked) if at not in plans or one.party in faults]
    found = [asked[at]._replace(faults=tuple(faults[asked[at].party])) for at in again]
    plans |= zip(again, in_workers(spark, plan, found), strict=True)
    return [plans[at] for at in range(len(asked))]


def verify_task(task: tuple[Range, ...]) -> list[Fault]:
    """Verify some ranges. Return their faults."""
    faults: list[Fault] = []
    for spans in read_ranges(task, faults.append):
        for _ in spans:
            pass
    return faults


def _call(job: Callable[[], Result]) -> Result:
    return job()


def _at_first(plan: Callable[[Request], Result], asked: Request) -> Result | None:
    """The plan of a party that is not verified yet; None if planning fails."""
    try:
        return plan(asked)
    except Exception:
        return None


class _Asked(NamedTuple):
    home: str
    party: bytes
    faults: tuple[Fault, ...]
    until: Timeframe
    alone: bool

    @property
    def blocks(self) -> int:
        return sum(self.until.values())


def _plan(asked: _Asked) -> PartyPlan:
    home, party, faults, until, alone = asked
    with open_feeds(home) as store, open_blobs(home) as blobs:
        return Planner(home, store, blobs, party, faults, until, alone, exact=True).plan()
