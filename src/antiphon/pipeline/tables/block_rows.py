"""Tasks that write blocks into tables as feeds have them: all of them, or those that wait. Nothing of it is folded.

These tables are divided by the first hex digit of their parties' keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.plan.reread import read_spans
from antiphon.pipeline.plan.standings import ENDED, PENDING
from antiphon.pipeline.source.block_columns import batch_of, batches
from antiphon.pipeline.source.ranges import Range, divide_ranges
from antiphon.pipeline.tables.parquet_files import Place, TableFiles, Written, batches_in
from antiphon.pipeline.tables.schemas import BLOCKS, arrow_table

TASK_BLOCKS = 400_000
WAITING = "w"  # begins the names of partitions of the quarantine that have what waits, and what lies beyond ends

#: A part of a feed, and why it waits; or what lies beyond its end, of which nothing is read.
Part = tuple[Range, str, str]


@dataclass(frozen=True, slots=True)
class RowTask:
    """One partition of one table, or a part of it."""

    table: str
    place: Place
    files: tuple[str, ...]  # that may have rows which go
    parties: frozenset[bytes]  # whose rows go
    ranges: tuple[Range, ...] = ()  # blocks that come
    waiting: tuple[Part, ...] = ()  # likewise for the quarantine


def digit_of(party: bytes) -> str:
    """In which partition the blocks of a party are."""
    return party.hex()[0]


def block_tasks(
    place: Callable[[str], Place], held: Mapping[str, Sequence[str]], ranges: Iterable[Range], afresh: Iterable[bytes]
) -> list[RowTask]:
    """Tasks that add blocks to the table of blocks, and take those away of parties that are read afresh."""
    found: dict[str, list[Range]] = defaultdict(list)
    for one in ranges:
        found[digit_of(one.party)].append(one)
    gone = frozenset(afresh)
    tasks = []
    for digit in sorted({*found, *map(digit_of, gone)}):
        files, parties = tuple(held.get(digit, ())), frozenset(one for one in gone if digit_of(one) == digit)
        parts = divide_ranges(found[digit], TASK_BLOCKS) or [()]
        # The first of them takes what is there, for it may be put together with what comes.
        tasks += [
            RowTask("blocks", place(digit), files if at == 0 else (), parties, part) for at, part in enumerate(parts)
        ]
    return tasks


def waiting_tasks(
    place: Callable[[str], Place], held: Mapping[str, Sequence[str]], parts: Iterable[Part], parties: Iterable[bytes]
) -> list[RowTask]:
    """Tasks that say of some parties what waits now, and what lies beyond ends."""
    found: dict[str, list[Part]] = defaultdict(list)
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
            tasks.append(RowTask("quarantine", place(name), files, frozenset(some), waiting=tuple(found[digit])))
    return tasks


# -- in Spark's workers


def write_rows(task: RowTask) -> Written:
    """Do a task."""
    made = TableFiles(task.place, arrow_table(task.table))
    for batch in _blocks(task.ranges) if task.ranges else _waiting(task.waiting, made.schema):
        made.write(pa.RecordBatch.from_arrays(batch.columns, schema=made.schema))
    gone = pa.array(sorted(task.parties), pa.binary())

    def goes(batch: pa.RecordBatch) -> pa.BooleanArray:
        return pc.is_in(batch.column("party"), value_set=gone)

    hit = [
        file
        for file in task.files
        if task.parties and any(pc.any(goes(batch)).as_py() for batch in batches_in(file, ["party"]))
    ]
    made.rewrite(task.files, hit, lambda file, start, batch: batch.filter(pc.invert(goes(batch))))
    return made.done()


def _blocks(ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    for _, spans in read_spans(ranges):
        yield from batches(spans, BLOCKS)


def _waiting(parts: Sequence[Part], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    ended = [part for part in parts if part[1] == ENDED]
    if ended:
        rows = [(one.party, one.feed, one.start, one.count, None, ENDED, reason) for one, _, reason in ended]
        yield batch_of(rows, schema)
    reasons = {one: reason for one, standing, reason in parts if standing == PENDING}
    for one, spans in read_spans(list(reasons)):
        for batch in batches(spans, ("party", "feed", "seq", "item")):
            party, feed, seq, item = batch.columns
            single, standing, reason = (pa.repeat(value, len(seq)) for value in (1, PENDING, reasons[one]))
            yield pa.RecordBatch.from_arrays([party, feed, seq, single, item, standing, reason], schema=schema)
