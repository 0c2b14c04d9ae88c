"""Read blocks again that this run has verified. A block that cannot be read any more is an error here, not a fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from pyspark.sql import SparkSession

from antiphon.core.errors import CorruptBlock
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.feed.span import Span
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.source.ranges import RANGE_BLOCKS, Fault, Range, divide_ranges, read_ranges

Ids = dict[bytes, set[bytes]]  # item ids by party

CHANGED = "it has changed since it was verified"


def read_spans(ranges: Sequence[Range]) -> Iterator[tuple[Range, Iterator[Span]]]:
    """Yield each range with its spans. Raise `CorruptBlock` if a range cannot be read to its end."""
    faults: list[Fault] = []
    for one, spans in zip(ranges, read_ranges(ranges, faults.append, verify=False), strict=True):
        yield one, spans
        for fault in faults:
            raise CorruptBlock(f"{CHANGED}: feed {fault.feed.hex()}: {fault.reason}", feed=fault.feed, seq=fault.seq)


def ids_in(spark: SparkSession, ranges: Sequence[Range]) -> Ids:
    """The ids of the items that the messages of some ranges address."""
    found: Ids = defaultdict(set)
    for told in in_workers(spark, _ids, divide_ranges(ranges, RANGE_BLOCKS)):
        for party, ids in told.items():
            found[party].update(ids[at : at + ITEM_ID_SIZE] for at in range(0, len(ids), ITEM_ID_SIZE))
    return dict(found)


def _ids(task: Sequence[Range]) -> dict[bytes, bytes]:
    """Run in Spark's workers: the distinct item ids of some ranges, joined, by party."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for one, spans in read_spans(task):
        found[one.party] += [np.ascontiguousarray(span.columns["item"]).tobytes() for span in spans]
    each = f"V{ITEM_ID_SIZE}"
    return {party: np.unique(np.frombuffer(b"".join(ids), dtype=each)).tobytes() for party, ids in found.items()}
