"""One whole batch run over homes: from feeds to items, with a report of what became of every block.

A run holds its stages, so that tables can be written from them, and lets go of them when it is closed:

    with Run.begin(spark, "laptop") as run:
        report = run.report()
        run.items.show()
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.model.factory import ModelFactory
from antiphon.pipeline.account import account
from antiphon.pipeline.blocks import blocks
from antiphon.pipeline.bulk import fold_survey
from antiphon.pipeline.items import Models, items
from antiphon.pipeline.judged import DELIVERED, judged
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.report import PartyReport, Report, Skew, combine_groups
from antiphon.pipeline.session import prepare
from antiphon.pipeline.standings import counts
from antiphon.pipeline.survey import Survey, survey
from antiphon.pipeline.telling import VERIFY, Tell, silent, timed

#: What is looked at to count blocks: no bodies.
_COUNTED = ("party", "feed", "seq", "item", "fault")
NO_STATES = combine_groups(())  # the digest of none


@dataclass
class Run:
    """A run, and its stages. All of them look at the one moment of its survey."""

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
        """Verify the feeds of some parties, or of all, and plan them; the stages follow when they are asked for.

        `open_parties` run without credentials: every feed of theirs counts.
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
        """Let go of what Spark keeps for this run."""
        kept = self.__dict__.pop("folded", None)
        if kept is not None:
            kept.unpersist()

    @contextmanager
    def stage(self, name: str, messages: int = 0) -> Iterator[None]:
        """Tell that a stage begins, and measure it."""
        with timed(name, self.tell, self.seconds, messages):
            yield

    @cached_property
    def judged(self) -> DataFrame:
        """The blocks without their bodies, each with its standing."""
        return judged(blocks(self.spark, self.survey, _COUNTED), self.survey.plans)

    @cached_property
    def folded(self) -> DataFrame:
        """Items and refusals. They are kept, for several stages ask for them; on disk where memory does not do."""
        return fold_survey(self.spark, self.survey, self.models).persist()

    @property
    def items(self) -> DataFrame:
        return items(self.folded)

    def report(self) -> Report:
        """What has become of every block. It is here that Spark does the work."""
        with self.stage("fold", sum(counts(plan).get(DELIVERED, 0) for plan in self.survey.plans)):
            found, skew = states_of(self.items), skew_of(self.items)
        with self.stage("account"):
            books = account(self.survey, None, self.folded)
        parties = tuple(
            PartyReport(
                books[plan.party],
                *found.get(plan.party, (0, NO_STATES)),
                plan.number,
                plan.base,
                plan.error,
                waits_of(plan),
            )
            for plan in self.survey.plans
        )
        return Report(self.survey.homes, parties, skew, self.seconds)


def waits_of(plan: PartyPlan) -> tuple[str, ...]:
    """Why feeds of a party do not go on."""
    return tuple(sorted({lane.waits for lane in plan.lanes if lane.waits}))


def states_of(items: DataFrame) -> dict[bytes, tuple[int, bytes]]:
    """How many items each party has, and the digest of their states: as `states_digest`, but in the JVM."""
    data = f.coalesce("snapshot", f.unhex(f.lit("")))
    digest = f.unhex(f.sha2(f.concat("item", f.unhex(f.sha2(data, 256))), 256))
    listed = items.where(f.col("item") != f.lit(bytes(SYSTEM_ITEM)))  # a root is not listed
    rows = listed.select("party", digest.alias("digest")).withColumn("first", f.substring("digest", 1, 1))
    joined = f.array_join(f.array_sort(f.collect_list(f.hex("digest"))), "")
    groups = rows.groupBy("party", "first").agg(
        f.count("*").alias("count"), f.unhex(f.sha2(f.unhex(joined), 256)).alias("digest")
    )
    counts: dict[bytes, int] = defaultdict(int)
    digests: dict[bytes, list[bytes]] = defaultdict(list)
    for row in sorted(groups.collect(), key=lambda row: bytes(row["first"])):
        counts[bytes(row["party"])] += row["count"]
        digests[bytes(row["party"])].append(bytes(row["digest"]))
    return {party: (counts[party], combine_groups(digests[party])) for party in counts}


def skew_of(items: DataFrame) -> Skew:
    """How unevenly the messages of items lie."""
    row = items.agg(f.sum("messages").alias("all"), f.max(f.struct("messages", "item")).alias("most")).first()
    if row is None or row["most"] is None:
        return Skew()
    return Skew(row["all"], row["most"]["messages"], bytes(row["most"]["item"]))
