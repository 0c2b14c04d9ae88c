"""A batch run over homes: from feeds to items, with a report of what became of every block.

A run keeps the DataFrames of its stages until it is closed:

    with Run.begin(spark, "laptop") as run:
        run.items.show()
        report = run.report()
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from antiphon.model.factory import ModelFactory
from antiphon.pipeline.fold.block_account import Account, account
from antiphon.pipeline.fold.fold_job import fold_survey, tally_survey
from antiphon.pipeline.fold.item_fold import Models, items
from antiphon.pipeline.fold.summary import States, Summary, summary
from antiphon.pipeline.jobs.report import PartyReport, Report
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.standings import DELIVERED, counts, judged
from antiphon.pipeline.plan.survey import Survey, blocks, survey
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.session.stage_events import VERIFY, Tell, silent, timed

#: Columns that are read to count blocks: no bodies.
_COUNTED = ("party", "feed", "seq", "item", "fault")


@dataclass
class Run:
    """A run and its stages. All stages read the feeds up to the anchor of the survey."""

    spark: SparkSession
    survey: Survey
    models: Models = ModelFactory.standard
    tell: Tell = silent
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        spark: SparkSession,
        homes: str | Path | Sequence[str | Path],
        parties: Collection[bytes] = (),
        *,
        models: Models = ModelFactory.standard,
        tell: Tell = silent,
        open_parties: Collection[bytes] = (),
    ) -> Self:
        """Verify and plan the feeds of some parties, or of all; the stages are computed on use.

        `open_parties` run without credentials: all their feeds count.
        """
        seconds: dict[str, float] = {}
        with timed(VERIFY, tell, seconds):
            looked = survey(prepare(spark), homes, parties, open_parties=open_parties, tell=tell)
        return cls(spark, looked, models, tell, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release what Spark caches for this run."""
        kept = self.__dict__.pop("folded", None)
        if kept is not None:
            kept.unpersist()

    @contextmanager
    def stage(self, name: str, messages: int = 0) -> Iterator[None]:
        """Announce a stage to the watcher, and measure it."""
        with timed(name, self.tell, self.seconds, messages):
            yield

    @cached_property
    def judged(self) -> DataFrame:
        """Blocks without bodies, each with its standing."""
        return judged(blocks(self.spark, self.survey, _COUNTED), self.survey.plans)

    @cached_property
    def folded(self) -> DataFrame:
        """Items and refused messages, cached by Spark in memory or on disk, as several stages use them.

        Use this before `report` if both are wanted: a report alone caches nothing.
        """
        return fold_survey(self.spark, self.survey, self.models).persist()

    @property
    def items(self) -> DataFrame:
        """The items, as stage `items` has them."""
        return items(self.folded)

    def report(self) -> Report:
        """Fold everything, and report what became of every block."""
        with self.stage("fold", sum(counts(plan).get(DELIVERED, 0) for plan in self.survey.plans)):
            kept = "folded" in self.__dict__
            found = summary(self.folded) if kept else tally_survey(self.spark, self.survey, self.models)
        accounts = account(self.survey, found)
        parties = party_reports(self.survey.plans, accounts, found)
        return Report(self.survey.homes, parties, found.skew, self.seconds)


def party_reports(
    plans: Iterable[PartyPlan], accounts: Mapping[bytes, Account], found: Summary
) -> tuple[PartyReport, ...]:
    """Return the report of each party."""
    made = []
    for plan in plans:
        states = found.states.get(plan.party, States())
        waits = tuple(sorted({lane.waits for lane in plan.lanes if lane.waits}))
        about = (plan.number, plan.base, plan.error, waits)
        made.append(PartyReport(accounts[plan.party], states.count, states.digest, *about))
    return tuple(made)
