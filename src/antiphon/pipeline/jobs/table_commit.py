"""Writes and commits the tables of a run: blocks, items, links, epochs, quarantine, changes, standings, progress.

docs/pipeline.md has their columns. Only what changes is written: rows of touched items, and of parties that are read
in full. Rows of parties that the run did not look at stay as they are.

All tables are committed, and then published together, with the progress of each party for the next run. Commits of a
stream contain the batch number. So a run that ends before it publishes has no effect, and a batch that is repeated
counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from antiphon.core.reasons import code_of
from antiphon.pipeline.fold.block_account import REFUSED
from antiphon.pipeline.fold.item_fold import Models, refused
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.replan import PartyStep
from antiphon.pipeline.plan.standings import ENDED, PENDING, code_column, standings
from antiphon.pipeline.tables.delta_folder import DeltaFolder, StreamBatch, part_of
from antiphon.pipeline.tables.file_changes import FileChanges
from antiphon.pipeline.tables.incremental_write import IncrementalWrite
from antiphon.pipeline.tables.run_tables import CurrentVersions, RunTables
from antiphon.pipeline.tables.schemas import SCHEMAS

LARGE = ("blocks", "changes", "items", "links", "quarantine")  # tables that workers write
MESSAGE_TABLES = ("blocks", "items", "links")  # tables with content of messages

Stage = Callable[..., AbstractContextManager[None]]
Commit = Callable[[], int]


class CommitResult(NamedTuple):
    """The published versions, the number of files of each table, and the tallies of all items if wanted."""

    current: CurrentVersions
    files: Mapping[str, int]
    tallies: Sequence[Tally] | None


def commit_steps(
    spark: SparkSession,
    steps: Sequence[PartyStep],
    models: Models,
    tables: DeltaFolder,
    base: RunTables,
    stage: Stage,
    stream: StreamBatch | None = None,
    *,
    erased: bool = False,
    tallied: bool = False,
) -> CommitResult:
    """Write the steps of a run into the tables, which are now as in `base`; commit, and publish.

    A failure leaves the tables of `base`, and no files, but those of tasks that were still writing. These, and the
    files and versions that a killed process leaves, are gone after the next `recover`. If bodies were `erased`, the
    files of all older versions are deleted.
    """
    current = base.current
    part = part_of(current.run + 1)
    try:
        files = FileChanges(tables.folder, {table: base.files_by_partition(table) for table in LARGE})
        advance = IncrementalWrite(spark, steps, models, base, current.run + 1, part, files, tallied)
        with stage("fold", advance.messages):
            advance.write()
        with stage("commit"):
            commits = {
                **_commits(tables, files, base, stream),
                **_small_tables(tables, steps, base, stream, part),
            }
            versions = {**current.versions, **_at_once(commits)}
            streams = {**current.streams, **(dict([stream]) if stream else {})}
            now = CurrentVersions(current.run + 1, versions, streams, erased or current.vacuum_due)
            tables.publish(now)
    except BaseException:
        if tables.current_run() != current.run + 1:  # else it is published, and only the sync of its folder failed
            tables.discard(part)
        raise
    return CommitResult(vacuum_erased(tables, stage), files.counts(), advance.tallies)


def vacuum_erased(tables: DeltaFolder, stage: Stage) -> CurrentVersions:
    """Delete older files that may contain erased bodies, if that is due; return the published versions.

    `vacuum_due` is set by the publication that drops the bodies, and cleared when their files are deleted. So a run
    that is killed in between leaves the deletion to the next run.
    """
    current = tables.current()
    if current.vacuum_due:
        with stage("delete erased data"):
            for table in MESSAGE_TABLES:
                tables.vacuum(table)
            current = replace(current, vacuum_due=False)
            tables.publish(current)
    return current


def _commits(tables: DeltaFolder, files: FileChanges, base: RunTables, stream: StreamBatch | None) -> dict[str, Commit]:
    """Return the commits of the tables that workers have written."""

    def commit(table: str) -> int:
        removed = sorted(files.removed[table])
        return tables.commit(table, SCHEMAS[table], files.added[table].values(), removed, stream, base=base)

    changed = [table for table in LARGE if files.changed(table) or table not in base]
    return {table: partial(commit, table) for table in changed}


def _small_tables(
    tables: DeltaFolder, steps: Sequence[PartyStep], base: RunTables, stream: StreamBatch | None, part: str
) -> dict[str, Commit]:
    """Return the commits of the small tables: epochs, standings, and the progress for the next run."""
    plans = [step.plan for step in steps]
    ours = {plan.party for plan in plans}
    known: dict[str, list[tuple[Any, ...]]] = {
        "epochs": [(one.party, one.number, one.base or None, one.home, one.error) for one in plans],
        "standings": [(*row, code_of(row[-1]).value if row[-1] else None) for plan in plans for row in standings(plan)],
        "progress": [(step.now.party, step.now.encode()) for step in steps],
    }

    def put(name: str) -> int:
        others = [tuple(row.values()) for row in base.read_small(name) if row["party"] not in ours]
        return tables.write_small(name, SCHEMAS[name], [*others, *known[name]], stream, base=base, part=part)

    return {name: partial(put, name) for name in known}


def _at_once(commits: Mapping[str, Commit]) -> dict[str, int]:
    """Run all commits in parallel threads, since most of their time is waiting for the disk; return the versions."""
    with ThreadPoolExecutor(len(commits)) as threads:
        made = {table: threads.submit(commit) for table, commit in commits.items()}
        return {table: one.result() for table, one in made.items()}


def quarantine_table(run: Run) -> DataFrame:
    """Return the table `quarantine` of a batch run: blocks that do not count, or not yet, and why."""
    ends = [row for plan in run.survey.plans for row in _ended(plan)]
    waiting = run.judged.where(f.col("standing") == PENDING).select("party", "feed", "seq", *_one())
    void = refused(run.folded).withColumn("standing", f.lit(REFUSED)).select("party", "feed", "seq", *_one())
    return waiting.unionByName(void).unionByName(run.spark.createDataFrame(ends, SCHEMAS["quarantine"]))


def _one() -> tuple[Column, ...]:
    """Return the columns of a row for a single block."""
    return f.lit(1).cast("long").alias("count"), f.col("item"), f.col("standing"), f.col("reason"), code_column()


def _ended(plan: PartyPlan) -> Iterator[tuple[object, ...]]:
    """Yield the rows of blocks beyond the ends of feeds."""
    for party, feed, start, stop, standing, reason in standings(plan):
        if standing == ENDED:
            yield party, feed, start, stop - start, None, ENDED, reason, code_of(reason).value if reason else None
