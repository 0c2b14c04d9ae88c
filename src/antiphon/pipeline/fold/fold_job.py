"""Folds a whole survey. Same result as stages `blocks`, `judged`, `messages` and `folded`, without message rows.

Executors read the delivered blocks and shuffle them in chunks, columns of some thousand messages, to the partition of
their items. There they are put into the total order and folded. Use the stages where messages are wanted as rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
from pyspark import RDD, Broadcast
from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from antiphon.model.factory import ModelFactory
from antiphon.pipeline.columnar.mutation_reader import LaneIndex
from antiphon.pipeline.columnar.register_fold import RegisterFold
from antiphon.pipeline.fold.flat_item_fold import flat_batches, flat_items
from antiphon.pipeline.fold.item_fold import SCHEMA as FOLDED, ItemFold, Models, load_models, refusal_rows, row_batches
from antiphon.pipeline.fold.summary import Summary, Tally, combine_tallies
from antiphon.pipeline.order.shuffle_chunk import (
    BASE_LANE,
    BUCKETS_MAX,
    LaneTask,
    ShuffleChunk,
    open_chunk,
    read_chunks,
)
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.survey import Survey
from antiphon.pipeline.session.tasks import DealtTasks
from antiphon.pipeline.source.block_columns import arrow_of, batch_of
from antiphon.pipeline.source.ranges import RANGE_BLOCKS, Range, divide_ranges

PARTITION_MESSAGES = 160_000  # about the most that a worker has in memory, unless one item has more
PARTITIONS_PER_CORE = 2
TASK_BLOCKS = 200_000  # about the most that one task reads
#: If every task reads all messages itself, this many may be read in all; that takes less time than a shuffle.
FEW_MESSAGES, FEW_RANGES = 200_000, 2_000
FEW_SIZE = 64 << 20  # bytes of chunks that a task then has in memory; with more, it reads again for each half
_CHUNKS = StructType([StructField("bucket", IntegerType(), False), StructField("data", BinaryType(), False)])
_ARROW = arrow_of(_CHUNKS)
_AT_ONCE = 64  # chunks in one batch for Spark

Task = tuple[LaneTask, ...]
Result = TypeVar("Result")
Shared = TypeVar("Shared")


class _JobContext(NamedTuple):
    """Broadcast to all tasks of a fold."""

    tasks: tuple[Task, ...]
    only: Mapping[bytes, Collection[bytes]] | None
    shared: Any


def shuffle_and_apply(
    spark: SparkSession,
    tasks: Sequence[Task],
    buckets: int,
    act: Callable[[Shared, int, Iterator[ShuffleChunk]], Result],
    shared: Shared,
    only: Mapping[bytes, Collection[bytes]] | None = None,
    alongside: DealtTasks[Any] | None = None,
) -> tuple[list[Result], list[Any]]:
    """Read the messages of `tasks`, shuffle them to the partitions of their items, and call `act(shared, partition,
    chunks)` for each partition. Return the results in partition order, and those of the work done `alongside`.

    `only` restricts it to some items, by party. Work `alongside` runs last in the same job, on cores that are idle by
    then. The job uses RDDs: Spark plans and compiles DataFrames for longer than it takes to fold some hundred thousand
    messages. Few messages are not shuffled: one task for each core reads all, and keeps those of its partitions.
    """
    context = spark.sparkContext
    known = context.broadcast(_JobContext(tuple(tasks), only, shared))
    try:
        count = min(buckets, _power_of_2(context.defaultParallelism))
        if count * messages_in(tasks) <= FEW_MESSAGES and count * sum(map(len, tasks)) <= FEW_RANGES:
            places = context.parallelize(range(count), count)
            acting = places.mapPartitions(partial(_read_and_act, known, act, buckets, buckets // count))
        else:
            numbers = context.parallelize(range(len(tasks)), len(tasks))
            chunks = numbers.mapPartitions(partial(_read, known, buckets))
            acting = chunks.partitionBy(buckets, int).mapPartitionsWithIndex(partial(_act, known, act))
        if alongside is None:
            return acting.collect(), []
        done: list[Any] = context.union([cast("RDD[Any]", acting), alongside.rdd]).collect()
        return done[:buckets], alongside.results(done[buckets:])
    finally:
        known.destroy()


def tally_survey(spark: SparkSession, survey: Survey, models: Models = ModelFactory.standard) -> Summary:
    """Fold a whole survey, and return the summary alone; items are not kept."""
    tasks = lane_tasks(survey.plans, spark.sparkContext.defaultParallelism)
    buckets = buckets_for(spark.sparkContext.defaultParallelism, messages_in(tasks))
    tally = partial(_tally, models, buckets.bit_length() - 1)
    return combine_tallies(shuffle_and_apply(spark, tasks, buckets, tally, survey.plans)[0])


def fold_survey(
    spark: SparkSession,
    survey: Survey,
    models: Models = ModelFactory.standard,
    *,
    folding: type[ItemFold] = ItemFold,
) -> DataFrame:
    """Fold a whole survey into rows of items and refusals, with the columns of stage `folded`."""
    plans = survey.plans
    tasks = lane_tasks(plans, spark.sparkContext.defaultParallelism)
    if not tasks:
        return spark.createDataFrame([], FOLDED)
    buckets = buckets_for(spark.sparkContext.defaultParallelism, messages_in(tasks))
    known = spark.sparkContext.broadcast((tasks, plans))

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            for number in batch.column(0).to_pylist():
                chunks = read_chunks(known.value[0][number], buckets)
                while some := list(islice(chunks, _AT_ONCE)):
                    yield batch_of(some, _ARROW)

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plans = known.value[1]
        ordered = OrderedMessages.of((open_chunk(one) for batch in given for one in batch.column(1).to_pylist()), plans)
        if ordered is not None:
            by_party = {plan.party: plan for plan in plans}
            yield from row_batches(fold_ordered(folding(by_party, load_models(models)), ordered))

    chunks = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, _CHUNKS)
    return chunks.repartitionById(buckets, f.col("bucket")).mapInArrow(act, FOLDED)


def buckets_for(cores: int, messages: int) -> int:
    """Return the number of partitions for a fold of so many messages: a power of two."""
    count = max(PARTITIONS_PER_CORE * cores, -(-messages // PARTITION_MESSAGES))
    return min(_power_of_2(count), BUCKETS_MAX)


def _power_of_2(count: int) -> int:
    """Return the smallest power of two ≥ `count`."""
    return 1 << (count - 1).bit_length()


def messages_in(tasks: Sequence[Task]) -> int:
    """Return how many messages and base states the tasks read."""
    return sum(one.range.count for task in tasks for one in task)


def lane_tasks(plans: Sequence[PartyPlan], cores: int, parties: Collection[bytes] | None = None) -> list[Task]:
    """Return tasks that read the delivered blocks of each lane, and the base states, of some parties or of all.

    Each core gets the same number of tasks, so that all cores end at about the same time.
    """
    bases: list[Task] = []
    ranges = []
    for party, plan in enumerate(plans):
        if parties is not None and plan.party not in parties:
            continue
        if plan.base:
            whole = Range(plan.home, plan.party, b"", 0, plan.states)  # only for its count: no block of it is read
            bases.append((LaneTask(party, BASE_LANE, whole, plan.base),))
        for lane in plan.lanes:
            start = max(lane.base, lane.start)
            if start < lane.position:
                ranges.append(Range(plan.home, plan.party, lane.feed, start, lane.position))
    blocks = sum(one.count for one in ranges)
    rounds = -(-blocks // (TASK_BLOCKS * cores))
    return bases + range_tasks(plans, ranges, -(-blocks // max(1, rounds * cores)) or 1)


def range_tasks(plans: Sequence[PartyPlan], ranges: Sequence[Range], size: int = RANGE_BLOCKS) -> list[Task]:
    """Return tasks that read the given ranges of lanes."""
    places = {
        (plan.party, lane.feed): (party, number)
        for party, plan in enumerate(plans)
        for number, lane in enumerate(plan.lanes)
    }
    return [tuple(LaneTask(*places[one.party, one.feed], one) for one in some) for some in divide_ranges(ranges, size)]


def fold_ordered(folding: ItemFold, ordered: OrderedMessages) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a partition: flat objects are folded in columns, other items one by one."""
    if type(folding) is not ItemFold:  # a subclass makes rows of its own
        return folding.rows(ordered.groups())
    return _fold(folding, ordered)


