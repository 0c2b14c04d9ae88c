"""A whole survey folded at once: what `blocks`, `judged`, `messages` and `folded` come to, in chunks.

Those stages are for whoever wants rows of messages. Here none is ever made: executors read the blocks that count, send
them in columns to where their items are folded, and put them into the total order there.
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
from antiphon.pipeline.columnar.mutation_reader import Lanes
from antiphon.pipeline.columnar.register_fold import Registers
from antiphon.pipeline.fold.frame_fold import fold_frames, gathered
from antiphon.pipeline.fold.item_fold import SCHEMA as FOLDED, Folding, Models, batches_of, known_models, refusals
from antiphon.pipeline.fold.summary import Summary, Tally, total
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

PARTITION_MESSAGES = 160_000  # at most about so many are in a worker's memory at once, or the messages of one item
PARTITIONS_PER_CORE = 2
TASK_BLOCKS = 200_000  # that one task reads at most, or about so many
#: What all tasks together may read if each reads everything: less than it takes to send messages to where they belong.
FEW_MESSAGES, FEW_RANGES = 200_000, 2_000
FEW_SIZE = 64 << 20  # bytes of chunks that a task then holds; if there are more, it reads them again for each half
_CHUNKS = StructType([StructField("bucket", IntegerType(), False), StructField("data", BinaryType(), False)])
_ARROW = arrow_of(_CHUNKS)
_AT_ONCE = 64  # chunks that Spark gets

Task = tuple[LaneTask, ...]
Result = TypeVar("Result")
Shared = TypeVar("Shared")


class _Known(NamedTuple):
    """What all tasks of a fold know."""

    tasks: tuple[Task, ...]
    only: Mapping[bytes, Collection[bytes]] | None
    shared: Any


def in_chunks(
    spark: SparkSession,
    tasks: Sequence[Task],
    buckets: int,
    act: Callable[[Shared, int, Iterator[ShuffleChunk]], Result],
    shared: Shared,
    only: Mapping[bytes, Collection[bytes]] | None = None,
    beside: DealtTasks[Any] | None = None,
) -> tuple[list[Result], list[Any]]:
    """Send what tasks read, of some items or of all, to where these belong, and act there with what is `shared`, the
    number of the partition, and its chunks; what comes of each partition, in their order.

    What is to be done `beside` that is done in the same job, last: so it fills up cores that are done before others.
    It goes without DataFrames: Spark would plan and compile them for longer than some hundred thousand messages take.
    Few messages are not even sent: as many tasks as there are cores read all of them, and keep what is their own.
    """
    context = spark.sparkContext
    known = context.broadcast(_Known(tuple(tasks), only, shared))
    try:
        count = min(buckets, _power_of_2(context.defaultParallelism))
        if count * messages_in(tasks) <= FEW_MESSAGES and count * sum(map(len, tasks)) <= FEW_RANGES:
            places = context.parallelize(range(count), count)
            acting = places.mapPartitions(partial(_read_and_act, known, act, buckets, buckets // count))
        else:
            numbers = context.parallelize(range(len(tasks)), len(tasks))
            chunks = numbers.mapPartitions(partial(_read, known, buckets))
            acting = chunks.partitionBy(buckets, int).mapPartitionsWithIndex(partial(_act, known, act))
        if beside is None:
            return acting.collect(), []
        done: list[Any] = context.union([cast("RDD[Any]", acting), beside.rdd]).collect()
        return done[:buckets], beside.results(done[buckets:])
    finally:
        known.destroy()


def tally_survey(spark: SparkSession, survey: Survey, models: Models = ModelFactory.standard) -> Summary:
    """What a fold of a whole survey comes to; nothing else is kept of it."""
    tasks = lane_tasks(survey.plans, spark.sparkContext.defaultParallelism)
    buckets = buckets_for(spark.sparkContext.defaultParallelism, messages_in(tasks))
    tally = partial(_tally, models, buckets.bit_length() - 1)
    return total(in_chunks(spark, tasks, buckets, tally, survey.plans)[0])


def fold_survey(
    spark: SparkSession,
    survey: Survey,
    models: Models = ModelFactory.standard,
    *,
    folding: type[Folding] = Folding,
) -> DataFrame:
    """Items and refusals of all that counts in a survey; the columns are those of `folded`."""
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
            yield from batches_of(fold_ordered(folding(by_party, known_models(models)), ordered))

    chunks = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, _CHUNKS)
    return chunks.repartitionById(buckets, f.col("bucket")).mapInArrow(act, FOLDED)


def buckets_for(cores: int, messages: int) -> int:
    """Into how many partitions so many messages are divided: a power of two."""
    count = max(PARTITIONS_PER_CORE * cores, -(-messages // PARTITION_MESSAGES))
    return min(_power_of_2(count), BUCKETS_MAX)


def _power_of_2(count: int) -> int:
    """The least that is not less."""
    return 1 << (count - 1).bit_length()


def messages_in(tasks: Sequence[Task]) -> int:
    """How many messages tasks read, and states."""
    return sum(one.range.count for task in tasks for one in task)


def lane_tasks(plans: Sequence[PartyPlan], cores: int, parties: Collection[bytes] | None = None) -> list[Task]:
    """What tasks read: the blocks of each lane that are delivered, and the states of bases; of some parties, or all.

    Each core gets as many tasks, so that all are done at about the same time.
    """
    bases: list[Task] = []
    ranges = []
    for party, plan in enumerate(plans):
        if parties is not None and plan.party not in parties:
            continue
        if plan.base:
            whole = Range(plan.home, plan.party, b"", 0, plan.states)  # which counts them, and is not read
            bases.append((LaneTask(party, BASE_LANE, whole, plan.base),))
        for lane in plan.lanes:
            start = max(lane.base, lane.start)
            if start < lane.position:
                ranges.append(Range(plan.home, plan.party, lane.feed, start, lane.position))
    blocks = sum(one.count for one in ranges)
    rounds = -(-blocks // (TASK_BLOCKS * cores))
    return bases + tasks_of(plans, ranges, -(-blocks // max(1, rounds * cores)) or 1)


def tasks_of(plans: Sequence[PartyPlan], ranges: Sequence[Range], size: int = RANGE_BLOCKS) -> list[Task]:
    """Tasks that read some ranges of the lanes of parties."""
    places = {
        (plan.party, lane.feed): (party, number)
        for party, plan in enumerate(plans)
        for number, lane in enumerate(plan.lanes)
    }
    return [tuple(LaneTask(*places[one.party, one.feed], one) for one in some) for some in divide_ranges(ranges, size)]


def fold_ordered(folding: Folding, ordered: OrderedMessages) -> Iterator[tuple[Any, ...]]:
    """The rows of a partition: plain objects are folded on columns, other items one by one."""
    if type(folding) is not Folding:  # another way of folding has rows of its own
        return folding.rows(ordered.groups())
    return _fold(folding, ordered)


# -- in Spark's workers


def _read(known: Broadcast[_Known], buckets: int, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    for number in numbers:
        yield from read_chunks(known.value.tasks[number], buckets, known.value.only)


def _act(
    known: Broadcast[_Known],
    act: Callable[[Any, int, Iterator[ShuffleChunk]], Result],
    bucket: int,
    given: Iterable[tuple[int, bytes]],
) -> Iterator[Result]:
    yield act(known.value.shared, bucket, (open_chunk(data) for _, data in given))


def _read_and_act(
    known: Broadcast[_Known],
    act: Callable[[Any, int, Iterator[ShuffleChunk]], Result],
    buckets: int,
    each: int,
    places: Iterable[int],
) -> Iterator[Result]:
    for place in places:
        yield from _act_on(known.value, act, buckets, range(place * each, (place + 1) * each))


def _act_on(
    known: _Known, act: Callable[[Any, int, Iterator[ShuffleChunk]], Result], buckets: int, mine: range
) -> Iterator[Result]:
    """Act on some partitions, one after another."""
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
        folding = Folding({plan.party: plan for plan in plans}, known_models(models))
        for row in fold_ordered(folding, ordered):
            tally.folded(row)
    return tally.done(bits)


def _fold(folding: Folding, ordered: OrderedMessages) -> Iterator[tuple[Any, ...]]:
    registers = Registers(ordered, Lanes.of(ordered.plans))
    for some in gathered(fold_frames(folding, ordered, registers, np.flatnonzero(registers.plain)), registers):
        for one in some:
            yield folding.row(one.party, one.item, one.messages, registers.state(one.nth))
            yield from refusals(one.party, one.item.id, one.verdicts)
    yield from folding.rows(ordered.groups(np.flatnonzero(~registers.plain)))
