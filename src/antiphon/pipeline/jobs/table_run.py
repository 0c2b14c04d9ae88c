"""An incremental run: continues from the state of the tables, and writes what is new into them.

Nothing else writes tables. A first run, a later run, and each micro-batch of a stream are all `TableRun`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from antiphon.core.errors import DamagedTables
from antiphon.core.timeframe import Timeframe
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import NO_BODY
from antiphon.pipeline.fold.block_account import Account
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.jobs.report import Report
from antiphon.pipeline.jobs.table_account import report_tables, table_accounts
from antiphon.pipeline.jobs.table_commit import commit_steps, vacuum_erased
from antiphon.pipeline.plan.replan import BODILESS_MAX, PartyStep, replan_parties
from antiphon.pipeline.plan.reread import CHANGED
from antiphon.pipeline.plan.resume_point import ResumePoint
from antiphon.pipeline.session.full_disk import full_disk_named
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.session.stage_events import VERIFY, Tell, silent, timed
from antiphon.pipeline.session.worker_errors import worker_error
from antiphon.pipeline.source.inventory import absolute_paths
from antiphon.pipeline.tables.delta_folder import DeltaFolder, StreamBatch
from antiphon.pipeline.tables.run_tables import CurrentVersions, RunTables


@dataclass
class TableRun:
    """A run over homes, into a folder of tables. It can be run again and again."""

    spark: SparkSession
    tables: DeltaFolder
    homes: Sequence[str | Path]
    parties: Collection[bytes] = ()
    models: Models = ModelFactory.standard
    tell: Tell = silent
    seconds: dict[str, float] = field(default_factory=dict)
    steps: list[PartyStep] = field(default_factory=list)  # of the last run
    home_paths: tuple[str, ...] = field(init=False)  # paths of the homes, as workers reach them
    _files: Mapping[str, int] = field(default_factory=dict)  # files of each table after the last run
    _tallies: Sequence[Tally] | None = None

    def __post_init__(self) -> None:
        self.home_paths = absolute_paths(self.homes)

    def run(self, *, full: bool = False) -> Report:
        """Bring the tables up to date with the homes, and report; with `full`, read and fold everything again."""
        with self.full_disk_named(), self.tables.locked():
            self.update(full=full, tallied=True)
            self.tidy()
            tables = self.tables.at_last_run()
            with self.stage("account"):
                report = report_tables(self.spark, tables, self.home_paths, self.steps, self._tallies)
        versions = dict(tables.current.versions)
        return replace(report, seconds=self.seconds, versions=versions, full=self.full, unchanged=self.unchanged)

    def full_disk_named(self) -> AbstractContextManager[None]:
        """Raise `DiskFull` instead of an error that says that a disk is full."""
        kept = "readers see the tables of the last complete run, and the next run goes on from there"
        return full_disk_named(self.tables.folder, kept, self.spark)

    def tidy(self) -> None:
        """Compact the tables that have many files, and delete dead files if there are many bytes of them."""
        self.tables.compact_when_due(self._files)
        self.tables.vacuum_when_due()

    def accounts(self) -> dict[bytes, Account]:
        """Return the account of all parties of the last run, from the tables."""
        return table_accounts(self.tables.at_last_run(), self.steps)

    @property
    def full(self) -> dict[str, int]:
        """The number of parties that the last run read in full, by reason."""
        return dict(Counter(step.full_reason for step in self.steps if step.full_reason))

    @property
    def unchanged(self) -> int:
        """The number of parties without anything new."""
        return sum(step.unchanged for step in self.steps)

    def update(
        self,
        *,
        until: Timeframe | None = None,
        stream: StreamBatch | None = None,
        full: bool = False,
        tallied: bool = False,
    ) -> CurrentVersions:
        """Bring the tables up to the anchor `until`, and return the published versions. The caller has the lock.

        A batch of a stream that is in the tables already is skipped. With `tallied`, items are counted on the way, for
        the report.
        """
        self._files, self._tallies = {}, None
        try:
            return self._update(self.tables.recover(), until, stream, full, tallied)
        except DamagedTables as error:
            if not full:
                raise
            if self.parties:
                raise DamagedTables(f"{error}; so name no party: all of them are written again") from None
            return self._update(self.tables.forget(), until, stream, full, tallied)

    def _update(
        self, base: RunTables, until: Timeframe | None, stream: StreamBatch | None, full: bool, tallied: bool
    ) -> CurrentVersions:
        """Bring the tables from `base` up to the anchor `until`, and return the published versions."""
        current = base.current
        if stream is not None and current.streams.get(stream[0], -1) >= stream[1]:
            return current
        if current.versions:
            current = vacuum_erased(self.tables, self.stage)
            base = RunTables(base.folder, current)
        before, damaged = _progress(base), set[bytes]()
        known = {} if full else {party: progress for party, progress in before.items() if progress is not None}
        while True:
            self._look(base, known, until, damaged)
            if current.versions and all(step.unchanged for step in self.steps):
                if stream is not None:
                    current = replace(current, streams={**current.streams, **dict([stream])})
                    self.tables.publish(current)
                return current
            try:
                given = (self.spark, self.steps, self.models, self.tables, base, self.stage, stream)
                erased = any(_erases(step, before) for step in self.steps)
                current, self._files, self._tallies = commit_steps(*given, erased=erased, tallied=tallied)
                return current
            except (PySparkException, Py4JJavaError) as error:
                more = self._damaged(str(error)) - damaged
                if not more:
                    if isinstance(ours := worker_error(error), DamagedTables):
                        raise ours from None
                    raise
                damaged |= more

    def _look(
        self,
        base: RunTables,
        known: Mapping[bytes, ResumePoint],
        until: Timeframe | None,
        damaged: Collection[bytes],
    ) -> None:
        with self.stage(VERIFY):
            self.steps = replan_parties(
                prepare(self.spark),
                self.home_paths,
                known,
                _code(self.models()),
                parties=self.parties,
                bodiless=_bodiless(base),
                until=until,
                tell=self.tell,
                damaged=damaged,
            )

    def _damaged(self, error: str) -> set[bytes]:
        """Return the parties with blocks that changed after they were verified, by the error of a worker."""
        feeds = set(map(bytes.fromhex, re.findall(f"{CHANGED}: feed ([0-9a-f]{{64}})", error)))
        return {step.plan.party for step in self.steps if feeds & step.now.heads.keys()}

    @contextmanager
    def stage(self, name: str, messages: int = 0) -> Iterator[None]:
        """Announce a stage to the watcher, and measure it."""
        with timed(name, self.tell, self.seconds, messages):
            yield


def _progress(base: RunTables) -> dict[bytes, ResumePoint | None]:
    """Return the stored progress of each party; None if it cannot be read."""
    return {bytes(row["party"]): ResumePoint.decode(row["progress"]) for row in base.read_small("progress")}


def _bodiless(base: RunTables) -> dict[bytes, list[tuple[bytes, int]]]:
    """Return messages, by party, that were refused because their bodies were missing."""
    found: dict[bytes, list[tuple[bytes, int]]] = {}
    for part in base.scan("quarantine", ["party", "feed", "seq"], [("reason", "==", NO_BODY)]):
        for batch in part.to_batches(max_chunksize=BODILESS_MAX):
            for row in batch.to_pylist():
                some = found.setdefault(row["party"], [])
                if len(some) <= BODILESS_MAX:
                    some.append((row["feed"], row["seq"]))
    return found


def _erases(step: PartyStep, before: Mapping[bytes, ResumePoint | None]) -> bool:
    """True if bodies of a party were erased since the last run; the tables may still contain them."""
    was = before.get(step.plan.party)
    return step.plan.party in before and (was is None or was.erased != step.now.erased)


def _code(models: ModelFactory) -> str:
    """Return the versions of Antiphon and of all models; other code may give other states."""
    return ", ".join([f"antiphon {version('antiphon')}", *models])
