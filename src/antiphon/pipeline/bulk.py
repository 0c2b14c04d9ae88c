"""A whole survey folded at once: what `blocks`, `judged`, `messages` and `folded` come to, in parcels.

Those stages are for whoever wants rows of messages. Here none is ever made: executors read the blocks that count, send
them in columns to where their items are folded, and put them into the total order there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from antiphon.model.factory import ModelFactory
from antiphon.model.item import Authors, fold
from antiphon.model.object import ObjectModel
from antiphon.pipeline.items import FOLDED, Folding, Form, Models, batches_of, known_models, refusals
from antiphon.pipeline.ordered import Ordered
from antiphon.pipeline.parcel import BASE_LANE, BUCKETS_MAX, LaneTask, read_parcels
from antiphon.pipeline.parcel import SCHEMA as PARCELS
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.ranges import RANGE_BLOCKS, Range, divided
from antiphon.pipeline.registers import Lanes, Registers
from antiphon.pipeline.survey import Survey

PARTITION_MESSAGES = 150_000  # about so many are in a worker's memory at once, or the messages of one item
PARTITIONS_PER_CORE = 2

Task = tuple[LaneTask, ...]


def fold_survey(
    spark: SparkSession,
    survey: Survey,
    models: Models = ModelFactory.standard,
    *,
    folding: type[Folding] = Folding,
    form: Form = FOLDED,
    partitions: int | None = None,
) -> DataFrame:
    """Items and refusals of all that counts in a survey; the columns are those of `folded`, or of another form."""
    plans = survey.plans
    tasks = lane_tasks(plans)
    if not tasks:
        return spark.createDataFrame([], form.schema)
    delivered = sum(one.range.count for task in tasks for one in task)
    buckets = min(partitions or buckets_for(spark, delivered), BUCKETS_MAX)
    known = spark.sparkContext.broadcast((tasks, plans))

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            for number in batch.column(0).to_pylist():
                yield from read_parcels(known.value[0][number], buckets)

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plans = known.value[1]
        ordered = Ordered.of(parcel_rows(given), plans)
        if ordered is not None:
            by_party = {plan.party: plan for plan in plans}
            yield from fold_ordered(folding(by_party, known_models(models), form), ordered)

    parcels = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, PARCELS)
    return parcels.repartitionById(buckets, f.col("bucket")).mapInArrow(act, form.schema)


def buckets_for(spark: SparkSession, messages: int) -> int:
    """Into how many partitions so many messages are divided."""
    few = PARTITIONS_PER_CORE * spark.sparkContext.defaultParallelism
    return min(max(few, -(-messages // PARTITION_MESSAGES)), BUCKETS_MAX)


def lane_tasks(plans: Sequence[PartyPlan], size: int = RANGE_BLOCKS) -> list[Task]:
    """What tasks read: the blocks of each lane that are delivered, and the states of bases."""
    bases: list[Task] = []
    ranges = []
    for party, plan in enumerate(plans):
        if plan.base:
            whole = Range(plan.home, plan.party, b"", 0, 0)
            bases.append((LaneTask(party, BASE_LANE, whole, plan.base),))
        for lane in plan.lanes:
            start = max(lane.base, lane.start)
            if start < lane.position:
                ranges.append(Range(plan.home, plan.party, lane.feed, start, lane.position))
    return bases + tasks_of(plans, ranges, size)


def tasks_of(plans: Sequence[PartyPlan], ranges: Sequence[Range], size: int = RANGE_BLOCKS) -> list[Task]:
    """Tasks that read some ranges of the lanes of parties."""
    places = {
        (plan.party, lane.feed): (party, number)
        for party, plan in enumerate(plans)
        for number, lane in enumerate(plan.lanes)
    }
    return [tuple(LaneTask(*places[one.party, one.feed], one) for one in some) for some in divided(ranges, size)]


def parcel_rows(given: Iterator[pa.RecordBatch]) -> Iterator[list[Any]]:
    """Rows of parcels, whose columns are not copied."""
    for batch in given:
        numbers = [column.to_pylist() for column in batch.columns[:3]]
        for at in range(batch.num_rows):
            yield [*(column[at] for column in numbers), *(column[at].as_buffer() for column in batch.columns[3:])]


def fold_ordered(folding: Folding, ordered: Ordered) -> Iterator[pa.RecordBatch]:
    """The items of a partition: plain objects on columns, the others one by one."""
    if type(folding) is not Folding:  # another way of folding has rows of its own
        return folding.fold_all(ordered.groups())
    return batches_of(_fold(folding, ordered), folding.form.arrow)


class _Party(NamedTuple):
    key: bytes
    feeds: tuple[bytes, ...]
    authors: Authors


def _fold(folding: Folding, ordered: Ordered) -> Iterator[tuple[Any, ...]]:
    registers = Registers(ordered, Lanes.of(ordered.plans))
    known = [
        _Party(plan.party, feeds, folding.authors(plan.party))
        for plan, feeds in zip(ordered.plans, ordered.feeds, strict=True)
    ]
    starts, plain = ordered.starts.tolist(), registers.plain.tolist()
    parties = ordered.party[ordered.starts[:-1]].tolist()
    for nth, party in enumerate(parties):
        found = _fold_plain(folding, registers, known[party], nth) if plain[nth] else None
        if found is None:
            (key, item), base, notes = ordered.group(starts[nth], starts[nth + 1])
            yield from folding.fold(key, item, base, notes)
        else:
            yield from found


def _fold_plain(folding: Folding, registers: Registers, party: _Party, nth: int) -> list[tuple[Any, ...]] | None:
    """The rows of an item whose mutations are all plain; None: it is to be folded whole."""
    item, key = registers.item(nth), party.key
    made = fold(key, item, None, registers.others(nth), folding.models, party.authors, whole=True)
    state = made.item
    if state is None or made.late or type(state.model) is not ObjectModel:
        return None
    if registers.begins(nth, party.feeds) < state.genesis:
        return None
    if state.access is not None and not registers.may_all(nth, state.access, party.feeds, party.authors):
        return None
    count = registers.count(nth) - sum(map(bool, made.verdicts.values()))
    return [folding.row(key, state, count, registers.state(nth)), *refusals(key, item, made.verdicts)]
