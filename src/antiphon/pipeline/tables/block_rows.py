"""Tasks that copy blocks from feeds into tables: all blocks into `blocks`, waiting ones into `quarantine`. No folding.

These rows are partitioned by the first hex digit of the party key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from antiphon.core.reasons import code_of
from antiphon.pipeline.plan.reread import read_spans
from antiphon.pipeline.plan.standings import ENDED, PENDING
from antiphon.pipeline.source.block_columns import batch_of, batches
from antiphon.pipeline.source.ranges import Range, divide_ranges
from antiphon.pipeline.tables.parquet_files import PartitionPath, PartitionWriter, WrittenFiles, read_batches
from antiphon.pipeline.tables.schemas import BLOCKS, arrow_table

TASK_BLOCKS = 400_000
WAITING = "w"  # prefix of the `quarantine` partitions with pending and ended blocks

#: A range of a feed, its standing (pending or ended), and the reason. Ended blocks are not read.
WaitingRange = tuple[Range, str, str]

PartitionPaths = Callable[[str], PartitionPath]  # where new files go, by partition
PartitionFiles = Mapping[str, Sequence[str]]  # existing files by partition


@dataclass(frozen=True, slots=True)
class BlockTask:
    """Writes one partition of one table, or a part of it."""

    table: str
    place: PartitionPath
    files: tuple[str, ...]  # existing files that may contain rows of `parties`
    parties: frozenset[bytes]  # whose existing rows are deleted
    ranges: tuple[Range, ...] = ()  # blocks to add to `blocks`
    waiting: tuple[WaitingRange, ...] = ()  # ranges to add to `quarantine`


def digit_of(party: bytes) -> str:
    """Return the partition of a party's blocks: the first hex digit of its key."""
    return party.hex()[0]


def block_tasks(
    place: PartitionPaths, held: PartitionFiles, ranges: Iterable[Range], full: Iterable[bytes]
) -> list[BlockTask]:
    """Return tasks that add ranges of blocks to `blocks`, and delete the rows of parties that are read in full."""
    found: dict[str, list[Range]] = defaultdict(list)
    for one in ranges:
        found[digit_of(one.party)].append(one)
    gone = frozenset(full)
    tasks = []
    for digit in sorted({*found, *map(digit_of, gone)}):
        files, parties = tuple(held.get(digit, ())), frozenset(one for one in gone if digit_of(one) == digit)
        parts = divide_ranges(found[digit], TASK_BLOCKS) or [()]
        # The first task gets the existing files: it may merge small ones with new rows.
        tasks += [
            BlockTask("blocks", place(digit), files if at == 0 else (), parties, part) for at, part in enumerate(parts)
        ]
    return tasks


def waiting_tasks(
    place: PartitionPaths, held: PartitionFiles, parts: Iterable[WaitingRange], parties: Iterable[bytes]
) -> list[BlockTask]:
    """Return tasks that replace the pending and ended rows of `parties` in `quarantine`."""
    found: dict[str, list[WaitingRange]] = defaultdict(list)
    for part in parts:
        found[digit_of(part[0].party)].append(part)
    named: dict[str, set[bytes]] = defaultdict(set)
    for party in parties:
        named[digit_of(party)].add(party)
    tasks = []
    for digit, some in sorted(named.items()):
        name = WAITING + digit
        files = tuple(held.get(name, ()))
        if files or found[digit]:
            tasks.append(BlockTask("quarantine", place(name), files, frozenset(some), waiting=tuple(found[digit])))
    return tasks


# -- in Spark's workers


def write_rows(task: BlockTask) -> WrittenFiles:
    """Run a task, and return the files that it added and removed."""
    made = PartitionWriter(task.place, arrow_table(task.table))
    for batch in _blocks(task.ranges) if task.ranges else _waiting(task.waiting, made.schema):
        made.write(pa.RecordBatch.from_arrays(batch.columns, schema=made.schema))
    gone = pa.array(sorted(task.parties), pa.binary())

    def goes(batch: pa.RecordBatch) -> pa.BooleanArray:
        return pc.is_in(batch.column("party"), value_set=gone)

    hit = [
        file
        for file in task.files
        if task.parties and any(pc.any(goes(batch)).as_py() for batch in read_batches(file, ["party"]))
    ]
    made.rewrite(task.files, hit, lambda file, start, batch: batch.filter(pc.invert(goes(batch))))
    return made.finish()


def _blocks(ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    for _, spans in read_spans(ranges):
        yield from batches(spans, BLOCKS)


def _waiting(parts: Sequence[WaitingRange], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    ended = [part for part in parts if part[1] == ENDED]
    if ended:
        rows = [
            (one.party, one.feed, one.start, one.count, None, ENDED, reason, code_of(reason).value if reason else None)
            for one, _, reason in ended
        ]
        yield batch_of(rows, schema)
    reasons = {one: reason for one, standing, reason in parts if standing == PENDING}
    for one, spans in read_spans(list(reasons)):
        for batch in batches(spans, ("party", "feed", "seq", "item")):
            party, feed, seq, item = batch.columns
            reason = reasons[one]
            same = (PENDING, reason, code_of(reason).value)
            single, *told = (pa.repeat(value, len(seq)) for value in (1, *same))
            yield pa.RecordBatch.from_arrays([party, feed, seq, single, item, *told], schema=schema)
