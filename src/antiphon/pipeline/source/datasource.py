"""The Spark data source `antiphon`: the blocks of a home as rows, for `spark.read` and `spark.readStream`.

    spark.read.format("antiphon").option("columns", "feed,seq,lamport,item").load("laptop")

Options: `path` (the home; `load` takes several), `party` (keys in hex, with commas; all of them by default), `columns`,
`after` and `until` (anchors), `verify` (true: every hash, link, body, head and rule is checked), `blocks` (how many a
task reads), `maxBlocksPerTrigger` (of a stream). Filters on party, feed and seq are pushed down and narrow the ranges
that are read. Spark evaluates filters on other columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from antiphon.core.errors import AntiphonError, InvalidInput
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Flag
from antiphon.feed.store.reader import FeedReader
from antiphon.pipeline.source.block_columns import DEFAULT_COLUMNS, batches, fault_batch, spark_schema
from antiphon.pipeline.source.home import open_feeds, read_anchor, read_parties, write_anchor
from antiphon.pipeline.source.ranges import RANGE_BLOCKS, Fault, Limits, Range, divide_ranges, find_ranges, read_ranges

ANCHOR = "anchor"
MICRO_BATCH_BLOCKS = 200_000


class ReadTask(InputPartition):
    """The ranges that one task reads, one after the other."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges


class ReadOptions:
    """The options of a reader, parsed and checked."""

    def __init__(self, asked: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in asked.items()}  # Spark takes them in any case
        self.homes = tuple(json.loads(given["paths"])) if "paths" in given else (given.get("path", ""),)
        if not all(self.homes):
            raise InvalidInput('the source "antiphon" reads a home: name its folder, as in .load("laptop")')
        self.columns = tuple(name.strip() for name in given.get("columns", ",".join(DEFAULT_COLUMNS)).split(","))
        self.verify = given.get("verify", "true").lower() != "false"
        self.blocks = _count(given, "blocks", RANGE_BLOCKS)
        self.rows_max = _count(given, "maxblockspertrigger", MICRO_BATCH_BLOCKS)
        after, until = given.get("after"), given.get("until")
        self.limits = Limits(
            parties=frozenset(read_parties(given.get("party", ""))),
            after=read_anchor(after) if after else Timeframe(),
            until=read_anchor(until) if until else None,
        )


def _count(given: dict[str, str], name: str, otherwise: int) -> int:
    text = given.get(name, str(otherwise))
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise InvalidInput(f"option {name} is a number of blocks from 1 on, not {text[:40]!r}")
    return int(text)


