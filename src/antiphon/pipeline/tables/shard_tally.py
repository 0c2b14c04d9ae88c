"""The tally of the items of a shard: counted while rows are written, or read from its files."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.order.shuffle_chunk import flags, is_true
from antiphon.pipeline.order.varints import Bools
from antiphon.pipeline.tables.parquet_files import read_batches

SHARDS = 16  # partitions of the tables with item rows, named by hex digits
_TALLIED = ["party", "item", "messages", "hash"]


class ShardTally:
    """Counts the items of some parties."""

    def __init__(self, parties: Collection[bytes]) -> None:
        self.tally = Tally()
        self._parties = pa.array(sorted(parties), pa.binary())

    def add(self, batch: pa.RecordBatch) -> None:
        """Count rows of the table `items`."""
        rows = batch.select(_TALLIED)
        self.tally.add_rows(rows.filter(flags(is_in(rows.column("party"), self._parties))))

    def read(self, file: str) -> None:
        """Count the rows of a file."""
        for batch in read_batches(file, _TALLIED):
            self.add(batch)


def tally_shard(task: tuple[Sequence[str], Collection[bytes]]) -> Tally:
    """Return the tally of the items of some parties in the files of a shard; runs in a Spark worker."""
    files, parties = task
    tallying = ShardTally(parties)
    for file in files:
        tallying.read(file)
    return tallying.tally.finish(SHARDS.bit_length() - 1)


def is_in(column: pa.Array, values: pa.Array) -> Bools:
    """Return the mask of rows whose value is one of `values`."""
    if not len(values):
        return np.zeros(len(column), dtype=np.bool_)
    return is_true(pc.is_in(column, value_set=values))
