"""New messages folded onto the states that the tables have, in parcels.

Workers say which items have new messages; then they read the states of those out of the files of the table, and the
messages out of the feeds, and both go to where the item is folded. Spark moves the bytes, and joins nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.pipeline.bulk import Task, buckets_for, parcel_rows
from antiphon.pipeline.goingon import COUNTED, UNKNOWN, GoingOn
from antiphon.pipeline.items import Form, Models, known_models
from antiphon.pipeline.ordered import Ordered
from antiphon.pipeline.parcel import BASE_LANE, BASE_ROWS, Piece, read_lanes, read_parcels
from antiphon.pipeline.parcel import SCHEMA as PARCELS
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.survey import in_workers

_STATE = ["party", "item", "messages", "data"]

Ids = dict[bytes, set[bytes]]  # of items, by party


def ids_in(spark: SparkSession, tasks: Sequence[Task]) -> Ids:
    """The items that the messages of some ranges are for."""
    found: Ids = defaultdict(set)
    for told in in_workers(spark, _ids, tasks):
        for party, ids in told.items():
            found[party].update(ids[at : at + ITEM_ID_SIZE] for at in range(0, len(ids), ITEM_ID_SIZE))
    return dict(found)


def fold_onto(
    spark: SparkSession,
    plans: Sequence[PartyPlan],
    tasks: Sequence[Task],
    keys: Ids,
    files: Sequence[str],
    refused: Collection[bytes],
    models: Models,
    form: Form,
) -> DataFrame:
    """The messages that tasks read, as far as they are for these items, onto the states in some files.

    `refused` are items (party and id, joined) of which the tables know messages, and may have no state.
    """
    buckets = buckets_for(spark, sum(one.range.count for task in tasks for one in task) + sum(map(len, keys.values())))
    known = spark.sparkContext.broadcast((tuple(tasks), tuple(files), tuple(plans), keys, frozenset(refused)))

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks, files, plans, keys, _ = known.value
        for batch in given:
            for nth in batch.column(0).to_pylist():
                if nth < len(tasks):
                    yield from read_parcels(tasks[nth], buckets)
                else:
                    yield from _states(files[nth - len(tasks)], plans, keys, buckets)

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _, _, plans, keys, refused = known.value
        ordered = Ordered.of(parcel_rows(given), plans)
        if ordered is not None:
            folding = GoingOn({plan.party: plan for plan in plans}, known_models(models), form, refused)
            yield from folding.fold_all(one for one in ordered.groups() if one[0][1] in keys.get(one[0][0], ()))

    count = len(tasks) + len(files)
    parcels = spark.range(0, count, 1, count).mapInArrow(read, PARCELS)
    return parcels.repartitionById(buckets, f.col("bucket")).mapInArrow(act, form.schema)


# -- in Spark's workers


def _ids(task: Task) -> dict[bytes, bytes]:
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for one, spans in read_lanes(task):
        for span in spans:
            found[one.range.party].append(np.ascontiguousarray(span.columns["item"]).tobytes())
    return {party: _unique(b"".join(parts)) for party, parts in found.items()}


def _unique(ids: bytes) -> bytes:
    return np.unique(np.frombuffer(ids, dtype=f"V{ITEM_ID_SIZE}")).tobytes()


def _states(file: str, plans: Sequence[PartyPlan], keys: Ids, buckets: int) -> Iterator[pa.RecordBatch]:
    """The states of the items that are wanted, each with the number of messages that count in it."""
    numbers = {plan.party: number for number, plan in enumerate(plans)}
    held = pq.read_table(file, columns=_STATE, partitioning=None)
    for party in set(held["party"].unique().to_pylist()) & keys.keys():
        wanted = pa.array(keys[party], pa.binary())
        is_wanted = pc.and_(pc.equal(held["party"], pa.scalar(party)), pc.is_in(held["item"], value_set=wanted))
        columns = (column.to_pylist() for column in held.filter(is_wanted).columns[1:])
        entries = [
            (item, UNKNOWN if data is None else COUNTED.pack(count) + data)
            for item, count, data in zip(*columns, strict=True)
        ]
        for at in range(0, len(entries), BASE_ROWS):
            yield Piece.of_states(entries[at : at + BASE_ROWS]).parcels(numbers[party], BASE_LANE, buckets)
