"""Blocks that were verified, read again: a run knows what to read, and that one cannot be read any more is an error."""

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

Ids = dict[bytes, set[bytes]]  # of items, by party

CHANGED = "it has changed since it was verified"


def read_spans(ranges: Sequence[Range]) -> Iterator[tuple[Range, Iterator[Span]]]:
    """The spans of each range; what was verified a moment ago, and cannot be read, is an error."""
    faults: list[Fault] = []
    for one, spans in zip(ranges, read_ranges(ranges, faults.append, verify=False), strict=True):
        yield one, spans
        for fault in faults:
            raise CorruptBlock(f"{CHANGED}: feed {fault.feed.hex()}: {fault.reason}", feed=fault.feed, seq=fault.seq)


def ids_in(spark: SparkSession, ranges: Sequence[Range]) -> Ids:
    """The items that the messages of some ranges are for."""
    found: Ids = defaultdict(set)
    for told in in_workers(spark, _ids, divide_ranges(ranges, RANGE_BLOCKS)):
        for party, ids in told.items():
            found[party].update(ids[at : at + ITEM_ID_SIZE] for at in range(0, len(ids), ITEM_ID_SIZE))
    return dict(found)


def _ids(task: Sequence[Range]) -> dict[bytes, bytes]:
    """In Spark's workers: the ids of items in some ranges, joined."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for one, spans in read_spans(task):
        found[one.party] += [np.ascontiguousarray(span.columns["item"]).tobytes() for span in spans]
    each = f"V{ITEM_ID_SIZE}"
    return {party: np.unique(np.frombuffer(b"".join(ids), dtype=each)).tobytes() for party, ids in found.items()}