# -- in Spark's workers


def _read(known: Broadcast[_JobContext], buckets: int, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    for number in numbers:
        yield from read_chunks(known.value.tasks[number], buckets, known.value.only)


def _act(
    known: Broadcast[_JobContext],
    act: Callable[[Any, int, Iterator[ShuffleChunk]], Result],
    bucket: int,
    given: Iterable[tuple[int, bytes]],
) -> Iterator[Result]:
    yield act(known.value.shared, bucket, (open_chunk(data) for _, data in given))


def _read_and_act(
    known: Broadcast[_JobContext],
    act: Callable[[Any, int, Iterator[ShuffleChunk]], Result],
    buckets: int,
    each: int,
    places: Iterable[int],
) -> Iterator[Result]:
    for place in places:
        yield from _act_on(known.value, act, buckets, range(place * each, (place + 1) * each))


def _act_on(
    known: _JobContext, act: Callable[[Any, int, Iterator[ShuffleChunk]], Result], buckets: int, mine: range
) -> Iterator[Result]:
    """Apply `act` to the partitions `mine`, one after another."""
    found: dict[int, list[bytes]] = defaultdict(list)
    size = 0
    for task in known.tasks:
        for bucket, data in read_chunks(task, buckets, known.only):
            if bucket in mine:
                found[bucket].append(data)
                size += len(data)
                if size > FEW_SIZE and len(mine) > 1:
                    found.clear()
                    middle = len(mine) // 2
                    yield from _act_on(known, act, buckets, mine[:middle])
                    yield from _act_on(known, act, buckets, mine[middle:])
                    return
    for bucket in mine:
        yield act(known.shared, bucket, map(open_chunk, found.pop(bucket, ())))


def _tally(models: Models, bits: int, plans: Sequence[PartyPlan], bucket: int, chunks: Iterator[ShuffleChunk]) -> Tally:
    tally = Tally()
    ordered = OrderedMessages.of(chunks, plans)
    if ordered is not None:
        folding = ItemFold({plan.party: plan for plan in plans}, load_models(models))
        for row in fold_ordered(folding, ordered):
            tally.add_folded(row)
    return tally.finish(bits)


def _fold(folding: ItemFold, ordered: OrderedMessages) -> Iterator[tuple[Any, ...]]:
    registers = RegisterFold(ordered, LaneIndex.of(ordered.plans))
    for some in flat_batches(flat_items(folding, ordered, registers, np.flatnonzero(registers.flat)), registers):
        for one in some:
            yield folding.row(one.party, one.item, one.messages, registers.state(one.nth))
            yield from refusal_rows(one.party, one.item.id, one.verdicts)
    yield from folding.rows(ordered.groups(np.flatnonzero(~registers.flat)))
