"""A run that goes on from what the tables hold, and writes what is new into them: the one way in which they change.

A first run, a run after some messages more, and each micro-batch of a stream are this run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

from antiphon.core.timeframe import Timeframe
from antiphon.model.factory import ModelFactory
from antiphon.model.item import NO_BODY
from antiphon.pipeline.advance import Advance
from antiphon.pipeline.books import report_tables
from antiphon.pipeline.items import Models
from antiphon.pipeline.onward import Step, look_again
from antiphon.pipeline.progress import Progress
from antiphon.pipeline.report import Report
from antiphon.pipeline.run import Tell, silent, timed
from antiphon.pipeline.session import prepare
from antiphon.pipeline.tablelog import Current, Stream, TableLog
from antiphon.pipeline.tables import write_advance

BODILESS_MAX = 100_000  # messages without bodies that are asked for again


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
    steps: list[Step] = field(default_factory=list)  # of the last time

    def run(self, *, afresh: bool = False) -> Report:
        """Bring the tables to where the homes are now, and tell what they account for; `afresh`, from nothing."""
        with self.log.locked():
            current = self.advance(afresh=afresh)
            with self.stage("account"):
                plans = [step.plan for step in self.steps]
                report = report_tables(self.spark, self.log, list(map(str, self.homes)), plans)
        return replace(
            report, seconds=self.seconds, versions=dict(current.versions), afresh=self.afresh, still=self.still
        )

    @property
    def afresh(self) -> dict[str, int]:
        """Why parties were read afresh the last time, and how many."""
        return dict(Counter(step.afresh for step in self.steps if step.afresh))

    @property
    def still(self) -> int:
        """How many parties had nothing new."""
        return sum(step.still for step in self.steps)

    def advance(self, *, until: Timeframe | None = None, stream: Stream | None = None, afresh: bool = False) -> Current:
        """The same for a caller that holds the lock, up to an anchor; what readers see then.

        A batch of a stream that is in the tables is not done again.
        """
        current = self.log.current()
        if stream is not None and current.streams.get(stream[0], -1) >= stream[1]:
            return current
        known = {} if afresh else self._progress()
        with self.stage("verify and plan"):
            self.steps = look_again(
                prepare(self.spark),
                self.homes,
                known,
                _code(self.models()),
                parties=self.parties,
                bodiless=self._bodiless(),
                until=until,
            )
        if current.run and all(step.still for step in self.steps):
            if stream is not None:
                current = replace(current, streams={**current.streams, **dict([stream])})
                self.log.publish(current)
            return current
        return self._write(current, stream)

    def _write(self, current: Current, stream: Stream | None) -> Current:
        before = {name: self.log.read(self.spark, name) for name in ("items", "quarantine") if current.run}
        made = Advance(
            self.spark,
            tuple(map(str, self.homes)),
            self.steps,
            self.models,
            before.get("items"),
            before.get("quarantine"),
        )
        try:
            with self.stage("fold"):
                made.fold()
            return write_advance(made, self.log, self.stage, stream)
        finally:
            made.close()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Tell that a stage begins, and measure it."""
        with timed(name, self.tell, self.seconds):
            yield

    def _progress(self) -> Mapping[bytes, Progress]:
        found = {}
        for row in self.log.read_small("progress"):
            progress = Progress.decode(row["progress"])
            if progress is not None:
                found[bytes(row["party"])] = progress
        return found

    def _bodiless(self) -> dict[bytes, list[tuple[bytes, int]]]:
        found: dict[bytes, list[tuple[bytes, int]]] = {}
        for part in self.log.parts("quarantine", ["party", "feed", "seq"], [("reason", "==", NO_BODY)]):
            for row in part.slice(0, BODILESS_MAX).to_pylist():
                found.setdefault(row["party"], []).append((row["feed"], row["seq"]))
        return found


def _code(models: ModelFactory) -> str:
    """The code that states come from: with other code, they may be others."""
    return ", ".join([f"antiphon {version('antiphon')}", *models])
