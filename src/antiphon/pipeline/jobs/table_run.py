"""A run that goes on from what the tables hold, and writes what is new into them: the one way in which they change.

A first run, a run after some messages more, and each micro-batch of a stream are this run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from antiphon.core.timeframe import Timeframe
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import NO_BODY
from antiphon.pipeline.fold.block_account import Account
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.jobs.report import Report
from antiphon.pipeline.jobs.table_account import books_of, report_tables
from antiphon.pipeline.jobs.table_commit import forget, write_steps
from antiphon.pipeline.plan.replan import BODILESS_MAX, PartyStep, replan_parties
from antiphon.pipeline.plan.reread import CHANGED
from antiphon.pipeline.plan.resume_point import ResumePoint
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.session.stage_events import VERIFY, Tell, silent, timed
from antiphon.pipeline.source.inventory import absolute_paths
from antiphon.pipeline.tables.delta_folder import Current, Stream, TableLog


@dataclass
class GoOn:
    """What to go on with: homes, tables, and code."""

    spark: SparkSession
    log: TableLog
    homes: Sequence[str | Path]
    parties: Collection[bytes] = ()
    models: Models = ModelFactory.standard
    tell: Tell = silent
    seconds: dict[str, float] = field(default_factory=dict)
    steps: list[PartyStep] = field(default_factory=list)  # of the last time
    places: tuple[str, ...] = field(init=False)  # of the homes, as workers reach them
    _files: Mapping[str, int] = field(default_factory=dict)  # of the tables that were written the last time
    _tallies: Sequence[Tally] | None = None

    def __post_init__(self) -> None:
        self.places = absolute_paths(self.homes)

    def run(self, *, afresh: bool = False) -> Report:
        """Bring the tables to where the homes are now, and tell what they account for; `afresh`, from nothing."""
        with self.log.locked():
            current = self.advance(afresh=afresh, tallied=True)
            if self.compact_when_due():
                current = self.log.current()
            with self.stage("account"):
                report = report_tables(self.spark, self.log, self.places, self.steps, self._tallies)
        return replace(
            report, seconds=self.seconds, versions=dict(current.versions), afresh=self.afresh, still=self.still
        )

    def compact_when_due(self) -> bool:
        """Put small files together, if there are many since the last time; whether it was done."""
        return self.log.compact_when_due(self._files)

    def books(self) -> dict[bytes, Account]:
        """What the tables account for of all parties that were looked at the last time."""
        return books_of(self.log, self.steps)

    @property
    def afresh(self) -> dict[str, int]:
        """Why parties were read afresh the last time, and how many."""
        return dict(Counter(step.afresh for step in self.steps if step.afresh))

    @property
    def still(self) -> int:
        """How many parties had nothing new."""
        return sum(step.still for step in self.steps)

    def advance(
        self,
        *,
        until: Timeframe | None = None,
        stream: Stream | None = None,
        afresh: bool = False,
        tallied: bool = False,
    ) -> Current:
        """The same for a caller that holds the lock, up to an anchor; what readers see then.

        A batch of a stream that is in the tables is not done again. With `tallied`, what there is to report is found
        on the way.
        """
        self._files, self._tallies = {}, None
        current = self.log.current()
        if stream is not None and current.streams.get(stream[0], -1) >= stream[1]:
            return current
        forget(self.log, self.stage)
        before, damaged = self._progress(), set[bytes]()
        known = {} if afresh else {party: progress for party, progress in before.items() if progress is not None}
        while True:
            self._look(known, until, damaged)
            if current.run and all(step.still for step in self.steps):
                if stream is not None:
                    current = replace(current, streams={**current.streams, **dict([stream])})
                    self.log.publish(current)
                return current
            try:
                given = (self.spark, self.steps, self.models, self.log, self.stage, stream)
                erased = any(_erases(step, before) for step in self.steps)
                current, self._files, self._tallies = write_steps(*given, erased=erased, tallied=tallied)
                return current
            except (PySparkException, Py4JJavaError) as error:
                more = self._damaged(str(error)) - damaged
                if not more:
                    raise
                damaged |= more

    def _look(self, known: Mapping[bytes, ResumePoint], until: Timeframe | None, damaged: Collection[bytes]) -> None:
        with self.stage(VERIFY):
            self.steps = replan_parties(
                prepare(self.spark),
                self.places,
                known,
                _code(self.models()),
                parties=self.parties,
                bodiless=self._bodiless(),
                until=until,
                tell=self.tell,
                damaged=damaged,
            )

    def _damaged(self, told: str) -> set[bytes]:
        """The parties of which blocks have changed since they were verified, by what a worker tells."""
        feeds = set(map(bytes.fromhex, re.findall(f"{CHANGED}: feed ([0-9a-f]{{64}})", told)))
        return {step.plan.party for step in self.steps if feeds & step.now.heads.keys()}

    @contextmanager
    def stage(self, name: str, messages: int = 0) -> Iterator[None]:
        """Tell that a stage begins, and measure it."""
        with timed(name, self.tell, self.seconds, messages):
            yield

    def _progress(self) -> dict[bytes, ResumePoint | None]:
        """What is remembered of each party; None where it cannot be read any more."""
        return {bytes(row["party"]): ResumePoint.decode(row["progress"]) for row in self.log.read_small("progress")}

    def _bodiless(self) -> dict[bytes, list[tuple[bytes, int]]]:
        found: dict[bytes, list[tuple[bytes, int]]] = {}
        for part in self.log.parts("quarantine", ["party", "feed", "seq"], [("reason", "==", NO_BODY)]):
            for batch in part.to_batches(max_chunksize=BODILESS_MAX):
                for row in batch.to_pylist():
                    some = found.setdefault(row["party"], [])
                    if len(some) <= BODILESS_MAX:
                        some.append((row["feed"], row["seq"]))
        return found


def _erases(step: PartyStep, before: Mapping[bytes, ResumePoint | None]) -> bool:
    """Whether bodies of a party were erased since, which tables may still have."""
    was = before.get(step.plan.party)
    return step.plan.party in before and (was is None or was.erased != step.now.erased)


def _code(models: ModelFactory) -> str:
    """The code that states come from: with other code, they may be others."""
    return ", ".join([f"antiphon {version('antiphon')}", *models])
