"""Some items, by party and id, to be found among the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.parcel import I64

Key = tuple[bytes, bytes]  # party and item


class KeySet:
    """They have numbers, in the order in which they are given."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = keys
        self._joined = pa.array([party + item for party, item in keys], pa.binary())

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, rows: pa.RecordBatch, item: str) -> I64:
        """The number of each row's item, which is in that column; -1 for any other."""
        if not self.keys:
            return np.full(rows.num_rows, -1, dtype=np.int64)
        joined = pc.binary_join_element_wise(rows.column("party"), rows.column(item), _NOTHING)
        found: I64 = pc.index_in(joined, value_set=self._joined).fill_null(-1).to_numpy().astype(np.int64)
        return found


_NOTHING = pa.scalar(b"", pa.binary())
