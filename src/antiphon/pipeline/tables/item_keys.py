"""A set of items, by party and id, to be found among the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.order.shuffle_chunk import I64, numbers

ItemKey = tuple[bytes, bytes]  # party and item


class ItemKeys:
    """Items, numbered in the given order."""

    def __init__(self, keys: Sequence[ItemKey]) -> None:
        self.keys = keys
        self._alone = len({item for _, item in keys}) == len(keys)  # only system items share an id
        values = [item if self._alone else party + item for party, item in keys]
        self._values = pa.array(values, pa.binary())

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, rows: pa.RecordBatch, item: str) -> I64:
        """Return for each row the number of its item, which is in column `item`; -1 if it is not in the set."""
        if not self.keys:
            return np.full(rows.num_rows, -1, dtype=np.int64)
        wanted = rows.column(item)
        if not self._alone:
            wanted = pc.binary_join_element_wise(rows.column("party"), wanted, _NOTHING)
        found: I64 = pc.index_in(wanted, value_set=self._values).fill_null(-1).to_numpy().astype(np.int64)
        if self._alone:
            known = np.flatnonzero(found >= 0)
            parties = rows.column("party").take(numbers(known, pa.int64())).to_pylist()
            pairs = zip(parties, found[known].tolist(), strict=True)
            other = np.array([party != self.keys[at][0] for party, at in pairs], dtype=np.bool_)
            found[known[other]] = -1
        return found


_NOTHING = pa.scalar(b"", pa.binary())
