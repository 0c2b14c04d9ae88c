"""The write side of an incremental run: folds what is new since the last run into the tables. A first run is the same,
with everything new.

An item is touched if a message to it is delivered now, or if the verdict on an old message changed, because a control
block voids it, revives it, ends its feed or changes its author. Items with new messages are folded onto the states in
the tables, where that is enough (`resume_fold`). Items with changed verdicts are folded from all their messages, which
are read from the feeds again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from antiphon.pipeline.fold.fold_job import Task, buckets_for, lane_tasks, messages_in, range_tasks, shuffle_and_apply
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.plan.party_plan import NOT_ADMITTED, PartyPlan
from antiphon.pipeline.plan.plan_diff import Parts, PlanDiff
from antiphon.pipeline.plan.replan import PartyStep
from antiphon.pipeline.plan.reread import Ids, ids_in
from antiphon.pipeline.plan.standings import DELIVERED, ENDED, PENDING, Row, counts, standings
from antiphon.pipeline.session.tasks import DealtTasks, tasks_for
from antiphon.pipeline.source.ranges import Range
from antiphon.pipeline.tables.block_rows import BlockTask, WaitingRange, block_tasks, waiting_tasks, write_rows
from antiphon.pipeline.tables.file_changes import FileChanges
from antiphon.pipeline.tables.parquet_files import PartitionPath, WrittenFiles
from antiphon.pipeline.tables.run_tables import RunTables
from antiphon.pipeline.tables.shard_fold import ShardJob, fold_shard
from antiphon.pipeline.tables.shard_tally import SHARDS


@dataclass
class IncrementalWrite:
    """Writes the steps of some parties into the files of the tables."""

    spark: SparkSession
    steps: Sequence[PartyStep]
    models: Models
    tables: RunTables  # as the last run left them
    run: int  # the number of this run
    part: str  # the subfolder for files of this run
    files: FileChanges
    tallied: bool = False  # count all items of these parties on the way

    def __post_init__(self) -> None:
        self.tallies: list[Tally] | None = None  # of all partitions, if anything was folded and `tallied`
        self._all = frozenset(step.plan.party for step in self.steps) if self.tallied else None
        self._moved = [step for step in self.steps if not step.unchanged]
        self._now = {step.plan.party: step.now for step in self._moved}
        self.full = [step.plan for step in self._moved if step.full_reason]
        self.incremental = [step for step in self._moved if not step.full_reason]
        self.plans = (*self.full, *(step.plan for step in self.incremental))
        self._diffs = {
            step.plan.party: PlanDiff.between(step.before.plan, step.plan)
            for step in self.incremental
            if step.before is not None
        }
        self._full_parties = frozenset(plan.party for plan in self.full)

    @property
    def messages(self) -> int:
        """The approximate number of messages to fold."""
        delivered = sum(counts(plan).get(DELIVERED, 0) for plan in self.full)
        return delivered + sum(step.new_blocks for step in self.incremental)

    # -- items

    def write(self) -> None:
        """Fold what is new, and write all tables: items first, blocks and waiting blocks in the same job."""
        rows, cores = self.row_tasks(), self.spark.sparkContext.defaultParallelism
        blocks = sum(one.count for task in rows for one in task.ranges)
        work = DealtTasks.deal(self.spark, write_rows, rows, tasks_for(self.spark, blocks)) if rows else None
        ranges = self._ranges({party: other.delivered for party, other in self._diffs.items()})
        new = range_tasks(self.plans, ranges)
        refold: Ids = defaultdict(set)
        if new or self.full:
            tasks = [*lane_tasks(self.plans, cores, self._full_parties), *new]
            written, found = self._fold_shards(tasks, full=self._full_parties, skip=self._invalidated, alongside=work)
            for party, item in found:
                refold[party].add(item)
        else:
            written = [] if work is None else work.done()
        for task, made in zip(rows, written, strict=True):
            self.files.apply(task.table, made)
        refold = _united([self._invalidated, refold])
        if refold:
            self._fold_shards(lane_tasks(self.plans, cores, refold), refold=refold)

    def _fold_shards(
        self,
        tasks: Sequence[Task],
        full: frozenset[bytes] = frozenset(),
        skip: Ids | None = None,
        refold: Ids | None = None,
        alongside: DealtTasks[WrittenFiles] | None = None,
    ) -> tuple[list[WrittenFiles], list[tuple[bytes, bytes]]]:
        """Fold messages onto the shards. Return the results of work `alongside`, and items that must be refolded."""
        buckets = max(SHARDS, buckets_for(1, messages_in(tasks)))  # not more for more cores: tasks would share shards
        about = (str(self.tables.folder), self.part, self.files.current, self.plans, self.models, self.run, buckets)
        last = refold is not None or not self._invalidated  # a second fold counts all items again
        job = ShardJob(*about, full, skip or {}, refold, self._all if last else None)
        done, others = shuffle_and_apply(self.spark, tasks, buckets, fold_shard, job, refold, alongside)
        for made in done:
            for table, written in made.files.items():
                self.files.apply(table, written)
        self.tallies = [made.tally for made in done if made.tally is not None] or None
        return others, [key for made in done for key in made.refold]

    @cached_property
    def _invalidated(self) -> Ids:
        """The items with messages whose verdict changed: these must be refolded."""
        found = ids_in(self.spark, self._ranges({party: other.spoilt for party, other in self._diffs.items()}))
        authored = ids_in(self.spark, self._ranges({party: other.authored for party, other in self._diffs.items()}))
        guarded: Ids = defaultdict(set)
        filters = [("guarded", "==", True)]
        for part in self.tables.scan("items", ["party", "item"], filters) if authored else ():
            for row in part.to_pylist():
                if row["item"] in authored.get(row["party"], ()):
                    guarded[row["party"]].add(row["item"])
        return _united([found, guarded])

    # -- blocks, and waiting blocks

    def row_tasks(self) -> list[BlockTask]:
        """Return the tasks that write rows of blocks. They do not depend on the fold."""
        return [*self._block_tasks(), *self._waiting_tasks()]

    def _block_tasks(self) -> list[BlockTask]:
        parts: dict[bytes, Parts] = {}
        for step in self._moved:
            had = {} if step.before is None or step.full_reason else step.before.heads
            starts = {lane.feed: lane.start for lane in step.plan.lanes}
            for feed, (length, _) in step.now.heads.items():
                start = had[feed][0] if feed in had else starts.get(feed, 0)
                parts.setdefault(step.plan.party, {})[feed] = start, length
        return block_tasks(self._place("blocks"), self._held("blocks"), self._ranges(parts), self._full_parties)

    def _waiting_tasks(self) -> list[BlockTask]:
        moved = [*self.full, *(step.plan for step in self.incremental if _waits_otherwise(step))]
        parts = [part for plan in moved for part in self._waiting(plan)]
        parties = [plan.party for plan in moved]
        return waiting_tasks(self._place("quarantine"), self._held("quarantine"), parts, parties)

    def _waiting(self, plan: PartyPlan) -> Iterator[WaitingRange]:
        for row in _waits(plan):
            party, feed, start, stop, standing, reason = row
            if standing == ENDED:
                yield Range(plan.home, party, feed, start, stop), ENDED, reason or ""
                continue
            why = NOT_ADMITTED if feed in plan.other else reason or ""
            for one in self._ranges({party: {feed: (start, stop - plan.beyond.get(feed, 0))}}):
                yield one, PENDING, why

    def _held(self, table: str) -> Mapping[str, Sequence[str]]:
        return self.files.current.get(table, {})

    def _place(self, table: str) -> Callable[[str], PartitionPath]:
        return lambda digit: PartitionPath(str(self.tables.folder / table), self.part, digit)

    def _ranges(self, parts: Mapping[bytes, Parts]) -> list[Range]:
        """Return parts of feeds, by party, cut at the last verified block."""
        ranges = []
        for party, some in parts.items():
            now = self._now[party]
            for feed, (low, high) in some.items():
                stop = min(high, now.heads[feed][0]) if feed in now.heads else 0
                if low < stop:
                    ranges.append(Range(now.plan.home, party, feed, low, stop))
        return ranges


def _waits_otherwise(step: PartyStep) -> bool:
    return step.before is None or _waits(step.before.plan) != _waits(step.plan)


def _waits(plan: PartyPlan) -> list[Row]:
    return [row for row in standings(plan) if row[4] in (PENDING, ENDED)]


def _united(ids: Iterable[Mapping[bytes, Collection[bytes]]]) -> Ids:
    found: Ids = defaultdict(set)
    for some in ids:
        for party, items in some.items():
            found[party].update(items)
    return dict(found)
