"""Blocks of some ranges as rows, without the source: a run that goes on knows what to read, and reads a little often.

Spark starts several Python programs for each use of a source, to ask what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from antiphon.core.errors import CorruptBlock
from antiphon.pipeline.columns import batches, spark_schema
from antiphon.pipeline.ranges import RANGE_BLOCKS, Fault, Range, divided, read_ranges

CHANGED = "it has changed since it was verified"


def read_rows(
    spark: SparkSession, ranges: Sequence[Range], columns: Sequence[str], blocks: int = RANGE_BLOCKS
) -> DataFrame:
    """The blocks of ranges that were verified, with these columns. That one cannot be read any more is an error."""
    tasks = divided(ranges, blocks)
    known = spark.sparkContext.broadcast((tasks, tuple(columns)))

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks, names = known.value
        for batch in given:
            for number in batch.column(0).to_pylist():
                yield from _read(tasks[number], names)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, spark_schema(columns))


def _read(task: Sequence[Range], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    faults: list[Fault] = []
    for spans in read_ranges(task, faults.append, verify=False):
        yield from batches(spans, columns)
        for fault in faults:
            raise CorruptBlock(f"{CHANGED}: feed {fault.feed.hex()}: {fault.reason}", feed=fault.feed, seq=fault.seq)
