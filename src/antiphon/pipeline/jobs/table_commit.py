"""The tables of a run: blocks, items, links, epochs, quarantine, changes, and what is remembered for the next run.

docs/pipeline.md has their columns. They are written where they change: rows of items that were touched, and of parties
that were read afresh; rows of parties that a run has not looked at stay as they are.

All of them are committed, and then published together with what is remembered of each party; a batch of a stream has
its number in the same commits. So a run that ends before that has done nothing, and one that is done twice counts once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from antiphon.pipeline.fold.block_account import REFUSED
from antiphon.pipeline.fold.item_fold import Models, refused
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.replan import PartyStep
from antiphon.pipeline.plan.standings import ENDED, PENDING, standings
from antiphon.pipeline.tables.delta_folder import Current, Stream, TableLog
from antiphon.pipeline.tables.file_changes import FileSet
from antiphon.pipeline.tables.incremental_write import Advance
from antiphon.pipeline.tables.schemas import SCHEMAS

LARGE = ("blocks", "changes", "items", "links", "quarantine")  # that workers write
SAYS = ("blocks", "items", "links")  # what messages say, or follows from it

Stage = Callable[..., AbstractContextManager[None]]
Commit = Callable[[], int]


class Wrote(NamedTuple):
    """What readers see now, how many files tables have, and what all items come to, if that was asked for."""

    current: Current
    files: Mapping[str, int]
    tallies: Sequence[Tally] | None


def write_steps(
    spark: SparkSession,
    steps: Sequence[PartyStep],
    models: Models,
    log: TableLog,
    stage: Stage,
    stream: Stream | None = None,
    *,
    erased: bool = False,
    tallied: bool = False,
) -> Wrote:
    """Write what a run has come to, and let readers see it.

    What fails before it is committed leaves no file. After that a version may be named that nobody publishes: the next
    run goes back behind it. If bodies were `erased`, no file of any version before is left.
    """
    current = log.current()
    part = f"part-{uuid4().hex}"
    files = FileSet(log.folder, {table: log.shelves(table) for table in LARGE})
    try:
        advance = Advance(spark, steps, models, log, current.run + 1, part, files, tallied)
        with stage("fold", advance.messages):
            advance.write()
    except BaseException:
        for table in LARGE:
            shutil.rmtree(log.folder / table / part, ignore_errors=True)
        raise
    with stage("commit"):
        commits = {**_commits(log, files, current, stream), **_memories(log, steps, stream)}
        versions = {**current.versions, **_at_once(commits)}
        streams = {**current.streams, **(dict([stream]) if stream else {})}
        now = Current(current.run + 1, versions, streams, erased or current.owes)
        log.publish(now)
    return Wrote(forget(log, stage), files.counts(), advance.tallies)


def forget(log: TableLog, stage: Stage) -> Current:
    """Delete what was erased from files of versions before, if that is owed; what readers see now.

    It is owed from the publication on that no longer has it, until it is done: who is killed between does it next time.
    """
    current = log.current()
    if current.owes:
        with stage("let go of what was erased"):
            for table in SAYS:
                log.let_go(table)
            current = replace(current, owes=False)
            log.publish(current)
    return current


def _commits(log: TableLog, files: FileSet, current: Current, stream: Stream | None) -> dict[str, Commit]:
    """Of tables that workers have written."""

    def commit(table: str) -> int:
        removed = sorted(files.removed[table])
        return log.commit(table, SCHEMAS[table], files.added[table].values(), removed, stream)

    changed = [table for table in LARGE if files.changed(table) or table not in current.versions]
    return {table: partial(commit, table) for table in changed}


def _memories(log: TableLog, steps: Sequence[PartyStep], stream: Stream | None) -> dict[str, Commit]:
    """Of those that are small, and have what is remembered for the next run."""
    plans = [step.plan for step in steps]
    ours = {plan.party for plan in plans}
    known: dict[str, list[tuple[Any, ...]]] = {
        "epochs": [(one.party, one.number, one.base or None, one.home, one.error) for one in plans],
        "standings": [row for plan in plans for row in standings(plan)],
        "progress": [(step.now.party, step.now.encode()) for step in steps],
    }

    def put(name: str) -> int:
        others = [tuple(row.values()) for row in log.read_small(name) if row["party"] not in ours]
        return log.put_small(name, SCHEMAS[name], [*others, *known[name]], stream)

    return {name: partial(put, name) for name in known}


def _at_once(commits: Mapping[str, Commit]) -> dict[str, int]:
    """The versions that tables have then. Most of it is waiting for the disk, so none waits for another."""
    with ThreadPoolExecutor(len(commits)) as threads:
        made = {table: threads.submit(commit) for table, commit in commits.items()}
        return {table: one.result() for table, one in made.items()}


def quarantine_table(run: Run) -> DataFrame:
    """The quarantine of a run that has looked at everything: what does not count, or not yet, and why."""
    ends = [row for plan in run.survey.plans for row in _ended(plan)]
    waiting = run.judged.where(f.col("standing") == PENDING).select("party", "feed", "seq", *_one())
    void = refused(run.folded).withColumn("standing", f.lit(REFUSED)).select("party", "feed", "seq", *_one())
    return waiting.unionByName(void).unionByName(run.spark.createDataFrame(ends, SCHEMAS["quarantine"]))


def _one() -> tuple[Column, ...]:
    """A single block."""
    return f.lit(1).cast("long").alias("count"), f.col("item"), f.col("standing"), f.col("reason")


def _ended(plan: PartyPlan) -> Iterator[tuple[object, ...]]:
    """The ranges beyond the ends of feeds."""
    for party, feed, start, stop, standing, reason in standings(plan):
        if standing == ENDED:
            yield party, feed, start, stop - start, None, ENDED, reason