class AntiphonSource(DataSource):
    """The data source. `antiphon.pipeline` registers it; `spark.dataSource.register` does so by hand."""

    @classmethod
    def name(cls) -> str:
        return "antiphon"

    def schema(self) -> StructType:
        return spark_schema(ReadOptions(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return BlockReader(ReadOptions(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return BlockStream(ReadOptions(self.options))


class BlockReader(DataSourceReader):
    """Reads the blocks that are held when Spark plans the query."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._limits = options.limits

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        for one in filters:
            narrower = _narrowed(self._limits, one)
            if narrower is None:
                yield one
            else:
                self._limits = narrower

    def partitions(self) -> list[InputPartition]:
        found = find_ranges(self._options.homes, self._limits)
        return [ReadTask(one) for one in divide_ranges(found, self._options.blocks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(self._options, partition)


def read_task(options: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of one task. A range that cannot be read ends with a row that says why."""
    if not isinstance(partition, ReadTask):
        return
    faults: list[Fault] = []
    for spans in read_ranges(partition.ranges, faults.append, verify=options.verify):
        yield from batches(spans, options.columns)
        while faults:
            fault = faults.pop()
            _refuse(fault, options)
            yield fault_batch(fault.party, fault.feed, fault.seq, fault.reason, options.columns)


def _refuse(fault: Fault, options: ReadOptions) -> None:
    """Raise if the column `fault` was not selected: a gap must not pass silently."""
    if "fault" not in options.columns:
        raise InvalidInput(f"{fault.reason}; add the column `fault` to have this as a row")


def _narrowed(limits: Limits, one: Filter) -> Limits | None:
    """The limits narrowed by a filter; None if the filter cannot be pushed down."""
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if len(path) != 1:
        return None
    name, value = path[0], getattr(one, "value", None)
    values = {bytes(value)} if isinstance(value, bytes | bytearray) else None
    if isinstance(one, In) and all(isinstance(each, bytes | bytearray) for each in one.value):
        values = set(map(bytes, one.value))
    if name in ("party", "feed") and isinstance(one, EqualTo | In) and values:
        known = limits.parties if name == "party" else limits.feeds
        both = frozenset(values & known if known else values)
        # An empty set means "all", so "none" is expressed as a range of seqs without blocks.
        if not both:
            return replace(limits, seq_max=-1)
        return replace(limits, parties=both) if name == "party" else replace(limits, feeds=both)
    return _between(limits, one, value) if name == "seq" and type(value) is int else None


def _between(limits: Limits, one: Filter, seq: int) -> Limits | None:
    if isinstance(one, EqualTo):
        return replace(limits, seq_min=max(limits.seq_min, seq), seq_max=min(limits.seq_max, seq))
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        return replace(limits, seq_min=max(limits.seq_min, seq + isinstance(one, GreaterThan)))
    if isinstance(one, LessThan | LessThanOrEqual):
        return replace(limits, seq_max=min(limits.seq_max, seq - isinstance(one, LessThan)))
    return None


class BlockStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams blocks as they arrive. An offset is an anchor: for each feed, the last block that was read."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._limits = options.limits

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        return {ANCHOR: write_anchor(self._limits.after)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the stream: blocks that arrive from now on are left to the next run."""
        last = {one.feed: one.stop - 1 for one in find_ranges(self._options.homes, self._limits)}
        self._limits = replace(self._limits, until=Timeframe(last))

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """The next offset. The limit is divided among feeds in proportion to their new blocks, so that none starves."""
        done = read_anchor(start[ANCHOR])
        found = find_ranges(self._options.homes, replace(self._limits, after=done))
        room = limit.max_rows if isinstance(limit, ReadMaxRows) else sum(one.count for one in found)
        return {ANCHOR: write_anchor(done.merge(Timeframe(_shares(found, room))))}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        limits = replace(self._limits, after=read_anchor(start[ANCHOR]), until=read_anchor(end[ANCHOR]))
        found = find_ranges(self._options.homes, limits)
        return [ReadTask(one) for one in divide_ranges(found, self._options.blocks)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(self._options, partition)

    def commit(self, end: dict[str, str]) -> None:
        """Nothing to do: feeds are not consumed."""


def _shares(found: list[Range], room: int) -> dict[bytes, int]:
    """The last seq to read of each feed, for about `room` blocks in all, and at least one."""
    total = sum(one.count for one in found)
    if total <= room:
        return {one.feed: one.stop - 1 for one in found}
    part = [(one, one.count * room // total) for one in found]
    part = [(one, share) for one, share in part if share] or [(found[0], 1)]
    ends: dict[bytes, int] = {}
    for home, some in groupby(part, key=lambda entry: entry[0].home):
        with open_feeds(home) as store:
            ends |= {one.feed: _batch_end(store, one, share) for one, share in some}
    return ends


def _batch_end(store: FeedReader, one: Range, share: int) -> int:
    """The last seq of a share, moved up to the end of its batch, because a reader sees a batch whole or not at all.

    Pruned blocks do not count towards the share. A damaged block ends the share; the task that reads it reports it.
    """
    seq = one.start + share - 1
    try:
        seq = max(one.start, store.record(one.feed).start) + share - 1
        while seq < one.stop - 1 and store.block(one.feed, seq).flags & Flag.MORE:
            seq += 1
    except AntiphonError:
        pass
    return min(seq, one.stop - 1)
