"""What the items on a shelf come to: counted while they are written, or read from its files."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.order.shuffle_chunk import flags, is_true
from antiphon.pipeline.order.varints import Bools
from antiphon.pipeline.tables.parquet_files import batches_in

SHELVES = 16  # partitions of a table of items, named by hex digits
_TALLIED = ["party", "item", "messages", "hash"]


class Tallying:
    """What the items of some parties come to."""

    def __init__(self, parties: Collection[bytes]) -> None:
        self.tally = Tally()
        self._parties = pa.array(sorted(parties), pa.binary())

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows of the table of items."""
        rows = batch.select(_TALLIED)
        self.tally.rows(rows.filter(flags(is_in(rows.column("party"), self._parties))))

    def read(self, file: str) -> None:
        for batch in batches_in(file, _TALLIED):
            self.add(batch)


def tally_shelf(task: tuple[Sequence[str], Collection[bytes]]) -> Tally:
    """In Spark's workers: what the items of some parties come to that are in some files, all those of a shelf."""
    files, parties = task
    tallying = Tallying(parties)
    for file in files:
        tallying.read(file)
    return tallying.tally.done(SHELVES.bit_length() - 1)


def is_in(column: pa.Array, values: pa.Array) -> Bools:
    """Where a column has one of some values."""
    if not len(values):
        return np.zeros(len(column), dtype=np.bool_)
    return is_true(pc.is_in(column, value_set=values))
