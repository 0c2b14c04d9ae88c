"""What is new since the tables were written, folded into them: a run that goes on. Where nothing is remembered, it is
all of it.

An item is touched if a message to it is delivered now, or if one that was delivered counts otherwise: because a control
block voids or revives it, ends its feed, or changes whose it is. The first are folded onto the states that the tables
have, as far as that will do; the others, from all their messages, which are read from the feeds again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from antiphon.pipeline.fold.fold_job import Task, buckets_for, in_chunks, lane_tasks, messages_in, tasks_of
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.plan.party_plan import NOT_ADMITTED, PartyPlan
from antiphon.pipeline.plan.plan_diff import Parts, PlanDiff
from antiphon.pipeline.plan.replan import PartyStep
from antiphon.pipeline.plan.reread import Ids, ids_in
from antiphon.pipeline.plan.standings import DELIVERED, ENDED, PENDING, Row, counts, standings
from antiphon.pipeline.session.tasks import DealtTasks, tasks_for
from antiphon.pipeline.source.ranges import Range
from antiphon.pipeline.tables.block_rows import Part, RowTask, block_tasks, waiting_tasks, write_rows
from antiphon.pipeline.tables.delta_folder import TableLog
from antiphon.pipeline.tables.file_changes import FileSet
from antiphon.pipeline.tables.parquet_files import Place, Written
from antiphon.pipeline.tables.shard_fold import Job, fold_onto
from antiphon.pipeline.tables.shard_tally import SHELVES


@dataclass
class Advance:
    """The steps of some parties, and what they come to in tables."""

    spark: SparkSession
    steps: Sequence[PartyStep]
    models: Models
    log: TableLog
    run: int  # which one it is
    part: str  # where files of it go
    files: FileSet
    tallied: bool = False  # whether it is wanted what all items come to

    def __post_init__(self) -> None:
        self.tallies: list[Tally] | None = None  # of all partitions, if anything was folded
        self._all = frozenset(step.plan.party for step in self.steps) if self.tallied else None
        self._moved = [step for step in self.steps if not step.still]
        self._now = {step.plan.party: step.now for step in self._moved}
        self.afresh = [step.plan for step in self._moved if step.afresh]
        self.on = [step for step in self._moved if not step.afresh]
        self.plans = (*self.afresh, *(step.plan for step in self.on))
        self._other = {
            step.plan.party: PlanDiff.between(step.before.plan, step.plan)
            for step in self.on
            if step.before is not None
        }
        self._parties = frozenset(plan.party for plan in self.afresh)

    @property
    def messages(self) -> int:
        """About how many are folded."""
        delivered = sum(counts(plan).get(DELIVERED, 0) for plan in self.afresh)
        return delivered + sum(step.grown for step in self.on)

    # -- items

    def write(self) -> None:
        """Fold what is new, and write it; and blocks, and what waits."""
        rows, cores = self.row_tasks(), self.spark.sparkContext.defaultParallelism
        blocks = sum(one.count for task in rows for one in task.ranges)
        work = DealtTasks.deal(self.spark, write_rows, rows, tasks_for(self.spark, blocks)) if rows else None
        ranges = self._ranges({party: other.delivered for party, other in self._other.items()})
        new = tasks_of(self.plans, ranges)
        late: Ids = defaultdict(set)
        if new or self.afresh:
            tasks = [*lane_tasks(self.plans, cores, self._parties), *new]
            written, found = self._onto(tasks, afresh=self._parties, left=self._spoilt, beside=work)
            for party, item in found:
                late[party].add(item)
        else:
            written = [] if work is None else work.done()
        for task, made in zip(rows, written, strict=True):
            self.files.take(task.table, made)
        whole = _united([self._spoilt, late])
        if whole:
            self._onto(lane_tasks(self.plans, cores, whole), whole=whole)

    def _onto(
        self,
        tasks: Sequence[Task],
        afresh: frozenset[bytes] = frozenset(),
        left: Ids | None = None,
        whole: Ids | None = None,
        beside: DealtTasks[Written] | None = None,
    ) -> tuple[list[Written], list[tuple[bytes, bytes]]]:
        """Fold onto the tables; what has come of other work, and items that could not be folded."""
        buckets = max(SHELVES, buckets_for(1, messages_in(tasks)))  # no more for more cores: tasks would share shelves
        about = (str(self.log.folder), self.part, self.files.held, self.plans, self.models, self.run, buckets)
        last = whole is not None or not self._spoilt  # what is left for another fold is counted there
        job = Job(*about, afresh, left or {}, whole, self._all if last else None)
        done, others = in_chunks(self.spark, tasks, buckets, fold_onto, job, whole, beside)
        for made in done:
            for table, written in made.files.items():
                self.files.take(table, written)
        self.tallies = [made.tally for made in done if made.tally is not None] or None
        return others, [key for made in done for key in made.late]

    @cached_property
    def _spoilt(self) -> Ids:
        """The items with messages that count otherwise than before."""
        found = ids_in(self.spark, self._ranges({party: other.spoilt for party, other in self._other.items()}))
        authored = ids_in(self.spark, self._ranges({party: other.authored for party, other in self._other.items()}))
        guarded: Ids = defaultdict(set)
        filters = [("guarded", "==", True)]
        for part in self.log.parts("items", ["party", "item"], filters) if authored else ():
            for row in part.to_pylist():
                if row["item"] in authored.get(row["party"], ()):
                    guarded[row["party"]].add(row["item"])
        return _united([found, guarded])

    # -- blocks, and what waits

    def row_tasks(self) -> list[RowTask]:
        """What a fold does not look at, so that it can be written at any time."""
        return [*self._block_tasks(), *self._waiting_tasks()]

    def _block_tasks(self) -> list[RowTask]:
        parts: dict[bytes, Parts] = {}
        for step in self._moved:
            had = {} if step.before is None or step.afresh else step.before.heads
            starts = {lane.feed: lane.start for lane in step.plan.lanes}
            for feed, (length, _) in step.now.heads.items():
                start = had[feed][0] if feed in had else starts.get(feed, 0)
                parts.setdefault(step.plan.party, {})[feed] = start, length
        return block_tasks(self._place("blocks"), self._held("blocks"), self._ranges(parts), self._parties)

    def _waiting_tasks(self) -> list[RowTask]:
        moved = [*self.afresh, *(step.plan for step in self.on if _waits_otherwise(step))]
        parts = [part for plan in moved for part in self._waiting(plan)]
        parties = [plan.party for plan in moved]
        return waiting_tasks(self._place("quarantine"), self._held("quarantine"), parts, parties)

    def _waiting(self, plan: PartyPlan) -> Iterator[Part]:
        for row in _waits(plan):
            party, feed, start, stop, standing, reason = row
            if standing == ENDED:
                yield Range(plan.home, party, feed, start, stop), ENDED, reason or ""
                continue
            why = NOT_ADMITTED if feed in plan.other else reason or ""
            for one in self._ranges({party: {feed: (start, stop - plan.beyond.get(feed, 0))}}):
                yield one, PENDING, why

    def _held(self, table: str) -> Mapping[str, Sequence[str]]:
        return self.files.held.get(table, {})

    def _place(self, table: str) -> Callable[[str], Place]:
        return lambda digit: Place(str(self.log.folder / table), self.part, digit)

    def _ranges(self, parts: Mapping[bytes, Parts]) -> list[Range]:
        """Parts of feeds, by party, as far as they were verified."""
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
